//! A network namespace with a cable to the host.

mod cut;

use std::ffi::OsStr;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use parking_lot::Mutex;

use crate::process::ProcessId;
use crate::progress::say;
use crate::run::Run;

pub use self::cut::{Cut, Route};

/// Where `ip netns`, and what keeps to its ways, has the files of namespaces that have names.
pub(crate) const NAMED: &str = "/var/run/netns";

/// A network namespace of its own, with 10.200.I.1 on the host's side and 10.200.I.2 inside.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    index: u8,
}

// === impl Namespace ===

impl Namespace {
    /// Makes one with the first index I that is free, and records it in the run.
    ///
    /// # Errors
    /// When not root, or no index is free.
    pub fn create(run: &Run) -> Result<Self> {
        // Names hold the process and the number, so two threads must not try the same number.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _turn = ONE_AT_A_TIME.lock();
        let own = ProcessId::own()?.to_string();
        let (own, _boot) = own.rsplit_once('_').context("malformed process id")?;
        for index in 1..=254 {
            // The kernel refuses a second interface of the same name: that reserves the index.
            let link = format!("kcp-rs{index}");
            if fs::exists(format!("/sys/class/net/{link}"))? {
                continue;
            }
            let name = format!("kcp-rs_{own}_{index}");
            run.record_namespace(&name)?;
            ip(&["netns", "add", &name])?;
            // From here on it is removed when this is dropped.
            let namespace = Self { name, index };
            let peer = ["type", "veth", "peer", "name", "eth0", "netns", &namespace.name];
            if ip(&[&["link", "add", &link][..], &peer[..]].concat()).is_ok() {
                namespace.configure(&link)?;
                return Ok(namespace);
            }
            // Dropping it removes the namespace; another harness was faster with the link.
        }
        bail!("no free index for a network namespace")
    }

    /// Its name, as `ip netns` knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number, which no other on this machine has while it lives.
    pub fn index(&self) -> u8 {
        self.index
    }

    /// The host's address, as seen from inside.
    pub fn host(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 200, self.index, 1)
    }

    /// The address inside.
    pub fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 200, self.index, 2)
    }

    /// The addresses of pods in it: no two clusters on a machine share them.
    pub fn pods(&self) -> String {
        format!("10.244.{}.0/24", self.index)
    }

    /// Drops all packets of a route, there and back, until that is mended: connections, old ones and
    /// new ones, meet silence.
    ///
    /// # Errors
    /// When the firewall does not take the rules.
    pub fn cut(&self, route: Route) -> Result<Cut> {
        Cut::new(self, route)
    }

    /// A command that will run in it. `nsenter` rather than `ip netns exec`, which would mount
    /// another `/sys`; it replaces itself by the program, so the process id is the program's.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={NAMED}/{}", self.name)).arg(program);
        command
    }

    fn configure(&self, link: &str) -> Result<()> {
        let (host, inside) = (self.host().to_string(), self.address().to_string());
        ip(&["address", "add", &format!("{host}/24"), "dev", link])?;
        ip(&["link", "set", link, "up"])?;
        let within = |args: &[&str]| ip(&[&["-n", &self.name][..], args].concat());
        within(&["address", "add", &format!("{inside}/24"), "dev", "eth0"])?;
        within(&["link", "set", "lo", "up"])?;
        within(&["link", "set", "eth0", "up"])?;
        within(&["route", "add", "default", "via", &host])?;
        fs::write("/proc/sys/net/ipv4/ip_forward", "1").context("allow forwarding")?;
        fs::write("/proc/sys/net/ipv4/conf/all/route_localnet", "1").context("route localnet")
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.name) {
            say(format!("{error:#}"));
        }
    }
}

/// Removes a network namespace by its name, if it is there.
///
/// # Errors
/// When it stays.
pub(crate) fn remove(name: &str) -> Result<()> {
    let is_there = || Path::new(NAMED).join(name).exists();
    if !is_there() {
        return Ok(());
    }
    // Another one may remove it meanwhile.
    match ip(&["netns", "delete", name]) {
        Err(error) if is_there() => Err(error),
        _ => Ok(()),
    }
}

fn ip(args: &[&str]) -> Result<()> {
    let output = Command::new("ip").args(args).output().context("run ip")?;
    if !output.status.success() {
        bail!("ip {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
