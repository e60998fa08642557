//! The documents that are held, by what they are made of.
//!
//! A key names the definitions by their addresses: equal definitions are one allocation in the
//! whole process, so equal keys mean equal documents. The entry keeps those addresses from being
//! used again without keeping the definitions themselves. What is remembered of each document is
//! its hash, which is all that the index needs; bodies are dropped, the longest unused ones first,
//! when together they are too many.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use machinery::GroupVersion;
use schema::ResourceDef;

use super::accept::Form;
use crate::discovery::{Document, Resources};

/// Bytes of bodies that are held. A document of one version takes about 100 KB, that of everything
/// built in 1 MB.
const MAX_BYTES: usize = 48 << 20;

/// Entries that are held, with or without bodies; each takes some hundred bytes, and 16 for each
/// resource.
const MAX_ENTRIES: usize = 4096;

/// What a document is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum What {
    /// One group version, in v3.
    Version(GroupVersion),
    /// The index of v3.
    Index,
    /// Everything, in v2.
    Whole,
}

/// What a document is about, and the definitions that it is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    what: What,
    addresses: Box<[usize]>,
}

/// The documents.
#[derive(Debug, Default)]
pub(super) struct Held {
    entries: HashMap<Key, Entry>,
    /// Bodies, and room for their compressed form, when the last one was added.
    bytes: usize,
    /// Counts uses.
    now: u64,
}

#[derive(Debug)]
struct Entry {
    /// Keeps the addresses of the key.
    made_of: Box<[Weak<ResourceDef>]>,
    hash: Arc<str>,
    json: Option<Arc<Document>>,
    protobuf: Option<Arc<Document>>,
    used: u64,
}

// === impl Key ===

impl Key {
    pub(super) fn new(what: What, resources: &Resources) -> Self {
        let addresses = resources.iter().map(|def| Arc::as_ptr(def).addr()).collect();
        Self { what, addresses }
    }

    /// The version, if it is about one alone.
    pub(super) fn version(&self) -> Option<&GroupVersion> {
        match &self.what {
            What::Version(version) => Some(version),
            What::Index | What::Whole => None,
        }
    }
}

// === impl Held ===

impl Held {
    /// The document in that form, if it is held.
    pub(super) fn document(&mut self, key: &Key, form: Form) -> Option<Arc<Document>> {
        let entry = self.used(key)?;
        match form {
            Form::Json => entry.json.clone(),
            Form::Protobuf => entry.protobuf.clone(),
        }
    }

    /// The hash of a document that was made before.
    pub(super) fn hash(&mut self, key: &Key) -> Option<Arc<str>> {
        self.used(key).map(|entry| entry.hash.clone())
    }

    fn used(&mut self, key: &Key) -> Option<&mut Entry> {
        self.now += 1;
        let entry = self.entries.get_mut(key)?;
        entry.used = self.now;
        Some(entry)
    }

    /// How many documents are known, and the bytes of those that are held.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.entries.len(), self.bytes)
    }

    /// Holds a document that was made of these resources.
    pub(super) fn insert(
        &mut self,
        key: &Key,
        resources: &Resources,
        form: Form,
        document: &Arc<Document>,
    ) {
        self.now += 1;
        let now = self.now;
        let entry = self.entries.entry(key.clone()).or_insert_with(|| Entry {
            made_of: resources.iter().map(Arc::downgrade).collect(),
            hash: document.hash().into(),
            json: None,
            protobuf: None,
            used: now,
        });
        entry.used = now;
        let slot = match form {
            Form::Json => &mut entry.json,
            Form::Protobuf => &mut entry.protobuf,
        };
        *slot = Some(document.clone());
        self.bytes += document.size();
        if self.bytes > MAX_BYTES || self.entries.len() > MAX_ENTRIES {
            self.shrink(key);
        }
    }

    /// Makes room, a quarter of it, so that this isn't done with every document: first what is made
    /// of definitions that are gone, then what was not used for the longest time. What was just
    /// inserted stays.
    fn shrink(&mut self, newest: &Key) {
        self.entries.retain(|_, entry| entry.made_of.iter().all(|def| def.strong_count() > 0));
        self.bytes = self.entries.values().map(Entry::size).sum();
        let mut order: Vec<(u64, Key)> =
            self.entries.iter().map(|(key, entry)| (entry.used, key.clone())).collect();
        order.sort_unstable_by_key(|(used, _)| *used);
        for (_, key) in order.into_iter().filter(|(_, key)| key != newest) {
            let too_many = self.entries.len() > MAX_ENTRIES / 4 * 3;
            if !too_many && self.bytes <= MAX_BYTES / 4 * 3 {
                break;
            }
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            self.bytes -= entry.size();
            (entry.json, entry.protobuf) = (None, None);
            if too_many {
                self.entries.remove(&key);
            }
        }
    }
}

// === impl Entry ===

impl Entry {
    fn size(&self) -> usize {
        self.json.iter().chain(&self.protobuf).map(|document| document.size()).sum()
    }
}

#[cfg(test)]
mod tests {
    use schema::Types;
    use serde_json::json;

    use super::*;

    fn document(text: &str) -> Arc<Document> {
        Arc::new(Document::tagged(&json!(text), "application/json"))
    }

    fn whole(resources: &Resources) -> Key {
        Key::new(What::Whole, resources)
    }

    #[test]
    fn equal_sets_share_a_document_and_others_do_not() {
        let all = Types::builtin().resources().to_vec();
        let some: Resources = all[..3].into();
        let same: Resources = all[..3].into();
        let other: Resources = all[..4].into();
        let mut held = Held::default();
        held.insert(&whole(&some), &some, Form::Json, &document("a"));
        let found = held.document(&whole(&same), Form::Json).unwrap();
        assert_eq!(held.hash(&whole(&same)).as_deref(), Some(found.hash()));
        assert!(held.document(&whole(&same), Form::Protobuf).is_none());
        assert!(held.hash(&whole(&other)).is_none());
        assert!(held.hash(&Key::new(What::Index, &same)).is_none());
    }

    #[test]
    fn bodies_are_bounded_and_hashes_stay() {
        let all = Types::builtin().resources().to_vec();
        let resources: Resources = all[..1].into();
        let mut held = Held::default();
        let key =
            |n: usize| Key::new(What::Version(GroupVersion::new("", &format!("v{n}"))), &resources);
        let text = "x".repeat(MAX_BYTES / 10);
        for n in 0..40 {
            held.insert(&key(n), &resources, Form::Json, &document(&text));
            assert!(held.bytes <= MAX_BYTES, "{n}");
            // The first is used all the time.
            assert!(held.document(&key(0), Form::Json).is_some(), "{n}");
            assert!(held.document(&key(n), Form::Json).is_some(), "{n}");
        }
        assert!(held.document(&key(1), Form::Json).is_none());
        assert!(held.hash(&key(1)).is_some());
    }

    #[test]
    fn entries_are_bounded() {
        let all = Types::builtin().resources().to_vec();
        let resources: Resources = all[..1].into();
        let mut held = Held::default();
        for n in 0..MAX_ENTRIES * 2 {
            let what = What::Version(GroupVersion::new("", &format!("v{n}")));
            held.insert(&Key::new(what, &resources), &resources, Form::Json, &document("a"));
            assert!(held.entries.len() <= MAX_ENTRIES);
        }
    }
}
