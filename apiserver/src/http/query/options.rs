//! From query parameters to the registry's options, with upstream's complaints.

use machinery::GroupVersion;
use machinery::field::{FieldError, FieldPath};
use machinery::selector::{FieldSelector, LabelSelector};
use serde_json::{Value, json};

use super::Query;
use crate::registry::{
    DeleteOptions, Error, FieldValidation, ListOptions, PatchType, Propagation, VersionMatch,
    WriteOptions,
};

/// Longest `fieldManager`, in bytes.
const MAX_FIELD_MANAGER: usize = 128;

/// What the options belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteVerb {
    Create,
    Update,
    Patch(PatchForm),
}

/// What matters of a patch's type for its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchForm {
    Apply,
    Other,
}

/// The options of list, watch and deletecollection. Rules between them are the registry's.
///
/// # Errors
/// When a selector or number does not parse.
pub(crate) fn list_options(query: &Query<'_>) -> Result<ListOptions, Error> {
    let mut options = ListOptions {
        resource_version: query.text("resourceVersion").to_owned(),
        continue_token: query.text("continue").to_owned(),
        bookmarks: query.flag("allowWatchBookmarks").unwrap_or(false),
        send_initial_events: query.flag("sendInitialEvents"),
        // A negative limit or time is none.
        limit: query.number("limit")?.and_then(|n| usize::try_from(n).ok()).unwrap_or(0),
        timeout_seconds: query.number("timeoutSeconds")?.and_then(|n| u64::try_from(n).ok()),
        ..ListOptions::default()
    };
    let bad = |error: machinery::selector::SelectorError| Error::bad_request(error.to_string());
    if let Some(text) = query.get("labelSelector").filter(|text| !text.is_empty()) {
        options.labels = LabelSelector::parse(text).map_err(bad)?;
    }
    if let Some(text) = query.get("fieldSelector").filter(|text| !text.is_empty()) {
        options.fields = FieldSelector::parse(text).map_err(bad)?;
    }
    options.version_match = match query.text("resourceVersionMatch") {
        "" => None,
        "NotOlderThan" => Some(VersionMatch::NotOlderThan),
        "Exact" => Some(VersionMatch::Exact),
        other => Some(VersionMatch::Unknown(other.into())),
    };
    Ok(options)
}

/// The options of create, update and patch.
///
/// # Errors
/// With every problem that they have.
pub(crate) fn write_options(query: &Query<'_>, verb: WriteVerb) -> Result<WriteOptions, Error> {
    let mut problems = Vec::new();
    let kind = match verb {
        WriteVerb::Create => "CreateOptions",
        WriteVerb::Update => "UpdateOptions",
        WriteVerb::Patch(_) => "PatchOptions",
    };
    let mut options = WriteOptions::default();
    if let WriteVerb::Patch(form) = verb {
        options.force = query.flag("force");
        let manager = query.text("fieldManager");
        if form == PatchForm::Apply && manager.is_empty() {
            let path = FieldPath::root("fieldManager");
            problems.push(FieldError::required(&path, "is required for apply patch"));
        }
        if form == PatchForm::Other && options.force.is_some() {
            let path = FieldPath::root("force");
            problems.push(FieldError::forbidden(&path, "may not be specified for non-apply patch"));
        }
    }
    options.field_manager = field_manager(query.text("fieldManager"), &mut problems).into();
    let dry_run: Vec<&str> = query.all("dryRun").collect();
    options.dry_run = dry_run_of(&dry_run, &mut problems);
    options.field_validation = match query.text("fieldValidation") {
        "" | "Warn" => FieldValidation::Warn,
        "Ignore" => FieldValidation::Ignore,
        "Strict" => FieldValidation::Strict,
        other => {
            let path = FieldPath::root("fieldValidation");
            let valid = ["", "Ignore", "Strict", "Warn"];
            problems.push(FieldError::not_supported(&path, &Value::from(other), &valid));
            FieldValidation::Warn
        }
    };
    if problems.is_empty() { Ok(options) } else { Err(invalid(kind, &problems)) }
}

