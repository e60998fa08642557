//! What one object uses of what a quota bounds: pure.
//!
//! Names are upstream's: `count/<plural>.<group>` of any resource, the bare plural of a few of the
//! core group, and what pods, claims and services ask for.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use machinery::GroupResource;
use machinery::meta::{get, get_i64, get_str};
use machinery::quantity::{Notation, Quantity};
use serde_json::Value;

/// Amounts by what they are of.
pub(super) type Amounts = BTreeMap<String, Quantity>;

/// Resources of the core group whose objects are counted by their bare name, too.
const BARE: [&str; 4] = ["configmaps", "replicationcontrollers", "resourcequotas", "secrets"];

/// What pods use.
const OF_PODS: [&str; 10] = [
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "pods",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// What every container of a pod must ask for, if it is bounded: an old mistake that clients rely
/// on.
const ASKED_FOR: [&str; 6] =
    ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

/// The part of a name after a storage class.
const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";

/// Whether changes of objects, too, change what they use.
pub(super) fn is_measured(resource: &GroupResource) -> bool {
    resource.group.is_empty()
        && matches!(&*resource.resource, "pods" | "persistentvolumeclaims" | "services")
}

/// `count/<plural>.<group>`.
pub(super) fn count_name(resource: &GroupResource) -> String {
    format!("count/{resource}")
}

/// The resource whose objects are counted under a name, if all of them count.
pub(super) fn counted(name: &str) -> Option<GroupResource> {
    let plain = BARE.iter().chain(["services", "persistentvolumeclaims"].iter());
    if plain.into_iter().any(|bare| *bare == name) {
        return Some(GroupResource::new("", name));
    }
    let (plural, group) =
        name.strip_prefix("count/").map(|name| name.split_once('.').unwrap_or((name, "")))?;
    Some(GroupResource::new(group, plural))
}

/// The resource whose objects are measured for a name.
pub(super) fn measured(name: &str) -> Option<GroupResource> {
    let plural = ["pods", "services", "persistentvolumeclaims"]
        .into_iter()
        .find(|plural| concerns(&GroupResource::new("", plural), name))?;
    Some(GroupResource::new("", plural))
}

/// Whether objects of a resource use what a name is of.
pub(super) fn concerns(resource: &GroupResource, name: &str) -> bool {
    if counted(name).is_some_and(|counted| counted == *resource) {
        return true;
    }
    if !resource.group.is_empty() {
        return false;
    }
    match &*resource.resource {
        "pods" => {
            OF_PODS.contains(&name)
                || name.starts_with("hugepages-")
                || name.starts_with("requests.hugepages-")
                || (name.starts_with("requests.") && name.contains('/') && !of_class(name))
        }
        "services" => matches!(name, "services.nodeports" | "services.loadbalancers"),
        "persistentvolumeclaims" => name == "requests.storage" || of_class(name),
        _ => false,
    }
}

fn of_class(name: &str) -> bool {
    name.split_once(STORAGE_CLASS)
        .is_some_and(|(_, rest)| matches!(rest, "requests.storage" | "persistentvolumeclaims"))
}

/// What an object uses.
pub(super) fn usage(resource: &GroupResource, object: &Value, now: Timestamp) -> Amounts {
    let mut amounts = Amounts::new();
    amounts.insert(count_name(resource), one());
    if !resource.group.is_empty() {
        return amounts;
    }
    match &*resource.resource {
        "pods" if is_alive(object, now) => amounts.extend(pod(object)),
        "services" => amounts.extend(service(object)),
        "persistentvolumeclaims" => amounts.extend(claim(object)),
        plural if BARE.contains(&plural) => {
            amounts.insert(plural.to_owned(), one());
        }
        _ => {}
    }
    amounts
}

/// The sum of two; what is too large to add counts as the largest that there is.
pub(super) fn add(a: Quantity, b: Quantity) -> Quantity {
    a.checked_add(b).unwrap_or(a.max(b))
}

/// What is missing in a pod that quotas of these names require of each container.
pub(super) fn missing(object: &Value, names: &BTreeSet<&str>) -> Option<String> {
    if has_own_resources(object) {
        return None;
    }
    let required = ASKED_FOR.iter().filter(|name| names.contains(*name)).collect::<Vec<_>>();
    let mut missing = BTreeMap::<&str, BTreeSet<&str>>::new();
    for field in ["containers", "initContainers"] {
        for container in list(object, &["spec", field]) {
            let resources = container.get("resources").unwrap_or(&Value::Null);
            let asked = named(&amounts(resources, "requests"), &amounts(resources, "limits"));
            let name = get_str(container, &["name"]).unwrap_or_default();
            for required in required.iter().filter(|name| !asked.contains_key(***name)) {
                missing.entry(required).or_default().insert(name);
            }
        }
    }
    let told = missing.iter().map(|(name, containers)| {
        let containers = containers.iter().copied().collect::<Vec<_>>().join(",");
        format!("{name} for: {containers}")
    });
    let told = told.collect::<Vec<_>>();
    (!told.is_empty()).then(|| format!("must specify {}", told.join("; ")))
}

/// Whether an object has the property that a scope names.
pub(super) fn in_scope(
    resource: &GroupResource,
    object: &Value,
    scope: &str,
    operator: &str,
    values: &[&str],
) -> bool {
    let selects = |value: &str| match operator {
        "Exists" => !value.is_empty(),
        "DoesNotExist" => value.is_empty(),
        "In" => !value.is_empty() && values.contains(&value),
        "NotIn" => !values.contains(&value),
        _ => false,
    };
    let text = |path: &[&str]| get_str(object, path).unwrap_or_default();
    if !resource.group.is_empty() {
        return false;
    }
    match (&*resource.resource, scope) {
        ("pods", "Terminating") => is_terminating(object),
        ("pods", "NotTerminating") => !is_terminating(object),
        ("pods", "BestEffort") => is_best_effort(object),
        ("pods", "NotBestEffort") => !is_best_effort(object),
        ("pods", "PriorityClass") => selects(text(&["spec", "priorityClassName"])),
        ("pods", "CrossNamespacePodAffinity") => reaches_out(object),
        ("persistentvolumeclaims", "VolumeAttributesClass") => {
            selects(text(&["spec", "volumeAttributesClassName"]))
        }
        _ => false,
    }
}

/// Whether a pod is one that ends by itself.
pub(super) fn is_terminating(pod: &Value) -> bool {
    get_i64(pod, &["spec", "activeDeadlineSeconds"]).is_some_and(|seconds| seconds >= 0)
}

fn is_best_effort(pod: &Value) -> bool {
    let sets = |resources: &Value| {
        ["requests", "limits"].iter().any(|field| {
            let amounts = amounts(resources, field);
            ["cpu", "memory"].iter().any(|name| amounts.get(*name).is_some_and(|q| !q.is_zero()))
        })
    };
    let fields = ["containers", "initContainers"];
    let containers = fields.iter().flat_map(|field| list(pod, &["spec", field]));
    let mut resources = containers.filter_map(|container| container.get("resources"));
    !resources.any(sets) && !get(pod, &["spec", "resources"]).is_some_and(sets)
}

/// Whether a pod's affinity looks at pods of other namespaces.
fn reaches_out(pod: &Value) -> bool {
    let term = |term: &Value| {
        let named = term.get("namespaces").and_then(Value::as_array);
        named.is_some_and(|named| !named.is_empty())
            || term.get("namespaceSelector").is_some_and(|selector| !selector.is_null())
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let path = |list: &'static str| ["spec", "affinity", kind, list];
        let required = path("requiredDuringSchedulingIgnoredDuringExecution");
        let preferred = path("preferredDuringSchedulingIgnoredDuringExecution");
        list(pod, &required).iter().any(term)
            || list(pod, &preferred)
                .iter()
                .any(|weighted| weighted.get("podAffinityTerm").is_some_and(term))
    })
}

