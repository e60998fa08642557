//! Writes seeds of all targets, made of the data of tests: `cargo run --example seeds -- corpus`.
//!
//! A folder for each target, a file for each seed.

use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fuzz::document::write;
use schema::proto::encode_envelope;
use serde_json::{Value, json};

/// More seeds than this of one kind say nothing new.
const MOST: usize = 150;

fn main() -> std::io::Result<()> {
    let to = std::env::args().nth(1).unwrap_or_else(|| "corpus".to_owned());
    let to = Seeds(Path::new(&to));
    definitions(&to)?;
    objects(&to)?;
    expressions(&to)?;
    applied(&to)?;
    imports(&to)?;
    bodies(&to)?;
    texts(&to)
}

struct Seeds<'a>(&'a Path);

impl Seeds<'_> {
    fn add(&self, target: &str, name: &str, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        let folder = self.0.join(target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(name), bytes)
    }

    /// A byte that says how, and documents.
    fn documents<'v>(
        &self,
        target: &str,
        name: &str,
        how: Option<u8>,
        documents: impl IntoIterator<Item = &'v Value>,
    ) -> std::io::Result<()> {
        let mut bytes: Vec<u8> = how.into_iter().collect();
        documents.into_iter().for_each(|document| write(document, &mut bytes));
        self.add(target, name, bytes)
    }
}

fn data(path: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    let text = fs::read(&path).expect("data of tests is there");
    serde_json::from_slice(&text).expect("data of tests is JSON")
}

fn items(value: &Value) -> impl Iterator<Item = (usize, &Value)> {
    value.as_array().into_iter().flatten().take(MOST).enumerate()
}

fn definitions(to: &Seeds<'_>) -> std::io::Result<()> {
    let object = json!({"spec": {"a": 1}});
    for file in ["crds", "crds-random"] {
        for (at, case) in items(&data(&format!("schema/tests/data/custom/{file}.json"))) {
            let crd = &case["crd"];
            to.documents("crd", &format!("{file}-{at}"), Some(0), [crd, crd, &object])?;
            let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            let parts = [schema, &Value::Null, schema, &Value::Null, &object];
            to.documents("crd", &format!("{file}-schema-{at}"), Some(1), parts)?;
        }
    }
    for (at, case) in items(&data("schema/tests/data/custom/crd-updates.json")) {
        let parts = [&case["new"], &case["old"], &object];
        to.documents("crd", &format!("update-{at}"), Some(6), parts)?;
    }
    Ok(())
}

fn objects(to: &Seeds<'_>) -> std::io::Result<()> {
    let whole = |spec: &Value| json!({"spec": spec, "metadata": {"name": "x"}});
    for (at, case) in items(&data("schema/tests/data/custom/objects.json")) {
        for (which, object) in items(&case["cases"]) {
            let object = whole(&object["object"]);
            let parts = [&case["schema"], &object, &object];
            to.documents("custom_object", &format!("object-{at}-{which}"), None, parts)?;
        }
    }
    for (at, case) in items(&data("schema/tests/data/custom/updates.json")) {
        for (which, update) in items(&case["cases"]) {
            let (new, old) = (whole(&update["new"]), whole(&update["old"]));
            let parts = [&case["schema"], &new, &old];
            to.documents("custom_object", &format!("update-{at}-{which}"), None, parts)?;
        }
    }
    for (at, case) in items(&data("schema/tests/data/rules/cases.json")) {
        for (which, update) in items(&case["objects"]).take(5) {
            let parts = [&case["schema"], &update["new"], &update["old"]];
            to.documents("custom_object", &format!("rules-{at}-{which}"), None, parts)?;
        }
    }
    Ok(())
}

fn expressions(to: &Seeds<'_>) -> std::io::Result<()> {
    let object = json!({
        "s": "text", "n": 7, "u": 3, "f": 1.5, "y": true, "b": "YWI=", "t": "2026-01-01T00:00:00Z",
        "w": "1h", "l": [3, 1, 2], "e": ["a", "b"], "items": [{"name": "a", "port": 1}],
        "m": {"a": "b"}, "d": {"x": [1, "y", null]},
    });
    let mut rest = vec![0];
    write(&object, &mut rest);
    write(&object, &mut rest);
    let cases = data("schema/cel/tests/data/cases.json");
    for (at, group) in items(&cases["groups"]) {
        for (which, text) in items(&group["exprs"]) {
            let text = text.as_str().unwrap_or_default();
            to.add("cel", &format!("{at}-{which}"), [text.as_bytes(), &rest].concat())?;
        }
    }
    Ok(())
}

