//! Policies that change objects.

use machinery::meta::get_str;
use serde_json::Value;

use super::mutating::{Course, check_depth};
use super::policies::{InForce, Invocations, Misconfigured};
use super::{Admission, calls};
use crate::admission::{Attributes, Caller, Inputs, Objects, Patch, PolicyKind};
use crate::registry::typing::Typing;
use crate::registry::{Cause, Details, Error, Registry, Target, conversion};

/// One turn of a policy: with one binding and one parameter.
struct Turn<'t> {
    in_force: &'t InForce<'t>,
    found: &'t Invocations,
    params: Option<&'t Value>,
}

/// What a policy could not do.
#[derive(Debug)]
struct Refusal {
    message: String,
    /// As upstream: what is wrong with the configuration has no reason of its own.
    reason: &'static str,
}

/// Why a patch was not made.
enum Fault {
    /// The policy is to blame, and its `failurePolicy` decides.
    Policy(String),
    /// The request fails.
    Request(Error),
}

impl Registry {
    /// Gives the mutating policies of a logical cluster their turns.
    pub(super) async fn mutate_by_policies(
        &self,
        target: &Target,
        admission: &Admission,
        objects: &mut Objects,
        course: &mut Course,
    ) -> Result<(), Error> {
        if admission.mutators.is_empty() {
            return Ok(());
        }
        course.policies.begin(course.second, course.changes);
        let mut refusals = Vec::new();
        // Bindings come by their own names, and policies by theirs first.
        let mut all: Vec<_> = self.policies_in_force(admission, PolicyKind::Mutating).collect();
        all.sort_by(|a, b| a.binding.policy.cmp(&b.binding.policy));
        let mut turns = Vec::new();
        for in_force in &all {
            let InForce { policy, binding, .. } = in_force;
            match self.invocations(&admission.attributes, objects, policy, binding).await {
                Ok(found) => turns.extend(found.map(|found| (in_force, found))),
                Err(_) if policy.ignores_failure => {}
                Err(misconfigured) => refusals.push(in_force.misconfigured(&misconfigured)),
            }
        }
        let mut patched = false;
        for (in_force, found) in &turns {
            for params in &found.params {
                let turn = Turn { in_force, found, params: params.as_ref() };
                let made = self.take_turn(target, admission, &turn, objects, course, &mut refusals);
                patched |= made.await?;
            }
        }
        if patched {
            // As upstream: whether or not a patch changed anything, there is a second round.
            course.policies.require();
            course.wanted = true;
        }
        course.policies.end(course.changes);
        match refusals.first() {
            None => Ok(()),
            Some(_) => Err(refused(&admission.attributes, &refusals)),
        }
    }

    /// One turn of a policy. Says whether any patch was made.
    async fn take_turn(
        &self,
        target: &Target,
        admission: &Admission,
        turn: &Turn<'_>,
        objects: &mut Objects,
        course: &mut Course,
        refusals: &mut Vec<Refusal>,
    ) -> Result<bool, Error> {
        let (policy, found) = (&turn.in_force.policy, turn.found);
        let request = admission.attributes.request(&found.resource, &found.kind);
        let namespace = admission.namespace()?;
        let caller = self.caller(&admission.attributes);
        let mut seen = self.as_seen(target, &found.kind, objects).await?;
        let inputs = |seen: &Objects| -> Result<bool, String> {
            policy.met(&turn.inputs(seen, &request, namespace, &caller))
        };
        match { inputs }(&seen) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(why) => {
                refusals.extend(turn.in_force.refusal(&why));
                return Ok(false);
            }
        }
        let who = turn.who();
        if !course.policies.is_turn(course.second, &who) || seen.new.is_none() {
            return Ok(false);
        }
        let before = seen.new.clone();
        let mut patched = false;
        for at in 0..policy.mutations() {
            let patch = policy.patch(at, &turn.inputs(&seen, &request, namespace, &caller));
            let (Some(object), Ok(Some(patch))) = (&seen.new, &patch) else {
                refusals.extend(patch.err().and_then(|why| turn.in_force.refusal(&why)));
                continue;
            };
            match self.patched(target, &found.kind, object, patch) {
                Ok(value) => {
                    patched = true;
                    seen.new = Some(value);
                }
                Err(Fault::Request(error)) => return Err(error),
                Err(Fault::Policy(why)) => refusals.extend(turn.in_force.refusal(&why)),
            }
        }
        if seen.new != before
            && let Some(value) = &seen.new
        {
            objects.new = Some(self.as_kind(target, value, &admission.attributes.kind).await?);
            course.changes += 1;
            course.policies.require();
            course.wanted = true;
        }
        if policy.again {
            course.policies.remember(who);
        }
        Ok(patched)
    }

    /// An object with a patch.
    fn patched(
        &self,
        target: &Target,
        kind: &machinery::Gvk,
        object: &Value,
        patch: &Patch,
    ) -> Result<Value, Fault> {
        let typing = self.typing_of(target, kind)?;
        match patch {
            Patch::Configuration(configuration) => {
                let mut configuration = configuration.clone();
                conversion::relabel(&mut configuration, kind);
                let merged = ::patch::apply::overlay(typing.apply(), object, &configuration);
                let merged =
                    merged.map_err(|why| Fault::Policy(format!("error applying patch: {why}")))?;
                Ok(self.retyped(target, kind, merged)?)
            }
            Patch::Operations(operations) => {
                let mut value = object.clone();
                match ::patch::json::apply(&mut value, operations, ::patch::json::MAX_COPIED) {
                    Ok(()) => {}
                    // Then the patch is not meant for this object.
                    Err(::patch::PatchError::TestFailed(_)) => return Ok(object.clone()),
                    Err(error) => return Err(Fault::Policy(format!("JSON Patch: {error}"))),
                }
                check_depth(&value)?;
                check_strictly(&typing, &value)?;
                Ok(self.retyped(target, kind, value)?)
            }
        }
    }
}

