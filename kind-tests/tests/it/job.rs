//! The whole product, as its users run it: a hub, the operator, two physical clusters with real
//! pods, and kubectl.
//!
//! One fleet serves all steps, since starting one takes half a minute; each step leaves it as it
//! found it, and says what it showed.

mod faults;
mod flow;
mod joining;
mod leaving;
mod world;

use anyhow::Result;
use kind_tests::cluster::NEEDS;
use kind_tests::progress::say;
use kind_tests::{Run, scenario};

use self::world::World;

/// A step by its name.
type Step = (&'static str, fn(&mut World) -> Result<()>);

const STEPS: [Step; 14] = [
    ("placeholders are named", joining::placeholders_are_named),
    ("an address that nobody answers", joining::nobody_answers),
    ("no target, no type", joining::no_type_without_a_target),
    ("a cluster joins", joining::a_cluster_joins),
    ("labelled objects run there and nowhere else", flow::objects_by_label),
    ("changes are followed", flow::changes),
    ("a namespace by label", flow::a_namespace_by_label),
    ("an intent that is taken away", flow::unassigned),
    ("an unknown type beside valid ones", flow::invalid_beside_valid),
    ("the agent's pod is killed", faults::agent_killed),
    ("the physical API stops and starts", faults::physical_api_down),
    ("the hub is killed and starts again", faults::hub_killed),
    ("the agent is scaled away, and deleted", faults::agent_gone),
    ("a target is deleted", leaving::target_deleted),
];

fn whole_job(run: &Run) -> Result<()> {
    let mut world = World::start(run)?;
    for (name, step) in STEPS {
        say(format!("step: {name}"));
        step(&mut world).map_err(|error| error.context(name))?;
    }
    Ok(())
}

#[test]
fn the_whole_job() {
    scenario("the_whole_job", &NEEDS, whole_job);
}
