//! Schedules are played on one site.

use anyhow::{Context, Result, ensure};
use kind_tests::cable::Condition;
use kind_tests::{Cable, Deletions, eventually};
use regex::Regex;
use std::path::PathBuf;

use super::check::{agree, origin};
use super::schedule::{Fault, Link, Program, Schedule};
use super::writer::{NAMESPACE, Side, Writer};
use crate::site::{Site, TARGET, condition};

/// What is watched for deletions in the cluster.
const COPIES: [&str; 2] =
    ["/api/v1/namespaces/part/configmaps", "/apis/apps/v1/namespaces/part/deployments"];

/// The site, who writes, and who watches.
pub(super) struct Stage {
    site: Site,
    hub: Side,
    cluster: Side,
    writer: Writer,
    deletions: Deletions,
    /// The hub's last export, and how many there were.
    export: Option<PathBuf>,
    numbers: u32,
    /// The root directory with the store that the hub is to come back with.
    aside: Option<PathBuf>,
    /// Whether the hub has lost something, as what it came back with was older.
    went_back: bool,
}

// === impl Stage ===

impl Stage {
    pub(super) fn new(site: Site) -> Result<Self> {
        site.up.ok(&["create", "namespace", NAMESPACE])?;
        let (hub, cluster) =
            (Side::hub(&site.hub.kubeconfig())?, Side::cluster(site.plane.kubeconfig())?);
        let writer = Writer::start(hub.clone(), cluster.clone());
        let deletions = Deletions::watch(site.plane.kubeconfig(), &COPIES)?;
        let (export, aside) = (None, None);
        let (numbers, went_back) = (0, false);
        Ok(Self { site, hub, cluster, writer, deletions, export, numbers, aside, went_back })
    }

    /// Plays a schedule, and waits until all agree again. Says what was done.
    pub(super) fn play(&mut self, schedule: &Schedule) -> Result<String> {
        let before = (self.writer.model(|model| model.acknowledged), self.deletions.so_far().len());
        self.writer.pause(false)?;
        for (after, fault) in &schedule.steps {
            self.writer.turns(*after)?;
            self.strike(*fault).with_context(|| format!("{fault:?}"))?;
        }
        self.writer.turns(10)?;
        self.writer.pause(true)?;
        self.settle()?;
        let acknowledged = self.writer.model(|model| model.acknowledged) - before.0;
        let gone = self.deletions.so_far().len() - before.1;
        Ok(format!("{acknowledged} changes were acknowledged, {gone} copies went"))
    }

    /// Ends it.
    pub(super) fn end(mut self) -> Result<()> {
        self.writer.end()?;
        self.site.agent.process().check_running()?;
        self.site.operator.terminate()?;
        self.site.hub.terminate()
    }

    fn strike(&mut self, fault: Fault) -> Result<()> {
        match fault {
            Fault::Silence(link) => self.cable(link).set(Condition::Silent),
            Fault::Close(link) => self.cable(link).set(Condition::Closed),
            Fault::Mend(link) => self.cable(link).set(Condition::Whole),
            Fault::Kill(program) => self.kill(program)?,
            Fault::Start(program) => self.start(program)?,
            Fault::Export => {
                self.site.hub.process().terminate()?;
                self.numbers += 1;
                let file = self.site.run.folder().join(format!("export-{}", self.numbers));
                self.site.hub.export(&file)?;
                self.export = Some(file);
                self.site.hub.restart()?;
            }
            Fault::Restore => {
                let file = self.export.clone().context("something was exported")?;
                self.writer.pause(true)?;
                let root = self.root()?;
                self.site.hub.replace(&root, Some(&file))?;
                let present = self.hub.all()?;
                self.writer.model(|model| model.goes_back(&present));
                self.went_back = true;
                self.writer.pause(false)?;
            }
            Fault::Anew => {
                self.writer.pause(true)?;
                let root = self.root()?;
                self.aside = Some(self.site.hub.replace(&root, None)?);
            }
            Fault::PutBack => {
                let root = self.aside.take().context("a store was put aside")?;
                self.site.hub.put_back(&root)?;
                self.writer.pause(false)?;
            }
        }
        Ok(())
    }

    fn cable(&self, link: Link) -> &Cable {
        let cables = &self.site.cables;
        match link {
            Link::AgentToHub => &cables.agent_to_hub,
            Link::AgentToCluster => &cables.agent_to_cluster,
            Link::OperatorToHub => &cables.operator_to_hub,
            Link::OperatorToCluster => &cables.operator_to_cluster,
        }
    }

    fn kill(&mut self, program: Program) -> Result<()> {
        match program {
            Program::Agent => self.site.agent.process().kill().map(drop),
            Program::Operator => self.site.operator.process().kill().map(drop),
            Program::Hub => self.site.hub.kill().map(drop),
            Program::Cluster => self.site.plane.kill_api(),
        }
    }

