//! Reviews of access: whether somebody may do something, and what a caller may do at all.
//!
//! A review in a logical cluster speaks of that one alone: somebody whom it names is looked at as
//! known there, whatever else that name may mean elsewhere.

mod problems;

use std::collections::BTreeMap;

use machinery::GroupVersion;
use machinery::meta::{get, get_str, set};
use serde_json::{Value, json};

use crate::auth::UserInfo;
use crate::auth::authz::Attributes;
use crate::auth::rbac::{self, RoleKind, Rule};
use crate::registry::{Context, Error, Registry, Target};

/// Which of the three reviews of access it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Review {
    /// Of anybody, in one namespace.
    Local,
    /// Of anybody.
    Any,
    /// Of the caller.
    Own,
}

impl Registry {
    /// Answers whether somebody may do something.
    pub(super) fn access_review(
        &self,
        ctx: &Context,
        target: &Target,
        mut review: Value,
    ) -> Result<Value, Error> {
        let which = match &*target.resource.plural {
            "localsubjectaccessreviews" => Review::Local,
            "subjectaccessreviews" => Review::Any,
            _ => Review::Own,
        };
        let problems = problems::of(which, &review);
        if !problems.is_empty() {
            // Upstream leaves out the kind here.
            let group = &target.resource.group;
            let kind = GroupVersion::new(group, &target.version).kind("");
            return Err(Error::invalid(&kind, "", &problems));
        }
        let named;
        let user = if which == Review::Own {
            &*ctx.user
        } else {
            named = subject(&review, Self::cluster(target)?);
            &named
        };
        let decision = self.authorizer.authorize(user, &target.cluster, &asked(&review));
        let mut status = json!({"allowed": decision.is_allowed()});
        let reason = decision.reason();
        if !reason.is_empty() {
            status["reason"] = json!(reason);
        }
        set(&mut review, &["status"], status);
        Ok(review)
    }

    /// Answers what the caller may do in a namespace.
    pub(super) fn own_rules(
        &self,
        ctx: &Context,
        target: &Target,
        review: &Value,
    ) -> Result<Value, Error> {
        let namespace = get_str(review, &["spec", "namespace"]).unwrap_or_default();
        if namespace.is_empty() {
            return Err(Error::bad_request("no namespace on request"));
        }
        let (rules, missing) = self.authorizer.rules(&ctx.user, &target.cluster, namespace);
        let rules = || rules.iter().flat_map(rbac::all);
        let resources = rules().filter(|rule| !rule.resources.is_empty());
        let resources = resources.map(|rule| Rule { non_resource_urls: [].into(), ..rule.clone() });
        let paths = rules().filter(|rule| !rule.non_resource_urls.is_empty());
        let paths = paths.map(|rule| Rule {
            verbs: rule.verbs.clone(),
            non_resource_urls: rule.non_resource_urls.clone(),
            ..Rule::default()
        });
        let mut status = json!({
            "resourceRules": resources.collect::<Vec<_>>(),
            "nonResourceRules": paths.collect::<Vec<_>>(),
            "incomplete": false,
        });
        if !missing.is_empty() {
            status["evaluationError"] = json!(missing.text(RoleKind::singular));
        }
        Ok(json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectRulesReview",
            "metadata": {},
            "spec": {},
            "status": status,
        }))
    }
}

/// Whom a review is about.
fn subject(review: &Value, cluster: &machinery::ClusterName) -> UserInfo {
    let text = |field: &str| get_str(review, &["spec", field]).unwrap_or_default().to_owned();
    let texts = |value: &Value| {
        let texts = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect::<Vec<_>>()
    };
    let groups = get(review, &["spec", "groups"]).map(texts).unwrap_or_default();
    let extra = get(review, &["spec", "extra"]).and_then(Value::as_object);
    let extra = extra.into_iter().flatten().map(|(key, values)| (key.clone(), texts(values)));
    UserInfo {
        name: text("user"),
        uid: text("uid"),
        groups,
        extra: extra.collect::<BTreeMap<_, _>>(),
        home: Some(cluster.clone()),
        agent: None,
    }
}

/// What a review asks about.
fn asked(review: &Value) -> Attributes<'_> {
    let text =
        |part: &str, field: &str| get_str(review, &["spec", part, field]).unwrap_or_default();
    if get(review, &["spec", "nonResourceAttributes"]).is_some() {
        let part = "nonResourceAttributes";
        return Attributes::Path { verb: text(part, "verb"), path: text(part, "path") };
    }
    let part = "resourceAttributes";
    Attributes::Resource {
        verb: text(part, "verb"),
        group: text(part, "group"),
        resource: text(part, "resource"),
        name: text(part, "name"),
        subresource: text(part, "subresource"),
        namespace: text(part, "namespace"),
    }
}
