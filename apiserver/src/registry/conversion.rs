//! Conversion between the versions of one resource, and between a resource and its view.
//!
//! Versions of one resource share their fields, so converting relabels; those of autoscalers alone
//! differ (`autoscaler`). A view, as `events.k8s.io/events` is one of core `events`, renames fields by
//! data.

mod autoscaler;

use machinery::meta::{get, get_str, remove, set};
use machinery::{GroupVersion, Gvk};
use schema::known;
use schema::resource::ResourceDef;
use serde_json::{Value, json};

/// Converts an object of `resource` to the kind that its storage holds.
pub(super) fn to_stored(resource: &ResourceDef, value: Value, stored: &Gvk) -> Value {
    let renamed = resource.view_of.iter().flat_map(|view| &view.renamed);
    let names = renamed.map(|(here, there)| (&**here, &**there));
    relabelled(moved(value, names), stored)
}

/// Converts a stored object to a kind of `resource`.
pub(super) fn from_stored(resource: &ResourceDef, value: Value, kind: &Gvk) -> Value {
    let renamed = resource.view_of.iter().flat_map(|view| &view.renamed);
    let names = renamed.map(|(here, there)| (&**there, &**here));
    relabelled(moved(value, names), kind)
}

/// The `resourceVersion` of an object as a number.
pub(super) fn resource_version(value: &Value) -> Option<u64> {
    get(value, &["metadata", "resourceVersion"])?.as_str()?.parse().ok()
}

fn relabelled(mut value: Value, kind: &Gvk) -> Value {
    relabel(&mut value, kind);
    value
}

/// Makes an object one of `kind`.
pub(super) fn relabel(value: &mut Value, kind: &Gvk) {
    let version = kind.group_version.to_string();
    let from = get_str(value, &["apiVersion"]).and_then(|from| from.rsplit('/').next());
    let GroupVersion { group, version: to } = &kind.group_version;
    if let Some(from) = from.filter(|from| *from != &**to).map(str::to_owned)
        && known::converts(group, &kind.kind, [&from, to])
    {
        autoscaler::convert(value, &from, to);
    }
    value["apiVersion"] = json!(version);
    value["kind"] = json!(&*kind.kind);
}

/// Moves fields by their dotted names. All are taken out before any is put in its new place.
fn moved<'a>(mut value: Value, names: impl Iterator<Item = (&'a str, &'a str)>) -> Value {
    let path = |name: &'a str| name.split('.').collect::<Vec<_>>();
    let taken = names
        .filter_map(|(from, to)| remove(&mut value, &path(from)).map(|field| (to, field)))
        .collect::<Vec<_>>();
    for (to, field) in taken {
        set(&mut value, &path(to), field);
    }
    value
}

#[cfg(test)]
mod tests {
    use schema::Types;

    use super::*;
    use crate::registry::Registry;

    #[test]
    fn events_convert_both_ways() {
        let types = Types::builtin();
        let core = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "r",
            "involvedObject": {"name": "x"}, "message": "m", "source": {"component": "c"},
            "reportingComponent": "rc", "reportingInstance": "ri", "count": 3,
        });
        let resource = types.resource("events.k8s.io", "events").unwrap();
        let kind = Registry::kind(resource, "v1");
        let events = from_stored(resource, core.clone(), &kind);
        let expected = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
            "reason": "r", "regarding": {"name": "x"}, "note": "m",
            "deprecatedSource": {"component": "c"}, "reportingController": "rc",
            "reportingInstance": "ri", "deprecatedCount": 3,
        });
        assert_eq!(events, expected);
        let stored = Registry::kind(types.resource("", "events").unwrap(), "v1");
        assert_eq!(to_stored(resource, events, &stored), core);
    }
}