/// Whether a pod still uses anything.
fn is_alive(pod: &Value, now: Timestamp) -> bool {
    if matches!(get_str(pod, &["status", "phase"]), Some("Failed" | "Succeeded")) {
        return false;
    }
    let text = |field| get_str(pod, &["metadata", field]);
    let deleted = text("deletionTimestamp").and_then(|text| text.parse::<Timestamp>().ok());
    let grace = get_i64(pod, &["metadata", "deletionGracePeriodSeconds"]);
    match (deleted, grace) {
        (Some(deleted), Some(grace)) => {
            let end = deleted.checked_add(jiff::SignedDuration::from_secs(grace));
            end.is_ok_and(|end| now <= end)
        }
        _ => true,
    }
}

fn pod(object: &Value) -> Amounts {
    let [requests, limits] = ["requests", "limits"].map(|field| with_overhead(object, field));
    let mut amounts = named(&requests, &limits);
    amounts.insert("pods".into(), one());
    amounts
}

/// The names under which quotas bound what is asked for.
fn named(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut out = Amounts::new();
    for (name, amount) in requests {
        let is_native = matches!(&**name, "cpu" | "memory" | "ephemeral-storage");
        if is_native || name.starts_with("hugepages-") {
            out.insert(name.clone(), *amount);
        }
        if is_native || name.starts_with("hugepages-") || name.contains('/') {
            out.insert(format!("requests.{name}"), *amount);
        }
    }
    for (name, amount) in limits {
        if matches!(&**name, "cpu" | "memory" | "ephemeral-storage") {
            out.insert(format!("limits.{name}"), *amount);
        }
    }
    out
}

