//! Admission of writes: the webhooks and policies of a logical cluster meet its objects.
//!
//! # Flow
//! What changes comes first: policies, then webhooks, each in the order of their names; and once more
//! those that want it when something has changed the object after them. The object is then judged
//! by its type and kind; what only judges comes last, on the object as it will be stored: policies,
//! then webhooks, all at once.
//!
//! # Guarantees
//! - Only configurations of the logical cluster of the request are looked at.
//! - What configures admission is never subject to it, and neither is what the server itself does
//!   on its own behalf.

mod calls;
mod mutating;
mod mutators;
mod params;
mod policies;

use std::sync::{Arc, LazyLock, OnceLock};

use machinery::meta::get_str;
use machinery::{ClusterName, GroupResource, Gvk, ObjectKey};
use serde_json::{Value, json};
use store::cache::Object;
use store::{Key, KeyPrefix};

use super::guard::namespaces;
use super::scale::scale_kind;
use super::typing::Typing;
use crate::admission::{
    Attributes, Caller, Hook, Hooks, Inputs, Matched, Objects, Operation, is_exempt,
};
use crate::registry::{Context, Error, Reason, Registry, Target, conversion};

/// What there is to admit a request.
#[derive(Debug)]
pub(super) struct Admission {
    attributes: Attributes,
    mutating: Vec<Arc<Object>>,
    validating: Vec<Arc<Object>>,
    bindings: Vec<Arc<Object>>,
    /// Bindings of policies that change objects.
    mutators: Vec<Arc<Object>>,
    /// The namespace that the request is in, once a policy wants to see it.
    namespace: OnceLock<Option<Value>>,
}

static MUTATING: LazyLock<GroupResource> = LazyLock::new(|| of("mutatingwebhookconfigurations"));
static VALIDATING: LazyLock<GroupResource> =
    LazyLock::new(|| of("validatingwebhookconfigurations"));
static BINDINGS: LazyLock<GroupResource> =
    LazyLock::new(|| of("validatingadmissionpolicybindings"));
static MUTATORS: LazyLock<GroupResource> = LazyLock::new(|| of("mutatingadmissionpolicybindings"));

fn of(plural: &str) -> GroupResource {
    GroupResource::new("admissionregistration.k8s.io", plural)
}

impl Registry {
    /// What admits a request; `None` if nothing does.
    pub(super) fn admission(
        &self,
        ctx: &Context,
        target: &Target,
        operation: Operation,
        dry_run: bool,
    ) -> Option<Admission> {
        let cluster = target.one_cluster()?;
        if ctx.inside || is_exempt(&target.resource.group) {
            return None;
        }
        // One look into the cache: most logical clusters have none of all four.
        let prefixes = [&*MUTATING, &*VALIDATING, &*BINDINGS, &*MUTATORS]
            .map(|resource| KeyPrefix::cluster(resource, cluster));
        let [mutating, validating, bindings, mutators] = self.cache.list_each(&prefixes);
        if [&mutating, &validating, &bindings, &mutators].iter().all(|list| list.is_empty()) {
            return None;
        }
        let attributes = self.attributes(ctx, target, cluster, operation, dry_run);
        let namespace = OnceLock::new();
        Some(Admission { attributes, mutating, validating, bindings, mutators, namespace })
    }

    /// The caller of a request, for expressions that ask what it may do.
    fn caller(&self, attributes: &Attributes) -> Caller {
        Caller {
            user: attributes.user.clone(),
            cluster: attributes.cluster.clone(),
            authorizer: self.authorizer.clone(),
        }
    }