/// Upstream reads a patched object of its own types strictly.
fn check_strictly(typing: &Typing, value: &Value) -> Result<(), Fault> {
    let Some(facts) = typing.facts() else { return Ok(()) };
    let mut copy = value.clone();
    let unknown = facts
        .coerce(&mut copy, schema::CoerceMode::Report)
        .map_err(|error| calls::internal(&error.to_string()))?;
    if unknown.is_empty() {
        return Ok(());
    }
    let unknown = unknown.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    Err(calls::internal(&format!("strict decoding error: {unknown}")).into())
}

/// The refusal of a request by what policies could not do.
fn refused(attributes: &Attributes, refusals: &[Refusal]) -> Error {
    let resource = attributes.resource.group_resource();
    let told = Error::forbidden(&resource, &attributes.name, "");
    let causes = refusals.iter().map(|refusal| Cause {
        reason: String::new(),
        message: refusal.message.clone(),
        field: String::new(),
    });
    let details = Details { causes: causes.collect(), ..told.details().clone() };
    let (message, reason) = match refusals.first() {
        Some(first) => (first.message.clone(), first.reason),
        None => (String::new(), "Forbidden"),
    };
    Error::told(403, reason, message, details)
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Request(error)
    }
}

// === impl InForce ===

impl InForce<'_> {
    fn names(&self) -> String {
        format!("policy '{}' with binding '{}'", self.binding.policy, self.binding_name)
    }

    fn misconfigured(&self, misconfigured: &Misconfigured) -> Refusal {
        let whose = match misconfigured {
            Misconfigured::Policy(_) => format!("policy {:?}", self.binding.policy),
            Misconfigured::Binding(_) => self.names(),
        };
        let message = format!("{whose} denied request: {misconfigured}");
        Refusal { message, reason: "Forbidden" }
    }

    /// That something failed, unless that is ignored.
    fn refusal(&self, why: &str) -> Option<Refusal> {
        let message = format!("{} denied request: {why}", self.names());
        (!self.policy.ignores_failure).then_some(Refusal { message, reason: "Invalid" })
    }
}

// === impl Turn ===

impl Turn<'_> {
    /// Whose turn it is, for the second round.
    fn who(&self) -> (String, String, String) {
        let text = |field: &str| {
            self.params.and_then(|params| get_str(params, &["metadata", field])).unwrap_or_default()
        };
        let params = format!("{}/{}", text("namespace"), text("name"));
        (self.in_force.binding.policy.clone(), self.in_force.binding_name.to_string(), params)
    }

    fn inputs<'i>(
        &'i self,
        seen: &'i Objects,
        request: &'i Value,
        namespace: Option<&'i Value>,
        caller: &'i Caller,
    ) -> Inputs<'i> {
        Inputs {
            object: seen.new.as_ref(),
            old: seen.old.as_ref(),
            request,
            namespace,
            params: self.params,
            caller,
        }
    }
}