fn applied(to: &Seeds<'_>) -> std::io::Result<()> {
    let cases = data("patch/tests/data/apply/cases.json");
    let entry = |name: &str, operation: &str, fields: &Value| {
        json!({
            "manager": name, "operation": operation, "apiVersion": "test.kcp.io/v1",
            "fieldsType": "FieldsV1", "fieldsV1": fields,
        })
    };
    let fields: Vec<Value> = items(&cases["sets"])
        .filter_map(|(_, text)| serde_json::from_str(text.as_str()?).ok())
        .collect();
    let owned = fields.iter().zip(fields.iter().rev());
    let owned: Vec<Value> =
        owned.map(|(a, b)| json!([entry("eve", "Update", a), entry("ann", "Apply", b)])).collect();
    let mut owned = owned.iter().cycle();
    let schema = &cases["types"]["thing"]["v1"];
    for (at, sequence) in items(&cases["sequences"]) {
        let steps: Vec<&Value> =
            items(&sequence["steps"]).map(|(_, step)| &step["object"]).collect();
        for (which, pair) in steps.windows(2).enumerate().take(3) {
            let how = u8::try_from((at * 3 + which) % 256).unwrap_or_default();
            let given = owned.next().unwrap_or(&Value::Null);
            let parts = [pair[0], given, pair[1], &Value::Null, schema];
            to.documents("apply_body", &format!("{at}-{which}"), Some(how), parts)?;
        }
    }
    Ok(())
}

fn imports(to: &Seeds<'_>) -> std::io::Result<()> {
    let discovery = data("schema/tests/data/import/discovery.json");
    let published = data("schema/tests/data/import/openapi.json");
    let documents = published["documents"].as_object().into_iter().flatten();
    for (at, (path, schemas)) in documents.enumerate() {
        let mut schemas = schemas.clone();
        for (_, name) in items(&published["sharedBy"][path]) {
            let name = name.as_str().unwrap_or_default();
            schemas[name] = published["shared"][name].clone();
        }
        let parts = path.strip_prefix("apis/").and_then(|path| path.split_once('/'));
        let (group, version) = parts.unwrap_or(("", "v1"));
        // One resource a seed, and no more than it needs.
        let found = items(&discovery["groups"]).flat_map(|(_, list)| items(&list["items"]));
        let found = found
            .filter(|(_, item)| item["metadata"]["name"].as_str().unwrap_or_default() == group);
        let versions = found.flat_map(|(_, item)| items(&item["versions"]));
        let resources: Vec<&Value> = versions
            .filter(|(_, item)| item["version"] == version)
            .flat_map(|(_, item)| items(&item["resources"]).map(|(_, resource)| resource))
            .collect();
        for (which, resource) in resources.into_iter().enumerate() {
            let list = json!({"items": [{
                "metadata": {"name": group},
                "versions": [{"version": version, "resources": [resource]}],
            }]});
            let needed = needed(&schemas, &resource["responseKind"]["kind"]);
            to.documents("import_types", &format!("{at}-{which}"), Some(2), [&list, &needed])?;
        }
    }
    let apps = &discovery["apps"];
    to.documents("import_types", "list", Some(3), [apps, &published["documents"]["apis/apps/v1"]])
}

/// The schemas of a kind and of all that it refers to.
fn needed(schemas: &Value, kind: &Value) -> Value {
    let all = schemas.as_object().into_iter().flatten();
    let of_kind = |schema: &Value| {
        items(&schema["x-kubernetes-group-version-kind"]).any(|(_, gvk)| gvk["kind"] == *kind)
    };
    let mut names: Vec<&str> =
        all.filter(|(_, schema)| of_kind(schema)).map(|(name, _)| name.as_str()).collect();
    let mut found = serde_json::Map::new();
    while let Some(name) = names.pop() {
        let Some(schema) = schemas.get(name).filter(|_| !found.contains_key(name)) else {
            continue;
        };
        found.insert(name.to_owned(), schema.clone());
        let mut values = vec![schema];
        while let Some(value) = values.pop() {
            match value {
                Value::Object(fields) => values.extend(fields.values()),
                Value::Array(items) => values.extend(items),
                Value::String(text) => names.extend(text.strip_prefix("#/components/schemas/")),
                _ => {}
            }
        }
    }
    found.into()
}

