//! What the roles and bindings of one logical cluster come to.

mod binding;
mod collect;

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

use machinery::field::go_quote;
use store::Key;
use store::cache::{Object, Slot};

use super::objects::{BindingObject, Subject};
use super::rule::{Rule, Rules};
use crate::auth::authz::Attributes;
use crate::auth::tokens::ACCOUNTS;
use crate::auth::{AUTHENTICATED, UNAUTHENTICATED, UserInfo};
use crate::clusters::bootstrap::{self, Kind, Template};
use binding::Bindings;
use collect::Role;

pub(crate) use binding::Binding;

type Map<V> = HashMap<Box<str>, V, ahash::RandomState>;

/// The records of the four kinds in one logical cluster, each in key order, tombstones included.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) cluster_role_bindings: Vec<(Key, Slot)>,
    pub(super) cluster_roles: Vec<(Key, Slot)>,
    pub(super) role_bindings: Vec<(Key, Slot)>,
    pub(super) roles: Vec<(Key, Slot)>,
}

/// What the roles and bindings of one logical cluster allow.
#[derive(Debug, Default)]
pub(crate) struct Policy {
    everywhere: Bindings,
    in_namespace: Map<Bindings>,
    cluster_roles: Map<Rules>,
    roles: Map<Map<Rules>>,
    /// Users and groups that stored bindings name, as far as that says anything of them.
    named_users: HashSet<Box<str>, ahash::RandomState>,
    named_groups: HashSet<Box<str>, ahash::RandomState>,
    /// Bytes that it takes in memory, roughly.
    cost: usize,
}

/// Roles that bindings name and that are not there, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Missing(Vec<(RoleKind, Box<str>)>);

/// The two kinds of roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RoleKind {
    Role,
    ClusterRole,
}

/// The policy of a logical cluster that has no records of these kinds, shared by all of them.
static BOOTSTRAP: LazyLock<Arc<Policy>> =
    LazyLock::new(|| Arc::new(Policy::compile(&Records::default(), "")));

// === impl Policy ===

impl Policy {
    /// What records come to, with the bootstrap policy as far as they don't hide it. `owner` is
    /// the logical cluster's administrator, empty for none.
    pub(super) fn of(records: &Records, owner: &str) -> Arc<Self> {
        if records.is_empty() && owner.is_empty() {
            return BOOTSTRAP.clone();
        }
        Arc::new(Self::compile(records, owner))
    }

    fn compile(records: &Records, owner: &str) -> Self {
        let mut policy = Self::default();
        policy.take_roles(records);
        let cluster = (Kind::ClusterRoleBinding, &records.cluster_role_bindings);
        let namespaced = (Kind::RoleBinding, &records.role_bindings);
        for (kind, records) in [cluster, namespaced] {
            for (template, binding) in shown(&BINDINGS, kind, records) {
                let binding = BindingObject::clone(binding);
                policy.bind(&template.namespace, &template.name, binding, false);
            }
            for object in objects(records) {
                let (_, namespace, name) = object.key.parts();
                policy.bind(namespace, name, BindingObject::parse(&object.json()), true);
            }
        }
        let is_owners = |(key, _): &(Key, Slot)| key.parts().2 == bootstrap::OWNER_BINDING;
        if !owner.is_empty() && !records.cluster_role_bindings.iter().any(is_owners) {
            let template = bootstrap::owner_binding(owner);
            let binding = BindingObject::parse(template.json("", "").as_bytes());
            policy.bind("", &template.name, binding, true);
        }
        policy.everywhere.list.shrink_to_fit();
        policy
    }

    fn take_roles(&mut self, records: &Records) {
        let cluster_roles: Vec<_> = roles(Kind::ClusterRole, &records.cluster_roles).collect();
        let rules = collect::resolve(cluster_roles.iter().map(|(_, _, role)| role));
        for ((_, name, _), rules) in cluster_roles.into_iter().zip(rules) {
            self.cost += cost_of(&rules) + name.len();
            self.cluster_roles.insert(name, rules);
        }
        for (namespace, name, role) in roles(Kind::Role, &records.roles) {
            let rules: Rules = Arc::from([role.rules]);
            self.cost += cost_of(&rules) + name.len();
            self.roles.entry(namespace).or_default().insert(name, rules);
        }
    }

