//! What it costs to keep managers: the part of a write that only ownership needs.
//!
//! `cargo bench -p patch --bench apply`. An update of a ConfigMap of 1 KB is meant to stay below
//! 10 µs.

#![expect(clippy::unwrap_used, reason = "a benchmark may panic")]

use std::borrow::Cow;

use divan::{Bencher, black_box};
use jiff::Timestamp;
use machinery::time::Time;
use patch::apply::{
    ApplySchema, FieldSet, Forms, ListForm, MapForm, Scalar, Tracker, Type, Versions, Write,
};
use serde_json::{Value, json};
use tikv_jemallocator::Jemalloc;

/// The allocator that the server has.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() {
    divan::main();
}

/// A place of a type as large as a ConfigMap, as quick to ask as the server's own types.
#[derive(Clone, Copy, Debug)]
enum Place {
    Object,
    Metadata,
    Text,
    Texts,
    Entries,
}

/// The one version of it.
#[derive(Debug)]
struct Thing;

impl<'s> ApplySchema<'s> for Place {
    fn forms(self) -> Forms {
        let none = Forms::default();
        match self {
            Self::Text => Forms { scalar: Some(Scalar::String), ..none },
            Self::Entries => Forms { list: Some(ListForm::Atomic), ..none },
            Self::Object | Self::Metadata | Self::Texts => {
                Forms { map: Some(MapForm::Granular), ..none }
            }
        }
    }

    fn item(self) -> Type<Self> {
        Type::Whole
    }

    fn key(self, _: usize) -> Option<&'s str> {
        None
    }

    fn field(self, name: &str) -> Option<Type<Self>> {
        Some(Type::Known(match (self, name) {
            (Self::Object, "apiVersion" | "kind")
            | (Self::Metadata, "name" | "namespace" | "uid" | "resourceVersion") => Self::Text,
            (Self::Object, "metadata") => Self::Metadata,
            (Self::Object, "data") | (Self::Metadata, "labels" | "annotations") => Self::Texts,
            (Self::Metadata, "managedFields") => Self::Entries,
            _ => return None,
        }))
    }

    fn other(self) -> Option<Type<Self>> {
        matches!(self, Self::Texts).then_some(Type::Known(Self::Text))
    }

    fn has_fields(self) -> bool {
        matches!(self, Self::Object | Self::Metadata)
    }

    fn default_of(self, _: &str) -> Option<&'s Value> {
        None
    }
}

impl<'s> Versions<'s> for Thing {
    type Schema = Place;

    fn schema(&self, _: &str) -> Option<Type<Place>> {
        Some(Type::Known(Place::Object))
    }

    fn convert<'v>(&self, object: Cow<'v, Value>, _: &str) -> Result<Cow<'v, Value>, String> {
        Ok(object)
    }

    fn reset(&self, _: &str) -> Option<&FieldSet> {
        None
    }

    fn empty(&self, _: &str) -> Value {
        json!({"metadata": {}})
    }
}

fn map(keys: usize, value: &str) -> Value {
    let data: serde_json::Map<String, Value> =
        (0..keys).map(|at| (format!("key-{at:02}"), json!(value))).collect();
    json!({
        "apiVersion": "test.kcp.io/v1", "kind": "Thing", "data": data,
        "metadata": {
            "name": "a-name", "namespace": "default", "labels": {"app": "x", "tier": "y"},
            "uid": "11111111-2222-3333-4444-555555555555", "resourceVersion": "12345",
        },
    })
}

fn write(manager: &str) -> Write<'_> {
    let now = Time::at(Timestamp::new(1_577_836_800, 0).unwrap());
    Write { manager, api_version: "test.kcp.io/v1", kind: "Thing", subresource: "", now }
}

const VALUE: &str = "a value of forty bytes, about, as it is.";

#[divan::bench(args = [1, 16, 128])]
fn create(bencher: Bencher<'_, '_>, keys: usize) {
    let new = map(keys, VALUE);
    bencher.with_inputs(|| new.clone()).bench_values(|new| {
        Tracker::new(&Thing).update(&write("kubectl-create"), None, black_box(new))
    });
}

/// One of the keys changes; 16 keys are about 1 KB.
#[divan::bench(args = [1, 16, 128])]
fn update(bencher: Bencher<'_, '_>, keys: usize) {
    let tracker = Tracker::new(&Thing);
    let live = tracker.update(&write("kubectl-create"), None, map(keys, VALUE));
    let mut new = live.clone();
    new["data"]["key-00"] = json!("another");
    bencher
        .with_inputs(|| new.clone())
        .bench_values(|new| tracker.update(&write("controller"), Some(black_box(&live)), new));
}

#[divan::bench(args = [1, 16, 128])]
fn apply(bencher: Bencher<'_, '_>, keys: usize) {
    let tracker = Tracker::new(&Thing);
    let live = tracker.apply(&write("helm"), None, &map(keys, VALUE), false);
    let live = live.unwrap();
    let mut config = map(keys, VALUE);
    config["data"]["key-00"] = json!("another");
    bencher.bench(|| tracker.apply(&write("helm"), Some(black_box(&live)), &config, false));
}