    fn attributes(
        &self,
        ctx: &Context,
        target: &Target,
        cluster: &ClusterName,
        operation: Operation,
        dry_run: bool,
    ) -> Attributes {
        let resource = &target.resource;
        let scaled = &*target.subresource == super::scale::SCALE;
        let own = Self::kind(resource, &target.version);
        let gvr = own.group_version.resource(&resource.plural);
        let kind = if scaled { scale_kind() } else { own };
        let mut options = json!({
            "apiVersion": "meta.k8s.io/v1",
            "kind": match operation {
                Operation::Create => "CreateOptions",
                Operation::Update => "UpdateOptions",
                Operation::Delete => "DeleteOptions",
            },
        });
        if dry_run {
            options["dryRun"] = json!(["All"]);
        }
        let is_namespace = resource.group.is_empty() && &*resource.plural == "namespaces";
        let namespace = if is_namespace { &target.name } else { &target.namespace };
        let key = ObjectKey::new(cluster.clone(), "", namespace);
        let in_namespace = self.cache.get(&Key::new(&namespaces(), &key));
        let equivalents = self
            .equivalents(target)
            .into_iter()
            .map(|(gvr, other)| (gvr, if scaled { scale_kind() } else { other }));
        Attributes {
            cluster: cluster.clone(),
            operation,
            kind,
            resource: gvr,
            subresource: target.subresource.clone(),
            namespace: namespace.clone(),
            name: target.name.clone(),
            user: ctx.user.clone(),
            dry_run,
            options,
            in_namespace: in_namespace.filter(|_| !namespace.is_empty()),
            equivalents: equivalents.collect(),
        }
    }

    /// The same objects under other names: other versions, and views.
    fn equivalents(&self, target: &Target) -> Vec<(machinery::Gvr, Gvk)> {
        let resource = &target.resource;
        let named = |resource: &schema::resource::ResourceDef, version: &str| {
            let kind = Self::kind(resource, version);
            (kind.group_version.resource(&resource.plural), kind)
        };
        if let Some(custom) = &target.custom {
            let versions = custom.versions.iter().filter(|version| version.served);
            let others = versions.filter(|version| version.name != target.version);
            return others.map(|version| named(resource, &version.name)).collect();
        }
        let storage = Self::storage(resource);
        let same = self.types.resources().iter().filter(|other| Self::storage(other) == storage);
        let all = same.flat_map(|other| {
            let served = other.versions.iter().filter(|version| version.served);
            served.map(move |version| named(other, &version.name))
        });
        let own = Self::kind(resource, &target.version);
        all.filter(|(_, kind)| *kind != own).collect()
    }

    /// An object of the request's kind as an equivalent kind has it, or back.
    async fn as_kind(&self, target: &Target, value: &Value, kind: &Gvk) -> Result<Value, Error> {
        let given = (get_str(value, &["apiVersion"]), get_str(value, &["kind"]));
        let version = kind.group_version.to_string();
        if given == (Some(version.as_str()), Some(&*kind.kind)) || *kind == scale_kind() {
            return Ok(value.clone());
        }
        if let Some(custom) = &target.custom {
            let cluster = Self::cluster(target)?;
            let converted = Box::pin(self.converted_one(custom, cluster, value.clone(), kind));
            let mut converted = converted.await?;
            if let Some(typing) = Typing::custom(custom, kind) {
                typing.repair(&mut converted).map_err(Error::internal)?;
            }
            return Ok(converted);
        }
        let group =
            |version: &str| version.split_once('/').map_or("", |(group, _)| group).to_owned();
        let from = group(given.0.unwrap_or_default());
        let plural = &target.resource.plural;
        let find = |group: &str| self.types.resource(group, plural);
        let (Some(from), Some(to)) = (find(&from), find(&kind.group_version.group)) else {
            return Err(Error::internal(format!("no way to {kind:?}")));
        };
        let stored = self.stored_kind(from);
        let stored = conversion::to_stored(from, value.clone(), &stored);
        self.converted(to, stored, kind)
    }

