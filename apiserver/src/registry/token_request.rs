//! The subresource `token` of a ServiceAccount: a new token for it, which nobody stores.

use std::sync::Arc;

use machinery::meta::{get, get_str, set};
use machinery::{ClusterName, FieldError, FieldPath, GroupResource, GroupVersion, Gvk};
use serde_json::{Value, json};
use store::Key;
use store::cache::Object;

use super::create::check_namespace;
use super::typing::Typing;
use crate::auth::tokens::{Bound, BoundKind, Grant, Reference};
use crate::registry::{Body, Context, Error, Registry, Target, WriteOptions, Written};

/// The shortest life of a token, in seconds.
const SHORTEST: i64 = 600;

/// The longest life of a token, in seconds.
const LONGEST: i64 = 1 << 32;

impl Registry {
    /// Creates at a subresource, whose body is of a kind of its own.
    pub(super) async fn create_part(
        &self,
        ctx: &Context,
        target: &Target,
        body: &Body,
        options: WriteOptions,
    ) -> Result<Written, Error> {
        let part = target.resource.subresource(&target.subresource);
        let kind = part.and_then(|part| part.kind.as_ref());
        let kind = kind.map(|[group, version, kind]| GroupVersion::new(group, version).kind(kind));
        match kind {
            Some(kind) if *kind.kind == *"TokenRequest" && target.custom.is_none() => {
                self.request_token(ctx, target, &kind, body, options).await
            }
            _ => Err(Error::internal("a subresource that nothing is created at was let through")),
        }
    }

    /// Makes a token for the ServiceAccount that the target names.
    async fn request_token(
        &self,
        ctx: &Context,
        target: &Target,
        kind: &Gvk,
        body: &Body,
        options: WriteOptions,
    ) -> Result<Written, Error> {
        let mut request = self.decode_own(ctx, kind, body, options.field_validation)?;
        check_namespace(target, &mut request)?;
        let cluster = Self::cluster(target)?;
        let name = get_str(&request, &["metadata", "name"]).unwrap_or_default();
        if !matches!(name, "") && *name != *target.name {
            let field = FieldPath::root("metadata").child("name");
            let why = "must match the service account name if specified";
            let problem = FieldError::invalid_str(&field, name, why);
            return Err(Error::invalid(kind, &target.name, &[problem]));
        }
        self.consistent().await?;
        let account = self.bindable(cluster, "serviceaccounts", &target.namespace, &target.name)?;
        let uid = account.header.uid();
        let given = get_str(&request, &["metadata", "uid"]).unwrap_or_default();
        if !given.is_empty() && *given != *uid {
            let resource = GroupResource::new(&kind.group_version.group, &kind.kind);
            let why = format!(
                "the UID in the token request ({given}) does not match the UID of the service \
                 account ({uid})"
            );
            return Err(Error::conflict(&resource, &target.name, &why));
        }
        self.complete_request(ctx, target, kind, &account, &mut request)?;
        let bound = self.bound(cluster, target, &request)?;
        let seconds = self.seconds(ctx, &mut request);
        let accounts = self.bearers.accounts();
        let audiences = texts(get(&request, &["spec", "audiences"]));
        let token = accounts.mint(&Grant {
            cluster,
            namespace: &target.namespace,
            name: &target.name,
            uid,
            bound,
            audiences: &audiences,
            seconds,
            now: ctx.now,
        });
        let token = token.map_err(Error::internal)?;
        let expires = ctx.now.checked_add(jiff::SignedDuration::from_secs(seconds));
        let expires = expires.map_err(Error::internal)?;
        let expires = machinery::time::Time::at(expires).to_string();
        set(&mut request, &["status"], json!({"token": token, "expirationTimestamp": expires}));
        self.answered(target, &request)
    }

