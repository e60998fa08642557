//! Patch: a change of the present object, then an update.

use ::patch::{PatchError, strategic};
use machinery::json::{self, Limits};
use machinery::meta::get_str;
use serde_json::Value;

use super::decode::Raw;
use crate::registry::{
    Body, Context, Error, Media, PatchType, Reason, Registry, Target, WriteOptions, Written,
};

impl Registry {
    /// Changes an object by a patch of one of three forms. Server-side apply comes with the types.
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
            return Err(Error::new(
                Reason::UnsupportedMediaType,
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json-patch+json, application/merge-patch+json, \
                 application/strategic-merge-patch+json",
            ));
        }
        let limits = Limits::default();
        let parsed = match body.media {
            Media::Yaml => json::yaml(&body.bytes, &limits),
            Media::Json | Media::Protobuf => json::parse(&body.bytes, &limits),
        };
        let parsed = parsed.map_err(|error| Error::bad_request(error.to_string()))?;
        let duplicates = parsed.duplicates;
        let patch = parsed.value;
        let locked = kind != PatchType::Json
            && get_str(&patch, &["metadata", "resourceVersion"]).is_some_and(|v| !v.is_empty());
        let gvk = Self::kind(&target.resource, &target.version);
        let schema = self.schema(&gvk)?;
        self.warn_writer(ctx, target);
        self.transform(ctx, target, options.dry_run, locked, |old| {
            let mut value = old.clone();
            match kind {
                PatchType::Json => {
                    ::patch::json::apply(&mut value, &patch, ::patch::json::MAX_COPIED)
                }
                PatchType::Merge => ::patch::merge::apply(&mut value, patch.clone()),
                PatchType::Strategic | PatchType::Apply => {
                    strategic::apply(old, &patch, &schema.merge()).map(|new| value = new)
                }
            }
            .map_err(|error| refusal(target, &error))?;
            check_identity(target, &value)?;
            let problems =
                duplicates.iter().map(|path| format!("duplicate field {path:?}")).collect();
            let raw = Raw { value, problems };
            self.typed(ctx, &gvk, raw, options.field_validation)
        })
        .await
    }
}

/// A patch may not make another object of the one it is for.
fn check_identity(target: &Target, value: &Value) -> Result<(), Error> {
    let name = get_str(value, &["metadata", "name"]).unwrap_or_default();
    if name != &*target.name {
        let url = &target.name;
        return Err(Error::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({url})"
        )));
    }
    let namespace = get_str(value, &["metadata", "namespace"]).unwrap_or_default();
    if namespace != &*target.namespace {
        return Err(Error::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

fn refusal(target: &Target, error: &PatchError) -> Error {
    let resource = Registry::group_resource(&target.resource);
    match error {
        PatchError::Malformed(why) => Error::bad_request(why.clone()),
        PatchError::Failed(_) => Error::new(
            Reason::Invalid,
            "the server rejected our request due to an error in our request",
        )
        .about(&resource, &target.name),
        PatchError::Unmergeable(why) => Error::new(Reason::Unknown, why.clone()),
        PatchError::TooManyOperations { .. } | PatchError::TooLarge(_) => {
            Error::new(Reason::RequestEntityTooLarge, error.to_string())
        }
    }
}
