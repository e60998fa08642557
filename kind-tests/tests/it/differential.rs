//! The same scripted requests to a real kube-apiserver and to ours: the answers must be the same.
//!
//! Flow: every file below `tests/data/differential/cases` holds cases, lists of requests. Both
//! servers get them, ours in one logical cluster. Answers are masked (what two servers can never
//! have in common, such as UIDs, becomes a symbol) and compared leaf by leaf. What differs must
//! stand in `differences.yaml` with its reason; an entry there that nothing needs fails, too.

mod answer;
mod case;
mod compare;
mod known;
mod mask;
mod play;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use kind_tests::control_plane::Options;
use kind_tests::scenario::Need;
use kind_tests::{ControlPlane, Hub, Run, Tool, scenario};

use self::case::Case;
use self::compare::Difference;
use self::known::Known;
use kind_tests::client::Client;

const NEEDS: [Need; 2] = [Need::Tool(Tool::Etcd), Need::Tool(Tool::KubeApiserver)];

/// The logical cluster of ours that is compared.
const CLUSTER: &str = "/clusters/diff";

#[test]
fn answers_as_a_real_server_does() {
    scenario("answers_as_a_real_server_does", &NEEDS, |run| {
        let cases = case::read_all(&data().join("cases"))?;
        let known = Known::read(&data().join("differences.yaml"))?;
        let real = ControlPlane::start(run, "real", Options::default())?;
        let mut hub = Hub::start(run, "ours")?;
        compare_all(
            run,
            &cases,
            &known,
            [&Client::new(real.kubeconfig(), "")?, &Client::new(&hub.kubeconfig(), CLUSTER)?],
        )?;
        hub.terminate()?;
        real.stop()
    });
}

fn compare_all(run: &Run, cases: &[Case], known: &Known, servers: [&Client; 2]) -> Result<()> {
    let mut found = Vec::new();
    for case in cases {
        found.extend(play::case(case, servers).with_context(|| format!("case {}", case.name))?);
    }
    let (unlisted, unused) = known.judge(&found);
    let steps: usize = cases.iter().map(|case| case.steps.len()).sum();
    let report = report(&unlisted, &unused)?;
    let file = run.folder().join("differences.log");
    std::fs::write(&file, &report).with_context(|| format!("write {}", file.display()))?;
    ensure!(
        unlisted.is_empty() && unused.is_empty(),
        "of {steps} steps, {} answers differ in ways that are not listed, and {} listed \
         differences are not there\n{report}",
        unlisted.len(),
        unused.len()
    );
    Ok(())
}

fn report(unlisted: &[&Difference], unused: &[&known::Entry]) -> Result<String> {
    let mut report = String::new();
    for difference in unlisted {
        writeln!(report, "{difference}")?;
    }
    for entry in unused {
        writeln!(report, "not there: {entry:?}")?;
    }
    Ok(report)
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/differential")
}
