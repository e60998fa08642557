//! Cells of volumes, their claims and classes, quotas and resource claims.

use serde_json::Value;

use super::{at, get, items, number, str_at, strings};

/// The annotation that named a class before the field did; it still counts first.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// The phase, unless the object is being deleted.
pub(super) fn phase(object: &Value) -> String {
    match get(at(object, "metadata"), "deletionTimestamp") {
        Some(_) => "Terminating".to_owned(),
        None => str_at(at(object, "status"), "phase").to_owned(),
    }
}

pub(super) fn class(object: &Value) -> String {
    match get(at(at(object, "metadata"), "annotations"), CLASS) {
        Some(class) => class.as_str().unwrap_or_default().to_owned(),
        None => str_at(at(object, "spec"), "storageClassName").to_owned(),
    }
}

pub(super) fn access_modes(list: &Value) -> String {
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let has = |mode: &str| strings(list).any(|m| m == mode);
    let found = short.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short);
    found.collect::<Vec<_>>().join(",")
}

pub(super) fn volume_capacity(volume: &Value) -> String {
    amount(at(at(volume, "spec"), "capacity"), "storage").to_owned()
}

pub(super) fn volume_claim(volume: &Value) -> String {
    get(at(volume, "spec"), "claimRef").map_or_else(String::new, |claim| {
        format!("{}/{}", str_at(claim, "namespace"), str_at(claim, "name"))
    })
}

/// What a claim got; nothing before it is bound.
pub(super) fn claim_capacity(claim: &Value) -> String {
    match str_at(at(claim, "spec"), "volumeName") {
        "" => String::new(),
        _ => amount(at(at(claim, "status"), "capacity"), "storage").to_owned(),
    }
}

pub(super) fn claim_access_modes(claim: &Value) -> String {
    match str_at(at(claim, "spec"), "volumeName") {
        "" => String::new(),
        _ => access_modes(at(at(claim, "status"), "accessModes")),
    }
}

/// The name, marked if one of these annotations makes the class the default one.
pub(super) fn class_name(class: &Value, marks: &[&str]) -> String {
    let meta = at(class, "metadata");
    let marked = |mark: &&str| str_at(at(meta, "annotations"), mark) == "true";
    let name = str_at(meta, "name");
    if marks.iter().any(marked) { format!("{name} (default)") } else { name.to_owned() }
}

/// What is used of what is allowed; either requests or limits.
pub(super) fn quota(object: &Value, limits: bool) -> String {
    let status = at(object, "status");
    let used = at(status, "used");
    let hard = at(status, "hard");
    let names = hard.as_object().into_iter().flatten().map(|(name, _)| name);
    let texts = names
        .filter(|name| name.starts_with("limits.") == limits)
        .map(|name| format!("{name}: {}/{}", amount(used, name), amount(hard, name)));
    texts.collect::<Vec<_>>().join(", ")
}

/// An amount, which is nothing where it isn't told.
fn amount<'v>(amounts: &'v Value, name: &str) -> &'v str {
    get(amounts, name).and_then(Value::as_str).unwrap_or("0")
}

pub(super) fn token_audiences(driver: &Value) -> String {
    let Some(requests) = get(at(driver, "spec"), "tokenRequests") else {
        return "<unset>".to_owned();
    };
    items(requests).iter().map(|r| str_at(r, "audience")).collect::<Vec<_>>().join(",")
}

pub(super) fn resource_claim(claim: &Value) -> String {
    let (deleted, status) =
        (get(at(claim, "metadata"), "deletionTimestamp").is_some(), at(claim, "status"));
    let allocated = get(status, "allocation").is_some();
    let reserved = allocated && !items(at(status, "reservedFor")).is_empty();
    let states = [
        ("deleted", deleted),
        ("pending", !allocated && !deleted),
        ("allocated", allocated),
        ("reserved", reserved),
    ];
    let holding = states.iter().filter(|(_, holds)| *holds).map(|(name, _)| *name);
    holding.collect::<Vec<_>>().join(",")
}

/// The sum of a number over the pools that a request found; `-` before there is an answer.
pub(super) fn pool_sum(request: &Value, field: &str) -> String {
    let pools = |status: &Value| {
        let sum = items(at(status, "pools")).iter().map(|pool| number(pool, field));
        sum.fold(0_i64, i64::saturating_add)
    };
    pools_answer(request, pools)
}

pub(super) fn pool_errors(request: &Value) -> String {
    let is_wrong = |pool: &&Value| get(pool, "validationError").is_some();
    let count = |status: &Value| items(at(status, "pools")).iter().filter(is_wrong).count();
    pools_answer(request, |status| i64::try_from(count(status)).unwrap_or(i64::MAX))
}

fn pools_answer(request: &Value, count: impl Fn(&Value) -> i64) -> String {
    match get(request, "status") {
        Some(status) if pool_outcome(request).is_none_or(|c| str_at(c, "type") != "Failed") => {
            count(status).to_string()
        }
        _ => "-".to_owned(),
    }
}

pub(super) fn pool_status(request: &Value) -> String {
    let status = at(request, "status");
    let (told, all) = (items(at(status, "pools")).len(), number(status, "poolCount"));
    match pool_outcome(request).map_or("Pending", |c| str_at(c, "type")) {
        "Complete" if i64::try_from(told).is_ok_and(|told| all > told) => {
            format!("Complete ({told}/{all} pools)")
        }
        outcome => outcome.to_owned(),
    }
}

/// The condition that ended a request.
pub(super) fn pool_outcome(request: &Value) -> Option<&Value> {
    items(at(at(request, "status"), "conditions")).iter().find(|c| {
        matches!(str_at(c, "type"), "Complete" | "Failed") && str_at(c, "status") == "True"
    })
}
