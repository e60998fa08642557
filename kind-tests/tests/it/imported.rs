//! Imported types against those of the real API server that they come from: the same commands of
//! kubectl have the same effects and say the same.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use anyhow::{Context, Result, ensure};
use kind_tests::imported::import_types;
use kind_tests::kubectl::Output;
use kind_tests::scenario::Need;
use kind_tests::{ControlPlane, Hub, Kubectl, Run, Tool, control_plane, scenario};
use regex::Regex;
use serde_json::Value;

use crate::support::{check_contains, json};

const NEEDS: [Need; 3] =
    [Need::Tool(Tool::Etcd), Need::Tool(Tool::KubeApiserver), Need::Tool(Tool::Kubectl)];

const SCRIPT: &str = include_str!("imported/script.txt");

/// A real cluster, and a logical cluster with its types.
struct Sides {
    real: Kubectl,
    ours: Kubectl,
}

#[test]
fn kubectl_finds_imported_types_as_they_were() {
    with_sides("kubectl_finds_imported_types", |run, sides| {
        let folder = run.folder();
        let file = |name: &str, text: &str| -> Result<String> {
            let path = folder.join(name);
            fs::write(&path, text)?;
            Ok(path.to_str().context("a path in UTF-8")?.to_owned())
        };
        let deployment = file("deployment.yaml", include_str!("imported/deployment.yaml"))?;
        let objects = file("objects.yaml", include_str!("imported/objects.yaml"))?;
        let editor = file("editor", "#!/bin/sh\nsed -i 's/replicas: 2/replicas: 7/' \"$1\"\n")?;
        fs::set_permissions(&editor, fs::Permissions::from_mode(0o755))?;
        let mask = Mask::new()?;
        let sides = sides.variable("KUBE_EDITOR", &editor);
        let mut different = Vec::new();
        let mut expected = Expected::Same;
        for line in SCRIPT.lines().filter(|line| !line.starts_with('#')) {
            if let Some(next) = Expected::of(line) {
                expected = next;
                continue;
            }
            let words = words(line, &deployment, &objects);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let (real, ours) = (sides.real.run(&words)?, sides.ours.run(&words)?);
            let codes = (real.code == 0) == (ours.code == 0);
            let (real, ours) = (mask.output(&real), mask.output(&ours));
            let found = match (codes, real == ours) {
                (true, true) => Expected::Same,
                (true, false) => Expected::OtherText,
                (false, _) => Expected::OtherCode,
            };
            if found != expected {
                let apart = lines_apart(&real, &ours);
                different.push(format!("--- {found:?}: kubectl {line}\n{apart}"));
            }
            expected = Expected::Same;
        }
        ensure!(different.is_empty(), "different:\n{}", different.join("\n"));
        Ok(())
    });
}

/// `rollout undo` and `rollout history` read the ReplicaSets that the Deployment's controller made.
#[test]
fn a_rollout_is_undone() {
    with_sides("a_rollout_is_undone", |_run, sides| {
        for kubectl in [&sides.real, &sides.ours] {
            kubectl.ok(&["create", "deployment", "web", "--image=nginx:1"])?;
            revision(kubectl, 1)?;
            kubectl.ok(&["set", "image", "deployment/web", "nginx=nginx:2"])?;
            revision(kubectl, 2)?;
            let history = kubectl.ok(&["rollout", "history", "deployment/web"])?;
            check_contains(&history, &["REVISION", "\n1 ", "\n2 "])?;
            let undone = kubectl.ok(&["rollout", "undo", "deployment/web", "--to-revision=1"])?;
            ensure!(undone == "deployment.apps/web rolled back\n", "{undone}");
            let path = "--output=jsonpath={.spec.template.spec.containers[0].image}";
            ensure!(kubectl.ok(&["get", "deployment", "web", path])? == "nginx:1");
            let status = r#"{"status":{"observedGeneration":9,"replicas":1,"readyReplicas":1,
                "updatedReplicas":1,"availableReplicas":1,"conditions":[{"type":"Progressing",
                "status":"True","reason":"NewReplicaSetAvailable"}]}}"#;
            let subresource = ["--subresource=status", "--type=merge", "--patch", status];
            kubectl.ok(&[&["patch", "deployment/web"], &subresource[..]].concat())?;
            let told = kubectl.ok(&["rollout", "status", "deployment/web"])?;
            ensure!(told == "deployment \"web\" successfully rolled out\n", "{told}");
            let table = kubectl.ok(&["get", "deployment", "web", "--no-headers"])?;
            let cells: Vec<&str> = table.split_whitespace().take(4).collect();
            ensure!(cells == ["web", "1/1", "1", "1"], "{table}");
        }
        Ok(())
    });
}

