//! What is dropped, kept and sent up, kind by kind, with a real control plane and its controllers as
//! judges; and faults that other systems had, one row each.
//!
//! One site serves all rows, each in a namespace of its own and several at a time. Those that look at
//! what an agent does while nothing happens come last, alone.

mod immutable;
mod jobs;
mod metadata;
mod plain;
mod quiet;
mod row;
mod scaling;
mod services;
mod storage;

use anyhow::{Result, anyhow, bail};
use kind_tests::progress::say;
use kind_tests::scenario::Need;
use kind_tests::{Run, Tool, scenario};
use parking_lot::Mutex;

use self::row::Row;
use crate::site::{self, Kind, Site};

/// A row by its name, which is that of its namespace, too.
type Case = (&'static str, fn(&Row<'_>) -> Result<()>);

const CASES: [Case; 20] = [
    ("service-keeps-what-was-allocated", services::keeps_what_was_allocated),
    ("service-node-port-of-the-user", services::node_port_of_the_user),
    ("service-health-check-node-port", services::health_check_node_port),
    ("service-external-name-and-back", services::external_name_and_back),
    ("service-node-port-collision", services::node_port_collision),
    ("job-generated-labels", jobs::generated_labels),
    ("job-deletion-takes-its-pods", jobs::deletion_takes_its_pods),
    ("job-that-ended-is-not-run-again", jobs::ended_is_not_run_again),
    ("claim-is-bound-and-grows", storage::claim_is_bound_and_grows),
    ("account-secrets-are-merged", storage::account_secrets_are_merged),
    ("account-pull-secrets-are-merged", storage::account_pull_secrets_are_merged),
    ("replicas-go-up-by-opt-in", scaling::replicas_go_up_by_opt_in),
    ("replicas-of-an-autoscaler", scaling::replicas_of_an_autoscaler),
    ("replicas-without-opt-in", scaling::replicas_without_opt_in),
    ("immutable-selector", immutable::deployment_selector),
    ("immutable-claim-templates", immutable::claim_templates),
    ("immutable-job-template", immutable::job_template),
    ("immutable-secret-and-config", immutable::secret_and_config),
    ("labels-and-annotations", metadata::labels_and_annotations),
    ("large-config", metadata::large_config),
];

const ALONE: [Case; 2] = [
    ("sidecar-of-a-webhook", quiet::sidecar_of_a_webhook),
    ("nothing-is-written-when-idle", quiet::nothing_is_written_when_idle),
];

/// How many rows run at a time: they wait more than they work.
const AT_A_TIME: usize = 4;

fn all(site: &Site) -> Result<()> {
    let cases = Mutex::new(CASES.iter());
    let failures = Mutex::new(Vec::new());
    let one = |(name, check): &Case| {
        let outcome = Row::new(site, name).and_then(|row| check(&row));
        match outcome {
            Ok(()) => say(format!("row: {name}")),
            Err(error) => failures.lock().push(error.context(*name)),
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let next = cases.lock().next();
                    let Some(case) = next else { break };
                    one(case);
                }
            });
        }
    });
    ALONE.iter().for_each(one);
    let failures = failures.into_inner();
    if failures.is_empty() {
        return Ok(());
    }
    let told: Vec<String> = failures.iter().map(|error| format!("{error:#}")).collect();
    bail!(anyhow!("{} rows: {}", failures.len(), told.join("\n---\n")))
}

#[test]
fn rows_of_the_contract() {
    let needs = [&site::NEEDS[..], &[Need::Tool(Tool::KubeControllerManager)]].concat();
    scenario("rows_of_the_contract", &needs, |run: &Run| {
        let mut site = Site::start(run, Kind { controllers: true, ..Kind::default() })?;
        all(&site)?;
        site.agent.process().check_running()?;
        site.operator.terminate()?;
        site.hub.terminate()
    });
}
