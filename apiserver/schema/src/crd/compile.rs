//! What a CRD becomes when it is served: resources, schemas, and how versions are converted.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use machinery::{FieldError, FieldPath, version};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::view::{Version as Source, View};
use super::{ScalePaths, groups, text};
use crate::jsonpath::JsonPath;
use crate::known::{self, KnownResource};
use crate::resource::{FieldSelector, Generation, ResourceDef, Subresource, Verb, Version};
use crate::structural::{Structural, intern};
use crate::table::{CellRule, Column};

/// A custom type, shared by all logical clusters whose CRDs serve it alike.
#[derive(Debug)]
pub struct CustomType {
    /// The group as clients address it.
    pub group: Arc<str>,
    /// One resource for each served version, the preferred one first. Each lists all versions, so
    /// that it knows the one that is stored, but serves only its own.
    pub defs: Vec<Arc<ResourceDef>>,
    /// All versions, in the order of [`ResourceDef::versions`].
    pub versions: Vec<CustomVersion>,
    /// How objects come from one version to another.
    pub conversion: Conversion,
    /// Whether it is one of Kubernetes' own types, imported.
    pub is_builtin: bool,
}

/// One version of a custom type.
#[derive(Debug)]
pub struct CustomVersion {
    /// The name, as `v1`.
    pub name: Arc<str>,
    /// Whether clients reach it.
    pub served: bool,
    /// Whether objects are stored in it.
    pub storage: bool,
    /// The warning for those who use it, if it is deprecated.
    pub deprecation_warning: Option<Arc<str>>,
    /// The schema.
    pub schema: Arc<Structural>,
    /// Whether the status has a path of its own.
    pub has_status: bool,
    /// Where the numbers of `scale` are, if it has that.
    pub scale: Option<ScalePaths>,
}

/// How objects come from one version to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// Only `apiVersion` changes.
    None,
    /// A webhook is asked.
    Webhook(Box<Webhook>),
}

/// The webhook that converts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Webhook {
    /// Where it is; empty if it is a service.
    pub url: String,
    /// The namespace, name, path and port of its service.
    pub service: Option<(String, String, String, u16)>,
    /// The bundle of certificate authorities in PEM, in base64; empty if not given.
    pub ca_bundle: String,
    /// The versions of ConversionReview that it takes, the preferred one first.
    pub review_versions: Vec<String>,
}

const VERBS: [Verb; 8] = [
    Verb::Create,
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Update,
    Verb::Watch,
];

type Known = HashMap<[u8; 32], Weak<CustomType>>;

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

/// Compiles a CRD that has been validated, or finds what an equal one became. Its names are those
/// that were accepted, or those it asks for as long as none were.
///
/// # Errors
/// A schema that is missing or isn't structural: stored CRDs may be older than the rules.
pub fn compile(crd: &Value) -> Result<Arc<CustomType>, Vec<FieldError>> {
    let names = Names::of(crd);
    let hash = identity(crd, &names);
    if let Some(found) = KNOWN.lock().get(&hash).and_then(Weak::upgrade) {
        return Ok(found);
    }
    let made = Arc::new(make(crd, &names)?);
    let mut known = KNOWN.lock();
    if let Some(found) = known.get(&hash).and_then(Weak::upgrade) {
        return Ok(found);
    }
    if known.len() >= 64 && known.len() == known.capacity() {
        known.retain(|_, custom| custom.strong_count() > 0);
    }
    known.insert(hash, Arc::downgrade(&made));
    Ok(made)
}

/// What everything below follows from.
fn identity(crd: &Value, names: &Names<'_>) -> [u8; 32] {
    let spec = crd.get("spec");
    let parts = ["group", "scope", "versions", "conversion"];
    let parts = parts.map(|name| spec.and_then(|spec| spec.get(name)));
    intern::hash_of(&(names.all, parts))
}

