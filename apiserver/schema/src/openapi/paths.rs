//! Paths, operations and parameters.

use machinery::GroupVersion;
use serde_json::{Map, Value, json};

use super::Source;
use super::components::reference;
use super::custom::{Custom, component_name};
use super::operation::{Operation, Style};
use super::parameters::{
    delete_parameters, is_pretty, list_parameters, path_parameter, query, write_parameters,
};
use crate::resource::{ResourceDef, Subresource, Verb};
use crate::types::Types;

const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const RESOURCE_LIST: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList";

/// What all operations of one resource share.
struct Endpoint<'a> {
    gv: &'a GroupVersion,
    def: &'a ResourceDef,
    types: &'a Types,
    /// What is published of it if it isn't built in.
    custom: Option<Custom<'a>>,
    /// `CoreV1`: the part of operation ids that names the version.
    version_id: String,
    /// `core_v1`.
    tag: String,
}

pub(super) fn of_version(gv: &GroupVersion, sources: &[Source<'_>], types: &Types) -> Value {
    let root = root(gv);
    let mut paths = Map::new();
    let id = version_id(gv);
    let tag = tag(gv);
    let get = Operation {
        action: "",
        id: format!("get{id}APIResources"),
        kind: ["", "", ""],
        body: None,
        answers: vec![("200", RESOURCE_LIST.to_owned())],
        parameters: Vec::new(),
        summary: "List the resources of this version.".to_owned(),
        style: Style::BuiltIn,
    };
    let mut all_custom = true;
    for source in sources {
        let (def, custom) = (source.def, Custom::of(gv, *source, types));
        let (version_id, tag) = (id.clone(), tag.clone());
        let endpoint = Endpoint { gv, def, types, custom, version_id, tag };
        all_custom &= endpoint.style() == Style::Custom;
        endpoint.add_paths(&root, &mut paths);
    }
    if !all_custom {
        paths.insert(format!("{root}/"), json!({"get": get.to_json(&tag)}));
    }
    Value::Object(paths)
}

fn root(gv: &GroupVersion) -> String {
    if gv.group.is_empty() { format!("/api/{}", gv.version) } else { format!("/apis/{gv}") }
}

fn tag(gv: &GroupVersion) -> String {
    let group = gv.group.strip_suffix(".k8s.io").unwrap_or(&gv.group);
    let group = if group.is_empty() { "core" } else { group };
    format!("{}_{}", camel(group, false), gv.version)
}

fn version_id(gv: &GroupVersion) -> String {
    let group = gv.group.strip_suffix(".k8s.io").unwrap_or(&gv.group);
    let group = if group.is_empty() { "core" } else { group };
    format!("{}{}", camel(group, true), camel(&gv.version, true))
}

/// `flowcontrol.apiserver` as `FlowcontrolApiserver`.
fn camel(text: &str, first: bool) -> String {
    let mut upper = first;
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c {
            '.' | '-' => upper = true,
            '0'..='9' if at == 0 => upper = true,
            c if upper => {
                out.extend(c.to_uppercase());
                upper = false;
            }
            c => out.push(c),
        }
    }
    out
}

// === impl Endpoint ===

impl<'a> Endpoint<'a> {
    fn add_paths(&self, root: &str, paths: &mut Map<String, Value>) {
        let plural = &self.def.plural;
        let (list, item) = if self.def.namespaced {
            let base = format!("{root}/namespaces/{{namespace}}/{plural}");
            if self.def.allows(Verb::List) {
                let everywhere = self.list("ForAllNamespaces", false);
                let parameters = list_parameters();
                let path = json!({"get": everywhere.to_json(&self.tag), "parameters": parameters});
                paths.insert(format!("{root}/{plural}"), path);
            }
            (base.clone(), format!("{base}/{{name}}"))
        } else {
            (format!("{root}/{plural}"), format!("{root}/{plural}/{{name}}"))
        };
        let scope = self.scope_parameters();
        self.add(paths, list, &scope, &self.list_operations());
        let mut named = vec![path_parameter("name", &format!("name of the {}", self.def.kind))];
        named.extend(scope);
        self.add(paths, item.clone(), &named, &self.item_operations());
        for sub in &self.def.subresources {
            let path = format!("{item}/{}", sub.name);
            self.add(paths, path, &named, &self.subresource_operations(sub));
        }
    }

