//! Policies that are in force, and how they judge a request.

use std::sync::Arc;

use machinery::{Gvk, Gvr, ObjectKey};
use serde_json::Value;
use store::Key;
use store::cache::Object;

use super::{Admission, of, refused};
use crate::admission::{Action, Attributes, Binding, Denial, Inputs, Matched, Objects};
use crate::admission::{Policy, PolicyKind};
use crate::registry::{Context, Error, Reason, Registry, Target};

/// A policy with a binding by which it is in force.
pub(super) struct InForce<'a> {
    pub(super) policy: Arc<Policy>,
    pub(super) binding: Arc<Binding>,
    pub(super) binding_name: &'a str,
}

/// As what a policy sees a request, and once for which parameters.
#[derive(Debug)]
pub(super) struct Invocations {
    pub(super) resource: Gvr,
    pub(super) kind: Gvk,
    /// At least one, which may be that there is none.
    pub(super) params: Vec<Option<Value>>,
}

/// A policy or binding that can't be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Misconfigured {
    #[error("failed to configure policy: {0}")]
    Policy(String),
    #[error("failed to configure binding: {0}")]
    Binding(String),
}

impl Registry {
    /// The policies that some bindings put into force, in the order of the bindings.
    pub(super) fn policies_in_force<'a>(
        &self,
        admission: &'a Admission,
        kind: PolicyKind,
    ) -> impl Iterator<Item = InForce<'a>> {
        let (bindings, policies): (&'a [Arc<Object>], _) = match kind {
            PolicyKind::Validating => (&admission.bindings, "validatingadmissionpolicies"),
            PolicyKind::Mutating => (&admission.mutators, "mutatingadmissionpolicies"),
        };
        let policies = of(policies);
        bindings.iter().filter_map(move |bound| {
            let binding = Binding::of(bound)?;
            let key = ObjectKey::new(admission.attributes.cluster.clone(), "", &binding.policy);
            let stored = self.cache.get(&Key::new(&policies, &key))?;
            let policy = Policy::of(&stored, kind)?;
            Some(InForce { policy, binding, binding_name: bound.header.name() })
        })
    }

    /// How a policy with a binding is to see a request; `None` if it is not about it.
    pub(super) async fn invocations(
        &self,
        attributes: &Attributes,
        objects: &Objects,
        policy: &Policy,
        binding: &Binding,
    ) -> Result<Option<Invocations>, Misconfigured> {
        let (resource, kind) = match policy.criteria.matches(attributes, objects) {
            Matched::No => return Ok(None),
            Matched::Broken(why) => return Err(Misconfigured::Policy(why)),
            Matched::As(matched) => *matched,
        };
        match binding.criteria.matches(attributes, objects) {
            Matched::No => return Ok(None),
            Matched::Broken(why) => return Err(Misconfigured::Binding(why)),
            Matched::As(_) => {}
        }
        let params = self.params(attributes, policy, binding).await;
        let params = params.map_err(Misconfigured::Binding)?;
        Ok((!params.is_empty()).then_some(Invocations { resource, kind, params }))
    }

    /// Lets the policies of a logical cluster judge a request.
    pub(super) async fn judge_by_policies(
        &self,
        ctx: &Context,
        target: &Target,
        admission: &Admission,
        objects: &Objects,
    ) -> Result<(), Error> {
        let mut refusal: Option<(Reason, String)> = None;
        for in_force in self.policies_in_force(admission, PolicyKind::Validating) {
            let mut told = Vec::new();
            let denials = self.denials(target, admission, objects, &in_force, &mut told).await?;
            for (key, value) in &told {
                ctx.annotate(&format!("{}/{key}", in_force.binding.policy), value);
            }
            for denial in denials {
                let denied = in_force.told(ctx, &denial);
                refusal = refusal.or(denied.map(|message| (denial.reason, message)));
            }
        }
        match refusal {
            None => Ok(()),
            Some((reason, message)) => Err(refused(&admission.attributes, reason, message)),
        }
    }

    async fn denials(
        &self,
        target: &Target,
        admission: &Admission,
        objects: &Objects,
        in_force: &InForce<'_>,
        told: &mut Vec<(String, String)>,
    ) -> Result<Vec<Denial>, Error> {
        let attributes = &admission.attributes;
        let InForce { policy, binding, .. } = in_force;
        let found = match self.invocations(attributes, objects, policy, binding).await {
            Ok(found) => found,
            Err(_) if policy.ignores_failure => return Ok(Vec::new()),
            Err(misconfigured) => {
                let message = misconfigured.to_string();
                return Ok(vec![Denial { message, reason: Reason::Invalid, always: true }]);
            }
        };
        let Some(Invocations { resource, kind, params: all }) = found else {
            return Ok(Vec::new());
        };
        let seen = self.as_seen(target, &kind, objects).await?;
        let request = attributes.request(&resource, &kind);
        let namespace = admission.namespace()?;
        let caller = self.caller(attributes);
        let mut denials = Vec::new();
        for params in &all {
            let inputs = Inputs {
                object: seen.new.as_ref(),
                old: seen.old.as_ref(),
                request: &request,
                namespace,
                params: params.as_ref(),
                caller: &caller,
            };
            denials.extend(policy.judge(&inputs, told));
        }
        Ok(denials)
    }
}

// === impl InForce ===

impl InForce<'_> {
    /// Does what the binding says of a failed validation. Returns the text of a refusal, if it is
    /// one.
    fn told(&self, ctx: &Context, denial: &Denial) -> Option<String> {
        let (policy, binding) = (&self.binding.policy, self.binding_name);
        let message = &denial.message;
        let mut denies = denial.always;
        for action in &self.binding.actions {
            match action {
                Action::Deny => denies = true,
                Action::Warn if !denial.always => ctx.warn(format!(
                    "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding \
                     '{binding}': {message}"
                )),
                Action::Audit if !denial.always => ctx.annotate_failure(&serde_json::json!({
                    "message": message, "policy": policy, "binding": binding,
                    "validationActions": ["Audit"],
                })),
                Action::Warn | Action::Audit => {}
            }
        }
        denies.then(|| {
            format!(
                "ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: \
                 {message}"
            )
        })
    }
}
