//! Bindings of one place, found by whom they name.

use std::ops::ControlFlow;
use std::sync::Arc;

use machinery::field::go_quote;

use super::{Map, RoleKind};
use crate::auth::UserInfo;
use crate::auth::rbac::objects::Subject;
use crate::auth::rbac::rule::Rules;
use crate::auth::tokens::account_name;

/// Bindings of one place, found by their subjects.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    /// By name.
    pub(super) list: Vec<Arc<Binding>>,
    /// Of users and ServiceAccounts: binding and subject.
    users: Map<Vec<(u32, u32)>>,
    groups: Map<Vec<(u32, u32)>>,
}

/// One binding with the rules of its role.
#[derive(Debug)]
pub(crate) struct Binding {
    pub(super) name: Box<str>,
    /// Empty for a ClusterRoleBinding.
    pub(super) namespace: Box<str>,
    pub(super) role_kind: RoleKind,
    pub(super) role: Box<str>,
    pub(super) subjects: Box<[Subject]>,
    /// `None` where the role is missing.
    pub(super) rules: Option<Rules>,
}

// === impl Bindings ===

impl Bindings {
    /// Adds one.
    pub(super) fn add(&mut self, binding: Binding) {
        let at = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        for (index, subject) in binding.subjects.iter().enumerate() {
            let place = (at, u32::try_from(index).unwrap_or(u32::MAX));
            let list = match &*subject.kind {
                "User" => self.users.entry(subject.name.clone()),
                "Group" => self.groups.entry(subject.name.clone()),
                "ServiceAccount" => match binding.account(subject) {
                    Some(name) => self.users.entry(name),
                    None => continue,
                },
                _ => continue,
            };
            let list = list.or_default();
            // A subject that is named twice counts once.
            if list.last().is_none_or(|(last, _)| *last != at) {
                list.push(place);
            }
        }
        self.list.push(Arc::new(binding));
    }

    /// Shows those that name a user or a group of theirs, until the visitor has enough.
    pub(super) fn visit<B>(
        &self,
        user: &UserInfo,
        visitor: &mut dyn FnMut(&Arc<Binding>, u32) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let of_user = self.users.get(&*user.name);
        let of_groups = user.groups.iter().filter_map(|group| self.groups.get(&**group));
        for (at, subject) in of_user.into_iter().chain(of_groups).flatten() {
            if let Some(binding) = self.list.get(usize::try_from(*at).unwrap_or(usize::MAX)) {
                visitor(binding, *subject)?;
            }
        }
        ControlFlow::Continue(())
    }
}

// === impl Binding ===

impl Binding {
    /// The binding as reasons name it, given to one of its subjects.
    pub(crate) fn described(&self, subject: u32) -> String {
        let (kind, name) = if self.namespace.is_empty() {
            ("ClusterRoleBinding", go_quote(&self.name))
        } else {
            ("RoleBinding", go_quote(&format!("{}/{}", self.name, self.namespace)))
        };
        let role = go_quote(&self.role);
        let subject = self.subjects.get(usize::try_from(subject).unwrap_or(usize::MAX));
        let subject = subject.map_or_else(String::new, |subject| {
            let name = match &*subject.kind {
                "ServiceAccount" => format!("{}/{}", subject.name, self.place_of(subject)),
                _ => subject.name.to_string(),
            };
            format!("{} {}", subject.kind, go_quote(&name))
        });
        format!("{kind} {name} of {} {role} to {subject}", self.role_kind.name())
    }

    /// The user name of a ServiceAccount; a ClusterRoleBinding must say the namespace.
    fn account(&self, subject: &Subject) -> Option<Box<str>> {
        let namespace = self.place_of(subject);
        (!namespace.is_empty()).then(|| account_name(namespace, &subject.name).into())
    }

    fn place_of<'s>(&'s self, subject: &'s Subject) -> &'s str {
        if subject.namespace.is_empty() { &self.namespace } else { &subject.namespace }
    }

    /// Bytes that it takes in memory, roughly.
    pub(super) fn cost(&self) -> usize {
        let subjects = self.subjects.iter();
        let texts = subjects.map(|subject| 2 * subject.name.len() + subject.namespace.len() + 160);
        size_of::<Self>() + self.name.len() + self.role.len() + texts.sum::<usize>()
    }
}