    fn add(
        &self,
        paths: &mut Map<String, Value>,
        path: String,
        parameters: &[Value],
        operations: &[(&'static str, Operation<'_>)],
    ) {
        if operations.is_empty() {
            return;
        }
        let methods = operations.iter().map(|(m, op)| ((*m).to_owned(), op.to_json(&self.tag)));
        let mut entry: Map<String, Value> = methods.collect();
        entry.insert("parameters".into(), parameters.into());
        paths.insert(path, Value::Object(entry));
    }

    fn scope_parameters(&self) -> Vec<Value> {
        let mut parameters = Vec::new();
        if self.def.namespaced {
            parameters.push(path_parameter("namespace", "the objects' namespace"));
        }
        parameters.push(query("pretty", "string", "If 'true', the output is indented."));
        parameters
    }

    /// The name of a component: the type that serves a kind of this version.
    fn component(&self, kind: [&str; 3]) -> String {
        if let Some(custom) = &self.custom {
            if kind == self.kind() {
                return custom.name.clone();
            }
            if kind == self.list_kind() {
                return custom.list_name.clone();
            }
        }
        let gvk = GroupVersion::new(kind[0], kind[1]).kind(kind[2]);
        let own = self.types.kind(&gvk).map(|schema| schema.root_struct().name.to_string());
        // A part of an imported type whose kind isn't served by itself.
        own.unwrap_or_else(|| component_name(kind[0], kind[1], kind[2]))
    }

    fn style(&self) -> Style {
        match &self.custom {
            Some(custom) if !custom.imported => Style::Custom,
            _ => Style::BuiltIn,
        }
    }

    fn list_kind(&self) -> [&'a str; 3] {
        [&self.gv.group, &self.gv.version, &self.def.list_kind]
    }

    fn kind(&self) -> [&'a str; 3] {
        [&self.gv.group, &self.gv.version, &self.def.kind]
    }

    /// An operation id: `readCoreV1NamespacedConfigMapStatus`.
    fn id(&self, verb: &str, infix: &str, suffix: &str) -> String {
        let scope = if self.def.namespaced { "Namespaced" } else { "" };
        format!("{verb}{}{infix}{scope}{}{suffix}", self.version_id, self.def.kind)
    }

    fn operation(&self, action: &'a str, id: String, summary: &str) -> Operation<'a> {
        Operation {
            action,
            id,
            kind: self.kind(),
            body: None,
            answers: vec![("200", self.component(self.kind()))],
            parameters: Vec::new(),
            summary: summary.to_owned(),
            style: self.style(),
        }
    }

    fn list(&self, suffix: &str, scoped: bool) -> Operation<'a> {
        let scope = if self.def.namespaced && scoped { "Namespaced" } else { "" };
        let id = format!("list{}{scope}{}{suffix}", self.version_id, self.def.kind);
        let mut list = self.operation("list", id, "List or watch objects.");
        list.answers = vec![("200", self.component(self.list_kind()))];
        list
    }

