//! Rules of ClusterRoles that collect them from others by labels.
//!
//! Whom a role takes its rules from is decided here, by the labels of the moment, and not by the
//! rules that a controller has written into it before.

use std::collections::HashMap;
use std::sync::Arc;

use machinery::meta::Header;
use machinery::selector::{LabelOperator, LabelSelector};

use crate::auth::rbac::objects::RoleObject;
use crate::auth::rbac::rule::{Rule, Rules};

/// A role as far as its rules depend on it.
#[derive(Clone, Debug)]
pub(super) struct Role {
    labels: Arc<[(Box<str>, Box<str>)]>,
    /// Which roles it takes its rules from; `None` for one with rules of its own.
    selectors: Option<Arc<[LabelSelector]>>,
    pub(super) rules: Arc<[Rule]>,
}

// === impl Role ===

impl Role {
    /// Reads an object; one that can't be read allows nothing.
    pub(super) fn parse(json: &[u8]) -> Self {
        let labels = Header::scan(json).unwrap_or_default().labels.into();
        let object = RoleObject::parse(json);
        let selectors = object.selectors().map(Arc::from);
        Self { labels, selectors, rules: object.rules.into() }
    }
}

/// The rules of each role, in the order of the roles.
pub(super) fn resolve<'r>(roles: impl Iterator<Item = &'r Role>) -> Vec<Rules> {
    let roles: Vec<&Role> = roles.collect();
    let mut by_label: HashMap<(&str, &str), Vec<usize>, ahash::RandomState> = HashMap::default();
    for (at, role) in roles.iter().enumerate() {
        for (key, value) in &*role.labels {
            by_label.entry((key, value)).or_default().push(at);
        }
    }
    let own = |role: &Role| -> Rules { Arc::from([role.rules.clone()]) };
    let resolved = roles.iter().enumerate().map(|(at, role)| match &role.selectors {
        None => own(role),
        Some(selectors) => reached(&roles, &by_label, at, selectors).into(),
    });
    resolved.collect()
}

/// The rules of all roles that one collects from, directly or through others that collect.
fn reached(
    roles: &[&Role],
    by_label: &HashMap<(&str, &str), Vec<usize>, ahash::RandomState>,
    start: usize,
    selectors: &[LabelSelector],
) -> Vec<Arc<[Rule]>> {
    let mut seen = vec![false; roles.len()];
    let mut rules = Vec::new();
    if let Some(seen) = seen.get_mut(start) {
        *seen = true;
    }
    // Each role is visited once at most, so circles end.
    let mut waiting: Vec<&LabelSelector> = selectors.iter().rev().collect();
    while let Some(selector) = waiting.pop() {
        let candidates = exact(selector).map(|pair| by_label.get(&pair));
        let all = 0..roles.len();
        let candidates: Box<dyn Iterator<Item = usize>> = match candidates {
            Some(found) => Box::new(found.into_iter().flatten().copied()),
            None => Box::new(all),
        };
        for at in candidates {
            let (Some(role), Some(seen)) = (roles.get(at), seen.get_mut(at)) else { continue };
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

/// A label that whatever is selected must have.
fn exact(selector: &LabelSelector) -> Option<(&str, &str)> {
    let mut requirements = selector.requirements().iter();
    let equal = requirements.find(|requirement| requirement.operator == LabelOperator::Equals)?;
    Some((&equal.key, equal.values.first()?))
}

fn matches(selector: &LabelSelector, role: &Role) -> bool {
    selector.matches(|key| {
        let at = role.labels.binary_search_by(|(label, _)| (**label).cmp(key)).ok()?;
        role.labels.get(at).map(|(_, value)| &**value)
    })
}