fn make(crd: &Value, names: &Names<'_>) -> Result<CustomType, Vec<FieldError>> {
    let view = View::of(crd);
    let mut order: Vec<(usize, &Source<'_>)> = view.versions.iter().enumerate().collect();
    order.sort_by(|a, b| version::compare(a.1.name(), b.1.name()));
    let group: Arc<str> = super::group(crd).into();
    let is_builtin = groups::is_builtin(&group);
    let mut versions = Vec::with_capacity(order.len());
    let mut problems = Vec::new();
    for (index, version) in &order {
        match compile_version(&view, *index, version, &group, names) {
            Ok(version) => versions.push(version),
            Err(found) => problems.extend(found),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let namespaced = text(crd, &["spec", "scope"]) == "Namespaced";
    let known =
        Some(()).filter(|()| is_builtin).and_then(|()| known::resource(&group, names.plural));
    let known = known.filter(|known| &*known.kind == names.kind);
    let shared = Shared { names, group: group.clone(), known, namespaced, versions: &versions };
    let served = order.iter().zip(&versions).filter(|(_, version)| version.served);
    let defs =
        served.map(|((_, source), version)| Arc::new(shared.resource(&view, source, version)));
    let defs = defs.collect();
    Ok(CustomType { group, defs, conversion: conversion(crd), is_builtin, versions })
}

fn compile_version(
    view: &View<'_>,
    index: usize,
    version: &Source<'_>,
    group: &str,
    names: &Names<'_>,
) -> Result<CustomVersion, Vec<FieldError>> {
    let at = FieldPath::root("spec").child("versions").index(index);
    let at = at.child("schema").child("openAPIV3Schema");
    let shared = view.shared();
    let Some(schema) = version.schema_value().or(shared.schema_value()) else {
        return Err(vec![FieldError::required(&at, "")]);
    };
    let subresources = view.subresources(version);
    Ok(CustomVersion {
        name: version.name().into(),
        served: version.flag("served"),
        storage: version.flag("storage"),
        deprecation_warning: warning(view, version, group, names),
        schema: Structural::compile(schema, &at)?,
        has_status: subresources.is_some_and(|sub| sub.contains_key("status")),
        scale: ScalePaths::of(subresources),
    })
}

/// What users of a deprecated version are told: the CRD's words, or which version to use instead.
fn warning(
    view: &View<'_>,
    version: &Source<'_>,
    group: &str,
    names: &Names<'_>,
) -> Option<Arc<str>> {
    if !version.flag("deprecated") {
        return None;
    }
    let own = version.object.and_then(|object| object.get("deprecationWarning"));
    if let Some(own) = own.and_then(Value::as_str) {
        return Some(own.into());
    }
    let (name, kind) = (version.name(), names.kind);
    let newer = view.versions.iter().filter(|other| {
        let is_newer = version::compare(other.name(), name).is_lt();
        other.flag("served") && !other.flag("deprecated") && is_newer
    });
    let best = newer.map(Source::name).min_by(|a, b| version::compare(a, b));
    let instead = best.map(|best| format!("; use {group}/{best} {kind}")).unwrap_or_default();
    Some(format!("{group}/{name} {kind} is deprecated{instead}").into())
}

/// What the resources of all versions have in common.
struct Shared<'c> {
    names: &'c Names<'c>,
    group: Arc<str>,
    /// What clients expect of Kubernetes' own type, which a CRD can't say.
    known: Option<Arc<KnownResource>>,
    namespaced: bool,
    versions: &'c [CustomVersion],
}

// === impl Shared ===

impl Shared<'_> {
    fn resource(
        &self,
        view: &View<'_>,
        source: &Source<'_>,
        version: &CustomVersion,
    ) -> ResourceDef {
        let versions = self.versions.iter().map(|other| Version {
            name: other.name.clone(),
            served: other.name == version.name,
            storage: other.storage,
            deprecation_warning: other.deprecation_warning.clone(),
        });
        let plural = self.names.plural;
        let shared = view.shared();
        let own = |part: fn(&Source<'_>) -> bool| if part(source) { *source } else { shared };
        let known = self.known.as_deref().filter(|known| known.versions.contains(&version.name));
        let mut field_selectors =
            selectors(own(|v| !v.selectable_fields().is_empty()).selectable_fields());
        for selector in known.into_iter().flat_map(|known| &known.field_selectors) {
            if !field_selectors.iter().any(|own| own.label == selector.label) {
                field_selectors.push(selector.clone());
            }
        }
        let own_columns = own(|v| !v.columns().is_empty()).columns();
        let columns = match known {
            Some(known) if own_columns.is_empty() => known.columns.to_vec(),
            _ => columns(own_columns),
        };
        ResourceDef {
            group: self.group.clone(),
            plural: plural.into(),
            singular: self.names.singular.into(),
            kind: self.names.kind.into(),
            list_kind: self.names.list_kind.into(),
            namespaced: self.namespaced,
            short_names: self.names.list("shortNames"),
            categories: self.names.list("categories"),
            versions: versions.collect(),
            verbs: VERBS.to_vec(),
            subresources: subresources(version, known),
            name_rule: known.map(|known| known.name_rule).unwrap_or_default(),
            allow_unconditional_update: known.is_some_and(|known| known.allow_unconditional_update),
            allow_create_on_update: known.is_some_and(|known| known.allow_create_on_update),
            generation: known.map_or(Generation::All, |known| known.generation.clone()),
            field_selectors,
            columns,
            view_of: None,
            initial_status: known.and_then(|known| known.initial_status.clone()),
            write_warning: None,
            deletion: known.map(|known| known.deletion).unwrap_or_default(),
            flags: Vec::new(),
        }
    }
}

fn subresources(version: &CustomVersion, known: Option<&KnownResource>) -> Vec<Subresource> {
    let verbs = || vec![Verb::Get, Verb::Patch, Verb::Update];
    let scale = version.scale.as_ref().map(|_| Subresource {
        name: "scale".into(),
        verbs: verbs(),
        kind: Some(["autoscaling".into(), "v1".into(), "Scale".into()]),
        writes: Vec::new(),
    });
    let status = version.has_status.then(|| Subresource {
        name: "status".into(),
        verbs: verbs(),
        kind: None,
        writes: known.map_or_else(|| vec!["status".into()], |known| known.status_writes.clone()),
    });
    scale.into_iter().chain(status).collect()
}

/// Fields that lists can be selected by; the name is the path without its dot.
fn selectors(fields: &[Value]) -> Vec<FieldSelector> {
    let paths = fields.iter().filter_map(|field| field.get("jsonPath")?.as_str());
    let selector = |path: &str| {
        let label = path.strip_prefix('.').unwrap_or(path).into();
        Some(FieldSelector { label, paths: vec![JsonPath::parse(path).ok()?], absent: "".into() })
    };
    paths.filter_map(selector).collect()
}

/// The name first, then the CRD's columns up to one that can't be understood, or else the age.
fn columns(columns: &[Value]) -> Vec<Column> {
    let name = CellRule::path(".metadata.name");
    let mut all = vec![Column::new("Name", "string", "name", name)];
    for column in &mut all {
        column.description = "The object's name, unique among its kind in the namespace.".into();
    }
    if columns.is_empty() {
        let created = JsonPath::parse(".metadata.creationTimestamp").ok().map(CellRule::Typed);
        let mut age = created.map(|cell| Column::new("Age", "date", "", cell));
        if let Some(age) = &mut age {
            age.description = "How long ago the object was created.".into();
        }
        all.extend(age);
    }
    for column in columns {
        let field = |name: &str| column.get(name).and_then(Value::as_str).unwrap_or_default();
        let Ok(path) = JsonPath::parse(field("jsonPath")) else { break };
        let description = match field("description") {
            "" => format!("Custom resource definition column (in JSONPath format): {path}"),
            own => own.to_owned(),
        };
        let priority = column.get("priority").and_then(Value::as_i64).unwrap_or_default();
        all.push(Column {
            name: field("name").into(),
            kind: field("type").into(),
            format: field("format").into(),
            description: description.into(),
            priority: i32::try_from(priority).unwrap_or_default(),
            cell: CellRule::Typed(path),
        });
    }
    all
}

fn conversion(crd: &Value) -> Conversion {
    let Some(conversion) = crd.pointer("/spec/conversion") else { return Conversion::None };
    if text(conversion, &["strategy"]) != "Webhook" {
        return Conversion::None;
    }
    let client = conversion.pointer("/webhook/clientConfig").unwrap_or(&Value::Null);
    let service = client.get("service").filter(|s| s.is_object()).map(|service| {
        let field = |name: &str| text(service, &[name]).to_owned();
        let port = service.get("port").and_then(Value::as_u64);
        let port = port.and_then(|port| u16::try_from(port).ok()).unwrap_or(443);
        (field("namespace"), field("name"), field("path"), port)
    });
    let reviews = conversion.pointer("/webhook/conversionReviewVersions");
    let reviews = reviews.and_then(Value::as_array).into_iter().flatten();
    Conversion::Webhook(Box::new(Webhook {
        url: text(client, &["url"]).to_owned(),
        service,
        ca_bundle: text(client, &["caBundle"]).to_owned(),
        review_versions: reviews.filter_map(Value::as_str).map(str::to_owned).collect(),
    }))
}

/// The names that a type is served under.
struct Names<'v> {
    all: Option<&'v Map<String, Value>>,
    plural: &'v str,
    singular: &'v str,
    kind: &'v str,
    list_kind: &'v str,
}

// === impl Names ===

impl<'v> Names<'v> {
    fn of(crd: &'v Value) -> Self {
        let at = |path| crd.pointer(path).and_then(Value::as_object);
        let named = |names: &&Map<String, Value>| {
            names.get("plural").and_then(Value::as_str).is_some_and(|plural| !plural.is_empty())
        };
        let all = at("/status/acceptedNames").filter(named).or(at("/spec/names"));
        let field = |name: &str| {
            all.and_then(|names| names.get(name)).and_then(Value::as_str).unwrap_or_default()
        };
        Self {
            all,
            plural: field("plural"),
            singular: field("singular"),
            kind: field("kind"),
            list_kind: field("listKind"),
        }
    }

    fn list(&self, field: &str) -> Vec<Arc<str>> {
        let list = self.all.and_then(|names| names.get(field)).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect()
    }
}
