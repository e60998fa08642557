//! What the server knows of an object without parsing its body.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, de};

use super::OwnerReference;
use crate::json::{JsonError, Object};

/// The fields of an object that selectors, garbage collection and deletion ask for.
///
/// Kept beside every object's bytes, so it is small: its strings are one piece of memory, labels
/// another if there are any, and what few objects have a third.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// The strings, one after the other: first those of [`Field`], then each label's key and value.
    text: Box<str>,
    /// Where each of [`Field`] ends in `text`.
    ends: [u32; Field::COUNT],
    /// Where each label is in `text`; sorted by key.
    labels: Box<[Place]>,
    generation: Option<i64>,
    rare: Option<Box<Rare>>,
}

/// The strings that nearly every object has, in their order in a header's text.
#[derive(Clone, Copy)]
enum Field {
    ApiVersion,
    Kind,
    Name,
    Namespace,
    Uid,
    CreationTimestamp,
}

/// Where a label's key begins in a header's text, where its value does, and where that ends.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    key: u32,
    value: u32,
    end: u32,
}

/// What most objects lack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rare {
    resource_version: Option<Box<str>>,
    deletion_timestamp: Option<Box<str>>,
    finalizers: Box<[Box<str>]>,
    owner_references: Box<[OwnerReference]>,
}

// === impl Header ===

impl Header {
    /// Reads the header out of an object's JSON and skips the rest.
    ///
    /// The whole text is checked to be JSON, but what is skipped is not looked at more closely.
    /// Null counts as absent.
    ///
    /// # Errors
    /// [`JsonError`] for what is no JSON object, for a header field of the wrong type, and for a
    /// header field that comes twice (stored objects have none).
    pub fn scan(bytes: &[u8]) -> Result<Self, JsonError> {
        let Object(whole) =
            serde_json::from_slice(bytes).map_err(|e| JsonError::from_serde(&e, bytes))?;
        Ok(Self::pack(whole))
    }

    fn pack(whole: Whole<'_>) -> Self {
        let Whole { api_version, kind, metadata: Object(metadata) } = whole;
        let fields = [
            &api_version,
            &kind,
            &metadata.name,
            &metadata.namespace,
            &metadata.uid,
            &metadata.creation_timestamp,
        ];
        let labels = &metadata.labels.0;
        let strings = fields.into_iter().chain(labels.iter().flat_map(|(key, value)| [key, value]));
        let mut text = String::with_capacity(strings.map(|string| string.0.len()).sum());
        // No object has 4 GiB; of one that had, what is beyond would be seen as empty.
        let mut add = |string: &Text<'_>| {
            text.push_str(&string.0);
            u32::try_from(text.len()).unwrap_or(u32::MAX)
        };
        let ends = fields.map(&mut add);
        let [.., mut end] = ends;
        let places = labels.iter().map(|(key, value)| {
            let place = Place { key: end, value: add(key), end: add(value) };
            end = place.end;
            place
        });
        let labels = places.collect();
        let rare = Rare {
            resource_version: metadata.resource_version,
            deletion_timestamp: metadata.deletion_timestamp,
            finalizers: metadata.finalizers,
            owner_references: metadata.owner_references,
        };
        let rare = (rare != Rare::default()).then(|| rare.into());
        Self { text: text.into(), ends, labels, generation: metadata.generation, rare }
    }

    /// `apiVersion`.
    pub fn api_version(&self) -> &str {
        self.field(Field::ApiVersion)
    }

    /// `kind`.
    pub fn kind(&self) -> &str {
        self.field(Field::Kind)
    }

    /// `metadata.name`.
    pub fn name(&self) -> &str {
        self.field(Field::Name)
    }

    /// `metadata.namespace`, empty when absent.
    pub fn namespace(&self) -> &str {
        self.field(Field::Namespace)
    }

    /// `metadata.uid`.
    pub fn uid(&self) -> &str {
        self.field(Field::Uid)
    }

    /// `metadata.generation`.
    pub fn generation(&self) -> Option<i64> {
        self.generation
    }

    /// `metadata.resourceVersion` as the bytes have it.
    pub fn resource_version(&self) -> Option<&str> {
        self.rare.as_ref()?.resource_version.as_deref()
    }

    /// `metadata.creationTimestamp` as the bytes have it, empty when absent.
    pub fn creation_timestamp(&self) -> &str {
        self.field(Field::CreationTimestamp)
    }

    /// `metadata.deletionTimestamp` as the bytes have it.
    pub fn deletion_timestamp(&self) -> Option<&str> {
        self.rare.as_ref()?.deletion_timestamp.as_deref()
    }

    /// `metadata.labels`, sorted by key.
    pub fn labels(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.labels.iter().map(|label| (self.key(*label), self.value(*label)))
    }

    /// A label's value.
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|label| self.key(*label).cmp(key)).ok()?;
        self.labels.get(at).map(|label| self.value(*label))
    }

    /// `metadata.finalizers`.
    pub fn finalizers(&self) -> &[Box<str>] {
        self.rare.as_ref().map_or(&[], |rare| &rare.finalizers)
    }

    /// `metadata.ownerReferences`.
    pub fn owner_references(&self) -> &[OwnerReference] {
        self.rare.as_ref().map_or(&[], |rare| &rare.owner_references)
    }

    /// Whether the object waits for its finalizers.
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp().is_some()
    }

    /// The owner that manages the object.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references().iter().find(|owner| owner.controller)
    }

    fn field(&self, field: Field) -> &str {
        let at = field as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.between(start, self.ends[at])
    }

    fn key(&self, label: Place) -> &str {
        self.between(label.key, label.value)
    }

    fn value(&self, label: Place) -> &str {
        self.between(label.value, label.end)
    }

    fn between(&self, start: u32, end: u32) -> &str {
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header")
            .field("api_version", &self.api_version())
            .field("kind", &self.kind())
            .field("name", &self.name())
            .field("namespace", &self.namespace())
            .field("uid", &self.uid())
            .field("creation_timestamp", &self.creation_timestamp())
            .field("generation", &self.generation)
            .field("labels", &self.labels().collect::<Vec<_>>())
            .field("rare", &self.rare)
            .finish()
    }
}

