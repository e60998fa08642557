//! A real etcd cluster.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use crate::eventually::{PATIENCE, within};
use crate::ports;
use crate::process::Process;
use crate::run::Run;
use crate::tools::{Tool, path};

/// How long a member may take to say whether it is well.
const HEALTH_PATIENCE: Duration = Duration::from_secs(2);

/// How an etcd cluster is started.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many members it has.
    pub members: usize,
    /// Whether it syncs to disk: needed for measuring, slow for tests.
    pub durable: bool,
    /// Whether clients talk TLS, and must have a certificate.
    pub tls: bool,
    /// The most bytes that its database takes, if not etcd's default.
    pub quota: Option<u64>,
}

/// A running etcd cluster on free ports of loopback. Stops when it is dropped.
#[derive(Debug)]
pub struct Etcd {
    members: Vec<Member>,
    certificates: Option<Certificates>,
}

/// Files for TLS, as PEM.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// The authority.
    pub authority: PathBuf,
    /// The servers' certificate and key, which is the clients' as well.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

#[derive(Debug)]
struct Member {
    process: Process,
    url: String,
}

/// The ports of one member.
#[derive(Clone, Copy, Debug)]
struct Ports {
    client: u16,
    peer: u16,
    health: u16,
}

// === impl Options ===

impl Default for Options {
    fn default() -> Self {
        Self { members: 1, durable: false, tls: false, quota: None }
    }
}

// === impl Etcd ===

impl Etcd {
    /// Starts a cluster and waits until each member is well.
    ///
    /// # Errors
    /// When the program is missing, or a member ends or is not well in time.
    pub fn start(run: &Run, name: &str, options: Options) -> Result<Self> {
        let folder = run.subfolder(name)?;
        let certificates = options.tls.then(|| Certificates::make(&folder)).transpose()?;
        let ports = ports::free_sets(options.members)?;
        let ports = ports.into_iter().map(|[client, peer, health]| Ports { client, peer, health });
        let ports = ports.collect::<Vec<_>>();
        let cluster = ports.iter().enumerate().map(|(n, p)| format!("m{n}={}", http(p.peer)));
        let cluster = cluster.collect::<Vec<_>>().join(",");
        let mut members = Vec::new();
        for (index, ports) in ports.iter().enumerate() {
            let member = format!("m{index}");
            let scheme = if options.tls { "https" } else { "http" };
            let url = format!("{scheme}://127.0.0.1:{}", ports.client);
            let mut etcd = Command::new(path(Tool::Etcd)?);
            let peer = http(ports.peer);
            let data = folder.join(&member);
            etcd.args(flags(&member, &data, &url, &peer, &cluster, options.durable));
            etcd.arg(format!("--listen-metrics-urls={}", http(ports.health)));
            if let Some(quota) = options.quota {
                etcd.arg(format!("--quota-backend-bytes={quota}"));
            }
            if let Some(Certificates { authority, certificate, key }) = &certificates {
                etcd.arg(format!("--trusted-ca-file={}", authority.display()))
                    .arg(format!("--cert-file={}", certificate.display()))
                    .arg(format!("--key-file={}", key.display()))
                    .arg("--client-cert-auth");
            }
            let process = Process::spawn(run, &format!("{name}-{member}"), etcd)?;
            members.push(Member { process, url });
        }
        for (member, ports) in members.iter_mut().zip(&ports) {
            within(PATIENCE, "etcd to be well", || {
                member.process.check_running()?;
                Ok(is_well(ports.health).unwrap_or(false).then_some(()))
            })?;
        }
        Ok(Self { members, certificates })
    }

    /// The addresses of its members.
    pub fn urls(&self) -> Vec<String> {
        self.members.iter().map(|member| member.url.clone()).collect()
    }

    /// What clients need for TLS, if they do.
    pub fn certificates(&self) -> Option<&Certificates> {
        self.certificates.as_ref()
    }

    /// The processes, in the order of [`Etcd::urls`].
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        self.members.iter().map(|member| &member.process)
    }

    /// SIGKILL for one member.
    ///
    /// # Errors
    /// When there is no such member, or it cannot be killed.
    pub fn kill(&mut self, member: usize) -> Result<()> {
        let member = self.members.get_mut(member).context("there is no such member")?;
        member.process.kill().map(|_| ())
    }

    /// Stops it, and fails if a member had ended before. Dropping it stops it as well.
    ///
    /// # Errors
    /// As said, or when a member cannot be stopped.
    pub fn stop(mut self) -> Result<()> {
        for member in &mut self.members {
            member.process.check_running()?;
        }
        for member in &mut self.members {
            member.process.terminate()?;
        }
        Ok(())
    }
}

// === impl Certificates ===

impl Certificates {
    fn make(folder: &Path) -> Result<Self> {
        let (authority_key, key) = (KeyPair::generate()?, KeyPair::generate()?);
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, "etcd-ca");
        let authority_text = authority.self_signed(&authority_key)?.pem();
        let issuer = Issuer::new(authority, authority_key);
        let mut params = CertificateParams::new(["127.0.0.1".to_owned(), "localhost".to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, "kcp");
        let certificate = params.signed_by(&key, &issuer)?.pem();
        let write = |name: &str, text: String| -> Result<PathBuf> {
            let path = folder.join(name);
            fs::write(&path, text)?;
            Ok(path)
        };
        Ok(Self {
            authority: write("ca.crt", authority_text)?,
            certificate: write("etcd.crt", certificate)?,
            key: write("etcd.key", key.serialize_pem())?,
        })
    }
}

/// Where an etcd of one member keeps its data.
pub(crate) fn data(folder: &Path) -> PathBuf {
    folder.join("etcd")
}

/// The flags of an etcd of one member without TLS.
pub(crate) fn arguments(folder: &Path, client: u16, peer: u16, durable: bool) -> Vec<String> {
    let (client, peer) = (http(client), http(peer));
    let cluster = format!("default={peer}");
    flags("default", &data(folder), &client, &peer, &cluster, durable)
}

/// The flags that every member has.
fn flags(
    name: &str,
    data: &Path,
    client: &str,
    peer: &str,
    cluster: &str,
    durable: bool,
) -> Vec<String> {
    let mut flags = vec![
        format!("--name={name}"),
        format!("--data-dir={}", data.display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster={cluster}"),
        "--log-level=error".to_owned(),
    ];
    if !durable {
        flags.push("--unsafe-no-fsync".to_owned());
    }
    flags
}

fn http(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

/// Whether a member has a leader and can work.
fn is_well(port: u16) -> Result<bool> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(HEALTH_PATIENCE))?;
    stream.write_all(b"GET /health HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    ensure!(!answer.is_empty(), "etcd has closed the connection");
    Ok(answer.contains("\"health\":\"true\""))
}
