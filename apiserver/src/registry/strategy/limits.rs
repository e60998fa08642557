//! LimitRanges: bounds that contain each other.

use std::collections::BTreeSet;

use machinery::meta::{get, get_str};
use machinery::quantity::Quantity;
use machinery::{FieldError, FieldPath, name};
use serde_json::{Map, Value, json};

use super::Strategy;

#[derive(Debug)]
pub(super) struct LimitRanges;

/// The fields that hold amounts, in the order in which upstream looks at their names.
const FIELDS: [&str; 5] = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];

impl Strategy for LimitRanges {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let limits = get(object, &["spec", "limits"]).and_then(Value::as_array);
        let path = FieldPath::root("spec").child("limits");
        let mut problems = Vec::new();
        let mut seen = Vec::new();
        for (index, limit) in limits.into_iter().flatten().enumerate() {
            let path = path.index(index);
            let kind = get_str(limit, &["type"]).unwrap_or_default();
            problems.extend(bad_type(kind, &path.child("type")));
            if seen.contains(&kind) {
                problems.push(FieldError::duplicate(&path.child("type"), &json!(kind)));
            }
            seen.push(kind);
            problems.extend(item(limit, kind, &path));
        }
        problems
    }
}

fn bad_type(kind: &str, path: &FieldPath) -> Vec<FieldError> {
    let unqualified = name::qualified_name(kind);
    if !unqualified.is_empty() {
        let problems = unqualified.into_iter();
        return problems.map(|why| FieldError::invalid_str(path, kind, why)).collect();
    }
    let standard = ["Pod", "Container", "PersistentVolumeClaim"].contains(&kind);
    if standard || kind.contains('/') {
        return Vec::new();
    }
    let why = "must be a standard limit type or fully qualified";
    vec![FieldError::invalid_str(path, kind, why)]
}

/// What is wrong with the name of a resource.
pub(super) fn bad_name(resource: &str, path: &FieldPath) -> Vec<FieldError> {
    let invalid = |why: &str| FieldError::invalid_str(path, resource, why);
    let mut problems =
        name::qualified_name(resource).iter().map(|why| invalid(why)).collect::<Vec<_>>();
    if problems.is_empty()
        && !resource.contains('/')
        && !is_of_containers(resource)
        && !is_standard(resource)
    {
        problems.push(invalid("must be a standard resource type or fully qualified"));
    }
    problems
}

fn is_of_containers(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory" | "ephemeral-storage") || resource.starts_with("hugepages-")
}

/// What is wrong with the name of a resource that is limited for objects of a type.
fn bad_resource(resource: &str, kind: &str, path: &FieldPath) -> Vec<FieldError> {
    let invalid = |why: &str| FieldError::invalid_str(path, resource, why);
    let mut problems = bad_name(resource, path);
    if resource.contains('/') {
        return problems;
    }
    let of_containers = is_of_containers(resource);
    if matches!(kind, "Pod" | "Container") && !of_containers {
        problems.push(invalid("must be a standard resource for containers"));
    }
    problems
}

fn is_standard(resource: &str) -> bool {
    let counted = ["pods", "services", "replicationcontrollers", "resourcequotas", "secrets"];
    let more = ["configmaps", "persistentvolumeclaims", "storage"];
    let of_services = ["services.nodeports", "services.loadbalancers"];
    let prefixed = ["requests.", "limits."].iter().any(|prefix| resource.starts_with(prefix));
    counted.contains(&resource)
        || more.contains(&resource)
        || of_services.contains(&resource)
        || prefixed
}

/// The amounts of one resource.
struct Amounts<'a> {
    limit: &'a Value,
    resource: &'a str,
    path: &'a FieldPath,
    problems: Vec<FieldError>,
}

// === impl Amounts ===

impl<'a> Amounts<'a> {
    fn text(&self, field: &str) -> Option<&'a str> {
        get_str(self.limit, &[field, self.resource])
    }

    fn amount(&self, field: &str) -> Option<Quantity> {
        Quantity::parse(self.text(field)?).ok()
    }

    /// Two amounts, if both are there and the first is above the second.
    fn crossed(&self, lower: &str, upper: &str) -> Option<[&'a str; 2]> {
        let above = self.amount(lower)? > self.amount(upper)?;
        let texts = [self.text(lower)?, self.text(upper)?];
        above.then_some(texts)
    }

    /// Tells of two amounts that are crossed. `at` is the field that is to blame, and whether the
    /// upper amount is shown there.
    fn check(&mut self, at: (&str, bool), lower: (&str, &str), upper: (&str, &str)) {
        let Some([low, high]) = self.crossed(lower.0, upper.0) else { return };
        let (field, shows_upper) = at;
        let shown = if shows_upper { high } else { low };
        let why = format!("{} value {low} is greater than {} value {high}", lower.1, upper.1);
        let path = self.path.child(field).key(self.resource);
        self.problems.push(FieldError::invalid_str(&path, shown, why));
    }

    fn check_ratio(&mut self) {
        let Some(text) = self.text("maxLimitRequestRatio") else { return };
        let Some(ratio) = self.amount("maxLimitRequestRatio") else { return };
        let path = self.path.child("maxLimitRequestRatio").key(self.resource);
        if Quantity::parse("1").is_ok_and(|one| ratio < one) {
            let why = format!("ratio {text} is less than 1");
            self.problems.push(FieldError::invalid_str(&path, text, why));
        }
        let thousandths = |field: &str| self.amount(field)?.milli_value();
        if let (Some(min), Some(max), Some(wanted)) =
            (thousandths("min"), thousandths("max"), thousandths("maxLimitRequestRatio"))
            && min != 0
            && wanted as f64 / 1000.0 > max as f64 / min as f64
        {
            let most = max as f64 / min as f64;
            let why = format!("ratio {text} is greater than max/min = {most:.6}");
            self.problems.push(FieldError::invalid_str(&path, text, why));
        }
    }
}

fn item(limit: &Value, kind: &str, path: &FieldPath) -> Vec<FieldError> {
    let empty = Map::new();
    let list = |field: &str| get(limit, &[field]).and_then(Value::as_object).unwrap_or(&empty);
    let mut problems = Vec::new();
    let mut resources = BTreeSet::new();
    for field in FIELDS {
        let defaults = field.starts_with("default");
        if defaults && kind == "Pod" {
            if !list(field).is_empty() {
                let why = "may not be specified when `type` is 'Pod'";
                problems.push(FieldError::forbidden(&path.child(field), why));
            }
            continue;
        }
        for resource in list(field).keys() {
            let path = path.child(field).key(resource);
            problems.extend(bad_resource(resource, kind, &path));
            resources.insert(&**resource);
        }
    }
    if kind == "PersistentVolumeClaim"
        && !list("min").contains_key("storage")
        && !list("max").contains_key("storage")
    {
        let why = "either minimum or maximum storage value is required, but neither was provided";
        problems.push(FieldError::required(&path.child("limits"), why));
    }
    for resource in resources {
        let mut amounts = Amounts { limit, resource, path, problems: Vec::new() };
        let (min, max) = (("min", "min"), ("max", "max"));
        let request = ("defaultRequest", "default request");
        amounts.check(("min", false), min, max);
        amounts.check(("defaultRequest", true), min, request);
        amounts.check(("defaultRequest", false), request, max);
        amounts.check(("defaultRequest", false), request, ("default", "default limit"));
        amounts.check(("default", false), min, ("default", "default"));
        amounts.check(("default", true), ("default", "default"), max);
        amounts.check_ratio();
        problems.extend(amounts.problems);
    }
    problems
}