/// Bodies and patches as text.
fn bodies(to: &Seeds<'_>) -> std::io::Result<()> {
    for (at, case) in items(&data("schema/tests/data/objects.json")) {
        let text = case["object"].to_string();
        for target in ["json_body", "yaml_body", "object_bytes"] {
            to.add(target, &format!("object-{at}"), &text)?;
        }
    }
    let yaml = "schema/tests/data/openapi/gadgets.yaml";
    let yaml = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(yaml);
    for (at, part) in fs::read_to_string(yaml)?.split("\n---\n").enumerate() {
        to.add("yaml_body", &format!("yaml-{at}"), part)?;
    }
    let golden = data("schema/tests/data/proto/golden.json");
    for (at, case) in items(&golden) {
        let raw = STANDARD.decode(case["raw"].as_str().unwrap_or_default()).unwrap_or_default();
        let text = |name: &str| case[name].as_str().unwrap_or_default();
        let whole = encode_envelope(text("apiVersion"), text("kind"), &raw);
        to.add("protobuf_body", &format!("raw-{at}"), raw)?;
        to.add("protobuf_body", &format!("whole-{at}"), whole)?;
    }
    let cases = data("patch/tests/data/cases.json");
    for (at, case) in items(&cases) {
        let text = format!("{}\n{}", case["doc"], case["patch"]);
        for target in ["strategic_patch", "merge_patch"] {
            to.add(target, &format!("case-{at}"), &text)?;
        }
        let moves = json!([
            {"op": "add", "path": "/a", "value": case["patch"]},
            {"op": "test", "path": "/name", "value": case["doc"]["name"]},
            {"op": "move", "from": "/a", "path": "/b"}, {"op": "copy", "from": "/b", "path": "/c/0"},
            {"op": "remove", "path": "/parts/0"}, {"op": "replace", "path": "/parts/-", "value": 1},
        ]);
        to.add("json_patch", &format!("case-{at}"), format!("{}\n{moves}", case["doc"]))?;
    }
    Ok(())
}

fn texts(to: &Seeds<'_>) -> std::io::Result<()> {
    let seeds: [(&str, &[&str]); 4] = [
        (
            "request",
            &[
                "GET\n/clusters/one/apis/apps/v1/namespaces/a/deployments?watch=1&labelSelector=a%3Db,c+in+(d)&fieldSelector=metadata.name%3Dx&limit=500&continue=abc&resourceVersion=7&resourceVersionMatch=Exact&timeoutSeconds=5\napplication/json;as=Table;v=v1;g=meta.k8s.io,application/json;q=0.5\n\ngzip",
                "PATCH\n/api/v1/namespaces/a/configmaps/b/status?fieldManager=x&force=true&dryRun=All&fieldValidation=Strict&timeout=1m3.5s\n*/*\napplication/apply-patch+yaml",
                "DELETE\n/clusters/*/api/v1/pods?gracePeriodSeconds=0&propagationPolicy=Foreground&orphanDependents=1\napplication/vnd.kubernetes.protobuf\napplication/yaml\ngzip;q=0",
                "POST\n/apis/example.com/v1/watch/foos?includeObject=Object\napplication/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1\napplication/json",
                "GET\n/openapi/v2?hash=1\napplication/com.github.proto-openapi.spec.v2@v1.0+protobuf;q=0.9",
                "GET\n/apis\napplication/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            ],
        ),
        ("selectors", &["a=b,c!=d,e in (f,g),h notin (),!i,j>1", "metadata.name=a,spec.x!=b\\,c"]),
        (
            "quantity",
            &[
                "1Gi",
                "-0.5e3",
                "100m",
                "12345678901234567890",
                "1E",
                ".5Ki",
                "9223372036854775808n",
            ],
        ),
        ("names_and_keys", &["a.b-c/d", "apps/v1", "system:crds", "root"]),
    ];
    for (target, texts) in seeds {
        for (at, text) in texts.iter().enumerate() {
            to.add(target, &format!("text-{at}"), text)?;
        }
    }
    Ok(())
}
