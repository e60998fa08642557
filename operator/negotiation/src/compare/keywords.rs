//! What two schemas say of the same values, keyword by keyword.

use super::Comparison;
use crate::kind::Kind;
use crate::node::{List, META, Node, canonical};
use crate::view::View;

// === impl Comparison ===

impl Comparison<'_> {
    pub(super) fn flags(&mut self, existing: &Node, new: &Node) {
        let yes = |on: bool| if on { "true" } else { "" }.to_owned();
        if existing.nullable && !new.nullable {
            let why = "null is not taken".to_owned();
            self.tell(true, "nullable", why, [yes(true), yes(false)]);
        }
        if existing.embedded != new.embedded {
            // A resource keeps its metadata where another object must say that it has some.
            let view = View::Node(new);
            let has_all = META.iter().all(|name| matches!(view.field(name), Some(View::Free)));
            let fits = existing.embedded && has_all;
            if !fits {
                let why = "one is a resource of its own, the other is not".to_owned();
                let keyword = "x-kubernetes-embedded-resource";
                self.tell(true, keyword, why, [yes(existing.embedded), yes(new.embedded)]);
            }
        }
    }

    /// Limits, enumerations, conditions and rules.
    pub(super) fn values(&mut self, existing: &Node, new: &Node) {
        self.limits(existing, new);
        if let Some(allowed) = &new.allowed {
            let text = |node: &Node| enumeration(node);
            let lacks = match &existing.allowed {
                None => Some("not every value is taken".to_owned()),
                Some(values) => {
                    let lost: Vec<&str> = { values.keys() }
                        .filter(|value| !allowed.contains_key(*value))
                        .map(String::as_str)
                        .collect();
                    (!lost.is_empty()).then(|| format!("not taken: {}", lost.join(", ")))
                }
            };
            if let Some(why) = lacks {
                self.tell(true, "enum", why, [text(existing), text(new)]);
            }
        }
        for condition in new.conditions.difference(&existing.conditions) {
            let own = || existing.conditions_of(&condition.keyword).map(|other| &*other.value);
            if condition.keyword == "multipleOf" && own().any(|own| divides(&condition.value, own))
            {
                continue;
            }
            if !self.report.has_room(true) {
                break;
            }
            let why = format!("not every value fulfils {}", condition.keyword);
            let own = own().collect::<Vec<_>>().join(", ");
            self.tell(true, &condition.keyword, why, [own, condition.value.clone()]);
        }
        for rule in new.rules.keys().filter(|rule| !existing.rules.contains_key(rule)) {
            if !self.report.has_room(true) {
                break;
            }
            let why = "not every value obeys the rule".to_owned();
            let says = [String::new(), rule.rule.clone()];
            self.tell(true, "x-kubernetes-validations", why, says);
        }
    }

    /// Rules in CEL say another thing of numbers with a fraction than of whole ones, and of sets than of
    /// lists.
    pub(super) fn judged(&mut self, existing: &Node, new: &Node) {
        let says = if existing.kind != new.kind {
            ("type", [existing.kind.name(), new.kind.name()].map(str::to_owned))
        } else if existing.list != new.list {
            ("x-kubernetes-list-type", [list_name(existing), list_name(new)])
        } else {
            return;
        };
        let (what, says) = says;
        let why = "the same rules in CEL mean another thing of it".to_owned();
        self.tell(true, what, why, says);
    }

    fn limits(&mut self, existing: &Node, new: &Node) {
        let bounds = [
            ("minimum", &existing.limits.minimum, &new.limits.minimum, 1.0),
            ("maximum", &existing.limits.maximum, &new.limits.maximum, -1.0),
        ];
        for (keyword, own, other, up) in bounds {
            let Some(limit) = other else { continue };
            if !own.as_ref().is_some_and(|own| own.implies(limit, up)) {
                let own = own.as_ref().map(crate::node::Bound::text).unwrap_or_default();
                let why = "not every number is in range".to_owned();
                self.tell(true, keyword, why, [own, limit.text()]);
            }
        }
        let (old, new) = (&existing.limits, &new.limits);
        let counts = { crate::node::LEAST.into_iter().zip(old.least).zip(new.least) }
            .map(|((keyword, own), other)| (keyword, own, other, 1))
            .chain(
                { crate::node::MOST.into_iter().zip(old.most).zip(new.most) }
                    .map(|((keyword, own), other)| (keyword, own, other, -1)),
            );
        for (keyword, own, other, up) in counts {
            let Some(limit) = other else { continue };
            let within = own.is_some_and(|own| if up > 0 { own >= limit } else { own <= limit });
            if !within {
                let own = own.map(|own| own.to_string()).unwrap_or_default();
                let why = "not every length or number of parts is taken".to_owned();
                self.tell(true, keyword, why, [own, limit.to_string()]);
            }
        }
    }

    /// What is filled in is taken to be valid where it is.
    pub(super) fn defaults(&mut self, existing: &Node, new: &Node) {
        let Some(default) = &new.default else { return };
        let own = existing.default.as_ref().map(canonical).unwrap_or_default();
        let says = [own, canonical(default)];
        if says[0] == says[1] {
            return;
        }
        let why = "another value is filled in where none is given".to_owned();
        self.tell(false, "default", why, says);
    }

    pub(super) fn lists(&mut self, existing: &Node, new: &Node) {
        let short = existing.limits.most[1].is_some_and(|most| most <= 1);
        let fits = match (&existing.list, &new.list) {
            (_, List::Atomic) | (List::Set, List::Set) => true,
            (List::Map(own), List::Map(keys)) => own == keys,
            (_, List::Set) => short,
            (_, List::Map(_)) => false,
        };
        if !fits {
            let why = "items may be equal where they must not be".to_owned();
            let says = [list_name(existing), list_name(new)];
            self.tell(true, "x-kubernetes-list-type", why, says);
        }
    }
}

/// Whether one factor is a whole multiple of the other.
fn divides(factor: &str, own: &str) -> bool {
    match (factor.parse::<i64>(), own.parse::<i64>()) {
        (Ok(factor), Ok(own)) => factor > 0 && own % factor == 0,
        _ => false,
    }
}

pub(crate) fn enumeration(node: &Node) -> String {
    let values = node.allowed.iter().flatten().map(|(text, _)| text.as_str());
    values.collect::<Vec<_>>().join(", ")
}

pub(crate) fn list_name(node: &Node) -> String {
    match &node.list {
        _ if node.kind != Kind::ARRAY => String::new(),
        List::Atomic => "atomic".to_owned(),
        List::Set => "set".to_owned(),
        List::Map(keys) => {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            format!("map of {}", keys.join(", "))
        }
    }
}
