//! Paths, operations and parameters.

use machinery::GroupVersion;
use serde_json::{Map, Value, json};

use super::components::{patch, reference};
use super::parameters::{
    delete_parameters, is_pretty, list_parameters, path_parameter, query, write_parameters,
};
use crate::resource::{ResourceDef, Subresource, Verb};
use crate::types::Types;

const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const RESOURCE_LIST: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList";

/// Encodings of answers; what this server writes.
const PRODUCED: [&str; 2] = ["application/json", "application/vnd.kubernetes.protobuf"];
/// Patch formats that this server accepts for built-in kinds.
const PATCHES: [&str; 3] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

/// What all operations of one resource share.
struct Endpoint<'a> {
    gv: &'a GroupVersion,
    def: &'a ResourceDef,
    types: &'a Types,
    /// `CoreV1`: the part of operation ids that names the version.
    version_id: String,
    /// `core_v1`.
    tag: String,
}

/// One operation to describe.
struct Operation<'a> {
    /// The action that `x-kubernetes-action` tells.
    action: &'a str,
    id: String,
    kind: [&'a str; 3],
    /// The component of the body, if there is one.
    body: Option<Value>,
    /// Status codes and the component of their bodies.
    answers: Vec<(&'a str, String)>,
    parameters: Vec<Value>,
    summary: String,
}

pub(super) fn of_version(gv: &GroupVersion, resources: &[&ResourceDef], types: &Types) -> Value {
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
    };
    paths.insert(format!("{root}/"), json!({"get": get.to_json(&tag)}));
    for def in resources.iter().copied() {
        let endpoint = Endpoint { gv, def, types, version_id: id.clone(), tag: tag.clone() };
        endpoint.add_paths(&root, &mut paths);
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
    for c in text.chars() {
        match c {
            '.' | '-' => upper = true,
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
        let gvk = GroupVersion::new(kind[0], kind[1]).kind(kind[2]);
        self.types.kind(&gvk).map_or_else(String::new, |s| s.root_struct().name.to_string())
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
        }
    }

    fn list(&self, suffix: &str, scoped: bool) -> Operation<'a> {
        let scope = if self.def.namespaced && scoped { "Namespaced" } else { "" };
        let id = format!("list{}{scope}{}{suffix}", self.version_id, self.def.kind);
        let mut list = self.operation("list", id, "List or watch objects.");
        let kind = [&*self.gv.group, &*self.gv.version, &*self.def.list_kind];
        list.answers = vec![("200", self.component(kind))];
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
            delete.body = Some(reference(DELETE_OPTIONS));
            delete.answers = vec![("200", STATUS.to_owned())];
            delete.parameters = delete_parameters();
            delete.parameters.extend(list_parameters().into_iter().filter(|p| {
                let name = p.get("name").and_then(Value::as_str);
                !matches!(name, Some("pretty" | "allowWatchBookmarks" | "watch"))
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
            operations.push(("get", self.operation("get", id, "Read an object.")));
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
            change.answers = written();
            change.parameters = write_parameters();
            change.parameters.push(query(
                "force",
                "boolean",
                "Take over fields that others own. Only for server-side apply.",
            ));
            operations.push(("patch", change));
        }
        for (_, operation) in &mut operations {
            operation.kind = kind;
            if operation.action == "get" {
                operation.answers = vec![("200", own.clone())];
            }
        }
        operations
    }
}

// === impl Operation ===

impl Operation<'_> {
    fn to_json(&self, tag: &str) -> Value {
        let list = self.action == "list";
        let answers = self.answers.iter().map(|(code, name)| {
            let media = |kind: &str| (kind.to_owned(), json!({"schema": reference(name)}));
            let mut content: Map<String, Value> = PRODUCED.iter().map(|kind| media(kind)).collect();
            if list {
                content.extend(PRODUCED.iter().map(|kind| media(&format!("{kind};stream=watch"))));
            }
            let description = match *code {
                "201" => "Created",
                "202" => "Accepted",
                _ => "OK",
            };
            ((*code).to_owned(), json!({"description": description, "content": content}))
        });
        let mut responses: Map<String, Value> = answers.collect();
        responses.insert("401".into(), json!({"description": "Unauthorized"}));
        let mut operation = json!({
            "tags": [tag],
            "description": self.summary,
            "operationId": self.id,
            "responses": responses,
        });
        let mut set = |name: &str, value: Value| {
            if let Value::Object(operation) = &mut operation {
                operation.insert(name.to_owned(), value);
            }
        };
        if !self.parameters.is_empty() {
            set("parameters", self.parameters.clone().into());
        }
        match (&self.body, self.action) {
            (_, "patch") => {
                let content: Map<String, Value> = PATCHES
                    .iter()
                    .map(|kind| ((*kind).to_owned(), json!({"schema": patch()})))
                    .collect();
                set("requestBody", json!({"content": content, "required": true}));
            }
            (Some(body), action) => {
                let mut request = json!({"content": {"*/*": {"schema": body}}});
                if !action.starts_with("delete")
                    && let Value::Object(request) = &mut request
                {
                    request.insert("required".into(), true.into());
                }
                set("requestBody", request);
            }
            (None, _) => {}
        }
        if !self.action.is_empty() {
            set("x-kubernetes-action", self.action.into());
            let [group, version, kind] = self.kind;
            set(
                "x-kubernetes-group-version-kind",
                json!({"group": group, "version": version, "kind": kind}),
            );
        }
        operation
    }
}
