//! Types that clusters gain, that they don't agree on, and that they lack.

use anyhow::{Context, Result, ensure};
use kind_tests::{Kubectl, eventually};
use serde_json::{Value, json};

use super::modes::{self, Tenant};
use super::steady::Steady;
use super::world::{World, absent, apply, belongs_to, for_east, prints, told};
use crate::support::json as parse;

const GROUP: &str = "shop.example.com";

/// The flag by which kubectl prints what objects of these types hold.
const SIZE: &str = "--output=jsonpath={.spec.size}";

/// A definition whose objects have a `size` of a type.
fn definition(singular: &str, kind: &str, size: &str) -> Value {
    let plural = format!("{singular}s");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": {"plural": plural, "singular": singular, "kind": kind},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": size}}},
                }}},
            }],
        },
    })
}

fn object(kind: &str, name: &str, labels: &Value, size: &Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": kind,
        "metadata": {"name": name, "labels": labels}, "spec": {"size": size},
    })
}

/// Makes an object as soon as its type is served.
fn create(hub: &Kubectl, object: &Value) -> Result<()> {
    eventually("the type to be served", || {
        hub.ok_with_input(&["create", "-f", "-"], &object.to_string()).map(drop)
    })
}

/// An object of a type that its cluster lacks and another one has is told of, and holds up nobody. The
/// cluster gains the type: it goes there.
pub(super) fn unknown_beside_valid(world: &mut World) -> Result<()> {
    let relics = definition("relic", "Relic", "integer");
    apply(&world.west, std::slice::from_ref(&relics))?;
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "beside", "labels": for_east()}, "data": {"size": "1"},
    });
    create(&world.hub, &object("Relic", "lost", &for_east(), &json!(1)))?;
    apply(&world.hub, &[config])?;
    eventually("the valid one", || world.east.ok(&["get", "configmap/beside"]))?;
    told(&world.hub, "TypeNotSynced", "lost")?;
    apply(&world.east, &[relics])?;
    eventually("the copy", || world.east.ok(&["get", "relic/lost"]))?;
    world.hub.ok(&["delete", "configmap/beside", "relic/lost", "--timeout=60s"])?;
    absent(&world.east, &["configmap/beside", "relic/lost"])
}

/// A definition that is added to a cluster is served by the hub, and its objects go there, though
/// nothing was started again. Another cluster means something else by its name: that is told field
/// by field, it gets none of the objects, and all others go on.
pub(super) fn definitions_come(world: &mut World) -> Result<()> {
    let before = Steady::of(&world.east, "web")?;
    apply(&world.east, &[definition("gadget", "Gadget", "integer")])?;
    create(&world.hub, &object("Gadget", "here", &for_east(), &json!(3)))?;
    eventually("the copy", || world.east.ok(&["get", "gadget/here"]))?;
    prints(&world.east, &["get", "gadget/here", SIZE], "3")?;

    apply(&world.west, &[definition("gadget", "Gadget", "string")])?;
    eventually("the conflict to be told", || {
        let target = parse(&world.hub.ok(&["get", "synctarget", "west", "--output=json"])?)?;
        let all = target["status"]["syncedResources"].as_array().context("no resources")?;
        let gadgets = all.iter().find(|one| one["resource"] == "gadgets");
        let gadgets = gadgets.context("no gadgets yet")?;
        ensure!(gadgets["state"] == "Incompatible", "{gadgets}");
        let message = gadgets["message"].as_str().unwrap_or_default();
        ensure!(message.contains(".spec.size"), "{message}");
        Ok(())
    })?;
    create(&world.hub, &object("Gadget", "there", &belongs_to("west"), &json!(3)))?;
    told(&world.hub, "TypeNotSynced", "there")?;
    absent(&world.west, &["gadget/there"])?;
    world.condition("west", "Ready", "True/Ready")?;
    world.hub.ok(&["delete", "gadget/here", "gadget/there", "--timeout=60s"])?;
    absent(&world.east, &["gadget/here"])?;
    before.still(&world.east)?;

    // Others who have that cluster alone take it as it is, whoever syncs for them.
    for name in modes::NAMES {
        let Tenant { hub, down, .. } = modes::tenant(world, name)?;
        create(&hub, &object("Gadget", "large", &belongs_to("west"), &json!("large")))?;
        eventually("the copy", || down.ok(&["get", "gadget/large"]))?;
        prints(&down, &["get", "gadget/large", SIZE], "large")?;
        hub.ok(&["delete", "gadget/large", "--timeout=60s"])?;
        absent(&down, &["gadget/large"])?;
    }
    Ok(())
}
