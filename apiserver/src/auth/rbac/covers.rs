//! Whether the rights that somebody holds include those that they want to give.

use std::cell::Cell;
use std::collections::BTreeMap;

use super::rule::{Rule, has, holds, url_covers};

/// Parts that are looked for at most: a role has them by the product of its lists, and who lacks so
/// many rights needs no complete list of them.
const MAX_PARTS: usize = 100_000;

/// Texts that are looked at, at most: some tenths of a second. What is not found by then counts as
/// not held.
const MAX_WORK: usize = 100_000_000;

/// The smallest parts of `wanted` that none of `held` includes; none if all rights are held.
///
/// A wildcard is included by the same wildcard only, or one that is wider.
pub(crate) fn uncovered<'h, 'w>(
    held: impl Iterator<Item = &'h Rule>,
    wanted: impl Iterator<Item = &'w Rule>,
) -> Vec<Rule> {
    let held: Vec<&Rule> = held.collect();
    let mut missing = Vec::new();
    let mut left = MAX_PARTS;
    let work = Work(Cell::new(MAX_WORK));
    for rule in wanted {
        // A rule that one of ours includes whole, as one of an administrator does, is not taken apart.
        if held.iter().any(|ours| work.covers_whole(ours, rule)) {
            continue;
        }
        for part in Parts::of(rule) {
            let next = left.checked_sub(1).filter(|_| !work.is_done());
            let Some(next) = next else {
                missing.push(rule.clone());
                return missing;
            };
            left = next;
            if !held.iter().any(|ours| work.covers(ours, &part)) {
                missing.push(part.rule());
            }
        }
    }
    missing
}

/// Joins the verbs of rules for the same resource, and puts all rules into the order in which they
/// are told.
pub(crate) fn compact(rules: Vec<Rule>) -> Vec<String> {
    // Verbs by the rule without them.
    let mut simple: BTreeMap<Rule, Vec<Box<str>>> = BTreeMap::new();
    let mut texts = Vec::new();
    for mut rule in rules {
        let is_simple = rule.non_resource_urls.is_empty()
            && rule.resource_names.len() <= 1
            && rule.api_groups.len() == 1
            && rule.resources.len() == 1;
        if is_simple {
            let verbs = std::mem::take(&mut rule.verbs);
            simple.entry(rule).or_default().extend(verbs);
        } else {
            texts.push(rule.printed());
        }
    }
    texts.extend(
        simple.into_iter().map(|(rule, verbs)| Rule { verbs: verbs.into(), ..rule }.printed()),
    );
    texts.sort();
    texts.dedup();
    texts
}

/// One verb on one resource, or one object of it, or on one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part<'r> {
    Resource { verb: &'r str, group: &'r str, resource: &'r str, name: Option<&'r str> },
    Path { verb: &'r str, url: &'r str },
}

struct Parts;

/// How many more texts may be looked at.
struct Work(Cell<usize>);

// === impl Parts ===

impl Parts {
    /// What a rule is made of. A rule without verbs, groups or resources gives nothing.
    fn of(rule: &Rule) -> impl Iterator<Item = Part<'_>> {
        let texts = |list: &'_ [Box<str>]| 0..list.len();
        let resources = texts(&rule.api_groups).flat_map(move |group| {
            texts(&rule.resources).flat_map(move |resource| {
                texts(&rule.verbs).flat_map(move |verb| {
                    // Without names there is one part for all objects.
                    (0..rule.resource_names.len().max(1)).filter_map(move |name| {
                        Some(Part::Resource {
                            verb: rule.verbs.get(verb)?,
                            group: rule.api_groups.get(group)?,
                            resource: rule.resources.get(resource)?,
                            name: rule.resource_names.get(name).map(|name| &**name),
                        })
                    })
                })
            })
        });
        let paths = rule.non_resource_urls.iter();
        let paths =
            paths.flat_map(|url| rule.verbs.iter().map(move |verb| Part::Path { verb, url }));
        resources.chain(paths)
    }
}

// === impl Part ===

impl Part<'_> {
    fn rule(&self) -> Rule {
        let one = |text: &str| Box::from([Box::from(text)]);
        match *self {
            Self::Path { verb, url } => {
                Rule { verbs: one(verb), non_resource_urls: one(url), ..Rule::default() }
            }
            Self::Resource { verb, group, resource, name } => Rule {
                verbs: one(verb),
                api_groups: one(group),
                resources: one(resource),
                resource_names: name.map(one).unwrap_or_default(),
                ..Rule::default()
            },
        }
    }
}

// === impl Work ===

impl Work {
    fn is_done(&self) -> bool {
        self.0.get() == 0
    }

    /// Whether one of a list, which may be long, is what is looked for.
    fn any(&self, list: &[Box<str>], found: impl FnOnce() -> bool) -> bool {
        let left = self.0.get().saturating_sub(list.len() + 1);
        self.0.set(left);
        left > 0 && found()
    }

    fn has(&self, list: &[Box<str>], text: &str) -> bool {
        self.any(list, || has(list, text))
    }

    fn holds(&self, list: &[Box<str>], text: &str) -> bool {
        self.any(list, || holds(list, text))
    }

    fn has_resource(&self, list: &[Box<str>], resource: &str) -> bool {
        self.any(list, || has_resource(list, resource))
    }

    fn has_url(&self, list: &[Box<str>], url: &str) -> bool {
        self.any(list, || list.iter().any(|held| url_covers(held, url)))
    }

    fn covers(&self, ours: &Rule, part: &Part<'_>) -> bool {
        match *part {
            Part::Path { verb, url } => {
                self.has(&ours.verbs, verb)
                    && ours.resource_names.is_empty()
                    && self.has_url(&ours.non_resource_urls, url)
            }
            Part::Resource { verb, group, resource, name } => {
                self.has(&ours.verbs, verb)
                    && self.has(&ours.api_groups, group)
                    && self.has_resource(&ours.resources, resource)
                    && (ours.resource_names.is_empty()
                        || name.is_some_and(|name| self.holds(&ours.resource_names, name)))
            }
        }
    }

    /// Whether each part of a rule is included by one and the same of ours.
    fn covers_whole(&self, ours: &Rule, rule: &Rule) -> bool {
        let names = || {
            let wanted = &rule.resource_names;
            let none = rule.resources.is_empty() || rule.api_groups.is_empty();
            none || ours.resource_names.is_empty()
                || (!wanted.is_empty()
                    && wanted.iter().all(|name| self.holds(&ours.resource_names, name)))
        };
        let urls = &rule.non_resource_urls;
        rule.verbs.iter().all(|verb| self.has(&ours.verbs, verb))
            && rule.api_groups.iter().all(|group| self.has(&ours.api_groups, group))
            && rule.resources.iter().all(|name| self.has_resource(&ours.resources, name))
            && names()
            && urls.iter().all(|url| self.has_url(&ours.non_resource_urls, url))
    }
}

/// Whether a list has a resource, `*`, or `*/sub` for a subresource.
fn has_resource(list: &[Box<str>], resource: &str) -> bool {
    let sub = resource.split_once('/').map(|(_, sub)| sub);
    list.iter().any(|held| {
        matches!(&**held, "*")
            || **held == *resource
            || sub.is_some_and(|sub| held.strip_prefix("*/") == Some(sub))
    })
}

#[cfg(test)]
mod tests;
