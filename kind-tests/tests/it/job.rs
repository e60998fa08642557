//! The whole product, as its users run it: a hub, the operator, two physical clusters with real
//! pods, and kubectl.
//!
//! One fleet serves all steps, since starting one takes half a minute. What a step leaves behind is
//! what later ones work with, or in nobody's way.

mod cuts;
mod faults;
mod flow;
mod joining;
mod leaving;
mod modes;
mod sharing;
mod steady;
mod types;
mod upgrade;
mod world;

use anyhow::Result;
use kind_tests::clock::Stopwatch;
use kind_tests::cluster::NEEDS;
use kind_tests::control_plane::Release;
use kind_tests::progress::say;
use kind_tests::scenario::Need;
use kind_tests::{Run, scenario};

use self::world::World;

/// A step by its name.
type Step = (&'static str, fn(&mut World) -> Result<()>);

const STEPS: [Step; 26] = [
    ("placeholders are named", joining::placeholders_are_named),
    ("an address that nobody answers", joining::nobody_answers),
    ("no target, no type", joining::no_type_without_a_target),
    ("a cluster joins", joining::a_cluster_joins),
    ("two releases of Kubernetes", upgrade::of_two_releases),
    ("labelled objects run there and nowhere else", flow::objects_by_label),
    ("changes are followed", flow::changes),
    ("a namespace by label", flow::a_namespace_by_label),
    ("an intent that is taken away", flow::unassigned),
    ("an object that can't be applied beside valid ones", flow::invalid_beside_valid),
    ("an unknown type beside valid ones", types::unknown_beside_valid),
    ("an autoscaler decides", flow::an_autoscaler_decides),
    ("the operator goes to the cluster", modes::push),
    ("an agent runs by hand", modes::by_hand),
    ("definitions come, and conflict", types::definitions_come),
    ("the agent's pod is killed", faults::agent_killed),
    ("the physical API stops and starts", faults::physical_api_down),
    ("the hub is killed and starts again", faults::hub_killed),
    ("the agent is deleted", faults::agent_gone),
    ("the control plane is upgraded", upgrade::upgraded),
    ("links to the hub are cut", cuts::from_the_hub),
    ("links to the clusters are cut", cuts::from_the_cluster),
    ("types of the newer release have come", upgrade::types_follow),
    ("a second hub shares the cluster", sharing::a_second_hub),
    ("targets that share a cluster are deleted", modes::leave),
    ("a target is deleted", leaving::target_deleted),
];

fn whole_job(run: &Run) -> Result<()> {
    let mut world = World::start(run)?;
    for (name, step) in STEPS {
        say(format!("step: {name}"));
        let watch = Stopwatch::start();
        step(&mut world)
            .map_err(|error| error.context(format!("{name}, when\n{}", world.picture())))?;
        say(format!("      took {} s", watch.elapsed().as_secs()));
    }
    Ok(())
}

#[test]
fn the_whole_job() {
    let older = [Release::Older.api_server(), Release::Older.controller_manager()];
    let needs = [&NEEDS[..], &older.map(Need::Tool)].concat();
    scenario("the_whole_job", &needs, whole_job);
}