    fn bind(&mut self, namespace: &str, name: &str, object: BindingObject, stored: bool) {
        let role_kind = match &*object.role_ref.kind {
            "ClusterRole" => RoleKind::ClusterRole,
            "Role" => RoleKind::Role,
            _ => return,
        };
        let role = object.role_ref.name;
        let rules = self.role(role_kind, namespace, &role).cloned();
        if stored {
            self.note_named(&object.subjects);
        }
        let binding = Binding {
            name: name.into(),
            namespace: namespace.into(),
            role_kind,
            role,
            subjects: object.subjects.into(),
            rules,
        };
        self.cost += binding.cost();
        let place = if namespace.is_empty() {
            &mut self.everywhere
        } else {
            self.in_namespace.entry(namespace.into()).or_default()
        };
        place.add(binding);
    }

    /// Remembers whom a stored binding names. Groups of everybody, or of every ServiceAccount, name
    /// nobody.
    fn note_named(&mut self, subjects: &[Subject]) {
        for subject in subjects {
            match &*subject.kind {
                "User" => {
                    self.named_users.insert(subject.name.clone());
                }
                "Group" if !is_broad(&subject.name) => {
                    self.named_groups.insert(subject.name.clone());
                }
                _ => {}
            }
        }
    }

    /// The rules of a role; `namespace` is that of a Role.
    pub(crate) fn role(&self, kind: RoleKind, namespace: &str, name: &str) -> Option<&Rules> {
        match kind {
            RoleKind::ClusterRole => self.cluster_roles.get(name),
            RoleKind::Role => self.roles.get(namespace)?.get(name),
        }
    }

    /// Whether a stored binding names the user, or a group of theirs that not everybody is in.
    pub(crate) fn names(&self, user: &UserInfo) -> bool {
        self.named_users.contains(&*user.name)
            || user.groups.iter().any(|group| self.named_groups.contains(&**group))
    }

    /// The binding that allows something, and which of its subjects is the user.
    ///
    /// # Errors
    /// What else is to be known of a refusal: roles that are missing. Mostly empty.
    pub(crate) fn allows(
        &self,
        user: &UserInfo,
        asked: &Attributes<'_>,
    ) -> Result<(Arc<Binding>, u32), String> {
        let namespace = match *asked {
            Attributes::Resource { namespace, .. } => namespace,
            Attributes::Path { .. } => "",
        };
        let mut missing = false;
        let found = self.visit(user, namespace, &mut |binding, subject| match &binding.rules {
            None => {
                missing = true;
                ControlFlow::Continue(())
            }
            Some(rules) if all(rules).any(|rule| rule.allows(asked)) => {
                ControlFlow::Break((binding.clone(), subject))
            }
            Some(_) => ControlFlow::Continue(()),
        });
        match found {
            ControlFlow::Break(found) => Ok(found),
            ControlFlow::Continue(()) if missing => {
                let (_, missing) = self.rules_for(user, namespace);
                Err(format!("RBAC: {}", missing.text(RoleKind::singular)))
            }
            ControlFlow::Continue(()) => Err(String::new()),
        }
    }

    /// All rules that a user has in a namespace and everywhere, in the order of the bindings'
    /// names, and the roles among them that are missing.
    pub(crate) fn rules_for(&self, user: &UserInfo, namespace: &str) -> (Vec<Rules>, Missing) {
        let mut bindings = Vec::new();
        let visited: ControlFlow<()> = self.visit(user, namespace, &mut |binding, _| {
            bindings.push(binding.clone());
            ControlFlow::Continue(())
        });
        debug_assert!(visited.is_continue(), "nothing ends the visit");
        bindings.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        bindings.dedup_by(|a, b| Arc::ptr_eq(a, b));
        let mut missing = Missing::default();
        let mut seen = HashSet::new();
        let mut rules = Vec::new();
        for binding in &bindings {
            match &binding.rules {
                Some(held) => rules.push(held.clone()),
                None => {
                    if seen.insert((binding.role_kind, &binding.role)) {
                        missing.0.push((binding.role_kind, binding.role.clone()));
                    }
                }
            }
        }
        (rules, missing)
    }

    /// Bytes that it takes in memory, roughly.
    pub(super) fn cost(&self) -> usize {
        self.cost + 2048
    }

    fn visit<B>(
        &self,
        user: &UserInfo,
        namespace: &str,
        visitor: &mut dyn FnMut(&Arc<Binding>, u32) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        self.everywhere.visit(user, visitor)?;
        if namespace.is_empty() {
            return ControlFlow::Continue(());
        }
        match self.in_namespace.get(namespace) {
            Some(bindings) => bindings.visit(user, visitor),
            None => ControlFlow::Continue(()),
        }
    }
}

