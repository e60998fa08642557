//! What watches show of sources and mirrors.

use contract::{SYNC_TARGET_LABEL, UPSTREAM, UPSYNCER};
use serde_json::Value;

use super::{Locator, Mirror, Risen, Source, There};
use crate::digest::Hasher;
use crate::engine::Engine;
use crate::engine::entry::{Hold, Key, Place, TypeId};
use crate::engine::observe::{bytes, mark, number, revision, text};
use crate::{Event, Mapping, Scope, fields, names};

const SOURCES: usize = 0;
const MIRRORS: usize = 1;

impl Engine {
    pub(in crate::engine) fn see_born(&mut self, kind: TypeId, event: Event) {
        match event {
            Event::InitStart => {
                // Whoever answers now may be another.
                self.mirrors.cluster = None;
                self.begin_mirror_list(kind, SOURCES);
            }
            Event::Applied(object) => self.see_source(kind, &object),
            Event::Deleted(object) => {
                let Some(place) = Self::place_of(kind, &object) else { return };
                self.lose_source(&place, Some(text(&object, "uid")));
            }
            Event::InitDone { .. } => {
                for place in self.end_mirror_list(kind, SOURCES) {
                    self.lose_source(&place, None);
                }
            }
            Event::Bookmark { .. } => {}
        }
    }

    pub(in crate::engine) fn see_risen(&mut self, kind: TypeId, event: Event) {
        match event {
            Event::InitStart => self.begin_mirror_list(kind, MIRRORS),
            Event::Applied(object) => {
                self.see_mirror(kind, &object, false);
            }
            Event::Deleted(object) => {
                let Some(key) = self.key_of(kind, &object) else { return };
                let Some(place) = self.mirrors.places.get(&key).cloned() else { return };
                let at = revision(&object);
                let Some(mirror) = self.mirrors.all.get_mut(&place) else { return };
                if let There::Ours(risen) = &mirror.there
                    && *risen.uid == *text(&object, "uid")
                    && risen.revision <= at
                {
                    mirror.there = There::Unknown;
                    self.mirrors.touch(&place);
                }
            }
            Event::InitDone { .. } => {
                for place in self.end_mirror_list(kind, MIRRORS) {
                    if let Some(mirror) = self.mirrors.all.get_mut(&place)
                        && matches!(mirror.there, There::Ours(_))
                    {
                        mirror.there = There::Unknown;
                        self.mirrors.touch(&place);
                    }
                }
            }
            Event::Bookmark { .. } => {}
        }
    }

    fn begin_mirror_list(&mut self, kind: TypeId, which: usize) {
        let stream = &mut self.mirrors.streams.entry(kind).or_default()[which];
        stream.list = stream.list.wrapping_add(1);
        stream.listing = true;
    }

    /// Ends a list, and tells which places it didn't show.
    fn end_mirror_list(&mut self, kind: TypeId, which: usize) -> Vec<Place> {
        let stream = &mut self.mirrors.streams.entry(kind).or_default()[which];
        stream.listing = false;
        stream.complete = true;
        let list = stream.list;
        let mut missing = Vec::new();
        for (place, mirror) in &self.mirrors.all {
            if place.kind == kind {
                self.mirrors.agenda.touch(place.clone());
                if mirror.seen[which] != list {
                    missing.push(place.clone());
                }
            }
        }
        missing
    }

    fn mirror_list(&self, kind: TypeId, which: usize) -> u32 {
        self.mirrors.streams.get(&kind).map_or(0, |streams| streams[which].list)
    }

    /// Where an object of the physical cluster is at the hub; `None` for what never goes up.
    fn key_above(&self, place: &Place) -> Option<Key> {
        if names::is_reserved(&self.target, &place.namespace) {
            return None;
        }
        let (cluster, namespace) = match self.target.mapping {
            Mapping::Same => (self.target.cluster.clone(), place.namespace.clone()),
            // Only namespaces that we have made say whose they are.
            Mapping::Hashed => self.spaces.stands_for(&place.namespace)?,
        };
        Some(Key { kind: place.kind, cluster, namespace, name: place.name.clone() })
    }

    /// Takes in an object of the physical cluster that is to go up, perhaps.
    pub(super) fn see_source(&mut self, kind: TypeId, object: &Value) {
        let Some(place) = Self::place_of(kind, object) else { return };
        let Some(source) = self.read_source(kind, &place, object) else {
            return self.lose_source(&place, None);
        };
        let list = self.mirror_list(kind, SOURCES);
        // A list counts, whatever was known: the cluster may have gone back.
        let listing = self.mirrors.streams.get(&kind).is_some_and(|all| all[SOURCES].listing);
        let Some(mirror) = self.mirror_at(&place) else { return };
        mirror.seen[SOURCES] = list;
        if let Some(known) = &mirror.source
            && !listing
            && known.uid == source.uid
            && source.revision < known.revision
        {
            return;
        }
        let is_new = mirror.source.as_ref().is_none_or(|known| {
            known.uid != source.uid || known.digest != source.digest || known.deleting
        });
        if is_new {
            mirror.hold = Hold::default();
        }
        if let There::Ours(risen) = &mirror.there
            && *risen.locator.uid == *source.uid
            && !source.deleting
        {
            (mirror.gone, mirror.proven) = (None, None);
        }
        mirror.source = Some(source);
        self.mirrors.touch(&place);
    }

