//! Keywords that say which values are valid, and the value that is filled in.

use std::collections::BTreeMap;

use super::Merger;
use crate::compare::keywords::enumeration;
use crate::node::{Bound, Limits, Node, canonical, is_before};
use crate::view::View;

/// Conditions of which a schema may have several, in its `allOf`.
const REPEATABLE: [&str; 7] = ["allOf", "anyOf", "format", "multipleOf", "not", "oneOf", "pattern"];

// === impl Merger ===

impl Merger<'_> {
    pub(super) fn values(
        &mut self,
        made: &mut Node,
        views: &[View<'_>],
        nodes: &[&Node],
    ) -> Option<()> {
        self.limits(made, views, nodes)?;
        self.enumeration(made, views, nodes)?;
        self.conditions(made, views, nodes)?;
        self.rules(made, views, nodes);
        self.default(made, views);
        Some(())
    }

    fn limits(&mut self, made: &mut Node, views: &[View<'_>], nodes: &[&Node]) -> Option<()> {
        let narrowest = |of: fn(&Limits) -> &Option<Bound>, up: f64| {
            let bounds = nodes.iter().filter_map(|node| of(&node.limits).clone());
            bounds.reduce(|one, other| one.narrower(other, up))
        };
        let mut limits = Limits {
            minimum: narrowest(|limits| &limits.minimum, 1.0),
            maximum: narrowest(|limits| &limits.maximum, -1.0),
            ..Limits::default()
        };
        for at in 0..3 {
            let of = |pick: fn(&Limits) -> &[Option<i64>; 3]| {
                nodes.iter().filter_map(move |node| *pick(&node.limits).get(at)?)
            };
            if let Some(least) = limits.least.get_mut(at) {
                *least = of(|limits| &limits.least).max();
            }
            if let Some(most) = limits.most.get_mut(at) {
                *most = of(|limits| &limits.most).min();
            }
        }
        let bounds = [
            (
                "minimum",
                &limits.minimum,
                (|limits| &limits.minimum) as fn(&Limits) -> &Option<Bound>,
                1.0,
            ),
            ("maximum", &limits.maximum, |limits| &limits.maximum, -1.0),
        ];
        for (keyword, narrowest, of, up) in bounds {
            let Some(narrowest) = narrowest else { continue };
            let mut all = nodes.iter().filter_map(|node| of(&node.limits).as_ref());
            if !all.all(|bound| narrowest.implies(bound, up)) {
                let text = |view: &View<'_>| {
                    view.node().map(|node| node.limits.text(keyword)).unwrap_or_default()
                };
                return self.clash(keyword, "limits with fractions differ", views, text);
            }
        }
        if let Some((low, high)) = limits.contradiction() {
            let text = |view: &View<'_>| {
                let limits = view.node().map(|node| &node.limits);
                limits
                    .map(|limits| format!("{} to {}", limits.text(low), limits.text(high)))
                    .unwrap_or_default()
            };
            return self.clash(low, "no value is within the limits of all", views, text);
        }
        for keyword in Limits::KEYWORDS {
            if nodes.iter().any(|node| node.limits.text(keyword) != limits.text(keyword)) {
                let text = |view: &View<'_>| {
                    view.node().map(|node| node.limits.text(keyword)).unwrap_or_default()
                };
                let why = "the narrowest limit counts".to_owned();
                self.note(keyword, why, views, text);
            }
        }
        made.limits = limits;
        Some(())
    }

    fn enumeration(&mut self, made: &mut Node, views: &[View<'_>], nodes: &[&Node]) -> Option<()> {
        let text = |view: &View<'_>| view.node().map(enumeration).unwrap_or_default();
        let mut all = nodes.iter().filter_map(|node| node.allowed.as_ref());
        let Some(first) = all.next() else { return Some(()) };
        let mut common = first.clone();
        all.for_each(|other| common.retain(|value, _| other.contains_key(value)));
        if common.is_empty() {
            return self.clash("enum", "no value is allowed by all", views, text);
        }
        let differs = |node: &&Node| {
            node.allowed.as_ref().is_none_or(|allowed| allowed.len() != common.len())
        };
        if nodes.iter().any(differs) {
            let why = "only values that all allow are taken".to_owned();
            self.note("enum", why, views, text);
        }
        // Equal values may be written in several ways.
        let written = nodes.iter().filter_map(|node| node.allowed.as_ref());
        for (text, value) in written.flatten() {
            if let Some(kept) = common.get_mut(text)
                && is_before(value, kept)
            {
                *kept = value.clone();
            }
        }
        made.allowed = Some(common);
        Some(())
    }

    fn conditions(&mut self, made: &mut Node, views: &[View<'_>], nodes: &[&Node]) -> Option<()> {
        let all = nodes.iter().flat_map(|node| &node.conditions);
        made.conditions = all.cloned().collect();
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for condition in &made.conditions {
            *seen.entry(&*condition.keyword).or_default() += 1;
        }
        let several = seen.iter().find(|(keyword, n)| **n > 1 && !REPEATABLE.contains(*keyword));
        let says = |view: &View<'_>, keyword: &str| {
            let own = view.node().into_iter().flat_map(|node| node.conditions_of(keyword));
            own.map(|condition| &*condition.value).collect::<Vec<_>>().join(", ")
        };
        if let Some((keyword, _)) = several {
            let keyword = (*keyword).to_owned();
            let why = "nobody knows what has both values";
            return self.clash(&keyword, why, views, |view| says(view, &keyword));
        }
        let keywords: Vec<String> = seen.into_keys().map(str::to_owned).collect();
        for keyword in keywords {
            let first = views.first().map(|view| says(view, &keyword));
            if views.iter().any(|view| Some(says(view, &keyword)) != first) {
                let why = "the conditions of all must hold".to_owned();
                self.note(&keyword, why, views, |view| says(view, &keyword));
            }
        }
        Some(())
    }

    fn rules(&mut self, made: &mut Node, views: &[View<'_>], nodes: &[&Node]) {
        for (rule, entry) in nodes.iter().flat_map(|node| &node.rules) {
            let kept = made.rules.entry(rule.clone()).or_insert_with(|| entry.clone());
            if is_before(entry, kept) {
                *kept = entry.clone();
            }
        }
        let texts = |view: &View<'_>| {
            let rules = view.node().map(|node| &node.rules).into_iter().flatten();
            rules.map(|(rule, _)| &*rule.rule).collect::<Vec<_>>().join("; ")
        };
        if nodes.iter().any(|node| node.rules.len() != made.rules.len()) {
            let why = "the rules of all must hold".to_owned();
            self.note("x-kubernetes-validations", why, views, texts);
        }
    }

    /// What all fill in alike. Where they don't, each cluster fills in its own.
    fn default(&mut self, made: &mut Node, views: &[View<'_>]) {
        fn own<'n>(view: &View<'n>) -> Option<&'n serde_json::Value> {
            view.node().and_then(|node| node.default.as_ref())
        }
        let text = |view: &View<'_>| own(view).map(canonical).unwrap_or_default();
        let Some(first) = views.first() else { return };
        let first = text(first);
        if views.iter().all(|view| text(view) == first) {
            // Equal values may be written in several ways.
            let values = views.iter().filter_map(own);
            made.default = values.min_by_key(|value| value.to_string()).cloned();
        } else {
            let why = "the hub fills in nothing, and each cluster its own".to_owned();
            self.note("default", why, views, text);
        }
    }
}
