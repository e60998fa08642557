//! What matters of objects.

use contract::{
    DOWNSTREAM_NAME, ON_IMMUTABLE, ORPHAN, RECREATE, STATE_REMOVE, STATE_SYNC, SYNC_TARGET_LABEL,
    YIELD, YIELD_REPLICAS,
};
use serde_json::Value;

use super::{bytes, mark, number, revision, text};
use crate::digest::Hasher;
use crate::engine::Engine;
use crate::engine::entry::{Down, Flags, State, TypeId, Up};
use crate::fields::{self, OfStatus, REPLICAS};
use crate::lists::Wanted;
use crate::locator::Locator;
use crate::names;

impl Engine {
    /// What an upstream object says is to be there, and what of it is to be merged into lists.
    pub(in crate::engine) fn wanted(
        &self,
        kind: TypeId,
        cluster: &str,
        object: &Value,
    ) -> Option<(Box<[u8]>, Option<Wanted>)> {
        let kind = self.kind(kind)?;
        let synced = kind.synced.as_ref()?;
        let namespace = |name: &str| names::namespace(&self.target, cluster, name);
        let mut desired = self.rules.desired(&kind.rule, object, &namespace);
        let lists = Wanted::take(&kind.rule.merge, &mut desired);
        // Items of lists may lack them.
        desired["apiVersion"] = synced.api_version().into();
        desired["kind"] = (&*synced.kind).into();
        Some((bytes(&desired), lists))
    }

    /// What matters of an upstream object.
    pub(in crate::engine) fn read_object(
        &self,
        kind: TypeId,
        cluster: &str,
        object: &Value,
    ) -> Option<Up> {
        let (body, lists) = self.wanted(kind, cluster, object)?;
        let kind = self.kind(kind)?;
        let generation = number(object, "generation");
        let mut digest = Hasher::new();
        digest.text(&String::from_utf8_lossy(&body));
        digest.text(&generation.to_string());
        digest.text(&self.target.identity.target);
        lists.iter().for_each(|lists| lists.hash(&mut digest));
        let labels = object.get("metadata").and_then(|metadata| metadata.get("labels"));
        let others =
            labels.and_then(Value::as_object).into_iter().flatten().filter(|(key, value)| {
                **key != self.state_label
                    && contract::target_of_state_label(key).is_some()
                    && value.as_str() == Some(STATE_SYNC)
            });
        let finalizers = object.get("metadata").and_then(|metadata| metadata.get("finalizers"));
        let finalizers =
            finalizers.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let ours = finalizers.iter().position(|one| one.as_str() == Some(&*self.finalizer));
        let says = |key: &str, value: &str| {
            ["annotations", "labels"].iter().any(|place| mark(object, place, key) == Some(value))
        };
        let deleted = text(object, "deletionTimestamp");
        let status = object.get("status").filter(|status| status.is_object());
        Some(Up {
            uid: text(object, "uid").into(),
            revision: revision(object),
            generation,
            state: match mark(object, "labels", &self.state_label) {
                Some(STATE_SYNC) => State::Sync,
                Some(STATE_REMOVE) => State::Remove,
                Some(_) => State::Unknown,
                None => State::None,
            },
            deleted: (!deleted.is_empty()).then(|| deleted.into()),
            finalizer: ours.and_then(|ours| u32::try_from(ours).ok()),
            finalizers: !finalizers.is_empty(),
            others: u32::try_from(others.count()).unwrap_or(u32::MAX),
            flags: Flags {
                // What has come up from a physical cluster goes down to none.
                skip: kind.rule.skips(object)
                    || mark(object, "labels", SYNC_TARGET_LABEL).is_some(),
                ended: kind.rule.has_ended(object),
                yields: kind.rule.replicas && says(YIELD, YIELD_REPLICAS),
                orphan: says(ORPHAN, "true"),
                recreate: says(ON_IMMUTABLE, RECREATE),
            },
            alias: mark(object, "annotations", DOWNSTREAM_NAME)
                .filter(|alias| !alias.is_empty() && alias.len() <= 253)
                .map(Into::into),
            digest: digest.end(),
            body: (body.len() <= self.target.limits.kept_body).then_some(body),
            lists,
            status: status.map(bytes),
            replicas: object.pointer("/spec/replicas").and_then(Value::as_i64),
            scales: kind.rule.scaled(object).map(|(kind, name)| (kind.into(), name.into())),
        })
    }

    /// What matters of a copy; `known` is what was known of it before.
    pub(super) fn read_copy(
        object: &Value,
        locator: Option<&Locator>,
        known: Option<&Down>,
        without: Option<&[&str]>,
        status_down: bool,
    ) -> Down {
        let status = object.get("status").filter(|status| status.is_object());
        let deleting = !text(object, "deletionTimestamp").is_empty();
        let finalizers = object.get("metadata").and_then(|metadata| metadata.get("finalizers"));
        let finalizers =
            finalizers.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let finalizers = finalizers.iter().filter_map(Value::as_str).filter(|_| deleting);
        let replicas = object.pointer("/spec/replicas").and_then(Value::as_i64);
        Down {
            uid: text(object, "uid").into(),
            revision: revision(object),
            generation: number(object, "generation"),
            of: match (locator, known) {
                (Some(locator), _) => locator.uid.as_str().into(),
                (None, Some(known)) => known.of.clone(),
                (None, None) => "".into(),
            },
            applied_generation: locator
                .map(|locator| locator.generation)
                .or_else(|| known.map(|known| known.applied_generation))
                .unwrap_or(0),
            applied_revision: locator
                .map(Locator::revision)
                .or_else(|| known.map(|known| known.applied_revision))
                .unwrap_or(0),
            digest: locator
                .map(Locator::applied)
                .or_else(|| known.map(|known| known.digest))
                .unwrap_or(None),
            view: fields::view(object, without),
            good: known.and_then(|known| known.good),
            deleting,
            established: false,
            finalizers: finalizers.map(Into::into).collect(),
            status: status.map(bytes),
            status_ours: if status_down { OfStatus::of(object).map(Box::new) } else { None },
            replicas: replicas.filter(|_| fields::others_own(object, &REPLICAS)),
            lists: None,
            merged: known.and_then(|known| known.merged),
            live: None,
        }
    }
}