/// An import is repeated without an effect, and says what it leaves out.
#[test]
fn an_import_can_be_repeated() {
    scenario("an_import_can_be_repeated", &NEEDS, |run| {
        let plane = ControlPlane::start(run, "plane", control_plane::Options::default())?;
        let mut hub = Hub::start(run, "hub")?;
        let import = |more: &[&str]| import_types(&hub, plane.kubeconfig(), "one", more);
        let some = ["--resources", "deployments.apps,services"];
        let told = import(&some)?;
        check_contains(&told, &["imported deployments.apps (v1)", "imported services.core (v1)"])?;
        check_contains(&told, &["one: 2 types imported, 0 updated, 0 unchanged, 0 skipped\n"])?;
        let told = import(&some)?;
        check_contains(&told, &["one: 0 types imported, 0 updated, 2 unchanged, 0 skipped\n"])?;
        let error = import(&["--resources", "trains.core"]).err().context("no trains")?;
        check_contains(&format!("{error:#}"), &["the cluster does not serve trains.core"])?;
        let told = import(&[])?;
        check_contains(&told, &["skipped configmaps.core: this server serves it itself"])?;
        check_contains(&told, &["2 unchanged", "0 updated"])?;

        let kubectl = Kubectl::new(run, Tool::Kubectl, &hub.kubeconfig())?;
        let one = kubectl.server(&hub.cluster_url("one"));
        one.ok(&["create", "deployment", "web", "--image=nginx"])?;
        // A type that somebody changed is brought back; objects stay.
        let patch = r#"--patch={"spec":{"names":{"shortNames":["dep"]}}}"#;
        one.ok(&["patch", "crd", "deployments.apps", "--type=merge", patch])?;
        check_contains(&import(&some)?, &["updated deployments.apps (v1)"])?;
        ensure!(one.ok(&["get", "deploy", "--output=name"])? == "deployment.apps/web\n");
        let error = kubectl.fails(&["get", "deployments"])?;
        check_contains(&error, &["doesn't have a resource type \"deployments\""])?;
        hub.terminate()?;
        plane.stop()
    });
}

fn with_sides(name: &str, test: impl FnOnce(&Run, &Sides) -> Result<()>) {
    scenario(name, &NEEDS, |run| {
        let plane = ControlPlane::start(run, "plane", control_plane::Options::default())?;
        let mut hub = Hub::start(run, "hub")?;
        import_types(&hub, plane.kubeconfig(), "one", &[])?;
        let ours = Kubectl::new(run, Tool::Kubectl, &hub.kubeconfig())?;
        let sides = Sides {
            real: Kubectl::new(run, Tool::Kubectl, plane.kubeconfig())?,
            ours: ours.server(&hub.cluster_url("one")),
        };
        test(run, &sides)?;
        hub.terminate()?;
        plane.stop()
    });
}

/// A ReplicaSet as the controller makes one of the Deployment's template.
fn revision(kubectl: &Kubectl, number: u32) -> Result<()> {
    let mut set = json(&kubectl.ok(&["get", "deployment", "web", "--output=json"])?)?;
    let owner = serde_json::json!([{
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "web",
        "uid": set["metadata"]["uid"],
        "controller": true,
    }]);
    set["kind"] = "ReplicaSet".into();
    set["metadata"] = serde_json::json!({
        "name": format!("web-{number}"),
        "labels": {"app": "web"},
        "annotations": {"deployment.kubernetes.io/revision": number.to_string()},
        "ownerReferences": owner,
    });
    for field in ["strategy", "progressDeadlineSeconds", "revisionHistoryLimit"] {
        set["spec"].as_object_mut().context("a spec")?.remove(field);
    }
    set["status"] = Value::Null;
    kubectl.ok_with_input(&["create", "--filename=-"], &set.to_string()).map(|_| ())
}

// === impl Sides ===

impl Sides {
    fn variable(&self, name: &str, value: &str) -> Self {
        let [real, ours] = [&self.real, &self.ours].map(|side| side.variable(name, value));
        Self { real, ours }
    }
}

/// How the answers to a command compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Same,
    OtherText,
    OtherCode,
}

// === impl Expected ===

impl Expected {
    fn of(line: &str) -> Option<Self> {
        match line.split_at_checked(1)?.0 {
            "~" => Some(Self::OtherText),
            "!" => Some(Self::OtherCode),
            _ => None,
        }
    }
}

/// The arguments of a line of the script. A schedule has spaces, which are underscores there.
fn words(line: &str, deployment: &str, objects: &str) -> Vec<String> {
    let word = |word: &str| match word.starts_with("--schedule=") {
        true => word.replace('_', " "),
        false => word.replace("DEPLOYMENT", deployment).replace("OBJECTS", objects),
    };
    line.split(' ').map(word).collect()
}

/// What differs between any two servers.
struct Mask(Vec<(Regex, &'static str)>);

// === impl Mask ===

impl Mask {
    fn new() -> Result<Self> {
        let rules = [
            (r"https://[0-9.:a-z]+(/clusters/[a-z]+)?", "URL"),
            ("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID"),
            (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
            (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000", "TIME"),
            (r#"(resourceVersion"?): "?\d+"?"#, "$1"),
            (r"(?m) +\d+[smh](\d+s)?( |$)", " AGE$2"),
            (r"/tmp/LIVE-\d+/|/tmp/MERGED-\d+/", "FOLDER"),
            (r"/tmp/[A-Za-z-]*\d+\.yaml", "FILE"),
            // The address of the server itself.
            (r"\b10\.\d+\.0\.1\b", "ADDRESS"),
        ];
        let rule = |(from, to)| Ok((Regex::new(from)?, to));
        Ok(Self(rules.into_iter().map(rule).collect::<Result<_>>()?))
    }

    fn output(&self, output: &Output) -> String {
        let mut text = output.to_string();
        for (from, to) in &self.0 {
            text = from.replace_all(&text, *to).into_owned();
        }
        text
    }
}

/// The lines that only one of two texts has, those of the real server first.
fn lines_apart(real: &str, ours: &str) -> String {
    let only = |sign: char, a: &str, b: &str| -> String {
        let there: Vec<&str> = b.lines().collect();
        let lines = a.lines().filter(|line| !there.contains(line));
        lines.map(|line| format!("{sign} {line}\n")).collect()
    };
    let apart = format!("{}{}", only('-', real, ours), only('+', ours, real));
    if apart.is_empty() { format!("- {real}\n+ {ours}") } else { apart }
}
