//! Forms of objects, lists and frames.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt;
use jiff::Timestamp;
use machinery::{ClusterName, GroupResource, ObjectKey};
use proptest::prelude::*;
use schema::Types;
use serde_json::{Value, json};
use store::cache::{Event, Object, Origin};
use store::{Key, Revision};

use super::watch::Framer;
use super::*;
use crate::http::audit::AuditIds;
use crate::http::body::Body;
use crate::http::negotiate::{MetaVersion, Shape};
use crate::registry::{Error, EventKind, List, View, WatchItem};

fn view(name: &str, data: &str) -> View {
    let key = ObjectKey::new(ClusterName::root(), "ns", name);
    let key = Key::new(&GroupResource::new("", "configmaps"), &key);
    let value = store::object::encode(&json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"k": data},
        "metadata": {"name": name, "namespace": "ns", "labels": {"a": "{\"b\":1}"}},
    }));
    let object = Object::new(key, &value, Revision(7), 0, Origin::Stored).unwrap();
    View { json: object.json(), object: Arc::new(object) }
}

fn form(shape: Shape) -> Form {
    Form {
        accepted: Accepted { encoding: Encoding::Json, shape },
        resource: Types::builtin().resource("", "configmaps").unwrap().clone(),
        version: "v1".into(),
        include: Include::Metadata,
        now: Timestamp::now(),
        kinds: true,
        gzip: false,
    }
}

fn list_of(items: Vec<View>) -> List {
    List { items, resource_version: "9".into(), continue_token: None, remaining: None }
}

async fn bytes(body: Body) -> Bytes {
    body.collect().await.unwrap().to_bytes()
}

async fn value(response: http::Response<Body>) -> Value {
    serde_json::from_slice(&bytes(response.into_body()).await).unwrap()
}

#[tokio::test]
async fn lists_are_what_they_would_be_in_one_piece() {
    for (count, size) in [(0, 1), (1, 1), (3, 10), (500, 1000), (3, 100_000), (100, 40_000)] {
        let items: Vec<View> =
            (0..count).map(|n| view(&format!("a{n}"), &"x".repeat(size))).collect();
        let expected: Vec<Value> =
            items.iter().map(|view| serde_json::from_slice(&view.json).unwrap()).collect();
        let response = list(list_of(items), &form(Shape::Object));
        let length = response.body().length().unwrap();
        let whole = bytes(response.into_body()).await;
        assert_eq!(whole.len() as u64, length);
        let told: Value = serde_json::from_slice(&whole).unwrap();
        assert_eq!(told["kind"], "ConfigMapList");
        assert_eq!(told["metadata"], json!({"resourceVersion": "9"}));
        assert_eq!(told["items"], Value::from(expected));
    }
}

#[tokio::test]
async fn large_lists_are_compressed_for_those_who_take_it() {
    let items: Vec<View> = (0..300).map(|n| view(&format!("a{n}"), &"x".repeat(1000))).collect();
    let plain = bytes(list(list_of(items.clone()), &form(Shape::Object)).into_body()).await;
    for (shape, items) in [(Shape::Object, items.clone()), (Shape::Object, items[..1].to_vec())] {
        let large = items.len() > 1;
        let response = list(list_of(items), &Form { gzip: true, ..form(shape) });
        assert_eq!(response.headers().contains_key("content-encoding"), large);
        if large {
            let packed = bytes(response.into_body()).await;
            let mut unpacked = Vec::new();
            let mut decoder = flate2::read::GzDecoder::new(packed.as_ref());
            std::io::Read::read_to_end(&mut decoder, &mut unpacked).unwrap();
            assert_eq!(unpacked, plain);
        }
    }
}

