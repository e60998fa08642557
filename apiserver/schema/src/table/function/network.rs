//! Cells of Services, Ingresses and endpoints.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::{ENDLESS, NONE, at, get, items, number, str_at, strings};

/// How many hosts or endpoints a cell shows.
const SHOWN: usize = 3;

/// The addresses of the load balancers in the status, sorted, each once.
fn balancers(object: &Value) -> BTreeSet<&str> {
    let entries = items(at(at(at(object, "status"), "loadBalancer"), "ingress"));
    let address = |entry| match str_at(entry, "ip") {
        "" => str_at(entry, "hostname"),
        ip => ip,
    };
    entries.iter().map(address).filter(|address| !address.is_empty()).collect()
}

/// The address inside the cluster. A kube-apiserver always fills in the list; elsewhere there may be
/// no more than the text that a client wrote.
pub(super) fn cluster_ip(object: &Value) -> String {
    let spec = at(object, "spec");
    let first = items(at(spec, "clusterIPs")).first().and_then(Value::as_str);
    let written = Some(str_at(spec, "clusterIP")).filter(|text| !text.is_empty());
    first.or(written).unwrap_or(NONE).to_owned()
}

pub(super) fn external_ip(object: &Value) -> String {
    let spec = at(object, "spec");
    let external: Vec<&str> = strings(at(spec, "externalIPs")).collect();
    match str_at(spec, "type") {
        // A kube-apiserver fills in the type; without one it is the first of these.
        "ClusterIP" | "NodePort" | "" if external.is_empty() => NONE.to_owned(),
        "ClusterIP" | "NodePort" | "" => external.join(","),
        "LoadBalancer" => {
            match balancers(object).into_iter().chain(external).collect::<Vec<_>>().join(",") {
                none if none.is_empty() => "<pending>".to_owned(),
                all => all,
            }
        }
        "ExternalName" => str_at(spec, "externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

pub(super) fn ports(object: &Value) -> String {
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

pub(super) fn ingress_hosts(object: &Value) -> String {
    let rules = items(at(at(object, "spec"), "rules"));
    let mut hosts: Vec<&str> = Vec::with_capacity(SHOWN);
    let mut more = false;
    for rule in rules {
        more |= hosts.len() == SHOWN;
        let host = str_at(rule, "host");
        if !more && !host.is_empty() {
            hosts.push(host);
        }
    }
    match hosts.join(",") {
        none if none.is_empty() => "*".to_owned(),
        // Upstream counts rules here, those without a host among them.
        some if more => format!("{some} + {} more...", rules.len() - SHOWN),
        all => all,
    }
}

pub(super) fn ingress_address(object: &Value) -> String {
    balancers(object).into_iter().collect::<Vec<_>>().join(",")
}

pub(super) fn ingress_ports(object: &Value) -> String {
    let tls = items(at(at(object, "spec"), "tls"));
    if tls.is_empty() { "80" } else { "80, 443" }.to_owned()
}

pub(super) fn class_parameters(object: &Value) -> String {
    let Some(parameters) = get(at(object, "spec"), "parameters") else { return NONE.to_owned() };
    let (kind, name) = (str_at(parameters, "kind"), str_at(parameters, "name"));
    match get(parameters, "apiGroup").and_then(Value::as_str) {
        None => format!("{kind}/{name}"),
        Some(group) => format!("{kind}.{group}/{name}"),
    }
}

pub(super) fn endpoints(object: &Value) -> String {
    let subsets = items(at(object, "subsets"));
    if subsets.is_empty() {
        return NONE.to_owned();
    }
    let mut shown = Vec::new();
    let mut count = 0;
    for subset in subsets {
        let addresses = items(at(subset, "addresses"));
        let ports = items(at(subset, "ports"));
        count += addresses.len() * ports.len().max(1);
        let addresses = || addresses.iter().map(|address| str_at(address, "ip"));
        let missing = SHOWN.saturating_sub(shown.len());
        if ports.is_empty() {
            shown.extend(addresses().take(missing).map(str::to_owned));
        }
        for port in ports {
            let missing = SHOWN.saturating_sub(shown.len());
            shown.extend(
                addresses().take(missing).map(|ip| host_and_port(ip, number(port, "port"))),
            );
        }
    }
    let text = shown.join(",");
    if count > SHOWN { format!("{text} + {} more...", count - SHOWN) } else { text }
}

/// An address with its port; one with colons goes into brackets.
fn host_and_port(ip: &str, port: i64) -> String {
    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}

pub(super) fn slice_ports(object: &Value) -> String {
    let ports = items(at(object, "ports")).iter().map(|port| match get(port, "port") {
        Some(number) => number.to_string(),
        None => get(port, "name").and_then(Value::as_str).unwrap_or("*").to_owned(),
    });
    some_of(ports)
}

pub(super) fn slice_endpoints(object: &Value) -> String {
    let endpoints = items(at(object, "endpoints")).iter();
    some_of(endpoints.flat_map(|e| strings(at(e, "addresses"))).map(str::to_owned))
}

/// The first few, and how many more there are.
pub(super) fn some_of(texts: impl Iterator<Item = String>) -> String {
    let mut texts = texts.into_iter();
    let shown: Vec<String> = texts.by_ref().take(SHOWN).collect();
    let text = shown.join(",");
    match texts.count() {
        0 if text.is_empty() => "<unset>".to_owned(),
        0 => text,
        more => format!("{text} + {more} more..."),
    }
}

pub(super) fn address_parent(object: &Value) -> String {
    let Some(parent) = get(at(object, "spec"), "parentRef") else { return NONE.to_owned() };
    let mut text = str_at(parent, "resource").to_lowercase();
    for (mark, part) in [
        ('.', str_at(parent, "group").to_lowercase()),
        ('/', str_at(parent, "namespace").to_owned()),
    ] {
        if !part.is_empty() {
            write!(text, "{mark}{part}").expect(ENDLESS);
        }
    }
    write!(text, "/{}", str_at(parent, "name")).expect(ENDLESS);
    text
}