    fn list_operations(&self) -> Vec<(&'static str, Operation<'a>)> {
        let mut operations = Vec::new();
        let own = self.component(self.kind());
        if self.def.allows(Verb::List) {
            let mut list = self.list("", true);
            list.parameters = list_parameters().into_iter().filter(|p| !is_pretty(p)).collect();
            operations.push(("get", list));
        }
        if self.def.allows(Verb::Create) {
            let mut create = self.operation("post", self.id("create", "", ""), "Create an object.");
            create.body = Some(reference(&own));
            create.answers = ["200", "201", "202"].map(|code| (code, own.clone())).into();
            create.parameters = write_parameters();
            operations.push(("post", create));
        }
        if self.def.allows(Verb::DeleteCollection) {
            let id = self.id("delete", "Collection", "");
            let mut delete = self.operation("deletecollection", id, "Delete objects.");
            if self.style() == Style::BuiltIn {
                delete.body = Some(reference(DELETE_OPTIONS));
                delete.parameters = delete_parameters();
            }
            delete.answers = vec![("200", STATUS.to_owned())];
            delete.parameters.extend(list_parameters().into_iter().filter(|p| {
                let name = p.get("name").and_then(Value::as_str);
                let is_for_watches = matches!(name, Some("allowWatchBookmarks" | "watch"));
                !is_pretty(p) && (self.style() == Style::Custom || !is_for_watches)
            }));
            operations.push(("delete", delete));
        }
        operations
    }

    fn item_operations(&self) -> Vec<(&'static str, Operation<'a>)> {
        let mut operations = self.object_operations(&self.def.verbs, "", self.kind());
        if self.def.allows(Verb::Delete) {
            let id = self.id("delete", "", "");
            let mut delete = self.operation("delete", id, "Delete an object.");
            delete.body = Some(reference(DELETE_OPTIONS));
            delete.answers = ["200", "202"].map(|code| (code, STATUS.to_owned())).into();
            delete.parameters = delete_parameters();
            operations.push(("delete", delete));
        }
        operations
    }

    fn subresource_operations(&self, sub: &'a Subresource) -> Vec<(&'static str, Operation<'a>)> {
        let kind = match &sub.kind {
            Some([group, version, kind]) => [&**group, &**version, &**kind],
            None => self.kind(),
        };
        let suffix = camel(&sub.name, true);
        let mut operations = self.object_operations(&sub.verbs, &suffix, kind);
        if sub.verbs.contains(&Verb::Create) {
            let own = self.component(kind);
            let id = self.id("create", "", &suffix);
            let mut create = self.operation("post", id, "Create this part of an object.");
            create.kind = kind;
            create.body = Some(reference(&own));
            create.answers = ["200", "201", "202"].map(|code| (code, own.clone())).into();
            create.parameters = write_parameters();
            operations.push(("post", create));
        }
        operations
    }

    /// Read, replace and patch, of an object or of a part of it.
    fn object_operations(
        &self,
        verbs: &[Verb],
        suffix: &str,
        kind: [&'a str; 3],
    ) -> Vec<(&'static str, Operation<'a>)> {
        let own = self.component(kind);
        let mut operations = Vec::new();
        let written = || ["200", "201"].map(|code| (code, own.clone())).into();
        if verbs.contains(&Verb::Get) {
            let id = self.id("read", "", suffix);
            let mut get = self.operation("get", id, "Read an object.");
            get.answers = vec![("200", own.clone())];
            if self.style() == Style::Custom {
                let which = |p: &Value| p.get("name").is_some_and(|name| name == "resourceVersion");
                get.parameters = list_parameters().into_iter().filter(which).collect();
            }
            operations.push(("get", get));
        }
        if verbs.contains(&Verb::Update) {
            let id = self.id("replace", "", suffix);
            let mut put = self.operation("put", id, "Replace an object.");
            put.body = Some(reference(&own));
            put.answers = written();
            put.parameters = write_parameters();
            operations.push(("put", put));
        }
        if verbs.contains(&Verb::Patch) {
            let id = self.id("patch", "", suffix);
            let mut change = self.operation("patch", id, "Change parts of an object.");
            change.answers = match self.style() {
                Style::BuiltIn => written(),
                Style::Custom => vec![("200", own.clone())],
            };
            change.parameters = write_parameters();
            change.parameters.push(query(
                "force",
                "boolean",
                "Take over fields that others own. Only for server-side apply.",
            ));
            operations.push(("patch", change));
        }
        // Custom resources say their own kind, whatever the bodies are.
        let told = if self.style() == Style::Custom { self.kind() } else { kind };
        for (_, operation) in &mut operations {
            operation.kind = told;
        }
        operations
    }
}
