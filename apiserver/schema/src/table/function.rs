//! Cells that are computed, named in `data/resources.json`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::age;

/// A named computation of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Function {
    /// When an event was seen last: of its series, or its last or first time.
    EventLastSeen,
    /// When an event was seen first.
    EventFirstSeen,
    /// What an event is about, as `pod/web-0`.
    EventObject,
    /// Who reported an event, as `kubelet, node-1`.
    EventSource,
    /// How often an event was seen.
    EventCount,
    /// An event's message without surrounding space.
    EventMessage,
    /// A Service's first cluster IP.
    ServiceClusterIp,
    /// A Service's addresses outside the cluster, by its type.
    ServiceExternalIp,
    /// A Service's ports, as `80/TCP,443:30443/TCP`.
    ServicePorts,
    /// A Service's selector, as `a=b,c=d`.
    ServiceSelector,
    /// The kind of an admission policy's parameters.
    ParamKind,
    /// The parameters of an admission policy's binding.
    ParamRef,
    /// The Service behind an APIService, or `Local`.
    ApiServiceTarget,
    /// Whether an APIService is available, and if not, why.
    ApiServiceAvailable,
}

const NONE: &str = "<none>";
/// Why writing to a text can't fail.
const ENDLESS: &str = "a String takes any text";

// === impl Function ===

impl Function {
    pub(super) fn cell(self, object: &Value, now: Timestamp) -> Value {
        let text = match self {
            Self::EventLastSeen => last_seen(object, now),
            Self::EventFirstSeen => first_seen(object, now),
            Self::EventObject => event_object(object),
            Self::EventSource => event_source(object),
            Self::EventCount => return Value::from(event_count(object)),
            Self::EventMessage => {
                either(object, &["message", "note"]).as_str().unwrap_or_default().trim().to_owned()
            }
            Self::ServiceClusterIp => {
                let ips = at(object, "spec").get("clusterIPs");
                let first = ips.and_then(|ips| ips.get(0)).and_then(Value::as_str);
                first.unwrap_or(NONE).to_owned()
            }
            Self::ServiceExternalIp => external_ip(object),
            Self::ServicePorts => ports(object),
            Self::ServiceSelector => selector(at(at(object, "spec"), "selector")),
            Self::ParamKind => match at(object, "spec").get("paramKind") {
                None => "<unset>".to_owned(),
                Some(kind) => format!("{}/{}", str_at(kind, "apiVersion"), str_at(kind, "kind")),
            },
            Self::ParamRef => param_ref(at(object, "spec")),
            Self::ApiServiceTarget => match at(object, "spec").get("service") {
                None => "Local".to_owned(),
                Some(target) => {
                    format!("{}/{}", str_at(target, "namespace"), str_at(target, "name"))
                }
            },
            Self::ApiServiceAvailable => available(object),
        };
        Value::String(text)
    }
}

/// A member, null when absent.
fn at<'v>(value: &'v Value, name: &str) -> &'v Value {
    value.get(name).unwrap_or(&Value::Null)
}

fn str_at<'v>(value: &'v Value, name: &str) -> &'v str {
    at(value, name).as_str().unwrap_or_default()
}

/// The first member of these names that isn't null: the two event APIs differ in names.
fn either<'v>(value: &'v Value, names: &[&str]) -> &'v Value {
    names.iter().map(|name| at(value, name)).find(|v| !v.is_null()).unwrap_or(&Value::Null)
}

fn first_seen(object: &Value, now: Timestamp) -> String {
    let names = ["firstTimestamp", "deprecatedFirstTimestamp", "eventTime"];
    age::since(Some(either(object, &names)), now)
}

fn last_seen(object: &Value, now: Timestamp) -> String {
    if let Some(series) = object.get("series") {
        return age::since(series.get("lastObservedTime"), now);
    }
    match either(object, &["lastTimestamp", "deprecatedLastTimestamp"]) {
        Value::Null => first_seen(object, now),
        time => age::since(Some(time), now),
    }
}

