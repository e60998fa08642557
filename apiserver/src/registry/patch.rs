//! Patch: a change of the present object, then an update.

use ::patch::{PatchError, strategic};
use machinery::json::{self, Limits};
use machinery::meta::get_str;
use machinery::{FieldError, FieldPath, GroupVersion};
use serde_json::Value;

use super::decode::{Raw, go_name};
use super::managed::{Tracking, manager};
use super::owners::dedup_owners;
use super::update::check_name;
use crate::registry::{
    Body, Context, Error, Media, PatchType, Reason, Registry, Target, WriteOptions, Written,
};

impl Registry {
    /// Changes an object by a patch of one of four forms. Server-side apply creates it, too.
    ///
    /// # Errors
    /// 400 for what is no patch, 422 for one that doesn't fit the object, then as
    /// [`Registry::update`].
    pub async fn patch(
        &self,
        ctx: &Context,
        target: &Target,
        kind: PatchType,
        body: Body,
        options: WriteOptions,
    ) -> Result<Written, Error> {
        if kind == PatchType::Apply {
            return self.apply(ctx, target, &body, &options).await;
        }
        let limits = Limits::default();
        let parsed = match body.media {
            Media::Yaml => json::yaml(&body.bytes, &limits),
            Media::Json | Media::Protobuf => json::parse(&body.bytes, &limits),
        };
        let parsed = parsed.map_err(|error| undecodable(kind, &error.message))?;
        let duplicates = parsed.duplicates;
        let patch = parsed.value;
        check_form(kind, &patch)?;
        let locked = kind != PatchType::Json
            && get_str(&patch, &["metadata", "resourceVersion"]).is_some_and(|v| !v.is_empty());
        let gvk = Self::kind(&target.resource, &target.version);
        let typing = self.typing(target)?;
        let facts = typing.facts();
        if kind == PatchType::Strategic && facts.is_none() {
            return Err(unmergeable());
        }
        self.warn_writer(ctx, target);
        let manager = manager(ctx, &options);
        let tracking = Tracking::By(&manager);
        let merged = |old: &Value| -> Result<Value, Error> {
            let mut value = old.clone();
            match kind {
                PatchType::Json => {
                    ::patch::json::apply(&mut value, &patch, ::patch::json::MAX_COPIED)
                }
                PatchType::Merge => ::patch::merge::apply(&mut value, patch.clone()),
                PatchType::Strategic | PatchType::Apply => match facts {
                    Some(facts) => {
                        strategic::apply(old, &patch, &facts.merge()).map(|new| value = new)
                    }
                    None => return Err(unmergeable()),
                },
            }
            .map_err(|error| refusal(&error))?;
            Ok(value)
        };
        let problems = || -> Vec<String> {
            duplicates.iter().map(|path| format!("duplicate field {path:?}")).collect()
        };
        if let Some(paths) = self.scale_paths(target)? {
            let (dry_run, paths) = (options.dry_run, &paths);
            let rescaled = self.rescale(ctx, target, paths, dry_run, locked, tracking, |old| {
                let raw = Raw { value: merged(old)?, problems: problems(), ..Raw::default() };
                let scale = self.typed_scale(ctx, raw, options.field_validation)?;
                check_identity(target, &scale)?;
                Ok(scale)
            });
            return rescaled.await;
        }
        self.transform(ctx, target, options.dry_run, locked, tracking, |old| {
            let value = merged(old)?;
            let shown = if kind == PatchType::Strategic { &patch } else { &value };
            let shown = shown.to_string();
            self.identify(&value, &gvk).map_err(|error| misfit(&shown, error.message()))?;
            let raw = Raw { value, problems: problems(), ..Raw::default() };
            let typed = Self::typed(ctx, &typing, &gvk, raw, options.field_validation);
            let mut value = typed.map_err(|why| misfit(&shown, &why))?;
            check_identity(target, &value)?;
            dedup_owners(ctx, &mut value, true);
            Ok(value)
        })
        .await
    }
}

/// A strategic merge patch needs a type that says how its lists merge.
fn unmergeable() -> Error {
    Error::new(
        Reason::UnsupportedMediaType,
        "the body of the request was in an unknown format - accepted media types include: \
         application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
    )
}

/// Bytes that are no patch of their form.
fn undecodable(kind: PatchType, why: &str) -> Error {
    match kind {
        PatchType::Strategic => Error::bad_request(why),
        _ => Error::bad_request(format!("error decoding patch: {why}")),
    }
}

/// A JSON patch is a list, any other an object.
fn check_form(kind: PatchType, patch: &Value) -> Result<(), Error> {
    let (fits, wanted) = match kind {
        // Upstream has a type of its own for operations.
        PatchType::Json => (patch.is_array() || patch.is_null(), "a list of operations"),
        _ => (patch.is_object() || patch.is_null(), "Go value of type map[string]interface {}"),
    };
    if fits {
        return Ok(());
    }
    let what = go_name(patch);
    Err(undecodable(kind, &format!("json: cannot unmarshal {what} into {wanted}")))
}

/// The outcome of a patch is no object of the kind. `shown` is what is to blame.
fn misfit(shown: &str, why: &str) -> Error {
    let problem = FieldError::invalid_str(&FieldPath::root("patch"), shown, why);
    // Upstream names neither the kind nor the object.
    Error::invalid(&GroupVersion::new("", "").kind(""), "", &[problem])
}

/// A patch may not make another object of the one it is for.
pub(super) fn check_identity(target: &Target, value: &Value) -> Result<(), Error> {
    check_name(target, value)?;
    let namespace = get_str(value, &["metadata", "namespace"]).unwrap_or_default();
    if namespace != &*target.namespace {
        return Err(Error::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

fn refusal(error: &PatchError) -> Error {
    match error {
        PatchError::Malformed(why) => Error::bad_request(why.clone()),
        PatchError::Failed(_) | PatchError::TestFailed(_) => Error::generic(
            Reason::Invalid,
            "the server rejected our request due to an error in our request",
        ),
        PatchError::Unmergeable(why) => Error::new(Reason::Unknown, why.clone()),
        PatchError::TooManyOperations { .. } | PatchError::TooLarge(_) => {
            Error::new(Reason::RequestEntityTooLarge, format!("Request entity too large: {error}"))
        }
    }
}
