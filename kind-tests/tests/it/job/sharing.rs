//! Another hub uses the same cluster.

use anyhow::{Context, Result, ensure};
use kind_tests::eventually;
use kind_tests::fleet::Center;

use super::steady::{Steady, agents};
use super::world::{OPERATOR, SHOP, World, absent, application, apply, for_east, prints, ready};
use crate::site::condition;
use crate::support::json;

const GREETING: &str = "--output=jsonpath={.data.greeting}";

/// It knows nothing of the first one, though everything has the same names there: it gets an agent
/// of its own, what the first one's objects are called is taken, and it takes only its own along.
pub(super) fn a_second_hub(world: &mut World) -> Result<()> {
    let before = Steady::of(&world.east, "web")?;
    let first = agents(&world.east)?;
    let address = world.fleet.cluster(0)?.host()?;
    let mut center = Center::start(&world.run, "-2", &world.programs, address, &OPERATOR)?;
    let (root, hub) = (center.kubectl("root")?, center.kubectl(SHOP)?);
    eventually("the type of SyncTargets", || root.ok(&["get", "synctargets"]))?;
    apply(&hub, &[world.target("east", 0)?])?;
    ready(&hub, "east")?;
    eventually("an agent of its own", || {
        let now = agents(&world.east)?;
        ensure!(now.len() == 2 && now.iter().all(|agent| agent.ends_with("/1")), "{now:?}");
        ensure!(first.iter().all(|agent| now.contains(agent)), "{now:?}, not {first:?}");
        Ok(())
    })?;

    let [mut namesake, ..] = application("web", "default", &for_east());
    namesake["data"]["greeting"] = "of another hub".into();
    let [other, ..] = application("other", "default", &for_east());
    apply(&hub, &[namesake, other])?;
    prints(&world.east, &["get", "configmap/other", GREETING], "hello")?;
    eventually("the collision to be told", || {
        let records = json(&hub.ok(&["get", "objectsyncs", "--output=json"])?)?;
        let record = records["items"].get(0).context("no ObjectSync")?;
        let applied = condition(record, "Applied")?;
        ensure!(applied["status"] == "False" && applied["reason"] == "Collision", "{applied}");
        ensure!(record["metadata"]["ownerReferences"][0]["name"] == "web", "{record}");
        Ok(())
    })?;
    prints(&world.east, &["get", "configmap/web", GREETING], "hello")?;
    before.still(&world.east)?;

    hub.ok(&["delete", "synctarget", "east", "--timeout=110s"])?;
    absent(&world.east, &["configmap/other"])?;
    eventually("its agent to be gone", || {
        let now = agents(&world.east)?;
        ensure!(now == first, "{now:?}, not {first:?}");
        Ok(())
    })?;
    world.condition("east", "Ready", "True/Ready")?;
    before.still(&world.east)?;
    center.hub().terminate()
}