/// What all containers of a pod ask for: those that run together, or the ones before them, if any
/// of those asks for more.
pub(super) fn asked_for(pod: &Value, field: &str) -> Amounts {
    let of = |container: &Value| {
        container.get("resources").map(|resources| amounts(resources, field)).unwrap_or_default()
    };
    let mut together = Amounts::new();
    for container in list(pod, &["spec", "containers"]) {
        merge(&mut together, of(container), add);
    }
    let (mut beside, mut before) = (Amounts::new(), Amounts::new());
    for container in list(pod, &["spec", "initContainers"]) {
        let mut at_once = of(container);
        if get_str(container, &["restartPolicy"]) == Some("Always") {
            merge(&mut together, at_once.clone(), add);
            merge(&mut beside, at_once, add);
            at_once = beside.clone();
        } else {
            merge(&mut at_once, beside.clone(), add);
        }
        merge(&mut before, at_once, Quantity::max);
    }
    merge(&mut together, before, Quantity::max);
    if let Some(own) = get(pod, &["spec", "resources"]) {
        let own = amounts(own, field).into_iter();
        together.extend(own.filter(|(name, _)| {
            matches!(&**name, "cpu" | "memory") || name.starts_with("hugepages-")
        }));
    }
    together
}

/// What a pod asks for, with what running it takes beside its containers.
fn with_overhead(pod: &Value, field: &str) -> Amounts {
    let mut together = asked_for(pod, field);
    let overhead = get(pod, &["spec"]).map(|spec| amounts(spec, "overhead")).unwrap_or_default();
    let overhead = overhead.into_iter().filter(|(name, _)| {
        field == "requests" || together.get(name).is_some_and(|amount| !amount.is_zero())
    });
    let overhead = overhead.collect();
    merge(&mut together, overhead, add);
    together
}

fn has_own_resources(pod: &Value) -> bool {
    get(pod, &["spec", "resources"]).is_some_and(|own| {
        ["requests", "limits"].iter().any(|field| {
            let amounts = amounts(own, field);
            amounts
                .keys()
                .any(|name| matches!(&**name, "cpu" | "memory") || name.starts_with("hugepages-"))
        })
    })
}

fn service(object: &Value) -> Amounts {
    let ports = list(object, &["spec", "ports"]);
    let explicit = || ports.iter().filter(|port| get_i64(port, &["nodePort"]).unwrap_or(0) != 0);
    let allocates = get(object, &["spec", "allocateLoadBalancerNodePorts"]);
    let (node_ports, balancers) = match get_str(object, &["spec", "type"]) {
        Some("NodePort") => (ports.len(), 0),
        Some("LoadBalancer") if allocates == Some(&Value::Bool(false)) => (explicit().count(), 1),
        Some("LoadBalancer") => (ports.len(), 1),
        _ => (0, 0),
    };
    Amounts::from([
        ("services".into(), one()),
        ("services.nodeports".into(), number(node_ports)),
        ("services.loadbalancers".into(), number(balancers)),
    ])
}

fn claim(object: &Value) -> Amounts {
    let annotation =
        get_str(object, &["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"]);
    let class = annotation.or_else(|| get_str(object, &["spec", "storageClassName"]));
    let class = class.filter(|class| !class.is_empty());
    let storage = |path: &[&str]| get(object, path).map(|part| amounts(part, "requests"));
    let asked = storage(&["spec", "resources"]).and_then(|asked| asked.get("storage").copied());
    let allocated = get(object, &["status"]).map(|status| amounts(status, "allocatedResources"));
    let allocated = allocated.and_then(|allocated| allocated.get("storage").copied());
    let asked = asked.map(|asked| whole(allocated.map_or(asked, |allocated| allocated.max(asked))));
    let mut out = Amounts::from([("persistentvolumeclaims".into(), one())]);
    if let Some(class) = class {
        out.insert(format!("{class}{STORAGE_CLASS}persistentvolumeclaims"), one());
    }
    if let Some(asked) = asked {
        out.insert("requests.storage".into(), asked);
        if let Some(class) = class {
            out.insert(format!("{class}{STORAGE_CLASS}requests.storage"), asked);
        }
    }
    out
}

/// Rounded up to whole bytes.
fn whole(amount: Quantity) -> Quantity {
    match amount.milli_value() {
        Some(milli) if milli % 1000 != 0 => {
            amount.value().map_or(amount, |value| Quantity::new(value, amount.notation()))
        }
        _ => amount,
    }
}

fn merge(into: &mut Amounts, from: Amounts, how: fn(Quantity, Quantity) -> Quantity) {
    for (name, amount) in from {
        into.entry(name).and_modify(|present| *present = how(*present, amount)).or_insert(amount);
    }
}

/// The amounts in a map; what is none is left out.
pub(super) fn amounts(object: &Value, field: &str) -> Amounts {
    let map = object.get(field).and_then(Value::as_object);
    let amounts = map.into_iter().flatten().filter_map(|(name, amount)| {
        let amount = match amount {
            Value::String(text) => Quantity::parse(text),
            other => Quantity::parse(&other.to_string()),
        };
        Some((name.clone(), amount.ok()?))
    });
    amounts.collect()
}

fn list<'o>(object: &'o Value, path: &[&str]) -> &'o [Value] {
    get(object, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn one() -> Quantity {
    number(1)
}

pub(super) fn number(count: usize) -> Quantity {
    Quantity::new(i64::try_from(count).unwrap_or(i64::MAX), Notation::DecimalSi)
}

#[cfg(test)]
mod tests;
