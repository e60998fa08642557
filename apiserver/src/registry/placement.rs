//! Who may say where objects run: labels and finalizers of SyncTargets.
//!
//! Setting, changing or removing the intent label needs the verb `use` on the SyncTarget, a state
//! label or finalizer, or what a SyncTarget says of deletes that need no approval, the verb `sync`.
//! Both are asked in the object's own logical cluster, for the SyncTarget's name there, or the global
//! name of one elsewhere: which logical clusters a SyncTarget serves is said by its owners in
//! `spec.allowedClusters`, who may run on it by those of the object. They are judged on the object
//! that would be stored, after webhooks.
//!
//! Whoever lets a SyncTarget serve another logical cluster must be one who could make SyncTargets
//! there: its agent sees the types there, and writes records and events.

use std::collections::BTreeSet;

use contract::{
    DELETING, INTENT_LABEL, LONGEST_GLOBAL_NAME, global_name, parse_global_name,
    target_of_finalizer, target_of_state_label,
};
use machinery::meta::{get, get_str};
use machinery::{ClusterName, FieldError, FieldPath};
use serde_json::Value;

use crate::auth::authz::Attributes;
use crate::auth::targets::is_sync_targets;
use crate::auth::{MASTERS, operator};
use crate::registry::{ClusterScope, Context, Error, Registry, Target};

/// A mark whose change needs a right on a SyncTarget.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Mark<'o> {
    verb: &'static str,
    /// The SyncTarget as the mark names it.
    target: &'o str,
    /// What else there is to the mark: where two objects differ in it, it was changed.
    state: &'o str,
}

impl Registry {
    /// Refuses marks of SyncTargets that the caller may not set, change or remove.
    ///
    /// # Errors
    /// 403 that names the verb and the SyncTarget; 422 for a SyncTarget with too long a name.
    pub(super) fn check_placement(
        &self,
        ctx: &Context,
        target: &Target,
        old: Option<&Value>,
        new: &Value,
    ) -> Result<(), Error> {
        let cluster = Self::cluster(target)?;
        let of_targets = is_sync_targets(&target.resource);
        if of_targets && old.is_none() {
            check_name(target, cluster, new)?;
        }
        // What agents and the operator change is judged before webhooks.
        let user = &ctx.user;
        if ctx.inside
            || user.is_in(MASTERS)
            || user.certified_agent().is_some()
            || operator::is_operator(user)
        {
            return Ok(());
        }
        let (mut before, mut after) = (old.map(marks).unwrap_or_default(), marks(new));
        if of_targets {
            before.extend(old.and_then(exempted));
            after.extend(exempted(new));
        }
        let changed: BTreeSet<_> = before
            .symmetric_difference(&after)
            .map(|mark| (mark.verb, here(cluster, mark.target)))
            .collect();
        for (verb, name) in changed {
            let asked = on_target(verb, name);
            if !self.authorizer.authorize(user, &target.cluster, &asked).is_allowed() {
                let why = format!(
                    "{}: what says where objects run needs the verb {verb:?} on the SyncTarget \
                     {name:?}",
                    asked.refusal(user)
                );
                return Err(target.forbidden(new, &why));
            }
        }
        if of_targets { self.check_allowed(ctx, target, old, new) } else { Ok(()) }
    }

    /// Refuses a SyncTarget that is to serve logical clusters in which the caller could make none.
    fn check_allowed(
        &self,
        ctx: &Context,
        target: &Target,
        old: Option<&Value>,
        new: &Value,
    ) -> Result<(), Error> {
        let path = ["spec", "allowedClusters"];
        let part = |object: Option<&Value>, field: &str| -> Value {
            let allowed = object.and_then(|object| get(object, &path));
            allowed.and_then(|allowed| allowed.get(field)).cloned().unwrap_or_default()
        };
        let (before, after) = (part(old, "names"), part(Some(new), "names"));
        let known = before.as_array().map(Vec::as_slice).unwrap_or_default();
        let names = after.as_array().into_iter().flatten();
        let mut scopes = Vec::new();
        for name in names.filter(|name| !known.contains(name)) {
            // A name that is none is nobody's.
            if let Ok(cluster) = ClusterName::parse(name.as_str().unwrap_or_default()) {
                scopes.push(ClusterScope::One(cluster));
            }
        }
        let selector = part(Some(new), "selector");
        if !selector.is_null() && selector != part(old, "selector") {
            scopes.push(ClusterScope::All);
        }
        let asked = on_target("create", "");
        for scope in scopes {
            if scope == target.cluster
                || self.authorizer.authorize(&ctx.user, &scope, &asked).is_allowed()
            {
                continue;
            }
            let place = match &scope {
                ClusterScope::One(cluster) => format!("the logical cluster {cluster}"),
                ClusterScope::All => "all logical clusters".to_owned(),
            };
            let why =
                format!("to let it serve {place}, the right to create SyncTargets there is needed");
            return Err(target.forbidden(new, &why));
        }
        Ok(())
    }
}

