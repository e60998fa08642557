//! `anyOf`, `oneOf`, `allOf` and `not`.
//!
//! Alternatives are tried without telling what is wrong with them. Only the one that matched most
//! is walked again to tell it, so that texts that nobody sees cost nothing.

use machinery::field::go_quote;
use serde_json::Value;

use super::super::node::{Facet, NodeData, NodeId};
use super::Values;

/// How one alternative did.
#[derive(Clone, Copy)]
struct Tried {
    id: NodeId,
    valid: bool,
    matched: u32,
}

// === impl Values ===

impl Values<'_> {
    /// Validates by all combinations; answers what matched.
    pub(super) fn combinations(&mut self, node: &NodeData, value: &Value) -> u32 {
        // Facets lie in upstream's order.
        node.facets.iter().fold(1, |matched, facet| {
            matched
                + match facet {
                    Facet::AnyOf(ids) => self.any_of(ids, value),
                    Facet::OneOf(ids) => self.one_of(ids, value),
                    Facet::AllOf(ids) => self.all_of(ids, value),
                    Facet::Not(id) => self.not(*id, value),
                    _ => 0,
                }
        })
    }

    fn any_of(&mut self, ids: &[NodeId], value: &Value) -> u32 {
        let mut best: Option<Tried> = None;
        for id in ids {
            let tried = self.try_alternative(*id, value);
            if tried.valid {
                return tried.matched;
            }
            if best.is_none_or(|best| tried.matched > best.matched) {
                best = Some(tried);
            }
        }
        self.plain(|v| format!("{} must validate at least one schema (anyOf)", go_quote(&v.path)));
        best.map_or(0, |best| self.tell(best, value))
    }

    fn one_of(&mut self, ids: &[NodeId], value: &Value) -> u32 {
        let mut best: Option<Tried> = None;
        let (mut valid, mut matched) = (0, 0);
        for id in ids {
            let tried = self.try_alternative(*id, value);
            if tried.valid {
                valid += 1;
                matched = if valid == 1 { tried.matched } else { matched };
            } else if best.is_none_or(|best| tried.matched > best.matched) {
                best = Some(tried);
            }
        }
        if valid == 1 {
            return matched;
        }
        self.plain(|v| {
            let found = match valid {
                0 => "Found none valid".to_owned(),
                n => format!("Found {n} valid alternatives"),
            };
            let path = go_quote(&v.path);
            format!("{path} must validate one and only one schema (oneOf). {found}")
        });
        best.filter(|_| valid == 0).map_or(0, |best| self.tell(best, value))
    }

    fn all_of(&mut self, ids: &[NodeId], value: &Value) -> u32 {
        let (mut valid, mut matched) = (0, 0);
        for id in ids {
            let failures = self.failures;
            matched += self.value(*id, value, None);
            valid += usize::from(self.failures == failures);
        }
        if valid != ids.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            self.plain(|v| {
                format!("{} must validate all the schemas (allOf){none}", go_quote(&v.path))
            });
        }
        matched
    }

    fn not(&mut self, id: NodeId, value: &Value) -> u32 {
        if self.try_alternative(id, value).valid {
            self.plain(|v| format!("{} must not validate the schema (not)", go_quote(&v.path)));
        }
        0
    }

    /// Validates by one alternative and tells nothing.
    fn try_alternative(&mut self, id: NodeId, value: &Value) -> Tried {
        let failures = self.failures;
        self.quiet += 1;
        let matched = self.value(id, value, None);
        self.quiet -= 1;
        let valid = self.failures == failures;
        self.failures = failures;
        Tried { id, valid, matched }
    }

    /// Tells what is wrong with an alternative that has been tried.
    fn tell(&mut self, tried: Tried, value: &Value) -> u32 {
        if self.quiet == 0 {
            self.value(tried.id, value, None);
        } else {
            self.failures += 1;
        }
        tried.matched
    }
}
