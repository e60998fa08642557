//! `anyOf`, `oneOf`, `allOf` and `not`.

use machinery::FieldError;
use machinery::field::go_quote;
use serde_json::Value;

use super::super::node::{Facet, NodeData, NodeId};
use super::Values;

/// What one alternative said.
struct Said {
    problems: Vec<FieldError>,
    failures: usize,
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
        let mut best: Option<Said> = None;
        for id in ids {
            let said = self.alternative(*id, value);
            if said.failures == 0 {
                return said.matched;
            }
            if best.as_ref().is_none_or(|best| said.matched > best.matched) {
                best = Some(said);
            }
        }
        let path = go_quote(&self.path);
        self.plain(&format!("{path} must validate at least one schema (anyOf)"));
        best.map_or(0, |said| self.tell(said))
    }

    fn one_of(&mut self, ids: &[NodeId], value: &Value) -> u32 {
        let mut best: Option<Said> = None;
        let (mut valid, mut matched) = (0, 0);
        for id in ids {
            let said = self.alternative(*id, value);
            if said.failures == 0 {
                valid += 1;
                matched = if valid == 1 { said.matched } else { matched };
            } else if best.as_ref().is_none_or(|best| said.matched > best.matched) {
                best = Some(said);
            }
        }
        if valid == 1 {
            return matched;
        }
        let path = go_quote(&self.path);
        let found = match valid {
            0 => "Found none valid".to_owned(),
            n => format!("Found {n} valid alternatives"),
        };
        self.plain(&format!("{path} must validate one and only one schema (oneOf). {found}"));
        best.filter(|_| valid == 0).map_or(0, |said| self.tell(said))
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
            let path = go_quote(&self.path);
            self.plain(&format!("{path} must validate all the schemas (allOf){none}"));
        }
        matched
    }

    fn not(&mut self, id: NodeId, value: &Value) -> u32 {
        let failures = self.failures;
        self.quiet += 1;
        self.value(id, value, None);
        self.quiet -= 1;
        let valid = self.failures == failures;
        self.failures = failures;
        if valid {
            let path = go_quote(&self.path);
            self.plain(&format!("{path} must not validate the schema (not)"));
        }
        0
    }

    /// Validates by one alternative, apart from the rest.
    fn alternative(&mut self, id: NodeId, value: &Value) -> Said {
        let outer = std::mem::take(&mut self.problems);
        let failures = std::mem::take(&mut self.failures);
        let matched = self.value(id, value, None);
        let problems = std::mem::replace(&mut self.problems, outer);
        let said = Said { problems, failures: self.failures, matched };
        self.failures = failures;
        said
    }

    fn tell(&mut self, said: Said) -> u32 {
        self.failures += said.failures;
        let room = super::MAX_PROBLEMS.saturating_sub(self.problems.len());
        self.problems.extend(said.problems.into_iter().take(room));
        said.matched
    }
}