/// A verb on a SyncTarget.
fn on_target<'a>(verb: &'a str, name: &'a str) -> Attributes<'a> {
    Attributes::Resource {
        verb,
        group: contract::WORKLOAD_GROUP,
        resource: contract::SYNC_TARGETS,
        name,
        subresource: "",
        namespace: "",
    }
}

/// The global name has its bounds, too, which no rule of the type can know.
fn check_name(target: &Target, cluster: &ClusterName, object: &Value) -> Result<(), Error> {
    let name = get_str(object, &["metadata", "name"]).unwrap_or_default();
    let global = global_name(cluster.as_str(), name);
    if global.len() <= LONGEST_GLOBAL_NAME {
        return Ok(());
    }
    let path = FieldPath::root("metadata").child("name");
    let why = format!(
        "with its logical cluster, {global}, it must be no more than {LONGEST_GLOBAL_NAME} bytes"
    );
    let kind = Registry::kind(&target.resource, &target.version);
    Err(Error::invalid(&kind, name, &[FieldError::invalid_str(&path, name, why)]))
}

/// A SyncTarget's name as its own logical cluster knows it: one elsewhere has its global name.
fn here<'o>(cluster: &ClusterName, target: &'o str) -> &'o str {
    match parse_global_name(target) {
        Some((owner, name)) if owner == cluster.as_str() => name,
        _ => target,
    }
}

/// The marks of an object.
fn marks(object: &Value) -> BTreeSet<Mark<'_>> {
    let labels = get(object, &["metadata", "labels"]).and_then(Value::as_object);
    let labels = labels.into_iter().flatten().filter_map(|(key, value)| {
        let value = value.as_str().unwrap_or_default();
        if key == INTENT_LABEL {
            // Without a value it names nobody.
            return (!value.is_empty()).then_some(Mark { verb: "use", target: value, state: "" });
        }
        let target = target_of_state_label(key)?;
        Some(Mark { verb: "sync", target, state: value })
    });
    let finalizers = get(object, &["metadata", "finalizers"]).and_then(Value::as_array);
    let finalizers = finalizers.into_iter().flatten().filter_map(|finalizer| {
        let target = target_of_finalizer(finalizer.as_str()?)?;
        Some(Mark { verb: "sync", target, state: "finalizer" })
    });
    labels.chain(finalizers).collect()
}

/// What a SyncTarget says of deletes that need no approval: the operator's word, as state labels are.
fn exempted(target: &Value) -> Option<Mark<'_>> {
    let state = get_str(target, &["metadata", "annotations", DELETING])?;
    let name = get_str(target, &["metadata", "name"]).unwrap_or_default();
    Some(Mark { verb: "sync", target: name, state })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marks_that_change() {
        let check = |old: Value, new: Value, expect: &[(&str, &str)]| {
            let of = |metadata: &Value| json!({"metadata": metadata});
            let (old, new) = (of(&old), of(&new));
            let (before, after) = (marks(&old), marks(&new));
            let changed: BTreeSet<_> =
                before.symmetric_difference(&after).map(|mark| (mark.verb, mark.target)).collect();
            assert_eq!(changed.into_iter().collect::<Vec<_>>(), expect, "{old} {new}");
        };
        let intent = |name: &str| json!({"labels": {INTENT_LABEL: name, "a": "b"}});
        check(json!({}), json!({"labels": {"a": "b"}, "finalizers": ["a/b"]}), &[]);
        check(json!({}), intent("east"), &[("use", "east")]);
        check(intent("east"), json!({}), &[("use", "east")]);
        check(intent("east"), intent("west"), &[("use", "east"), ("use", "west")]);
        check(intent("east"), intent("east"), &[]);
        check(json!({}), intent(""), &[]);
        let state = |value: &str| json!({"labels": {"sync.workloads.kcp.io/a.east": value}});
        check(json!({}), state("Sync"), &[("sync", "a.east")]);
        check(state("Sync"), state("Remove"), &[("sync", "a.east")]);
        let held = json!({"finalizers": ["workloads.kcp.io/a.east"]});
        check(held.clone(), json!({"finalizers": []}), &[("sync", "a.east")]);
        check(json!({}), held, &[("sync", "a.east")]);
    }

    #[test]
    fn names_at_home_and_elsewhere() {
        let cluster = ClusterName::parse("infra").unwrap();
        for (given, expect) in [
            ("east", "east"),
            ("infra.east", "east"),
            ("other.east", "other.east"),
            ("a.b.c", "a.b.c"),
        ] {
            assert_eq!(here(&cluster, given), expect);
        }
    }
}
