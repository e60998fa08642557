//! The roles and bindings that every logical cluster has from the start: facts of the Kubernetes
//! release that we follow, without those of nodes and of its own controllers.
//!
//! They are virtual, so here are templates: each takes only a time and a UID, and costs no parsing.
//! One more is made for each logical cluster that somebody owns: its administrator's binding.

use std::sync::LazyLock;

use machinery::GroupResource;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// The ClusterRoleBinding that makes an owner the administrator of a logical cluster. It is virtual
/// like the others, but once it has been deleted it stays away.
pub const OWNER_BINDING: &str = "logicalcluster-admin";

/// The four kinds of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `clusterrolebindings`.
    ClusterRoleBinding,
    /// `clusterroles`.
    ClusterRole,
    /// `rolebindings`.
    RoleBinding,
    /// `roles`.
    Role,
}

/// One object of the bootstrap policy, as text with two gaps.
#[derive(Debug)]
pub struct Template {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace; empty for none.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    before_time: String,
    before_uid: String,
    rest: String,
}

/// The data file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Data {
    cluster_roles: Vec<Role>,
    cluster_role_bindings: Vec<Binding>,
    roles: Vec<Role>,
    role_bindings: Vec<Binding>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Role {
    #[serde(default)]
    namespace: String,
    name: String,
    /// The role that takes the rules of this one.
    aggregate_to: Option<String>,
    /// The roles whose rules this one takes are labelled for it.
    aggregates: Option<String>,
    #[serde(default)]
    rules: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Binding {
    #[serde(default)]
    namespace: String,
    name: String,
    role: String,
    subjects: Vec<Map<String, Value>>,
}

static TEMPLATES: LazyLock<Vec<Template>> = LazyLock::new(|| {
    let data: Data = serde_json::from_str(include_str!("bootstrap/policy.json"))
        .expect("the bootstrap policy is well formed");
    let collected = collected(&data.cluster_roles);
    let mut all: Vec<Template> = Vec::new();
    all.extend(data.cluster_roles.iter().zip(collected).map(|(role, rules)| role.template(&rules)));
    all.extend(data.roles.iter().map(|role| role.template(&role.rules)));
    all.extend(data.cluster_role_bindings.into_iter().map(Binding::template));
    all.extend(data.role_bindings.into_iter().map(Binding::template));
    all.sort_by(|a, b| a.place().cmp(&b.place()));
    all
});

/// All templates, by kind, namespace and name.
pub fn templates() -> &'static [Template] {
    &TEMPLATES
}

/// The templates of a kind in a namespace; in all of them if it is empty.
pub fn of_kind(kind: Kind, namespace: &str) -> impl Iterator<Item = &'static Template> + use<'_> {
    let fits = move |template: &&Template| {
        template.kind == kind && (namespace.is_empty() || *template.namespace == *namespace)
    };
    templates().iter().filter(fits)
}

/// The template of one object.
pub fn find(kind: Kind, namespace: &str, name: &str) -> Option<&'static Template> {
    let place = (kind, namespace, name);
    let at = templates().binary_search_by(|template| template.place().cmp(&place)).ok()?;
    templates().get(at)
}

/// The binding of a logical cluster's owner.
pub fn owner_binding(owner: &str) -> Template {
    let subject = json!({"kind": "User", "name": owner});
    let binding = Binding {
        namespace: String::new(),
        name: OWNER_BINDING.to_owned(),
        role: "cluster-admin".to_owned(),
        subjects: subject.as_object().cloned().into_iter().collect(),
    };
    binding.template()
}

/// The rules of each ClusterRole: its own, and those that it collects from the others, in the order
/// in which upstream's controller does.
fn collected(roles: &[Role]) -> Vec<Vec<Value>> {
    let mut rules: Vec<Vec<Value>> = roles.iter().map(|role| role.rules.clone()).collect();
    // Each round reaches one level further; there are as many levels as roles at most.
    for _ in 0..roles.len() {
        let before = rules.clone();
        for (role, collected) in roles.iter().zip(&mut rules) {
            let Some(label) = &role.aggregates else { continue };
            let sources = roles.iter().zip(&before);
            let sources = sources.filter(|(source, _)| source.aggregate_to.as_ref() == Some(label));
            let mut all: Vec<Value> = Vec::new();
            for rule in sources.flat_map(|(_, rules)| rules) {
                if !all.contains(rule) {
                    all.push(rule.clone());
                }
            }
            *collected = all;
        }
        if rules == before {
            break;
        }
    }
    rules
}

// === impl Kind ===

impl Kind {
    /// All of them, in the order of their resources' names.
    pub const ALL: [Self; 4] =
        [Self::ClusterRoleBinding, Self::ClusterRole, Self::RoleBinding, Self::Role];

    /// The resource's plural name.
    pub fn plural(self) -> &'static str {
        match self {
            Self::ClusterRoleBinding => "clusterrolebindings",
            Self::ClusterRole => "clusterroles",
            Self::RoleBinding => "rolebindings",
            Self::Role => "roles",
        }
    }

    /// The kind of its objects.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClusterRoleBinding => "ClusterRoleBinding",
            Self::ClusterRole => "ClusterRole",
            Self::RoleBinding => "RoleBinding",
            Self::Role => "Role",
        }
    }

    /// The resource.
    pub fn resource(self) -> GroupResource {
        GroupResource::new(GROUP, self.plural())
    }

    /// The kind of a resource's plural name in the group.
    pub fn of(plural: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.plural() == plural)
    }
}

