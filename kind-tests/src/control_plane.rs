//! A real control plane: etcd and kube-apiserver, without nodes.

mod release;

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use rcgen::KeyPair;

use crate::etcd;
use crate::eventually::{PATIENCE, within};
use crate::https;
use crate::kubeconfig::Access;
use crate::namespace::Namespace;
use crate::ports;
use crate::process::Process;
use crate::run::Run;
use crate::tools::{Tool, path};

pub use self::release::Release;

/// The API server's port in a network namespace of its own.
pub const PORT: u16 = 6443;

/// How a control plane is started.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// In a network namespace of its own, rather than on free ports of loopback.
    pub namespace: bool,
    /// With an etcd that syncs to disk: needed for comparisons of speed, slow for tests.
    pub durable: bool,
    /// Of which release it is.
    pub release: Release,
}

/// A running etcd and kube-apiserver. Stops when it is dropped.
#[derive(Debug)]
pub struct ControlPlane {
    // Fields drop in this order: kube-apiserver waits long for an etcd that is gone.
    apiserver: Process,
    etcd: Process,
    namespace: Option<Namespace>,
    access: Access,
    kubeconfig: PathBuf,
    folder: PathBuf,
    name: String,
    /// To start the programs again.
    arguments: Arguments,
    release: Release,
}

/// The flags of both programs.
#[derive(Clone, Debug)]
struct Arguments {
    etcd: Vec<String>,
    apiserver: Vec<String>,
}

/// Files of a control plane that its other programs need.
#[derive(Debug)]
pub struct Files {
    /// The API server's certificate, with the authority that signed it.
    pub authority: PathBuf,
    /// The key that ServiceAccounts' tokens are signed with.
    pub token_key: PathBuf,
}

/// Where the two programs listen.
#[derive(Debug)]
struct Ports {
    bind: IpAddr,
    address: IpAddr,
    secure: u16,
    etcd: u16,
    etcd_peer: u16,
}

/// How often another choice of free ports is tried: something else may take one in between.
const ATTEMPTS: usize = 3;

// === impl ControlPlane ===

