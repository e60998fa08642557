//! The agent as a process: for physical clusters without nodes, where it is started as its Deployment
//! there says, with what a kubelet would give its pod; or by hand.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::cargo::Program;
use crate::kubeconfig::Access;
use crate::kubectl::Kubectl;
use crate::ports;
use crate::process::Process;
use crate::run::Run;

/// The agent's program.
pub static PROGRAM: Program = Program::new("agent", "kcp-agent", "KCP_AGENT");

/// What the operator installs, by name.
const DEPLOYMENT: &str = "kcp-agent";
const SERVICE_ACCOUNT: &str = "kcp-agent";

/// Where the agent's pod finds the Secret with the hub's authority and the bootstrap token.
const HUB_DIRECTORY: &str = "/etc/kcp/hub";
const HUB_SECRET: &str = "kcp-agent-hub";

/// What a pod of the agent is given, so that it can be started again.
#[derive(Debug)]
pub struct Agent {
    process: Process,
    run: Run,
    name: String,
    /// Of its pod; empty for one by hand.
    namespace: String,
    arguments: Vec<String>,
    port: u16,
}

// === impl Agent ===

impl Agent {
    /// Starts the agent that is installed in `namespace` of a physical cluster, whose administrator
    /// `kubectl` is. It reaches the cluster at the address in the kubeconfig `admin`, and has no more
    /// rights there than its ServiceAccount.
    ///
    /// # Errors
    /// When nothing is installed there, or the agent does not start.
    pub fn start(
        run: &Run,
        name: &str,
        kubectl: &Kubectl,
        admin: &Path,
        namespace: &str,
    ) -> Result<Self> {
        let kubectl = kubectl.with(&format!("--namespace={namespace}"));
        let get = |kind: &str, name: &str| -> Result<Value> {
            let text = kubectl.ok(&["get", kind, name, "--output=json"])?;
            serde_json::from_str(&text).context("parse kubectl's JSON")
        };
        let folder = run.subfolder(&format!("{name}-pod"))?;
        let secret = get("secret", HUB_SECRET)?;
        for (file, content) in secret["data"].as_object().into_iter().flatten() {
            let content = STANDARD.decode(content.as_str().unwrap_or_default())?;
            fs::write(folder.join(file), content)?;
        }
        let token = kubectl.ok(&["create", "token", SERVICE_ACCOUNT, "--duration=24h"])?;
        let kubeconfig = folder.join("kubeconfig");
        Access::read(admin, None)?.write(&kubeconfig, token.trim())?;

        let [port] = ports::free()?;
        let deployment = get("deployment", DEPLOYMENT)?;
        let arguments = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
        let arguments = arguments.as_array().context("the agent's container has no arguments")?;
        let directory = folder.to_str().context("a path in UTF-8")?;
        let arguments = arguments.iter().filter_map(Value::as_str).map(|argument| {
            if argument.starts_with("--listen=") {
                return format!("--listen=127.0.0.1:{port}");
            }
            let argument = argument.replace(HUB_DIRECTORY, directory);
            argument.replace("$(POD_NAMESPACE)", namespace)
        });
        let mut arguments: Vec<String> = arguments.collect();
        ensure!(arguments.iter().any(|one| one.starts_with("--hub=")), "{arguments:?}");
        arguments.push(format!("--to-kubeconfig={}", kubeconfig.display()));
        let process = spawn(run, name, namespace, &arguments)?;
        let (name, namespace) = (name.to_owned(), namespace.to_owned());
        Ok(Self { process, run: run.clone(), name, namespace, arguments, port })
    }

    /// Starts an agent by hand, with these flags.
    ///
    /// # Errors
    /// When it does not build or start.
    pub fn by_hand(run: &Run, name: &str, flags: &[String]) -> Result<Self> {
        let [port] = ports::free()?;
        let listen = format!("--listen=127.0.0.1:{port}");
        let arguments = [flags, &[listen]].concat();
        let process = spawn(run, name, "", &arguments)?;
        let (name, namespace) = (name.to_owned(), String::new());
        Ok(Self { process, run: run.clone(), name, namespace, arguments, port })
    }

    /// The process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// The sum of all series of its metrics that begin so, with labels as they are shown.
    ///
    /// # Errors
    /// When the agent does not answer.
    pub fn sum(&self, prefix: &str) -> Result<f64> {
        sum_at(self.port, prefix)
    }

    /// All series of its metrics that begin so, and their values.
    ///
    /// # Errors
    /// When the agent does not answer.
    pub fn series(&self, prefix: &str) -> Result<BTreeMap<String, f64>> {
        series_at(self.port, prefix)
    }

    /// Starts it again as it was started; kills it first, if it still runs.
    ///
    /// # Errors
    /// When it does not start.
    pub fn restart(&mut self) -> Result<()> {
        if self.process.exited()?.is_none() {
            self.process.kill()?;
        }
        self.process = spawn(&self.run, &self.name, &self.namespace, &self.arguments)?;
        Ok(())
    }

    /// SIGTERM; fails unless it ends by itself and well.
    ///
    /// # Errors
    /// As said.
    pub fn terminate(&mut self) -> Result<()> {
        let status = self.process.terminate()?;
        if !status.success() {
            bail!("after SIGTERM the agent ended with {status}");
        }
        Ok(())
    }
}

/// The sum of all series that begin so, among the metrics of an agent with its pages at this port of
/// loopback.
///
/// # Errors
/// When the agent does not answer.
pub fn sum_at(port: u16, prefix: &str) -> Result<f64> {
    Ok(series_at(port, prefix)?.into_values().sum())
}

fn series_at(port: u16, prefix: &str) -> Result<BTreeMap<String, f64>> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).context("reach the agent")?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    ensure!(text.starts_with("HTTP/1.1 200"), "the agent's metrics can't be read");
    let lines = text.lines().filter(|line| line.starts_with(prefix));
    let series = lines.filter_map(|line| {
        let (name, value) = line.rsplit_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    });
    Ok(series.collect())
}

fn spawn(run: &Run, name: &str, namespace: &str, arguments: &[String]) -> Result<Process> {
    let mut command = Command::new(PROGRAM.to_test()?);
    command.args(arguments);
    if !namespace.is_empty() {
        command.env("POD_NAME", name).env("POD_NAMESPACE", namespace);
    }
    Process::spawn(run, name, command)
}