    fn start(&mut self, program: Program) -> Result<()> {
        match program {
            Program::Agent => self.site.agent.restart(),
            Program::Operator => self.site.operator.restart(),
            Program::Hub => self.site.hub.restart(),
            Program::Cluster => self.site.plane.start_api(&self.site.run),
        }
    }

    /// A root directory that no hub has had.
    fn root(&mut self) -> Result<PathBuf> {
        self.numbers += 1;
        self.site.run.subfolder(&format!("hub-root-{}", self.numbers))
    }

    /// Waits until all agree. A person accepts what the SyncTarget asks for meanwhile.
    fn settle(&mut self) -> Result<()> {
        let went_back = std::mem::take(&mut self.went_back);
        let mut approved = Vec::new();
        eventually("both sides to agree", || {
            self.accept(went_back, &mut approved)?;
            let (hub, cluster) = (self.hub.all()?, self.cluster.all()?);
            self.writer.model(|model| model.check(&hub))?;
            agree(&hub, &cluster)?;
            let target = self.site.target()?;
            let ready = condition(&target, "Ready")?;
            ensure!(ready["status"] == "True", "{ready}");
            // Whatever else agrees already, a hub that was restored is noticed and asked about. What a
            // person has said to that is kept by the time that nothing is asked any more.
            let asked = approved.contains(&contract::APPROVE_UPSTREAM);
            ensure!(asked || !went_back, "nobody has noticed yet that the hub was restored");
            let changed = condition(&target, "UpstreamChanged")?;
            ensure!(changed["status"] != "True", "{changed}");
            Ok(())
        })?;
        // Approvals count when they are given, so a later one has to be a change.
        approved.sort_unstable();
        approved.dedup();
        for annotation in approved {
            self.site.up.ok(&["annotate", "synctarget", TARGET, &format!("{annotation}-")])?;
        }
        self.check_deletions()
    }

    /// Does what the SyncTarget's conditions ask a person for. Only a hub that `went_back` may ask for
    /// more than the release of deletes.
    fn accept(&self, went_back: bool, approved: &mut Vec<&'static str>) -> Result<()> {
        let target = self.site.target()?;
        let mut approve = |annotation: &'static str, number: &str| {
            if target["metadata"]["annotations"][annotation] == number {
                return Ok(());
            }
            approved.push(annotation);
            let value = format!("{annotation}={number}");
            self.site.up.ok(&["annotate", "--overwrite", "synctarget", TARGET, &value]).map(drop)
        };
        for (kind, annotation) in [
            ("UpstreamChanged", contract::APPROVE_UPSTREAM),
            ("DeletionPaused", contract::APPROVE_DELETIONS),
        ] {
            let told = condition(&target, kind)?;
            if told["status"] != "True" {
                continue;
            }
            // What has gone so far had to be right without anybody's consent.
            self.check_deletions()?;
            let message = told["message"].as_str().unwrap_or_default();
            let asked = Regex::new(&format!("{annotation}=([0-9]+)"))?;
            let number = asked.captures(message).and_then(|found| found.get(1));
            let number = number.with_context(|| format!("nothing can be approved: {message}"))?;
            ensure!(
                went_back || kind != "UpstreamChanged",
                "nobody has put back an old hub: {message}"
            );
            approve(annotation, number.as_str())?;
        }
        let orphans = target["status"]["orphans"].as_u64().unwrap_or_default();
        if orphans > 0 && went_back {
            self.check_deletions()?;
            let (hub, cluster) = (self.hub.all()?, self.cluster.all()?);
            let known: Vec<_> =
                hub.values().filter_map(|one| one["metadata"]["uid"].as_str()).collect();
            let copies = cluster.values().filter_map(|copy| origin(&copy["metadata"]));
            let lost: Vec<String> = copies.filter(|uid| !known.contains(&uid.as_str())).collect();
            ensure!(
                lost.len() as u64 == orphans,
                "{orphans} orphans are told, and {} are",
                lost.len()
            );
            self.writer.model(|model| lost.iter().for_each(|uid| model.doom(uid)));
            approve(contract::APPROVE_ORPHANS, &orphans.to_string())?;
        }
        Ok(())
    }

    /// Fails if a copy went that nobody has asked to go.
    fn check_deletions(&self) -> Result<()> {
        for gone in self.deletions.so_far() {
            let origin = origin(&gone.metadata);
            let right = origin.as_ref().is_some_and(|uid| self.writer.model(|m| m.is_doomed(uid)));
            ensure!(right, "{} ({}) was deleted, of {origin:?}", gone.name(), gone.uid());
        }
        Ok(())
    }
}