// === impl Field ===

impl Field {
    const COUNT: usize = Self::CreationTimestamp as usize + 1;
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Whole<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    api_version: Text<'a>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    kind: Text<'a>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    metadata: Object<Metadata<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata<'a> {
    #[serde(borrow, deserialize_with = "or_default")]
    name: Text<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    namespace: Text<'a>,
    #[serde(borrow, deserialize_with = "or_default")]
    uid: Text<'a>,
    generation: Option<i64>,
    resource_version: Option<Box<str>>,
    #[serde(borrow, deserialize_with = "or_default")]
    creation_timestamp: Text<'a>,
    deletion_timestamp: Option<Box<str>>,
    #[serde(borrow, deserialize_with = "or_default")]
    labels: Labels<'a>,
    #[serde(deserialize_with = "or_default")]
    finalizers: Box<[Box<str>]>,
    #[serde(deserialize_with = "owners")]
    owner_references: Box<[OwnerReference]>,
}

/// A string, which is a part of the JSON unless something in it is escaped.
#[derive(Default, Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Labels sorted by key; of duplicates the last one.
#[derive(Default)]
struct Labels<'a>(Vec<(Text<'a>, Text<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Labels<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Labels<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels<'de>, A::Error> {
                let mut labels: Vec<(Text<'de>, Text<'de>)> = Vec::new();
                while let Some(key) = map.next_key()? {
                    labels.push((key, map.next_value::<OrDefault<Text<'de>>>()?.0));
                }
                if !labels.is_sorted_by(|(a, _), (b, _)| a.0 < b.0) {
                    // The sort is stable: reversed, the last of equals comes first and stays.
                    labels.reverse();
                    labels.sort_by(|(a, _), (b, _)| a.0.cmp(&b.0));
                    labels.dedup_by(|(later, _), (kept, _)| later.0 == kept.0);
                }
                Ok(Labels(labels))
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

fn owners<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<[OwnerReference]>, D::Error> {
    let list: Vec<Object<OwnerReference>> = or_default(deserializer)?;
    Ok(list.into_iter().map(|Object(owner)| owner).collect())
}

/// A value of which null means the default.
struct OrDefault<T>(T);

impl<'de, T: Default + Deserialize<'de>> Deserialize<'de> for OrDefault<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        or_default(deserializer).map(Self)
    }
}

/// Reads null as the default, as Go does.
pub(super) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: de::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}
