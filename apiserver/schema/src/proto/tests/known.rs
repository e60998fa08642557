//! The same for kinds that a server may have imported: `tests/data/import/messages.json`, made by
//! `kind-tests/tools/schema-data/oracle/messages`.

use std::collections::HashSet;

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    api_version: Option<String>,
    kind: Option<String>,
    object: Option<Value>,
    raw: String,
}

#[derive(Deserialize)]
struct Served {
    object: Value,
}

/// Objects of all known kinds, and what a kube-apiserver returned, with Go's messages.
fn messages() -> Vec<(Gvk, Value, Vec<u8>)> {
    let messages: Vec<Message> =
        serde_json::from_str(include_str!("../../../tests/data/import/messages.json")).unwrap();
    let served: Vec<Served> =
        serde_json::from_str(include_str!("../../../tests/data/import/served.json")).unwrap();
    let mut served = served.into_iter();
    let message = |message: Message| {
        let served = message.kind.is_none().then(|| served.next().unwrap().object);
        let object = message.object.or(served).unwrap();
        let text = |name: &str| object[name].as_str().unwrap().to_owned();
        let api_version = message.api_version.unwrap_or_else(|| text("apiVersion"));
        let kind = message.kind.unwrap_or_else(|| text("kind"));
        (gvk(&api_version, &kind), object, STANDARD.decode(message.raw).unwrap())
    };
    let all = messages.into_iter().map(message).collect();
    assert!(served.next().is_none(), "run the oracle again");
    all
}

#[test]
fn known_kinds_decode_to_the_json_of_go() {
    for (gvk, object, raw) in messages() {
        let schema = Types::known(&gvk).unwrap();
        let found = decode_as(&schema, &gvk, &raw).unwrap();
        assert_eq!(format!("{found:#}"), format!("{object:#}"), "{gvk}");
    }
}

#[test]
fn known_kinds_encode_to_the_bytes_of_go() {
    for (gvk, object, raw) in messages() {
        let schema = Types::known(&gvk).unwrap();
        assert_eq!(encode_as(&schema, &object).unwrap(), raw, "{gvk} {object:#}");
    }
}

#[test]
fn there_is_a_message_of_every_known_kind() {
    let seen: HashSet<Gvk> = messages().into_iter().map(|(gvk, ..)| gvk).collect();
    let beyond = Types::beyond();
    assert!(beyond.kinds().count() > 100);
    for (gvk, _) in beyond.kinds() {
        assert!(seen.contains(gvk), "{gvk}: run the oracle again");
    }
}