#[tokio::test]
async fn metadata_and_tables() {
    let partial = value(object(&view("a", "x"), &form(Shape::Metadata(MetaVersion::V1)))).await;
    let metadata = json!({
        "resourceVersion": "7", "name": "a", "namespace": "ns", "labels": {"a": "{\"b\":1}"},
    });
    let expected = json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
    });
    assert_eq!(partial, expected);
    let items = vec![view("a", "x"), view("b", "y")];
    let partials =
        value(list(list_of(items.clone()), &form(Shape::Metadata(MetaVersion::V1Beta1)))).await;
    assert_eq!(partials["kind"], "PartialObjectMetadataList");
    assert_eq!(partials["apiVersion"], "meta.k8s.io/v1beta1");
    assert_eq!(partials["items"][1]["metadata"]["name"], "b");
    let table = value(list(list_of(items), &form(Shape::Table(MetaVersion::V1)))).await;
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    let columns: Vec<&Value> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|c| &c["name"]).collect();
    assert_eq!(columns, [&json!("Name"), &json!("Data"), &json!("Age")]);
    assert_eq!(table["rows"][1]["cells"][0], "b");
    assert_eq!(table["rows"][1]["object"]["kind"], "PartialObjectMetadata");
    let none = Form { include: Include::None, ..form(Shape::Table(MetaVersion::V1)) };
    let single = value(object(&view("a", "x"), &none)).await;
    assert_eq!(single["rows"][0]["object"], Value::Null);
    assert_eq!(single["metadata"], json!({"resourceVersion": "7"}));
}

fn framer(shape: Shape) -> Framer {
    let id = AuditIds::default().of(&http::HeaderMap::new());
    Framer { form: form(shape), shown_columns: false, id }
}

fn change(event: Option<Arc<Event>>) -> WatchItem {
    WatchItem::Change { kind: EventKind::Added, view: view("a", "x"), event }
}

/// One line, ended by a line feed.
fn frame(framer: &mut Framer, item: WatchItem) -> Value {
    let bytes = framer.frame(item);
    let (end, line) = bytes.split_last().unwrap();
    assert!(*end == b'\n' && !line.contains(&b'\n'));
    serde_json::from_slice(line).unwrap()
}

#[test]
fn frames() {
    let mut plain = framer(Shape::Object);
    let added = frame(&mut plain, change(None));
    assert_eq!((&added["type"], &added["object"]["kind"]), (&json!("ADDED"), &json!("ConfigMap")));
    let bookmark = WatchItem::Bookmark { resource_version: "9".into(), initial: true };
    let expected = json!({"type": "BOOKMARK", "object": {
        "kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {
            "resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"},
        },
    }});
    assert_eq!(frame(&mut plain, bookmark), expected);
    let failed = WatchItem::Failed(Error::new(crate::registry::Reason::Expired, "too old"));
    let expected = json!({"type": "ERROR", "object": {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "too old", "reason": "Expired", "code": 410,
    }});
    assert_eq!(frame(&mut plain, failed), expected);
    let mut table = framer(Shape::Table(MetaVersion::V1));
    let first = frame(&mut table, change(None));
    assert!(first["object"]["columnDefinitions"].is_array());
    let second = frame(&mut table, change(None));
    assert!(second["object"]["columnDefinitions"].is_null());
    assert_eq!(second["object"]["rows"][0]["cells"][0], "a");
    let mut metadata = framer(Shape::Metadata(MetaVersion::V1));
    let bookmark = WatchItem::Bookmark { resource_version: "9".into(), initial: false };
    assert_eq!(frame(&mut metadata, bookmark)["object"]["kind"], "PartialObjectMetadata");
}

#[test]
fn watchers_of_one_form_share_frames() {
    let current = view("a", "x").object;
    let event = Arc::new(Event::new(current.key.clone(), Revision(7), None, Some(current)));
    let of = |shape: Shape| framer(shape).frame(change(Some(event.clone())));
    let (a, b) = (of(Shape::Object), of(Shape::Object));
    assert_eq!(a.as_ptr(), b.as_ptr());
    let forms = [
        of(Shape::Object),
        of(Shape::Metadata(MetaVersion::V1)),
        of(Shape::Metadata(MetaVersion::V1Beta1)),
        of(Shape::Table(MetaVersion::V1)),
    ];
    for (index, form) in forms.iter().enumerate() {
        assert!(forms[..index].iter().all(|other| other != form));
    }
}

proptest! {
    #[test]
    fn pieces_join_to_the_whole(lengths in prop::collection::vec(0_usize..90_000, 0..12)) {
        let items: Vec<Bytes> = lengths.iter().map(|n| Bytes::from(vec![b'1'; *n])).collect();
        let expected = [b"[".as_slice(), &items.join(&b","[..]), b"]}"].concat();
        let pieces = super::list::collect("[", items.into_iter());
        prop_assert!(pieces.iter().all(|piece| !piece.is_empty() && piece.len() <= 100_000));
        prop_assert_eq!(pieces.concat(), expected);
    }
}
