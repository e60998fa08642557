//! Rules of ClusterRoles that collect them from others by labels.
//!
//! Whom a role takes its rules from is decided here, by the labels of the moment, and not by the
//! rules that a controller has written into it before.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use machinery::meta::Header;
use machinery::selector::{LabelOperator, LabelSelector};

use crate::auth::rbac::objects::RoleObject;
use crate::auth::rbac::rule::{Rule, Rules};

/// What selecting may cost in one logical cluster, in labels that are compared: some tenths of a
/// second. Roles whose turn comes later take nothing.
const MAX_WORK: usize = 4_000_000;

/// A role as far as its rules depend on it.
#[derive(Clone, Debug)]
pub(super) struct Role {
    header: Arc<Header>,
    /// Which roles it takes its rules from; `None` for one with rules of its own.
    selectors: Option<Arc<[LabelSelector]>>,
    pub(super) rules: Arc<[Rule]>,
}

// === impl Role ===

impl Role {
    /// Reads an object; one that can't be read allows nothing.
    pub(super) fn parse(json: &[u8]) -> Self {
        let header = Header::scan(json).unwrap_or_default().into();
        let object = RoleObject::parse(json);
        let selectors = object.selectors().map(Arc::from);
        Self { header, selectors, rules: object.rules.into() }
    }
}

/// The rules of each role, in the order of the roles.
pub(super) fn resolve<'r>(roles: impl Iterator<Item = &'r Role>) -> Vec<Rules> {
    let roles: Vec<&Role> = roles.collect();
    let mut by_label: HashMap<(&str, &str), Vec<usize>, ahash::RandomState> = HashMap::default();
    for (at, role) in roles.iter().enumerate() {
        for (key, value) in role.header.labels() {
            by_label.entry((key, value)).or_default().push(at);
        }
    }
    let own = |role: &Role| -> Rules { Arc::from([role.rules.clone()]) };
    let work = Cell::new(MAX_WORK);
    let resolved = roles.iter().enumerate().map(|(at, role)| match &role.selectors {
        None => own(role),
        Some(selectors) => reached(&roles, &by_label, at, selectors, &work).into(),
    });
    resolved.collect()
}

/// The rules of all roles that one collects from, directly or through others that collect, as far as
/// `work` goes.
fn reached(
    roles: &[&Role],
    by_label: &HashMap<(&str, &str), Vec<usize>, ahash::RandomState>,
    start: usize,
    selectors: &[LabelSelector],
    work: &Cell<usize>,
) -> Vec<Arc<[Rule]>> {
    let mut seen = vec![false; roles.len()];
    let mut rules = Vec::new();
    if let Some(seen) = seen.get_mut(start) {
        *seen = true;
    }
    // Each role is visited once at most, so circles end.
    let mut waiting: Vec<&LabelSelector> = selectors.iter().rev().collect();
    while let Some(selector) = waiting.pop() {
        let cost = cost(selector);
        let spend = || {
            work.set(work.get().saturating_sub(cost));
            work.get() > 0
        };
        if !spend() {
            return rules;
        }
        let candidates = exact(selector).map(|pair| by_label.get(&pair));
        let all = 0..roles.len();
        let candidates: Box<dyn Iterator<Item = usize>> = match candidates {
            Some(found) => Box::new(found.into_iter().flatten().copied()),
            None => Box::new(all),
        };
        for at in candidates {
            let (Some(role), Some(seen)) = (roles.get(at), seen.get_mut(at)) else { continue };
            if !spend() {
                return rules;
            }
            if *seen || !matches(selector, role) {
                continue;
            }
            *seen = true;
            match &role.selectors {
                Some(further) => waiting.extend(further.iter().rev()),
                None => rules.push(role.rules.clone()),
            }
        }
    }
    rules
}

/// What it costs to look at one role.
fn cost(selector: &LabelSelector) -> usize {
    let requirements = selector.requirements().iter();
    1 + requirements.map(|requirement| 1 + requirement.values.len()).sum::<usize>()
}

/// A label that whatever is selected must have.
fn exact(selector: &LabelSelector) -> Option<(&str, &str)> {
    let mut requirements = selector.requirements().iter();
    let equal = requirements.find(|requirement| requirement.operator == LabelOperator::Equals)?;
    Some((&equal.key, equal.values.first()?))
}

fn matches(selector: &LabelSelector, role: &Role) -> bool {
    selector.matches(|key| role.header.label(key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Roles that all collect from each other cost a bounded amount; who comes late gets nothing
    /// rather than anything else.
    #[test]
    fn a_tangle_of_roles_has_an_end() {
        let role = |name: usize, more: serde_json::Value| {
            let mut role = json!({"metadata": {"name": format!("r{name}"), "labels": {"a": "b"}}});
            role.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            Role::parse(&store::object::encode(&role))
        };
        let plain = role(0, json!({"rules": [{"verbs": ["get"]}]}));
        let exists = json!([{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]);
        let collecting = json!({"aggregationRule": {"clusterRoleSelectors": exists}});
        let mut roles = vec![plain];
        roles.extend((1..3000).map(|name| role(name, collecting.clone())));
        let found = resolve(roles.iter());
        let verbs = |rules: &Rules| rules.iter().map(|part| part.len()).sum::<usize>();
        assert_eq!(verbs(&found[0]), 1);
        assert_eq!(verbs(&found[1]), 1);
        assert_eq!(verbs(&found[2999]), 0);
    }
}