    /// Lets policies and webhooks judge a request.
    ///
    /// # Errors
    /// The first refusal.
    pub(super) async fn judge(
        &self,
        ctx: &Context,
        target: &Target,
        admission: &mut Admission,
        objects: &Objects,
    ) -> Result<(), Error> {
        admission.name_it(objects);
        if !admission.bindings.is_empty() {
            self.judge_by_policies(ctx, target, admission, objects).await?;
        }
        if admission.validating.is_empty() {
            return Ok(());
        }
        let configurations: Vec<_> = admission.validating.iter().filter_map(Hooks::of).collect();
        let mut asked = Vec::new();
        for hook in configurations.iter().flat_map(|hooks| &hooks.list) {
            if let Some(matched) = self.matched(target, admission, hook, objects).await? {
                asked.push((hook, matched));
            }
        }
        let admission = &*admission;
        let calls = asked
            .iter()
            .map(|(hook, matched)| Box::pin(self.ask_hook(ctx, admission, hook, matched, false)));
        let refused = futures::future::join_all(calls).await.into_iter().find_map(Result::err);
        refused.map_or(Ok(()), Err)
    }

    /// What a webhook is to see of a request, if it matches.
    async fn matched(
        &self,
        target: &Target,
        admission: &Admission,
        hook: &Hook,
        objects: &Objects,
    ) -> Result<Option<calls::Seen>, Error> {
        let attributes = &admission.attributes;
        let (resource, kind) = match hook.criteria.matches(attributes, objects) {
            Matched::No => return Ok(None),
            Matched::Broken(why) => return Err(calls::internal(&why)),
            Matched::As(matched) => *matched,
        };
        let objects = self.as_seen(target, &kind, objects).await?;
        if !hook.conditions.is_empty() {
            let request = attributes.request(&resource, &kind);
            let caller = self.caller(attributes);
            let inputs = Inputs {
                object: objects.new.as_ref(),
                old: objects.old.as_ref(),
                request: &request,
                namespace: None,
                params: None,
                caller: &caller,
            };
            let met = hook.conditions.met(&inputs).map_err(|why| {
                Error::forbidden(&attributes.resource.group_resource(), &attributes.name, &why)
            })?;
            if !met {
                return Ok(None);
            }
        }
        Ok(Some(calls::Seen { resource, kind, objects }))
    }

    /// Objects as a kind has them.
    async fn as_seen(
        &self,
        target: &Target,
        kind: &Gvk,
        objects: &Objects,
    ) -> Result<Objects, Error> {
        let mut seen = Objects::default();
        if let Some(new) = &objects.new {
            seen.new = Some(self.as_kind(target, new, kind).await?);
        }
        if let Some(old) = &objects.old {
            seen.old = Some(self.as_kind(target, old, kind).await?);
        }
        Ok(seen)
    }
}

// === impl Admission ===

impl Admission {
    /// The namespace that a request is in, as expressions see it.
    fn namespace(&self) -> Result<Option<&Value>, Error> {
        if self.namespace.get().is_none() {
            let attributes = &self.attributes;
            let stored = attributes.in_namespace.as_ref().filter(|_| !attributes.is_namespace());
            let read = stored.map(|object| serde_json::from_slice::<Value>(&object.json()));
            let read = read.transpose().map_err(Error::internal)?;
            self.namespace.get_or_init(|| read);
        }
        Ok(self.namespace.get().and_then(Option::as_ref))
    }

    /// Takes over the name that a new object has got.
    fn name_it(&mut self, objects: &Objects) {
        let name = objects.new.as_ref().and_then(|object| get_str(object, &["metadata", "name"]));
        if let Some(name) = name.filter(|_| self.attributes.name.is_empty()) {
            self.attributes.name = name.into();
            if self.attributes.is_namespace() {
                self.attributes.namespace = name.into();
            }
        }
    }
}

/// A refusal of the reason that a policy gives.
fn refused(attributes: &Attributes, reason: Reason, message: String) -> Error {
    let resource = attributes.resource.group_resource();
    let name = &attributes.name;
    let told = Error::forbidden(&resource, name, &message);
    Error::new(reason, told.message()).about(&resource, name).cause("", message, "")
}
