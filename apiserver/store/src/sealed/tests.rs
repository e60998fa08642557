use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;

use super::config::parse;
use super::*;
use crate::memory::{MemoryStore, Options};
use crate::{Compare, Expect, KeyPrefix};

impl Keyring {
    /// Seals everything.
    pub(crate) fn for_tests() -> Self {
        keyring("['*.*']", &format!("[{}]", aesgcm(&[("k", 1)])))
    }
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

fn secret(byte: u8) -> String {
    STANDARD.encode([byte; 32])
}

fn keyring(resources: &str, providers: &str) -> Keyring {
    parse(config(resources, providers).as_bytes()).unwrap()
}

fn config(resources: &str, providers: &str) -> String {
    format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
         - {{resources: {resources}, providers: {providers}}}\n"
    )
}

fn aesgcm(names: &[(&str, u8)]) -> String {
    let keys: Vec<String> = names
        .iter()
        .map(|(name, byte)| format!("{{name: {name}, secret: \"{}\"}}", secret(*byte)))
        .collect();
    format!("{{aesgcm: {{keys: [{}]}}}}", keys.join(", "))
}

async fn put(store: &dyn Store, at: &str, value: &str) -> Revision {
    let value = Bytes::copy_from_slice(value.as_bytes());
    let ops = vec![Op::Put { key: key(at), value }];
    store.commit(Txn { ops, ..Txn::default() }).await.unwrap()
}

async fn value(store: &dyn Store, at: &str) -> String {
    let record = store.get(&key(at)).await.unwrap().unwrap();
    String::from_utf8_lossy(&record.value).into_owned()
}

const ONE: &str = "core/secrets/a/n/x";
const TWO: &str = "core/secrets/b/n/x";

#[tokio::test]
async fn values_are_sealed_below_and_plain_above() {
    let below = MemoryStore::new(Options::default());
    let keys = keyring("[secrets]", &format!("[{}, {{identity: {{}}}}]", aesgcm(&[("k1", 1)])));
    let store = SealedStore::new(below.clone(), keys);
    let mut watch = store.watch(Revision(0)).await.unwrap();
    put(store.as_ref(), ONE, "{\"hush\":1}").await;
    put(store.as_ref(), "core/configmaps/a/n/x", "{\"open\":1}").await;
    let sealed = below.get(&key(ONE)).await.unwrap().unwrap().value;
    assert!(sealed.starts_with(b"k8s:enc:aesgcm:v1:k1:"));
    assert!(!sealed.windows(4).any(|part| part == b"hush"));
    assert_eq!(sealed.len(), "k8s:enc:aesgcm:v1:k1:".len() + 12 + "{\"hush\":1}".len() + 16);
    assert_eq!(value(below.as_ref(), "core/configmaps/a/n/x").await, "{\"open\":1}");
    // Plain above: get, range, watch, and the record of a conflict.
    assert_eq!(value(store.as_ref(), ONE).await, "{\"hush\":1}");
    let range = Range { prefix: KeyPrefix::everything(), after: None, limit: 0 };
    let page = store.range(range, None).await.unwrap();
    assert_eq!(page.records.last().unwrap().value, "{\"hush\":1}");
    let WatchMessage::Changes(changes) = watch.next().await.unwrap().unwrap() else {
        panic!("the first message is the first commit");
    };
    assert_eq!(changes[0].value.as_deref(), Some(b"{\"hush\":1}".as_slice()));
    let absent = Compare { key: key(ONE), expect: Expect::Absent };
    let ops = vec![Op::Delete { key: key(ONE) }];
    let error =
        store.commit(Txn { compares: vec![absent], ops, ..Txn::default() }).await.unwrap_err();
    let CommitError::Conflict { current: Some(current), .. } = error else { panic!("{error}") };
    assert_eq!(current.value, "{\"hush\":1}");
    // The same text is never the same ciphertext; nothing stays nothing.
    put(store.as_ref(), TWO, "{\"hush\":1}").await;
    assert_ne!(below.get(&key(TWO)).await.unwrap().unwrap().value[33..], sealed[33..]);
    put(store.as_ref(), TWO, "").await;
    assert_eq!(value(below.as_ref(), TWO).await, "");
    assert_eq!(value(store.as_ref(), TWO).await, "");
}