    /// An object is no longer shown: gone, or no longer to go up. That is no evidence.
    fn lose_source(&mut self, place: &Place, uid: Option<&str>) {
        let Some(mirror) = self.mirrors.all.get_mut(place) else { return };
        let is_it =
            mirror.source.as_ref().is_some_and(|source| uid.is_none_or(|uid| *source.uid == *uid));
        if is_it {
            mirror.source = None;
            mirror.hold = Hold::default();
        }
        self.mirrors.touch(place);
    }

    fn read_source(&self, kind: TypeId, place: &Place, object: &Value) -> Option<Source> {
        let upsync = self.upsync_of(kind)?;
        let of = self.kind(kind)?;
        let synced = of.synced.as_ref()?;
        let is_copy = mark(object, "labels", SYNC_TARGET_LABEL).is_some()
            || mark(object, "annotations", UPSTREAM).is_some();
        let asked = upsync.all || mark(object, "labels", contract::UPSYNC) == Some("true");
        let goes = !is_copy && asked && synced.scope == Scope::Namespaced && !of.rule.skips(object);
        if !goes || place.namespace.is_empty() {
            return None;
        }
        let mut desired = self.rules.desired(&of.rule, object, &str::to_owned);
        desired["apiVersion"] = synced.api_version().into();
        desired["kind"] = (&*synced.kind).into();
        let body = bytes(&desired);
        let mut digest = Hasher::new();
        digest.text(&String::from_utf8_lossy(&body));
        digest.text(text(object, "uid"));
        let status = object.get("status").filter(|status| status.is_object());
        Some(Source {
            uid: text(object, "uid").into(),
            revision: revision(object),
            generation: number(object, "generation"),
            digest: digest.end(),
            body,
            status: status.map(bytes),
            deleting: !text(object, "deletionTimestamp").is_empty(),
        })
    }

    /// Gives a mirror its place at the hub. Whether it has one.
    pub(super) fn place_mirror(&mut self, place: &Place) -> bool {
        let Some(mirror) = self.mirrors.all.get(place) else { return false };
        if mirror.key.is_some() {
            return true;
        }
        // A namespace may be shown later than what is in it.
        let Some(key) = self.key_above(place) else { return false };
        let holder = self.mirrors.places.entry(key.clone()).or_insert_with(|| place.clone());
        if holder != place {
            return false;
        }
        if let Some(mirror) = self.mirrors.all.get_mut(place) {
            mirror.key = Some(key);
        }
        true
    }

    /// The mirror at a place, a new one if there is none; `None` where there is never any.
    fn mirror_at(&mut self, place: &Place) -> Option<&mut Mirror> {
        if !self.mirrors.all.contains_key(place) {
            if names::is_reserved(&self.target, &place.namespace) {
                return None;
            }
            self.mirrors.next = self.mirrors.next.wrapping_add(1);
            let mirror = Mirror {
                id: self.mirrors.next,
                key: None,
                source: None,
                there: There::Unknown,
                seen: [0; 2],
                in_flight: false,
                hold: Hold::default(),
                problem: None,
                gone: None,
                proven: None,
                settled: None,
            };
            self.mirrors.all.insert(place.clone(), mirror);
        }
        self.mirrors.all.get_mut(place)
    }

    /// Takes in an object of the hub that is a mirror of ours. Whether it was. `applied` says that it
    /// is the answer to an apply of ours.
    pub(super) fn see_mirror(&mut self, kind: TypeId, object: &Value, applied: bool) -> bool {
        let Some(key) = self.key_of(kind, object) else { return false };
        let ours = mark(object, "labels", SYNC_TARGET_LABEL) == Some(&*self.target.identity.target);
        let Some(locator) = Locator::of(object).filter(|_| ours) else { return false };
        let place = Place {
            kind,
            namespace: locator.namespace.as_str().into(),
            name: locator.name.as_str().into(),
        };
        // A mirror whose source would be elsewhere was made by somebody else, or copied.
        let fits = match self.mirrors.places.get(&key) {
            Some(known) => *known == place,
            // The namespace may be gone, or not yet known: what it stood for is in no other place.
            None => {
                names::namespace(&self.target, &key.cluster, &key.namespace) == *place.namespace
            }
        };
        if !fits || key.name != place.name {
            return false;
        }
        let list = self.mirror_list(kind, MIRRORS);
        let view = fields::view_of(object, UPSYNCER, None);
        let Some(mirror) = self.mirror_at(&place) else { return false };
        if mirror.key.as_ref().is_some_and(|known| *known != key) {
            return false;
        }
        mirror.key = Some(key.clone());
        mirror.seen[MIRRORS] = list;
        let known = match &mirror.there {
            There::Ours(known) if *known.uid == *text(object, "uid") => Some(known),
            _ => None,
        };
        let at = revision(object);
        if known.is_some_and(|known| at < known.revision) {
            return true;
        }
        let status = object.get("status").filter(|status| status.is_object());
        let good = if applied { Some(view) } else { known.and_then(|known| known.good) };
        let is_other = known.is_none_or(|known| known.locator != locator);
        if is_other {
            (mirror.gone, mirror.proven) = (None, None);
        }
        mirror.there = There::Ours(Box::new(Risen {
            uid: text(object, "uid").into(),
            revision: at,
            generation: number(object, "generation"),
            deleting: !text(object, "deletionTimestamp").is_empty(),
            locator,
            view,
            good,
            status: status.map(bytes),
            live: good.is_none().then(|| bytes(object)),
        }));
        self.mirrors.places.insert(key, place.clone());
        self.mirrors.touch(&place);
        true
    }
}
