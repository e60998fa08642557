//! Connections of a cluster that are cut: a firewall that drops their packets and tells nobody.

use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{NAMED, Namespace};
use crate::progress::say;

/// Connections that are cut together. Who is named first opens them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// From the cluster's pods to a port outside.
    PodsOutside(u16),
    /// From the cluster's pods to a port of its control plane.
    PodsToControlPlane(u16),
    /// From outside to a port of the control plane. The node's own programs are not outside.
    OutsideToControlPlane(u16),
}

/// A route that is cut. It is mended when this is dropped.
#[derive(Debug)]
pub struct Cut {
    /// The flag by which its namespace is entered.
    enter: String,
    rules: Vec<String>,
}

// === impl Route ===

impl Route {
    /// What matches its packets, there and back, with the chain that they pass.
    fn rules(self, namespace: &Namespace) -> [String; 2] {
        let pods = namespace.pods();
        match self {
            Self::PodsOutside(port) => [
                format!("FORWARD -s {pods} -p tcp --dport {port}"),
                format!("FORWARD -d {pods} -p tcp --sport {port}"),
            ],
            Self::PodsToControlPlane(port) => [
                format!("INPUT -s {pods} -p tcp --dport {port}"),
                format!("OUTPUT -d {pods} -p tcp --sport {port}"),
            ],
            Self::OutsideToControlPlane(port) => [
                format!("INPUT -i eth0 -p tcp --dport {port}"),
                format!("OUTPUT -o eth0 -p tcp --sport {port}"),
            ],
        }
    }
}

// === impl Cut ===

impl Cut {
    pub(super) fn new(namespace: &Namespace, route: Route) -> Result<Self> {
        let enter = format!("--net={NAMED}/{}", namespace.name());
        let mut cut = Self { enter, rules: Vec::new() };
        for rule in route.rules(namespace) {
            // At the head of its chain: others let pass whatever is established.
            cut.iptables("--insert", &rule)?;
            cut.rules.push(rule);
        }
        Ok(cut)
    }

    /// Lets everything pass again.
    ///
    /// # Errors
    /// When a rule cannot be taken back.
    pub fn mend(mut self) -> Result<()> {
        self.take_back()
    }

    fn take_back(&mut self) -> Result<()> {
        while let Some(rule) = self.rules.pop() {
            self.iptables("--delete", &rule)?;
        }
        Ok(())
    }

    fn iptables(&self, action: &str, rule: &str) -> Result<()> {
        let mut command = Command::new("nsenter");
        // Another program that changes rules holds a lock for a moment.
        command.args([&self.enter, "iptables", "--wait", "30", action]);
        let output = command.args(rule.split(' ')).args(["-j", "DROP"]).output();
        let output = output.context("run iptables")?;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            bail!("iptables {action} {rule}: {}", error.trim());
        }
        Ok(())
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        if let Err(error) = self.take_back() {
            say(format!("a cut is not mended: {error:#}"));
        }
    }
}