    /// Fills in what the request leaves out, and judges it.
    fn complete_request(
        &self,
        ctx: &Context,
        target: &Target,
        kind: &Gvk,
        account: &Object,
        request: &mut Value,
    ) -> Result<(), Error> {
        Typing::Builtin(self.schema(kind)?).default(request);
        let now = machinery::time::Time::at(ctx.now).to_string();
        let metadata = [
            ("name", json!(&*target.name)),
            ("namespace", json!(&*target.namespace)),
            ("uid", json!(account.header.uid())),
            ("creationTimestamp", json!(now)),
        ];
        for (field, value) in metadata {
            set(request, &["metadata", field], value);
        }
        if texts(get(request, &["spec", "audiences"])).is_empty() {
            let own = self.bearers.accounts().audiences(Self::cluster(target)?);
            set(request, &["spec", "audiences"], json!(own));
        }
        let field = FieldPath::root("spec").child("expirationSeconds");
        let given = get(request, &["spec", "expirationSeconds"]).cloned().unwrap_or_default();
        let seconds = given.as_i64().unwrap_or_default();
        let why = if seconds < SHORTEST {
            "may not specify a duration less than 10 minutes"
        } else if seconds > LONGEST {
            "may not specify a duration larger than 2^32 seconds"
        } else {
            return Ok(());
        };
        Err(Error::invalid(kind, "", &[FieldError::invalid(&field, &given, why)]))
    }

    /// How long the token lives: as asked for, or as long as is allowed.
    fn seconds(&self, ctx: &Context, request: &mut Value) -> i64 {
        let path = ["spec", "expirationSeconds"];
        let asked = get(request, &path).and_then(Value::as_i64).unwrap_or_default();
        match self.bearers.accounts().max_seconds() {
            Some(most) if asked > most => {
                ctx.warn(format!(
                    "requested expiration of {asked} seconds shortened to {most} seconds"
                ));
                set(request, &path, json!(most));
                most
            }
            _ => asked,
        }
    }

    /// The object that a token is to die with.
    fn bound(
        &self,
        cluster: &ClusterName,
        target: &Target,
        request: &Value,
    ) -> Result<Option<Bound>, Error> {
        let reference = get(request, &["spec", "boundObjectRef"]);
        let Some(reference) = reference.filter(|reference| !reference.is_null()) else {
            return Ok(None);
        };
        let text = |field: &str| get_str(reference, &[field]).unwrap_or_default();
        let version = GroupVersion::parse(text("apiVersion"));
        let version = version.unwrap_or_else(|| GroupVersion::new("", ""));
        let kind = match (&*version.group, text("kind")) {
            ("", "Pod") => BoundKind::Pod,
            ("", "Node") => BoundKind::Node,
            ("", "Secret") => BoundKind::Secret,
            (group, kind) => {
                return Err(Error::bad_request(format!(
                    "cannot bind token to object of type {group}/{}, Kind={kind}",
                    version.version
                )));
            }
        };
        let namespace = if kind == BoundKind::Node { "" } else { &*target.namespace };
        let name = text("name");
        let found = self.bindable(cluster, kind.plural(), namespace, name)?;
        let mut node = None;
        if kind == BoundKind::Pod {
            let pod: Value = serde_json::from_slice(&found.json()).map_err(Error::internal)?;
            if get_str(&pod, &["spec", "serviceAccountName"]) != Some(&target.name) {
                let account = machinery::field::go_quote(&target.name);
                return Err(Error::bad_request(format!(
                    "cannot bind token for serviceaccount {account} to pod running with different \
                     serviceaccount name."
                )));
            }
            let name = get_str(&pod, &["spec", "nodeName"]).unwrap_or_default();
            node = (!name.is_empty()).then(|| {
                // Its name alone is something to know, too.
                let found = self.bindable(cluster, BoundKind::Node.plural(), "", name);
                let uid = found.map(|node| node.header.uid().to_string()).unwrap_or_default();
                Reference { name: name.to_owned(), uid }
            });
        }
        let uid = found.header.uid().to_string();
        if !matches!(text("uid"), "") && text("uid") != uid {
            let resource = GroupResource::new("", text("kind"));
            let given = text("uid");
            let why = format!(
                "the UID in the bound object reference ({given}) does not match the UID in record. \
                 The object might have been deleted and then recreated"
            );
            return Err(Error::conflict(&resource, name, &why));
        }
        let object = Reference { name: name.to_owned(), uid };
        Ok(Some(Bound { kind, object, node }))
    }

    /// An object of the core group that a token rests on.
    fn bindable(
        &self,
        cluster: &ClusterName,
        plural: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<Object>, Error> {
        let resource = GroupResource::new("", plural);
        let object = machinery::ObjectKey::new(cluster.clone(), namespace, name);
        let found = self.cache.get(&Key::new(&resource, &object));
        match found {
            Some(found) => Ok(found),
            None => {
                self.require_cluster(cluster)?;
                Err(Error::not_found(&resource, name))
            }
        }
    }
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
