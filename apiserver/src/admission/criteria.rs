//! Which requests something is about: selectors and rules.

use machinery::selector::LabelSelector;
use machinery::{Gvk, Gvr};
use serde_json::Value;

use super::rules::Rule;
use super::{Attributes, Objects, Operation, items, text};

/// Selectors and rules, as webhooks and policies have them alike.
#[derive(Debug)]
pub(crate) struct Criteria {
    namespaces: Result<LabelSelector, String>,
    objects: Result<LabelSelector, String>,
    rules: Box<[Rule]>,
    excluded: Box<[Rule]>,
    /// Whether no rules mean every request: so for bindings.
    open: bool,
    equivalent: bool,
}

/// Whether and as what a request matches.
#[derive(Debug)]
pub(crate) enum Matched {
    /// It does not.
    No,
    /// It does, as this resource and kind.
    As(Box<(Gvr, Gvk)>),
    /// It would, but a selector can't be used, in words.
    Broken(String),
}

// === impl Criteria ===

impl Criteria {
    /// The criteria of a webhook.
    pub(super) fn of_webhook(webhook: &Value) -> Self {
        Self::of(webhook, items(webhook, "rules"), &[], false)
    }

    /// `matchConstraints` of a policy, or `matchResources` of a binding, which may be absent.
    pub(super) fn of_policy(matched: &Value, open: bool) -> Self {
        let (rules, excluded) =
            (items(matched, "resourceRules"), items(matched, "excludeResourceRules"));
        Self::of(matched, rules, excluded, open)
    }

    fn of(source: &Value, rules: &[Value], excluded: &[Value], open: bool) -> Self {
        let selector = |field: &str| match source.get(field).filter(|value| !value.is_null()) {
            None => Ok(LabelSelector::everything()),
            Some(value) => LabelSelector::from_value(value).map_err(|error| error.to_string()),
        };
        Self {
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
            rules: rules.iter().map(Rule::of).collect(),
            excluded: excluded.iter().map(Rule::of).collect(),
            open,
            equivalent: text(source, "matchPolicy") != "Exact",
        }
    }

    /// Whether a request matches. Selectors that can't be used count only where the rules match.
    pub(crate) fn matches(&self, attributes: &Attributes, objects: &Objects) -> Matched {
        let mut broken = None;
        match self.namespace_matches(attributes, objects) {
            Ok(true) => {}
            Ok(false) => return Matched::No,
            Err(why) => broken = Some(why),
        }
        match self.object_matches(objects) {
            Ok(true) => {}
            Ok(false) => return Matched::No,
            Err(why) => broken = broken.or(Some(why)),
        }
        if self.by_rules(&self.excluded, attributes).is_some() {
            return Matched::No;
        }
        let found = if self.rules.is_empty() && self.open {
            Some((attributes.resource.clone(), attributes.kind.clone()))
        } else {
            self.by_rules(&self.rules, attributes)
        };
        match (found, broken) {
            (None, _) => Matched::No,
            (Some(_), Some(why)) => Matched::Broken(why),
            (Some(found), None) => Matched::As(Box::new(found)),
        }
    }

    fn by_rules(&self, rules: &[Rule], attributes: &Attributes) -> Option<(Gvr, Gvk)> {
        let own = (&attributes.resource, &attributes.kind);
        let others = attributes.equivalents.iter().map(|(resource, kind)| (resource, kind));
        let others = others.filter(|_| self.equivalent).collect::<Vec<_>>();
        if rules.iter().any(|rule| rule.matches(attributes, own.0)) {
            return Some((own.0.clone(), own.1.clone()));
        }
        // Earlier rules come first.
        let mut found = rules.iter().flat_map(|rule| others.iter().map(move |other| (rule, other)));
        let (_, (resource, kind)) =
            found.find(|(rule, other)| rule.matches(attributes, other.0))?;
        Some(((*resource).clone(), (*kind).clone()))
    }

    fn namespace_matches(
        &self,
        attributes: &Attributes,
        objects: &Objects,
    ) -> Result<bool, String> {
        if attributes.namespace.is_empty() && !attributes.is_namespace() {
            return Ok(true);
        }
        let selector = self.namespaces.as_ref().map_err(Clone::clone)?;
        if selector.is_empty() && !selector.is_nothing() {
            return Ok(true);
        }
        let changed = matches!(attributes.operation, Operation::Create | Operation::Update);
        if attributes.is_namespace() && attributes.subresource.is_empty() && changed {
            return Ok(objects.new.as_ref().is_some_and(|object| selects(selector, object)));
        }
        match &attributes.in_namespace {
            Some(namespace) => Ok(selector.matches(|key| namespace.header.label(key))),
            None => Ok(selector.matches(|_| None)),
        }
    }

    fn object_matches(&self, objects: &Objects) -> Result<bool, String> {
        let selector = self.objects.as_ref().map_err(Clone::clone)?;
        if selector.is_empty() && !selector.is_nothing() {
            return Ok(true);
        }
        let sides = [&objects.new, &objects.old];
        Ok(sides.into_iter().flatten().any(|object| selects(selector, object)))
    }
}

fn selects(selector: &LabelSelector, object: &Value) -> bool {
    let labels = object.pointer("/metadata/labels");
    selector.matches(|key| labels?.get(key)?.as_str())
}
