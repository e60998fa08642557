//! Objects that are named by their content.
//!
//! # Guarantees
//! An APIResourceSchema says what its name says, whoever wrote it: so it never changes, and who has
//! written one of them can't have put another's content in its place.

use contract::{API_RESOURCE_SCHEMAS, APIRESOURCE_GROUP, schema_name};
use machinery::meta::get_str;
use machinery::{FieldError, FieldPath};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::registry::{Error, Registry, Target};

impl Registry {
    /// Refuses an object that would be stored under a name that its content doesn't have.
    ///
    /// # Errors
    /// 422 that tells the name.
    pub(super) fn check_content(target: &Target, object: &Value) -> Result<(), Error> {
        let resource = &target.resource;
        if *resource.group != *APIRESOURCE_GROUP || *resource.plural != *API_RESOURCE_SCHEMAS {
            return Ok(());
        }
        let expect = content_name(object.get("spec").unwrap_or(&Value::Null))?;
        let name = get_str(object, &["metadata", "name"]).unwrap_or_default();
        if name == expect {
            return Ok(());
        }
        let at = FieldPath::root("metadata").child("name");
        let why = format!("must be the name of its content, {expect}");
        let problem = FieldError::invalid_str(&at, name, &why);
        Err(Error::invalid(&Self::kind(resource, &target.version), name, &[problem]))
    }
}

/// The name of a content, which is read as it is stored.
fn content_name(spec: &Value) -> Result<String, Error> {
    let mut spec = spec.clone();
    schema::structural::settle_numbers(&mut spec);
    let text = serde_json::to_vec(&spec).map_err(Error::internal)?;
    Ok(schema_name(&Sha256::digest(&text).into()))
}