/// Whether a group says nothing of who is in it.
fn is_broad(group: &str) -> bool {
    group == AUTHENTICATED
        || group == UNAUTHENTICATED
        || group == ACCOUNTS
        || group.strip_prefix(ACCOUNTS).is_some_and(|rest| rest.starts_with(':'))
}

/// The rules of a role, one after the other.
pub(crate) fn all(rules: &Rules) -> impl Iterator<Item = &Rule> {
    rules.iter().flat_map(|part| part.iter())
}

fn cost_of(rules: &Rules) -> usize {
    64 + all(rules).map(Rule::cost).sum::<usize>()
}

/// The roles of the bootstrap policy, read once.
static ROLES: LazyLock<Vec<(&'static Template, Role)>> = LazyLock::new(|| {
    let roles = bootstrap::templates().iter();
    let roles = roles.filter(|template| matches!(template.kind, Kind::Role | Kind::ClusterRole));
    roles.map(|template| (template, Role::parse(template.json("", "").as_bytes()))).collect()
});

/// The bindings of the bootstrap policy, read once.
static BINDINGS: LazyLock<Vec<(&'static Template, Arc<BindingObject>)>> = LazyLock::new(|| {
    let bindings = bootstrap::templates().iter();
    let bindings = bindings
        .filter(|template| matches!(template.kind, Kind::RoleBinding | Kind::ClusterRoleBinding));
    let read = |template: &Template| BindingObject::parse(template.json("", "").as_bytes()).into();
    bindings.map(|template| (template, read(template))).collect()
});

/// The objects of `known`, all of the bootstrap policy, that no record hides.
fn shown<'k, T>(
    known: &'k [(&'static Template, T)],
    kind: Kind,
    records: &[(Key, Slot)],
) -> impl Iterator<Item = (&'static Template, &'k T)> {
    let hidden = records.iter().filter_map(|(key, _)| {
        let (_, namespace, name) = key.parts();
        bootstrap::find(kind, namespace, name)
    });
    let hidden: Vec<&Template> = hidden.collect();
    let of_kind = known.iter().filter(move |(template, _)| template.kind == kind);
    let shown = of_kind
        .filter(move |(template, _)| !hidden.iter().any(|hidden| std::ptr::eq(*hidden, *template)));
    shown.map(|(template, of)| (*template, of))
}

/// The stored objects among records.
fn objects(records: &[(Key, Slot)]) -> impl Iterator<Item = &Arc<Object>> {
    records.iter().filter_map(|(_, slot)| match slot {
        Slot::Object(object) => Some(object),
        Slot::Absent | Slot::Tombstone(_) | Slot::Unreadable => None,
    })
}

/// The roles of a kind that are in force: namespace, name and content.
fn roles(kind: Kind, records: &[(Key, Slot)]) -> impl Iterator<Item = (Box<str>, Box<str>, Role)> {
    let virtual_ones = shown(&ROLES, kind, records)
        .map(|(template, role)| (template.namespace.clone(), template.name.clone(), role.clone()));
    let stored = objects(records).map(|object| {
        let (_, namespace, name) = object.key.parts();
        (namespace.into(), name.into(), Role::parse(&object.json()))
    });
    virtual_ones.chain(stored)
}

// === impl Records ===

impl Records {
    fn is_empty(&self) -> bool {
        self.cluster_role_bindings.is_empty()
            && self.cluster_roles.is_empty()
            && self.role_bindings.is_empty()
            && self.roles.is_empty()
    }
}

// === impl RoleKind ===

impl RoleKind {
    /// The kind's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Role => "Role",
            Self::ClusterRole => "ClusterRole",
        }
    }

    /// The resource as upstream's authorizer names it.
    pub(crate) fn singular(self) -> &'static str {
        match self {
            Self::Role => "role",
            Self::ClusterRole => "clusterrole",
        }
    }

    /// The resource.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Role => "roles",
            Self::ClusterRole => "clusterroles",
        }
    }
}

// === impl Missing ===

impl Missing {
    /// Whether nothing is missing.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What upstream says of them; its parts name the resource in different ways.
    pub(crate) fn text(&self, named: fn(RoleKind) -> &'static str) -> String {
        let texts = self.0.iter().map(|(kind, name)| {
            format!("{}.{} {} not found", named(*kind), bootstrap::GROUP, go_quote(name))
        });
        let texts: Vec<String> = texts.collect();
        match texts.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        }
    }
}
