//! How each program is built.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{Tool, crate_folder};

/// One program: its wrapper module, its package there, and what the linker is told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recipe {
    pub(super) program: &'static str,
    folder: &'static str,
    package: &'static str,
    /// The required module whose version is the program's; none for our own code.
    versioned_by: Option<&'static str>,
    stamp: Stamp,
    test_binary: bool,
}

/// Where the program keeps its version.
#[derive(Clone, Copy, Debug)]
enum Stamp {
    None,
    Kubernetes,
    Variable(&'static str),
}

const KUBERNETES: Recipe = Recipe {
    program: "",
    folder: "tools/kubernetes",
    package: "",
    versioned_by: Some("k8s.io/kubernetes"),
    stamp: Stamp::Kubernetes,
    test_binary: false,
};

// === impl Recipe ===

impl Recipe {
    pub(super) fn of(tool: Tool) -> Self {
        match tool {
            Tool::Etcd => Self::plain(
                "etcd",
                "tools/etcd",
                "go.etcd.io/etcd/server/v3",
                "go.etcd.io/etcd/server/v3",
                Stamp::None,
            ),
            Tool::KubeApiserver => {
                Self::kubernetes("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver")
            }
            Tool::KubeApiserverOlder => {
                Self { folder: "tools/kubernetes-1.35", ..Self::of(Tool::KubeApiserver) }
            }
            Tool::KubeControllerManager => Self::kubernetes(
                "kube-controller-manager",
                "k8s.io/kubernetes/cmd/kube-controller-manager",
            ),
            Tool::KubeControllerManagerOlder => {
                Self { folder: "tools/kubernetes-1.35", ..Self::of(Tool::KubeControllerManager) }
            }
            Tool::KubeScheduler => {
                Self::kubernetes("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler")
            }
            Tool::Kubelet => Self::kubernetes("kubelet", "k8s.io/kubernetes/cmd/kubelet"),
            Tool::KubeProxy => Self::kubernetes("kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy"),
            Tool::Kubectl => Self::kubernetes("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
            Tool::KubectlOlder => Self { folder: "tools/kubectl-1.35", ..Self::of(Tool::Kubectl) },
            Tool::E2eTest => Self {
                test_binary: true,
                ..Self::kubernetes("e2e.test", "k8s.io/kubernetes/test/e2e")
            },
            Tool::Kwok => Self::plain(
                "kwok",
                "tools/kwok",
                "sigs.k8s.io/kwok/cmd/kwok",
                "sigs.k8s.io/kwok",
                Stamp::Variable("sigs.k8s.io/kwok/pkg/consts.Version"),
            ),
            Tool::Helm3 => Self::plain(
                "helm",
                "tools/helm-3",
                "helm.sh/helm/v3/cmd/helm",
                "helm.sh/helm/v3",
                Stamp::Variable("helm.sh/helm/v3/internal/version.version"),
            ),
            Tool::Helm4 => Self::plain(
                "helm",
                "tools/helm-4",
                "helm.sh/helm/v4/cmd/helm",
                "helm.sh/helm/v4",
                Stamp::Variable("helm.sh/helm/v4/internal/version.version"),
            ),
            Tool::Controller => Self::plain(
                "controller",
                "tools/controller",
                ".",
                "sigs.k8s.io/controller-runtime",
                Stamp::None,
            ),
            Tool::Loadgen => Self {
                program: "loadgen",
                folder: "loadgen",
                package: ".",
                versioned_by: None,
                stamp: Stamp::None,
                test_binary: false,
            },
        }
    }

    fn kubernetes(program: &'static str, package: &'static str) -> Self {
        Self { program, package, ..KUBERNETES }
    }

    fn plain(
        program: &'static str,
        folder: &'static str,
        package: &'static str,
        module: &'static str,
        stamp: Stamp,
    ) -> Self {
        Self { program, folder, package, versioned_by: Some(module), stamp, test_binary: false }
    }

    /// The folder of the wrapper module.
    pub(super) fn module(&self) -> PathBuf {
        crate_folder().join(self.folder)
    }

    /// The version that the wrapper requires.
    pub(super) fn version(&self) -> Result<String> {
        let Some(module) = self.versioned_by else { return Ok("v0".to_owned()) };
        let file = self.module().join("go.mod");
        let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        let requirements = text.lines().map(|line| line.trim().trim_start_matches("require "));
        requirements
            .filter_map(|line| line.strip_prefix(module)?.strip_prefix(' '))
            .find_map(|rest| rest.split_whitespace().next().filter(|v| v.starts_with('v')))
            .map(str::to_owned)
            .with_context(|| format!("{} does not require {module}", file.display()))
    }

    /// The arguments of `go`, without the output.
    pub(super) fn arguments(&self) -> Result<Vec<String>> {
        // Vetting would look at every package below, which takes longer than compiling them.
        let action: &[&str] =
            if self.test_binary { &["test", "-c", "-vet=off"] } else { &["build"] };
        let mut arguments: Vec<String> = action.iter().map(|&a| a.to_owned()).collect();
        arguments.extend(["-trimpath".to_owned(), "-mod=readonly".to_owned()]);
        arguments.push(format!("-ldflags={}", self.linker_flags()?));
        arguments.push(self.package.to_owned());
        Ok(arguments)
    }

    fn linker_flags(&self) -> Result<String> {
        let version = self.version()?;
        Ok(match self.stamp {
            Stamp::None => "-s -w".to_owned(),
            Stamp::Variable(name) => format!("-s -w -X {name}={version}"),
            Stamp::Kubernetes => {
                let mut numbers = version.trim_start_matches('v').split('.');
                let (major, minor) = (numbers.next(), numbers.next());
                let package = "k8s.io/component-base/version";
                format!(
                    "-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={} -X {package}.gitMinor={}",
                    major.context("a version has a major number")?,
                    minor.context("a version has a minor number")?,
                )
            }
        })
    }
}
