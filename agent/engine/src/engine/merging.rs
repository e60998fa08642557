//! Lists that are merged with what is in a copy ([`crate::lists`]).

use serde_json::Value;

use super::Engine;
use super::entry::{Copy, Id};
use super::observe::text;
use crate::lists::{self, Held, Merged};

/// How a copy is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// Without force, and lists stay as they are: who has one would be in conflict with what is
    /// merged of it.
    Gentle,
    /// Without force.
    Plain,
    /// With force.
    Forced,
}

/// What an apply has to know of what it changes.
#[derive(Debug, Default)]
pub(super) struct There {
    pub(super) lists: Option<Held>,
    /// The version that was read; empty if nobody knows.
    pub(super) version: String,
}

// === impl Manner ===

impl Manner {
    pub(super) fn of_adoption(force: bool) -> Self {
        if force { Self::Forced } else { Self::Gentle }
    }
}

// === impl Engine ===

impl Engine {
    /// What is in the place of a copy.
    pub(super) fn there(&self, id: Id) -> There {
        let Some(entry) = self.index.get(id) else { return There::default() };
        match &entry.copy {
            Copy::Ours(down) => {
                let version = Some(down.revision).filter(|revision| *revision > 0);
                let version = version.map(|revision| revision.to_string()).unwrap_or_default();
                There { lists: down.lists.clone(), version }
            }
            Copy::Foreign(foreign) => {
                let live = foreign.live.as_ref().and_then(|live| serde_json::from_slice(live).ok());
                let Some(live): Option<Value> = live else { return There::default() };
                let rule = self.kind(entry.key.kind).map(|kind| kind.rule.clone());
                let rule = rule.unwrap_or_default();
                let lists = Held::of(&rule.merge, &live, None, None);
                There { lists, version: text(&live, "resourceVersion").to_owned() }
            }
            Copy::Unknown | Copy::Absent => There::default(),
        }
    }

    /// What an apply says of merged lists; `None` if the type has none.
    pub(super) fn merged(&self, id: Id, there: &There, manner: Manner) -> Option<Merged> {
        let entry = self.index.get(id)?;
        let ways = &self.kind(entry.key.kind)?.rule.merge;
        if ways.is_empty() {
            return None;
        }
        let wanted = entry.up.as_ref().and_then(|up| up.lists.as_ref());
        let held = there.lists.as_ref();
        Some(match manner {
            Manner::Gentle => Merged::none(ways, held),
            Manner::Plain | Manner::Forced => Merged::of(ways, wanted, held),
        })
    }

    /// The lists of a copy that are not as they are to be, as JSON pointers.
    pub(super) fn wrong_lists(&self, id: Id) -> Vec<String> {
        let Some(entry) = self.index.get(id) else { return Vec::new() };
        let Some(kind) = self.kind(entry.key.kind) else { return Vec::new() };
        let (Some(up), Some(down)) = (&entry.up, entry.ours()) else { return Vec::new() };
        if kind.rule.merge.is_empty() || (up.lists.is_none() && down.lists.is_none()) {
            return Vec::new();
        }
        if down.merged == Some(Held::digest(down.lists.as_ref())) {
            return Vec::new();
        }
        let wrong = lists::wrong(&kind.rule.merge, up.lists.as_ref(), down.lists.as_ref());
        wrong.into_iter().map(str::to_owned).collect()
    }
}
