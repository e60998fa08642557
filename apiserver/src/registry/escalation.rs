//! Nobody gives rights that they do not hold: checks of writes to roles and bindings.
//!
//! They are made on the object that would be stored, after webhooks and merges, before it is judged
//! (upstream's policy-based storage of these kinds). Members of `system:masters`, and the server
//! itself, are exempt.

use std::sync::LazyLock;

use machinery::ClusterName;
use machinery::meta::{get, get_str, remove, set};
use serde::Deserialize;
use serde_json::Value;

use crate::auth::MASTERS;
use crate::auth::authz::Attributes;
use crate::auth::rbac::{self, RoleKind, Rule, compact, quoted, uncovered};
use crate::clusters::bootstrap::{GROUP, Kind};
use crate::registry::{Context, Error, Registry, Target};

/// The right to do everything: what may be collected from other roles has no bounds.
static EVERYTHING: LazyLock<[Rule; 2]> = LazyLock::new(|| {
    let all = || Box::from([Box::from("*")]);
    let resources = Rule { verbs: all(), api_groups: all(), resources: all(), ..Rule::default() };
    [resources, Rule { verbs: all(), non_resource_urls: all(), ..Rule::default() }]
});

impl Registry {
    /// Refuses a role or binding that gives what the caller does not hold. `old` is what it was,
    /// unless it is new. Other kinds pass.
    ///
    /// # Errors
    /// 403 that tells the rights that are missing; 404 for a binding of a role that is not there.
    pub(super) fn check_escalation(
        &self,
        ctx: &Context,
        target: &Target,
        old: Option<&Value>,
        new: &Value,
    ) -> Result<(), Error> {
        if *target.resource.group != *GROUP {
            return Ok(());
        }
        // Who creates the logical cluster with this write will hold everything there.
        if ctx.inside || ctx.creating || ctx.user.is_in(MASTERS) {
            return Ok(());
        }
        if old.is_some_and(|old| changes_upkeep_only(old, new)) {
            return Ok(());
        }
        let cluster = Self::cluster(target)?;
        match Kind::of(&target.resource.plural) {
            Some(Kind::Role | Kind::ClusterRole) => self.check_role(ctx, target, old, new),
            Some(Kind::RoleBinding | Kind::ClusterRoleBinding) => {
                self.check_binding(ctx, target, cluster, new)
            }
            None => Ok(()),
        }
    }

    fn check_role(
        &self,
        ctx: &Context,
        target: &Target,
        old: Option<&Value>,
        new: &Value,
    ) -> Result<(), Error> {
        let escalates = target.attributes("escalate");
        if self.authorizer.authorize(&ctx.user, &target.cluster, &escalates).is_allowed() {
            return Ok(());
        }
        let rules = get(new, &["rules"]).filter(|rules| !rules.is_null());
        let rules = rules.map(Vec::<Rule>::deserialize).transpose().map_err(Error::internal)?;
        self.check_held(ctx, target, new, rules.unwrap_or_default().iter())?;
        if collects(new) || old.is_some_and(collects) {
            let (held, _) = self.authorizer.rules(&ctx.user, &target.cluster, "");
            if !uncovered(held.iter().flat_map(rbac::all), EVERYTHING.iter()).is_empty() {
                let why = "must have cluster-admin privileges to use the aggregationRule";
                return Err(target.forbidden(new, why));
            }
        }
        Ok(())
    }

    fn check_binding(
        &self,
        ctx: &Context,
        target: &Target,
        cluster: &ClusterName,
        new: &Value,
    ) -> Result<(), Error> {
        let text = |field: &str| get_str(new, &["roleRef", field]).unwrap_or_default();
        let kind = match text("kind") {
            "ClusterRole" => RoleKind::ClusterRole,
            "Role" => RoleKind::Role,
            // Validation, which comes next, refuses these.
            _ => return Ok(()),
        };
        let (name, namespace) = (text("name"), &*target.namespace);
        let binds = Attributes::Resource {
            verb: "bind",
            group: text("apiGroup"),
            resource: kind.plural(),
            name,
            subresource: "",
            namespace,
        };
        if self.authorizer.authorize(&ctx.user, &target.cluster, &binds).is_allowed() {
            return Ok(());
        }
        let Some(rules) = self.authorizer.role(cluster, kind, namespace, name) else {
            // Upstream names the resource of the request, not that of the role.
            return Err(Error::not_found(&Self::group_resource(&target.resource), name));
        };
        self.check_held(ctx, target, new, rbac::all(&rules))
    }

    /// Refuses rules that the caller does not hold in the target's namespace.
    fn check_held<'r>(
        &self,
        ctx: &Context,
        target: &Target,
        new: &Value,
        rules: impl Iterator<Item = &'r Rule>,
    ) -> Result<(), Error> {
        let (held, unresolved) =
            self.authorizer.rules(&ctx.user, &target.cluster, &target.namespace);
        let missing = uncovered(held.iter().flat_map(rbac::all), rules);
        if missing.is_empty() {
            return Ok(());
        }
        let mut why = format!(
            "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            machinery::field::go_quote(&ctx.user.name),
            quoted(ctx.user.groups.iter()),
            told(compact(missing)),
        );
        if !unresolved.is_empty() {
            why = format!("{why}; resolution errors: [{}]", unresolved.text(RoleKind::plural));
        }
        Err(target.forbidden(new, &why))
    }
}

/// Rights in a refusal: who lacks very many is told some of them.
fn told(missing: Vec<String>) -> String {
    const MOST: usize = 1000;
    let more = missing.len().saturating_sub(MOST);
    let mut lines = missing;
    lines.truncate(MOST);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}

/// Whether a role takes its rules from others.
fn collects(role: &Value) -> bool {
    let selectors = get(role, &["aggregationRule", "clusterRoleSelectors"]);
    selectors.and_then(Value::as_array).is_some_and(|selectors| !selectors.is_empty())
}

/// Whether a change touches nothing but what garbage collection does.
fn changes_upkeep_only(old: &Value, new: &Value) -> bool {
    let mut same = new.clone();
    for field in ["ownerReferences", "finalizers", "managedFields"] {
        match get(old, &["metadata", field]) {
            Some(value) => {
                set(&mut same, &["metadata", field], value.clone());
            }
            None => {
                remove(&mut same, &["metadata", field]);
            }
        }
    }
    same == *old
}
