//! Policies judge a request.

use machinery::ObjectKey;
use serde_json::Value;
use store::Key;

use super::{Admission, of, refused};
use crate::admission::{Action, Binding, Denial, Inputs, Matched, Objects, Policy};
use crate::registry::{Context, Error, Reason, Registry, Target};

/// A policy with the binding by which it is in force here.
struct InForce<'a> {
    policy: &'a Policy,
    policy_name: &'a str,
    binding: &'a Binding,
    binding_name: &'a str,
}

impl Registry {
    /// Lets the policies of a logical cluster judge a request.
    pub(super) async fn judge_by_policies(
        &self,
        ctx: &Context,
        target: &Target,
        admission: &Admission,
        objects: &Objects,
    ) -> Result<(), Error> {
        let mut refusal: Option<(Reason, String)> = None;
        let policies = of("validatingadmissionpolicies");
        for bound in &admission.bindings {
            let Some(binding) = Binding::of(bound) else { continue };
            let key = ObjectKey::new(admission.attributes.cluster.clone(), "", &binding.policy);
            let stored = self.cache.get(&Key::new(&policies, &key));
            let Some(policy) = stored.as_ref().and_then(Policy::of) else { continue };
            let in_force = InForce {
                policy: &policy,
                policy_name: &binding.policy,
                binding: &binding,
                binding_name: &bound.header.name,
            };
            let denials = self.denials(target, admission, objects, &in_force).await?;
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
    ) -> Result<Vec<Denial>, Error> {
        let attributes = &admission.attributes;
        let InForce { policy, binding, .. } = in_force;
        let broken = |what: &str, why: &str| {
            let message = format!("failed to configure {what}: {why}");
            let denial = Denial { message, reason: Reason::Invalid, always: true };
            if policy.ignores_failure { Vec::new() } else { vec![denial] }
        };
        let (resource, kind) = match policy.criteria.matches(attributes, objects) {
            Matched::No => return Ok(Vec::new()),
            Matched::Broken(why) => return Ok(broken("policy", &why)),
            Matched::As(matched) => *matched,
        };
        match binding.criteria.matches(attributes, objects) {
            Matched::No => return Ok(Vec::new()),
            Matched::Broken(why) => return Ok(broken("binding", &why)),
            Matched::As(_) => {}
        }
        let all = match self.params(attributes, policy, binding).await {
            Ok(params) => params,
            Err(why) => return Ok(broken("binding", &why)),
        };
        if all.is_empty() {
            return Ok(Vec::new());
        }
        let seen = self.as_seen(target, &kind, objects).await?;
        let request = attributes.request(&resource, &kind);
        let namespace = attributes.in_namespace.as_ref().filter(|_| !attributes.is_namespace());
        let namespace = namespace.map(|object| serde_json::from_slice::<Value>(&object.json()));
        let namespace = namespace.transpose().map_err(Error::internal)?;
        let caller = self.caller(attributes);
        let mut denials = Vec::new();
        for params in &all {
            let inputs = Inputs {
                object: seen.new.as_ref(),
                old: seen.old.as_ref(),
                request: &request,
                namespace: namespace.as_ref(),
                params: params.as_ref(),
                caller: &caller,
            };
            denials.extend(policy.judge(&inputs));
        }
        Ok(denials)
    }
}

// === impl InForce ===

impl InForce<'_> {
    /// Does what the binding says of a failed validation. Returns the text of a refusal, if it is
    /// one.
    fn told(&self, ctx: &Context, denial: &Denial) -> Option<String> {
        let (policy, binding) = (self.policy_name, self.binding_name);
        let message = &denial.message;
        let mut denies = denial.always;
        for action in &self.binding.actions {
            match action {
                Action::Deny => denies = true,
                Action::Warn if !denial.always => ctx.warn(format!(
                    "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding \
                     '{binding}': {message}"
                )),
                // There is no audit log to write to yet.
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