#[tokio::test]
async fn ciphertexts_are_good_at_their_own_key_alone() {
    let below = MemoryStore::new(Options::default());
    let store = SealedStore::new(
        below.clone(),
        keyring("[secrets]", &format!("[{}]", aesgcm(&[("k", 1)]))),
    );
    put(store.as_ref(), ONE, "{\"hush\":1}").await;
    let sealed = below.get(&key(ONE)).await.unwrap().unwrap().value;
    let check = async |at: &str, stored: Bytes, expect: Option<&str>| {
        let ops = vec![Op::Put { key: key(at), value: stored.clone() }];
        below.commit(Txn { ops, ..Txn::default() }).await.unwrap();
        let seen = store.get(&key(at)).await.unwrap().unwrap().value;
        match expect {
            Some(text) => assert_eq!(seen, text),
            None => assert!(machinery::meta::Header::scan(&seen).is_err(), "{seen:?}"),
        }
    };
    check(ONE, sealed.clone(), Some("{\"hush\":1}")).await;
    // In another logical cluster, under another name, in another namespace.
    for at in [TWO, "core/secrets/a/n/y", "core/secrets/a/m/x"] {
        check(at, sealed.clone(), None).await;
    }
    // Changed, cut short, by an unknown key, or not sealed at all.
    let mut changed = sealed.to_vec();
    *changed.last_mut().unwrap() ^= 1;
    check(ONE, changed.into(), None).await;
    for length in 0..sealed.len() {
        if length > 0 {
            check(ONE, sealed.slice(..length), None).await;
        }
    }
    check(
        ONE,
        Bytes::from_static(b"k8s:enc:aesgcm:v1:other:0123456789abcdefghijklmnopqrstuv"),
        None,
    )
    .await;
    check(ONE, Bytes::from_static(b"{\"planted\":1}"), None).await;
    check("core/configmaps/a/n/x", Bytes::from_static(b"{\"a\":1}"), Some("{\"a\":1}")).await;
}

#[tokio::test]
async fn keys_are_rotated_by_their_order() {
    let below = MemoryStore::new(Options::default());
    let identity = "{identity: {}}";
    let with = |providers: String| {
        SealedStore::new(below.clone(), keyring("['*.*']", &format!("[{providers}]")))
    };
    put(below.as_ref(), ONE, "{\"v\":0}").await;
    let first = with(format!("{}, {identity}", aesgcm(&[("old", 1)])));
    assert_eq!(value(first.as_ref(), ONE).await, "{\"v\":0}");
    put(first.as_ref(), ONE, "{\"v\":1}").await;
    let second = with(aesgcm(&[("new", 2), ("old", 1)]));
    assert_eq!(value(second.as_ref(), ONE).await, "{\"v\":1}");
    put(second.as_ref(), ONE, "{\"v\":2}").await;
    assert!(value(below.as_ref(), ONE).await.starts_with("k8s:enc:aesgcm:v1:new:"));
    let third = with(aesgcm(&[("new", 2)]));
    assert_eq!(value(third.as_ref(), ONE).await, "{\"v\":2}");
    // Back to plain.
    let last = with(format!("{identity}, {}", aesgcm(&[("new", 2)])));
    assert_eq!(value(last.as_ref(), ONE).await, "{\"v\":2}");
    put(last.as_ref(), ONE, "{\"v\":3}").await;
    assert_eq!(value(below.as_ref(), ONE).await, "{\"v\":3}");
}

#[test]
fn resources_are_named_as_upstream_does() {
    let check = |resources: &str, key: &str, expect: bool| {
        let keys = keyring(resources, "[{identity: {}}]");
        assert_eq!(keys.providers(&super::tests::key(key)).is_some(), expect, "{resources} {key}");
    };
    check("[secrets]", "core/secrets/a/n/x", true);
    check("[secrets]", "g.io/secrets/a/n/x", false);
    check("[things.g.io]", "g.io/things/a/n/x", true);
    check("['*.g.io']", "g.io/things/a/n/x", true);
    check("['*.g.io']", "core/things/a/n/x", false);
    check("['*.']", "core/things/a/n/x", true);
    check("['*.']", "g.io/things/a/n/x", false);
    check("['*.*']", "g.io/things/a/n/x", true);
}

#[test]
fn what_is_no_configuration() {
    let check = |resources: &str, providers: &str, expect: &str| {
        let why = parse(config(resources, providers).as_bytes()).unwrap_err();
        assert!(why.contains(expect), "{why}");
    };
    check("[secrets]", "[]", "no provider");
    check("[]", "[{identity: {}}]", "no resource");
    check("['*']", "[{identity: {}}]", "names no resources");
    check("['sec*']", "[{identity: {}}]", "names no resources");
    check("[secrets]", "[{kms: {}}]", "\"kms\" is not supported");
    check("[secrets]", "[{aesgcm: {keys: []}}]", "no key");
    check("[secrets]", "[{aesgcm: {keys: [{name: 'a:b', secret: x}]}}]", "colon");
    check("[secrets]", "[{aesgcm: {keys: [{name: a, secret: '!'}]}}]", "not base64");
    check("[secrets]", "[{aesgcm: {keys: [{name: a, secret: 'AAAA'}]}}]", "16, 24 or 32");
    let text = config("[secrets]", "[{identity: {}}]").replace("/v1", "/v2");
    assert!(parse(text.as_bytes()).is_err() && parse(b"\xff").is_err());
}
