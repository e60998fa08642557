//! What changes objects: policies, then webhooks, and once more those that want to see what came
//! after them.
//!
//! # Flow
//! Each round asks policies and then webhooks. A second one follows when the first changed anything;
//! it asks only those that were asked before, want to be asked again (`reinvocationPolicy`), and come
//! before something that changed the object. There is no third.

use std::collections::BTreeSet;

use machinery::Gvk;
use serde_json::Value;

use super::{Admission, calls};
use crate::admission::{Hook, Hooks, Objects};
use crate::registry::scale::scale_kind;
use crate::registry::typing::Typing;
use crate::registry::{Context, Error, Registry, Target, conversion};

/// As deep as what clients send may nest.
const MAX_DEPTH: usize = 120;

/// How far the mutation of one object has come.
#[derive(Debug, Default)]
pub(super) struct Course {
    /// Whether this is the second round.
    pub(super) second: bool,
    /// Whether there has to be one.
    pub(super) wanted: bool,
    /// How often the object has changed.
    pub(super) changes: u64,
    pub(super) policies: Turns<(String, String, String)>,
    hooks: Turns<usize>,
}

/// Who has had a turn, and who gets another.
#[derive(Debug, Default)]
pub(super) struct Turns<K> {
    /// Those that were asked since the last change, and want to see the next.
    asked: BTreeSet<K>,
    /// Those whose turn it is in the second round.
    again: BTreeSet<K>,
    /// The changes when all had had their turn.
    left_at: u64,
}

// === impl Turns ===

impl<K: Ord> Turns<K> {
    /// The object has changed: all that were asked want another turn.
    pub(super) fn require(&mut self) {
        self.again.append(&mut self.asked);
    }

    /// Begins a round after so many changes.
    pub(super) fn begin(&mut self, second: bool, changes: u64) {
        if second && self.left_at != changes {
            self.require();
        }
    }

    /// Ends a round.
    pub(super) fn end(&mut self, changes: u64) {
        self.left_at = changes;
    }

    /// Whether it is somebody's turn.
    pub(super) fn is_turn(&self, second: bool, who: &K) -> bool {
        !second || self.again.contains(who)
    }

    /// Remembers somebody who wants to see what changes after.
    pub(super) fn remember(&mut self, who: K) {
        self.asked.insert(who);
    }
}

impl Registry {
    /// Lets policies and webhooks change an object. It is complete, and of the request's version.
    ///
    /// # Errors
    /// The refusal of one, or that one could not be asked.
    pub(in crate::registry) async fn mutate(
        &self,
        ctx: &Context,
        target: &Target,
        admission: &mut Admission,
        objects: &mut Objects,
    ) -> Result<(), Error> {
        if admission.mutating.is_empty() && admission.mutators.is_empty() {
            return Ok(());
        }
        admission.name_it(objects);
        let admission = &*admission;
        let configurations: Vec<_> = admission.mutating.iter().filter_map(Hooks::of).collect();
        let hooks: Vec<&Hook> = configurations.iter().flat_map(|hooks| &hooks.list).collect();
        let mut course = Course::default();
        loop {
            Box::pin(self.mutate_by_policies(target, admission, objects, &mut course)).await?;
            self.mutate_by_hooks(ctx, target, admission, &hooks, objects, &mut course).await?;
            if course.second || !course.wanted {
                return Ok(());
            }
            course.second = true;
        }
    }

    async fn mutate_by_hooks(
        &self,
        ctx: &Context,
        target: &Target,
        admission: &Admission,
        hooks: &[&Hook],
        objects: &mut Objects,
        course: &mut Course,
    ) -> Result<(), Error> {
        course.hooks.begin(course.second, course.changes);
        for (index, hook) in hooks.iter().enumerate() {
            if !course.hooks.is_turn(course.second, &index) {
                continue;
            }
            let Some(changed) = self.mutate_by(ctx, target, admission, hook, objects).await? else {
                continue;
            };
            if changed {
                course.changes += 1;
                course.hooks.require();
                course.wanted = true;
            }
            if hook.again {
                course.hooks.remember(index);
            }
        }
        course.hooks.end(course.changes);
        Ok(())
    }

    /// One webhook's turn. Says whether it changed the object; `None` if it was not asked.
    async fn mutate_by(
        &self,
        ctx: &Context,
        target: &Target,
        admission: &Admission,
        hook: &Hook,
        objects: &mut Objects,
    ) -> Result<Option<bool>, Error> {
        let Some(matched) = self.matched(target, admission, hook, objects).await? else {
            return Ok(None);
        };
        let (kind, seen) = (&matched.kind, &matched.objects);
        let asked = self.ask_hook(ctx, admission, hook, &matched, true).await?;
        let Some(patch) = asked.and_then(|verdict| verdict.patch) else {
            return Ok(Some(false));
        };
        let why = |what: String| calls::failed_calling(&hook.name, &what);
        let patch: Value = match serde_json::from_slice(&patch) {
            Ok(patch @ Value::Array(_)) => patch,
            _ => {
                let text = "received undecodable patch in webhook response: it is not a list";
                return if hook.ignores_failure { Ok(Some(false)) } else { Err(why(text.into())) };
            }
        };
        if patch.as_array().is_some_and(Vec::is_empty) {
            return Ok(Some(false));
        }
        let Some(before) = &seen.new else {
            return Err(calls::internal(&format!(
                "admission webhook {:?} attempted to modify the object, which is not supported \
                 for this operation",
                hook.name
            )));
        };
        let mut value = before.clone();
        ::patch::json::apply(&mut value, &patch, ::patch::json::MAX_COPIED)
            .map_err(|error| calls::internal(&error.to_string()))?;
        let value = self.retyped(target, kind, value)?;
        let changed = value != *before;
        if changed {
            objects.new = Some(self.as_kind(target, &value, &admission.attributes.kind).await?);
        }
        Ok(Some(changed))
    }

    /// What came back from a patch as an object of its kind again, with defaults.
    pub(super) fn retyped(
        &self,
        target: &Target,
        kind: &Gvk,
        mut value: Value,
    ) -> Result<Value, Error> {
        check_depth(&value)?;
        let typing = self.typing_of(target, kind)?;
        let coerced = typing.coerce(&mut value, schema::CoerceMode::Drop);
        coerced.map_err(|error| calls::internal(&error.to_string()))?;
        conversion::relabel(&mut value, kind);
        typing.default(&mut value);
        Ok(value)
    }

    /// The schema of a kind as which the target's objects are seen.
    pub(super) fn typing_of(&self, target: &Target, kind: &Gvk) -> Result<Typing, Error> {
        let typing = match &target.custom {
            Some(custom) if *kind != scale_kind() => Typing::custom(custom, kind),
            _ => Some(Typing::Builtin(self.schema(kind)?)),
        };
        typing.ok_or_else(|| Error::internal(format!("no version {kind:?}")))
    }
}

/// Refuses an object that a patch has made too deep.
pub(super) fn check_depth(value: &Value) -> Result<(), Error> {
    if machinery::json::depth(value, MAX_DEPTH) >= MAX_DEPTH {
        return Err(calls::internal("the object nests too deeply"));
    }
    Ok(())
}
