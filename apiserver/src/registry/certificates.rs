//! Who may decide about requests for certificates, and those that need no decision.

use contract::AGENT_SIGNER;
use machinery::meta::{get, set};
use serde_json::{Value, json};

use crate::auth::MASTERS;
use crate::auth::authz::Attributes;
use crate::auth::rights::Right;
use crate::certificates::{
    APPROVED, CLIENT_SIGNER, GROUP, REQUESTS, Request, request_of, signer_of,
};
use crate::registry::{Context, Error, Registry, Target};

fn is_requests(target: &Target) -> bool {
    *target.resource.group == *GROUP && *target.resource.plural == *REQUESTS
}

impl Registry {
    /// Refuses decisions that the caller may not make, and requests that ask for too much
    /// (upstream's admission of these objects). Other kinds pass.
    ///
    /// # Errors
    /// 403, in upstream's words.
    pub(super) fn check_request(
        &self,
        ctx: &Context,
        target: &Target,
        old: Option<&Value>,
        new: &Value,
    ) -> Result<(), Error> {
        if !is_requests(target) || ctx.inside {
            return Ok(());
        }
        let Some(old) = old else {
            let groups = || Request::parse(&request_of(new)?).map(|request| request.groups);
            let masters = signer_of(new) == CLIENT_SIGNER
                && groups().is_ok_and(|groups| groups.iter().any(|group| group == MASTERS));
            let why =
                format!("use of {CLIENT_SIGNER} signer with system:masters group is not allowed");
            return if masters { Err(target.forbidden(new, &why)) } else { Ok(()) };
        };
        let same = |field: &str| get(old, &["status", field]) == get(new, &["status", field]);
        let verb = match &*target.subresource {
            "approval" => "approve",
            "status" if !(same("certificate") && same("conditions")) => "sign",
            _ => return Ok(()),
        };
        let signer = signer_of(old);
        if self.may_decide(ctx, target, verb, signer) {
            return Ok(());
        }
        let signer = machinery::field::go_quote(signer);
        let why = format!("user not permitted to {verb} requests with signerName {signer}");
        Err(target.forbidden(new, &why))
    }

    /// Whether the caller has a verb on a signer, or on all of its domain.
    fn may_decide(&self, ctx: &Context, target: &Target, verb: &str, signer: &str) -> bool {
        let domain = signer.split('/').next().unwrap_or_default();
        let all = format!("{domain}/*");
        [signer, &all].into_iter().any(|name| {
            let asked = Attributes::Resource {
                verb,
                group: GROUP,
                resource: "signers",
                name,
                subresource: "",
                namespace: "",
            };
            self.authorizer.authorize(&ctx.user, &target.cluster, &asked).is_allowed()
        })
    }

    /// Approves a new request for the certificate of an agent that the caller is, or is to become.
    /// It is done here, where the caller is known for certain, and not later by what is written in
    /// the request.
    pub(super) fn approve_agent(&self, ctx: &Context, target: &Target, object: &mut Value) {
        if !is_requests(target) || signer_of(object) != AGENT_SIGNER {
            return;
        }
        let right = self.agent_right(ctx, target, "create");
        let Some((agent, Right::Requested)) = right else { return };
        let Ok(request) = request_of(object).and_then(|pem| Request::parse(&pem)) else { return };
        if request.names != [contract::agent_name(&agent.uid)] {
            return;
        }
        let now = machinery::time::Time::at(ctx.now).to_string();
        let (reason, message) = if agent.is_certified() {
            ("Renewed", "The agent asks for its own next certificate.")
        } else {
            ("Introduced", "The bootstrap token is for the agent of this SyncTarget.")
        };
        let condition = json!({
            "type": APPROVED,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastUpdateTime": now,
            "lastTransitionTime": now,
        });
        set(object, &["status", "conditions"], json!([condition]));
    }
}