fn event_object(object: &Value) -> String {
    let about = either(object, &["involvedObject", "regarding"]);
    let kind = str_at(about, "kind").to_lowercase();
    match str_at(about, "name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn event_source(object: &Value) -> String {
    let source = either(object, &["source", "deprecatedSource"]);
    let first = |in_source: &str, names: &[&str]| match str_at(source, in_source) {
        "" => either(object, names).as_str().unwrap_or_default().to_owned(),
        text => text.to_owned(),
    };
    let component = first("component", &["reportingComponent", "reportingController"]);
    match first("host", &["reportingInstance"]) {
        host if host.is_empty() => component,
        host => format!("{component}, {host}"),
    }
}

fn event_count(object: &Value) -> i64 {
    if let Some(series) = object.get("series") {
        return at(series, "count").as_i64().unwrap_or_default();
    }
    // Events of the newer API carry no count.
    match either(object, &["count", "deprecatedCount"]).as_i64().unwrap_or_default() {
        0 => 1,
        count => count,
    }
}

fn strings(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn external_ip(object: &Value) -> String {
    let spec = at(object, "spec");
    let external: Vec<&str> = strings(at(spec, "externalIPs")).collect();
    match str_at(spec, "type") {
        "ClusterIP" | "NodePort" if external.is_empty() => NONE.to_owned(),
        "ClusterIP" | "NodePort" => external.join(","),
        "LoadBalancer" => {
            let ingress = at(at(at(object, "status"), "loadBalancer"), "ingress");
            let address = |entry| match str_at(entry, "ip") {
                "" => str_at(entry, "hostname"),
                ip => ip,
            };
            let entries = ingress.as_array().into_iter().flatten().map(address);
            let sorted: BTreeSet<&str> = entries.filter(|a| !a.is_empty()).collect();
            match sorted.into_iter().chain(external).collect::<Vec<_>>().join(",") {
                none if none.is_empty() => "<pending>".to_owned(),
                all => all,
            }
        }
        "ExternalName" => str_at(spec, "externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn ports(object: &Value) -> String {
    let mut text = String::new();
    for port in at(at(object, "spec"), "ports").as_array().into_iter().flatten() {
        if !text.is_empty() {
            text.push(',');
        }
        write!(text, "{}", at(port, "port").as_i64().unwrap_or_default()).expect(ENDLESS);
        if let node @ 1.. = at(port, "nodePort").as_i64().unwrap_or_default() {
            write!(text, ":{node}").expect(ENDLESS);
        }
        write!(text, "/{}", str_at(port, "protocol")).expect(ENDLESS);
    }
    if text.is_empty() { NONE.to_owned() } else { text }
}

fn selector(value: &Value) -> String {
    let pairs = value.as_object().into_iter().flatten();
    let texts: Vec<String> =
        pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    if texts.is_empty() { NONE.to_owned() } else { texts.join(",") }
}

fn param_ref(spec: &Value) -> String {
    let Some(param) = spec.get("paramRef") else { return "<unset>".to_owned() };
    match (str_at(param, "namespace"), str_at(param, "name")) {
        ("", "") => match param.get("selector") {
            None => "<unset>".to_owned(),
            Some(labels) => printed_selector(labels),
        },
        (_, "") => "<unset>".to_owned(),
        // A name without namespace may mean any namespace, or a parameter without one.
        ("", name) => format!("*/{name}"),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}

/// A label selector as Go prints the struct, which is what upstream shows here.
fn printed_selector(labels: &Value) -> String {
    let mut text = String::from("&LabelSelector{MatchLabels:map[string]string{");
    for (key, value) in at(labels, "matchLabels").as_object().into_iter().flatten() {
        write!(text, "{key}: {},", value.as_str().unwrap_or_default()).expect(ENDLESS);
    }
    text.push_str("},MatchExpressions:[]LabelSelectorRequirement{");
    for rule in at(labels, "matchExpressions").as_array().into_iter().flatten() {
        let values: Vec<&str> = strings(at(rule, "values")).collect();
        let (key, operator) = (str_at(rule, "key"), str_at(rule, "operator"));
        let values = values.join(" ");
        write!(
            text,
            "LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},"
        )
        .expect(ENDLESS);
    }
    text.push_str("},}");
    text
}

fn available(object: &Value) -> String {
    let conditions = at(at(object, "status"), "conditions").as_array();
    let condition = conditions.into_iter().flatten().find(|c| str_at(c, "type") == "Available");
    let Some(condition) = condition else { return "Unknown".to_owned() };
    match (str_at(condition, "status"), str_at(condition, "reason")) {
        ("True", _) => "True".to_owned(),
        (status, "") => status.to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    }
}