/// `metav1.DeleteOptions`: from `body` if there is one, else from the query.
///
/// # Errors
/// When the body is no such object, or with every problem of the options.
pub(crate) fn delete_options(
    query: &Query<'_>,
    body: Option<&Value>,
) -> Result<DeleteOptions, Error> {
    let from_query;
    let body = match body {
        Some(body) => body,
        None => {
            from_query = query_as_body(query)?;
            &from_query
        }
    };
    check_kind(body)?;
    let mut problems = Vec::new();
    let text_of = |value: Option<&Value>| value.and_then(Value::as_str).map(ToOwned::to_owned);
    let preconditions = field(body, "preconditions", "v1.Preconditions", Value::is_object)?;
    let orphan =
        field(body, "orphanDependents", "bool", Value::is_boolean)?.and_then(Value::as_bool);
    let policy = field(body, "propagationPolicy", "v1.DeletionPropagation", Value::is_string)?
        .and_then(Value::as_str);
    let dry_run = field(body, "dryRun", "[]string", Value::is_array)?.and_then(Value::as_array);
    let dry_run: Vec<&str> = dry_run.into_iter().flatten().filter_map(Value::as_str).collect();
    let path = FieldPath::root("propagationPolicy");
    if let (Some(_), Some(policy)) = (orphan, policy) {
        let detail = "orphanDependents and deletionPropagation cannot be both set";
        problems.push(FieldError::invalid_str(&path, policy, detail));
    }
    let propagation = match policy {
        None => {
            orphan.map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background })
        }
        Some("Orphan") => Some(Propagation::Orphan),
        Some("Background") => Some(Propagation::Background),
        Some("Foreground") => Some(Propagation::Foreground),
        Some(other) => {
            let valid = ["Foreground", "Background", "Orphan", "nil"];
            problems.push(FieldError::not_supported(&path, &Value::from(other), &valid));
            None
        }
    };
    let grace = field(body, "gracePeriodSeconds", "int64", Value::is_i64)?.and_then(Value::as_i64);
    let options = DeleteOptions {
        dry_run: dry_run_of(&dry_run, &mut problems),
        grace_period_seconds: grace,
        propagation,
        uid: text_of(preconditions.and_then(|held| held.get("uid"))),
        resource_version: text_of(preconditions.and_then(|held| held.get("resourceVersion"))),
    };
    if problems.is_empty() { Ok(options) } else { Err(invalid("DeleteOptions", &problems)) }
}

/// A body's field, absent when null. `go_type` is what upstream declares it as.
fn field<'v>(
    body: &'v Value,
    name: &str,
    go_type: &str,
    right: impl Fn(&Value) -> bool,
) -> Result<Option<&'v Value>, Error> {
    let what = match body.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(value) if right(value) => return Ok(Some(value)),
        Some(Value::Bool(_)) => "bool",
        Some(Value::Number(_)) => "number",
        Some(Value::String(_)) => "string",
        Some(Value::Array(_)) => "array",
        Some(Value::Object(_)) => "object",
    };
    Err(Error::bad_request(format!(
        "json: cannot unmarshal {what} into Go struct field DeleteOptions.{name} of type {go_type}"
    )))
}

fn check_kind(body: &Value) -> Result<(), Error> {
    if !body.is_object() {
        return Err(Error::bad_request("the body of a delete must be a DeleteOptions object"));
    }
    match body.get("kind").and_then(Value::as_str) {
        None | Some("" | "DeleteOptions") => Ok(()),
        Some(other) => {
            Err(Error::bad_request(format!("no kind {other:?} is registered for version \"v1\"")))
        }
    }
}

fn query_as_body(query: &Query<'_>) -> Result<Value, Error> {
    let mut body = json!({});
    if let Some(seconds) = query.number("gracePeriodSeconds")? {
        body["gracePeriodSeconds"] = seconds.into();
    }
    if let Some(orphan) = query.flag("orphanDependents") {
        body["orphanDependents"] = orphan.into();
    }
    if let Some(policy) = query.get("propagationPolicy").filter(|policy| !policy.is_empty()) {
        body["propagationPolicy"] = policy.into();
    }
    body["dryRun"] = query.all("dryRun").map(Value::from).collect::<Vec<_>>().into();
    Ok(body)
}

/// `All`, once or several times, is the only dry run; an empty list is none.
fn dry_run_of(values: &[&str], problems: &mut Vec<FieldError>) -> bool {
    let wrong = values.iter().any(|value| *value != "All");
    if wrong {
        let path = FieldPath::root("dryRun");
        problems.push(FieldError::not_supported(&path, &json!(values), &["All"]));
    }
    !wrong && !values.is_empty()
}

fn field_manager<'m>(manager: &'m str, problems: &mut Vec<FieldError>) -> &'m str {
    let path = FieldPath::root("fieldManager");
    if manager.len() > MAX_FIELD_MANAGER {
        problems.push(FieldError::too_long(&path, MAX_FIELD_MANAGER));
    }
    for (at, odd) in manager.char_indices().filter(|(_, char)| !is_printable(*char)) {
        let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(odd));
        problems.push(FieldError::invalid_str(&path, manager, detail));
    }
    manager
}

/// What Go takes for printable: of white space, the plain space only.
fn is_printable(char: char) -> bool {
    char == ' ' || !(char.is_control() || char.is_whitespace())
}

fn invalid(kind: &str, problems: &[FieldError]) -> Error {
    Error::invalid(&GroupVersion::new("meta.k8s.io", "v1").kind(kind), "", problems)
}

impl From<PatchType> for PatchForm {
    fn from(kind: PatchType) -> Self {
        if kind == PatchType::Apply { Self::Apply } else { Self::Other }
    }
}
