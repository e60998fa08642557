//! The subresource `scale`: an object's replicas as `autoscaling/v1 Scale`.
//!
//! Where the numbers are is data: the paths of a CRD, which imported types have, too.

use machinery::meta::{get, get_str, set};
use machinery::selector::LabelSelector;
use machinery::{FieldError, FieldPath, GroupVersion, Gvk};
use schema::crd::ScalePaths;
use serde_json::{Value, json};

use super::decode::Raw;
use super::managed::{Tracking, manager, managers_from_scale, with_managers_of};
use super::typing::Typing;
use super::update::{Endpoint, check_name};
use crate::registry::{
    Body, Context, Error, FieldValidation, Registry, Target, View, WriteOptions, Written,
};

/// The subresource's name.
pub(super) const SCALE: &str = "scale";

impl Registry {
    /// The paths of the target's numbers, if it is a `scale`.
    pub(super) fn scale_paths(&self, target: &Target) -> Result<Option<ScalePaths>, Error> {
        if &*target.subresource != SCALE {
            return Ok(None);
        }
        let typing = self.typing(target)?;
        let paths = typing.version().and_then(|version| version.scale.clone());
        paths.map(Some).ok_or_else(|| Error::internal("a scale without paths"))
    }

    /// An object's `Scale`.
    pub(super) fn scale_view(&self, paths: &ScalePaths, view: View) -> Result<View, Error> {
        let object: Value = serde_json::from_slice(&view.json).map_err(Error::internal)?;
        let replicas = replicas_of(paths, &object).ok_or_else(|| {
            let why = format!("the spec replicas field \"{}\" does not exist", paths.spec_replicas);
            Error::internal(why)
        })?;
        let scale = scale_with(paths, &object, replicas);
        Ok(View { json: serde_json::to_vec(&scale).map_err(Error::internal)?.into(), ..view })
    }

    /// Replaces an object's `Scale`.
    pub(super) async fn update_scale(
        &self,
        ctx: &Context,
        target: &Target,
        paths: &ScalePaths,
        body: &Body,
        options: &WriteOptions,
    ) -> Result<Written, Error> {
        let kind = scale_kind();
        let raw = self.parse(body)?;
        self.identify(&raw.value, &kind)?;
        let scale = self.typed_scale(ctx, raw, options.field_validation)?;
        check_name(target, &scale)?;
        let version = get_str(&scale, &["metadata", "resourceVersion"]).unwrap_or_default();
        let locked = !version.is_empty();
        let manager = manager(ctx, options);
        let (dry_run, tracking) = (options.dry_run, Tracking::By(&manager));
        let change = |_: &Value| Ok(scale.clone());
        self.rescale(ctx, target, paths, dry_run, locked, tracking, change).await
    }

    /// Takes an object's `Scale` to what `change` makes of it.
    #[expect(clippy::too_many_arguments, reason = "those of a write, and the paths")]
    pub(super) async fn rescale(
        &self,
        ctx: &Context,
        target: &Target,
        paths: &ScalePaths,
        dry_run: bool,
        locked: bool,
        tracking: Tracking<'_>,
        change: impl Fn(&Value) -> Result<Value, Error>,
    ) -> Result<Written, Error> {
        // The whole object is written, of which nothing but the number changes.
        let main = Target { subresource: "".into(), ..target.clone() };
        let done = Tracking::Done;
        let endpoint = Endpoint(target, Some(paths));
        let written = self.transform_at(ctx, &main, endpoint, dry_run, locked, done, |old| {
            let before = with_managers_of(target, old, scale_of(paths, old));
            let new = self.track_scale(ctx, target, tracking, &before, change(&before)?)?;
            let replicas = get(&new, &["spec", "replicas"]).and_then(Value::as_i64).unwrap_or(0);
            if replicas < 0 {
                let path = FieldPath::root("spec").child("replicas");
                let why = "must be greater than or equal to 0";
                let problem = FieldError::invalid(&path, &json!(replicas), why);
                let kind = GroupVersion::new("autoscaling", "v1").kind("Scale");
                return Err(Error::invalid(&kind, &target.name, &[problem]));
            }
            let mut object = old.clone();
            if let Some(version) = get(&new, &["metadata", "resourceVersion"]) {
                set(&mut object, &["metadata", "resourceVersion"], version.clone());
            }
            set(&mut object, &parts(&paths.spec_replicas), json!(replicas));
            managers_from_scale(target, &new, &mut object);
            Ok(object)
        });
        let Written { view, created } = written.await?;
        Ok(Written { view: self.scale_view(paths, view)?, created })
    }

    /// Makes content a `Scale`.
    pub(super) fn typed_scale(
        &self,
        ctx: &Context,
        raw: Raw,
        validation: FieldValidation,
    ) -> Result<Value, Error> {
        let kind = scale_kind();
        let typing = Typing::Builtin(self.schema(&kind)?);
        Self::typed(ctx, &typing, &kind, raw, validation).map_err(|why| {
            Error::bad_request(format!(
                "Scale in version \"v1\" cannot be handled as a Scale: {why}"
            ))
        })
    }
}

/// `autoscaling/v1 Scale`.
pub(super) fn scale_kind() -> Gvk {
    GroupVersion::new("autoscaling", "v1").kind("Scale")
}

/// The names of the fields on a path such as `.spec.replicas`.
pub(super) fn parts(path: &str) -> Vec<&str> {
    path.strip_prefix('.').unwrap_or(path).split('.').collect()
}

/// An object's `Scale`; one that has no number yet counts as having none wanted, so that it can be
/// given one.
pub(super) fn scale_of(paths: &ScalePaths, object: &Value) -> Value {
    scale_with(paths, object, replicas_of(paths, object).unwrap_or(0))
}

fn replicas_of(paths: &ScalePaths, object: &Value) -> Option<i64> {
    get(object, &parts(&paths.spec_replicas)).and_then(Value::as_i64)
}

fn scale_with(paths: &ScalePaths, object: &Value, replicas: i64) -> Value {
    let current = get(object, &parts(&paths.status_replicas)).and_then(Value::as_i64).unwrap_or(0);
    let mut status = json!({"replicas": current});
    let selector = paths.label_selector.as_ref().and_then(|path| get(object, &parts(path)));
    match selector {
        Some(Value::String(text)) if !text.is_empty() => {
            status["selector"] = json!(text);
        }
        // Kubernetes' own types have the selector itself, and show its text.
        Some(structured @ Value::Object(_)) => {
            let selector =
                match structured.get("matchLabels").or(structured.get("matchExpressions")) {
                    Some(_) => LabelSelector::from_value(structured),
                    // ReplicationControllers have nothing but the labels.
                    None => LabelSelector::from_value(&json!({"matchLabels": structured})),
                };
            if let Ok(selector) = selector {
                status["selector"] = json!(selector.to_string());
            }
        }
        _ => {}
    }
    let mut metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = get(object, &["metadata", field]) {
            metadata[field] = value.clone();
        }
    }
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": replicas},
        "status": status,
    })
}