impl ControlPlane {
    /// Starts both programs and waits until the API server is ready.
    ///
    /// # Errors
    /// When a program is missing, or one ends or is not ready in time.
    pub fn start(run: &Run, name: &str, options: Options) -> Result<Self> {
        let mut attempt = 1;
        loop {
            let folder = run.subfolder(&format!("{name}-{attempt}"))?;
            match Self::try_start(run, name, &folder, options) {
                Err(error) if attempt < ATTEMPTS && is_port_taken(&error) => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    fn try_start(run: &Run, name: &str, folder: &Path, options: Options) -> Result<Self> {
        let namespace = options.namespace.then(|| Namespace::create(run)).transpose()?;
        let ports = match &namespace {
            Some(namespace) => Ports::inside(namespace),
            None => Ports::free()?,
        };
        let token = fs::read_to_string("/proc/sys/kernel/random/uuid")?.trim().to_owned();
        let arguments = Arguments {
            etcd: etcd::arguments(folder, ports.etcd, ports.etcd_peer, options.durable),
            apiserver: apiserver_arguments(folder, &ports, &token)?,
        };
        let mut etcd = inside(namespace.as_ref(), path(Tool::Etcd)?);
        etcd.args(&arguments.etcd);
        let etcd = Process::spawn(run, &format!("{name}-etcd"), etcd)?;

        let release = options.release;
        let mut apiserver = inside(namespace.as_ref(), path(release.api_server())?);
        apiserver.args(&arguments.apiserver);
        let mut apiserver = Process::spawn(run, &format!("{name}-apiserver"), apiserver)?;

        let certificate = folder.join("certificates/apiserver.crt");
        let access = within(PATIENCE, "the serving certificate", || {
            apiserver.check_running()?;
            let authority = fs::read_to_string(&certificate).unwrap_or_default();
            let server = format!("https://{}:{}", ports.address, ports.secure);
            Ok(authority.ends_with("-----\n").then_some(Access { server, authority }))
        })?;
        https::until_ready(&mut apiserver, &access)?;
        let kubeconfig = folder.join("admin.kubeconfig");
        access.write(&kubeconfig, &token)?;
        let (folder, name) = (folder.to_owned(), name.to_owned());
        Ok(Self {
            apiserver,
            etcd,
            namespace,
            access,
            kubeconfig,
            folder,
            name,
            arguments,
            release,
        })
    }

    /// A command that runs beside its programs, in the same network.
    pub(crate) fn command(&self, program: PathBuf) -> Command {
        inside(self.namespace.as_ref(), program)
    }

    /// Files that its other programs need.
    pub fn files(&self) -> Files {
        Files {
            authority: self.folder.join("certificates/apiserver.crt"),
            token_key: self.folder.join("service-accounts.key"),
        }
    }

    /// SIGKILL for the API server, as a crash would end it.
    ///
    /// # Errors
    /// When it cannot be killed.
    pub fn kill_api(&mut self) -> Result<()> {
        self.apiserver.kill().map(|_| ())
    }

    /// SIGTERM for the API server, as an upgrade would end it.
    ///
    /// # Errors
    /// When it cannot be ended.
    pub fn stop_api(&mut self) -> Result<()> {
        self.apiserver.terminate().map(|_| ())
    }

    /// Of which release it is.
    pub fn release(&self) -> Release {
        self.release
    }

    /// From now on its programs are started as those of another release, over what etcd holds.
    pub(crate) fn set_release(&mut self, release: Release) {
        self.release = release;
    }

    /// Starts the API server again at its address, and waits until it is ready.
    ///
    /// # Errors
    /// As [`ControlPlane::start`].
    pub fn start_api(&mut self, run: &Run) -> Result<()> {
        self.apiserver.terminate()?;
        let mut command = self.command(path(self.release.api_server())?);
        command.args(&self.arguments.apiserver);
        self.apiserver = Process::spawn(run, &format!("{}-apiserver", self.name), command)?;
        https::until_ready(&mut self.apiserver, &self.access)
    }

    /// Makes the cluster anew, at the same address and with the same credentials: nothing of what it
    /// held is there any more, and it is another one by its UIDs.
    ///
    /// # Errors
    /// As [`ControlPlane::start`].
    pub fn wipe(&mut self, run: &Run) -> Result<()> {
        self.apiserver.kill()?;
        self.etcd.terminate()?;
        fs::remove_dir_all(etcd::data(&self.folder)).context("remove what etcd holds")?;
        let mut etcd = self.command(path(Tool::Etcd)?);
        etcd.args(&self.arguments.etcd);
        self.etcd = Process::spawn(run, &format!("{}-etcd", self.name), etcd)?;
        self.start_api(run)
    }

    /// The kubeconfig of a user in `system:masters`.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The API server's address.
    pub fn url(&self) -> &str {
        &self.access.server
    }

    /// The processes, API server first.
    pub fn processes(&self) -> [&Process; 2] {
        [&self.apiserver, &self.etcd]
    }

    /// Its network namespace, if it has one.
    pub fn namespace(&self) -> Option<&Namespace> {
        self.namespace.as_ref()
    }

    /// Stops it, and fails if a program had ended before. Dropping it stops it as well.
    ///
    /// # Errors
    /// As said, or when a program cannot be stopped.
    pub fn stop(mut self) -> Result<()> {
        self.apiserver.check_running()?;
        self.etcd.check_running()?;
        self.apiserver.terminate()?;
        self.etcd.terminate()?;
        Ok(())
    }
}

// === impl Ports ===

impl Ports {
    fn inside(namespace: &Namespace) -> Self {
        Self {
            bind: Ipv4Addr::UNSPECIFIED.into(),
            address: namespace.address().into(),
            secure: PORT,
            etcd: 2379,
            etcd_peer: 2380,
        }
    }

    fn free() -> Result<Self> {
        let [secure, etcd, etcd_peer] = ports::free()?;
        let bind = Ipv4Addr::LOCALHOST.into();
        Ok(Self { bind, address: bind, secure, etcd, etcd_peer })
    }
}

/// A command in a network namespace, or in this process' own.
fn inside(namespace: Option<&Namespace>, program: PathBuf) -> Command {
    match namespace {
        Some(namespace) => namespace.command(program),
        None => Command::new(program),
    }
}

fn is_port_taken(error: &anyhow::Error) -> bool {
    format!("{error:#}").contains("address already in use")
}

fn apiserver_arguments(folder: &Path, ports: &Ports, token: &str) -> Result<Vec<String>> {
    let tokens = folder.join("tokens.csv");
    fs::write(&tokens, format!("{token},admin,admin,system:masters\n"))?;
    let (key, public) = (folder.join("service-accounts.key"), folder.join("service-accounts.pub"));
    let pair = KeyPair::generate()?;
    fs::write(&key, pair.serialize_pem())?;
    fs::write(&public, pair.public_key_pem())?;
    Ok(vec![
        format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd),
        format!("--bind-address={}", ports.bind),
        format!("--advertise-address={}", ports.address),
        format!("--secure-port={}", ports.secure),
        format!("--cert-dir={}", folder.join("certificates").display()),
        format!("--token-auth-file={}", tokens.display()),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--allow-privileged".to_owned(),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", public.display()),
        format!("--service-account-signing-key-file={}", key.display()),
    ])
}
