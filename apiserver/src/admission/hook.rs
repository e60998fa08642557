//! Webhooks as their configurations have them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use store::cache::Object;

use super::criteria::Criteria;
use super::expression::Conditions;
use super::{items, text};
use crate::webhook::Client;

/// The webhooks of one configuration.
#[derive(Debug)]
pub(crate) struct Hooks {
    /// In the order of the configuration.
    pub(crate) list: Vec<Hook>,
}

/// One webhook.
#[derive(Debug)]
pub(crate) struct Hook {
    pub(crate) name: String,
    pub(crate) client: Client,
    pub(crate) criteria: Criteria,
    pub(crate) conditions: Conditions,
    /// Whether a request goes on when the webhook can't be asked.
    pub(crate) ignores_failure: bool,
    pub(crate) timeout: Duration,
    /// Whether it can be asked about what will not be written.
    pub(crate) takes_dry_run: bool,
    /// Whether it is asked again when others have changed the object since.
    pub(crate) again: bool,
    /// The version of reviews that it takes, if one is known.
    pub(crate) review: Option<&'static str>,
}

// === impl Hooks ===

impl Hooks {
    /// The webhooks of a stored configuration, read once.
    pub(crate) fn of(object: &Arc<Object>) -> Option<Arc<Self>> {
        let read = || -> Arc<dyn std::any::Any + Send + Sync> {
            let value = serde_json::from_slice::<Value>(&object.json()).unwrap_or_default();
            let list = items(&value, "webhooks").iter().map(Hook::of).collect();
            Arc::new(Self { list })
        };
        object.derived.get_or_init(read).clone().downcast().ok()
    }
}

// === impl Hook ===

impl Hook {
    fn of(webhook: &Value) -> Self {
        let versions = items(webhook, "admissionReviewVersions").iter().filter_map(Value::as_str);
        let known = |version| match version {
            "v1" => Some("v1"),
            "v1beta1" => Some("v1beta1"),
            _ => None,
        };
        let seconds = webhook.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(10);
        let ignores_failure = text(webhook, "failurePolicy") == "Ignore";
        Self {
            name: text(webhook, "name").to_owned(),
            client: Client::of(webhook.get("clientConfig").unwrap_or(&Value::Null)),
            criteria: Criteria::of_webhook(webhook),
            conditions: Conditions::of_webhook(items(webhook, "matchConditions"), ignores_failure),
            ignores_failure,
            timeout: Duration::from_secs(seconds.clamp(1, 30)),
            takes_dry_run: matches!(text(webhook, "sideEffects"), "None" | "NoneOnDryRun"),
            again: text(webhook, "reinvocationPolicy") == "IfNeeded",
            review: { versions }.find_map(known),
        }
    }
}