// === impl Template ===

impl Template {
    /// The object as canonical JSON.
    pub fn json(&self, created: &str, uid: &str) -> String {
        // Both come from our own records, but a text is written as JSON has it in any case.
        let (created, uid) = (Value::from(created).to_string(), Value::from(uid).to_string());
        [&*self.before_time, &created, &self.before_uid, &uid, &self.rest].concat()
    }

    fn new(kind: Kind, namespace: &str, name: &str, labels: &Value, content: &Value) -> Self {
        // What an owner is given is nobody's default: nothing says that it follows upstream's.
        let (annotations, labels) = if name == OWNER_BINDING {
            ("", String::new())
        } else {
            let kept = r#""annotations":{"rbac.authorization.kubernetes.io/autoupdate":"true"},"#;
            (kept, format!("\"labels\":{labels},"))
        };
        let text = |text: &str| Value::from(text).to_string();
        let namespace_field = if namespace.is_empty() {
            String::new()
        } else {
            format!("\"namespace\":{},", text(namespace))
        };
        let content = content.to_string();
        let content = content.strip_prefix('{').unwrap_or_default();
        let comma = if content == "}" { "" } else { "," };
        Self {
            kind,
            namespace: namespace.into(),
            name: name.into(),
            before_time: format!(
                "{{\"apiVersion\":\"{GROUP}/v1\",\"kind\":\"{}\",\"metadata\":{{{annotations}\
                 \"creationTimestamp\":",
                kind.name()
            ),
            before_uid: format!(",{labels}\"name\":{},{namespace_field}\"uid\":", text(name)),
            rest: format!("}}{comma}{content}"),
        }
    }

    fn place(&self) -> (Kind, &str, &str) {
        (self.kind, &self.namespace, &self.name)
    }
}

// === impl Role ===

impl Role {
    fn template(&self, rules: &[Value]) -> Template {
        const PREFIX: &str = "rbac.authorization.k8s.io/aggregate-to-";
        let kind = if self.namespace.is_empty() { Kind::ClusterRole } else { Kind::Role };
        let mut labels = json!({"kubernetes.io/bootstrapping": "rbac-defaults"});
        if let Some(role) = &self.aggregate_to {
            labels[format!("{PREFIX}{role}")] = json!("true");
        }
        let mut content = json!({"rules": rules});
        if let Some(label) = &self.aggregates {
            let matches = json!({format!("{PREFIX}{label}"): "true"});
            content["aggregationRule"] =
                json!({"clusterRoleSelectors": [{"matchLabels": matches}]});
        }
        Template::new(kind, &self.namespace, &self.name, &labels, &content)
    }
}

// === impl Binding ===

impl Binding {
    fn template(self) -> Template {
        let (kind, of) = if self.namespace.is_empty() {
            (Kind::ClusterRoleBinding, Kind::ClusterRole)
        } else {
            (Kind::RoleBinding, Kind::Role)
        };
        let subjects = self.subjects.into_iter().map(|mut subject| {
            if subject.get("kind").and_then(Value::as_str) != Some("ServiceAccount") {
                subject.insert("apiGroup".to_owned(), json!(GROUP));
            }
            subject
        });
        let content = json!({
            "roleRef": {"apiGroup": GROUP, "kind": of.name(), "name": self.role},
            "subjects": subjects.collect::<Vec<_>>(),
        });
        let labels = json!({"kubernetes.io/bootstrapping": "rbac-defaults"});
        Template::new(kind, &self.namespace, &self.name, &labels, &content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(template: &Template) -> Value {
        serde_json::from_str(&template.json("2026-01-01T00:00:00Z", "u")).unwrap()
    }

    #[test]
    fn templates_are_canonical_objects() {
        for template in templates() {
            let object = object(template);
            let json = template.json("2026-01-01T00:00:00Z", "u");
            assert_eq!(store::object::encode(&object), json.as_bytes());
            assert_eq!(object["metadata"]["name"], *template.name);
            let found = find(template.kind, &template.namespace, &template.name).unwrap();
            assert!(std::ptr::eq(found, template));
        }
        assert!(find(Kind::Role, "", "admin").is_none());
        let owner = object(&owner_binding("a\"b"));
        assert_eq!(owner["subjects"][0]["name"], "a\"b");
        assert_eq!(owner["roleRef"]["name"], "cluster-admin");
    }

    #[test]
    fn administrators_have_what_editors_and_viewers_have() {
        let rules = |name: &str| {
            let object = object(find(Kind::ClusterRole, "", name).unwrap());
            object["rules"].as_array().unwrap().clone()
        };
        let (view, edit, admin) = (rules("view"), rules("edit"), rules("admin"));
        assert_eq!(view, rules("system:aggregate-to-view"));
        assert!(edit.ends_with(&view) && edit.starts_with(&rules("system:aggregate-to-edit")));
        assert!(admin.starts_with(&edit));
        assert!(admin.ends_with(&rules("system:aggregate-to-admin")));
        assert_eq!(admin.len(), edit.len() + 2);
    }
}
