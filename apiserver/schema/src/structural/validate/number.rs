//! Limits of numbers.

use serde_json::Number;

use super::super::format::Format;
use super::super::node::{Bound, Facet, Flags, Kind, NodeData};
use super::super::print;
use super::Values;
use super::types::is_json_integer;

/// A number as Go's decoder makes it.
#[derive(Clone, Copy)]
enum Go {
    Int(i64),
    Float(f64),
}

// === impl Values ===

impl Values<'_> {
    pub(super) fn number(&mut self, node: &NodeData, number: &Number) {
        let float = number.as_f64().unwrap_or_default();
        let go = print::integer(number).map_or(Go::Float(float), Go::Int);
        self.in_range(node, go, "Checked");
        for facet in &node.facets {
            match facet {
                Facet::MultipleOf(factor) => {
                    let native = self.in_range(node, Go::Float(*factor), "MultipleOf");
                    self.multiple(if native { go } else { Go::Float(float) }, *factor);
                }
                Facet::Minimum(bound) => {
                    let native = self.in_range(node, Go::Float(bound.value), "Minimum boundary");
                    let go = if native { go } else { Go::Float(float) };
                    if is_outside(go, *bound, |value, limit| value < limit, |v, l| v < l) {
                        let words = ["greater than or equal to", "greater than"];
                        self.outside(go, *bound, words);
                    }
                }
                Facet::Maximum(bound) => {
                    let native = self.in_range(node, Go::Float(bound.value), "Maximum boundary");
                    let go = if native { go } else { Go::Float(float) };
                    if is_outside(go, *bound, |value, limit| value > limit, |v, l| v > l) {
                        self.outside(go, *bound, ["less than or equal to", "less than"]);
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether a number or a limit of numbers is one of the node's type; says so if not.
    fn in_range(&mut self, node: &NodeData, number: Go, what: &str) -> bool {
        let typed = !node.has(Flags::INT_OR_STRING) || self.as_default;
        let Some(kind) = node.kind.filter(|_| typed) else { return true };
        let format = node.facets.iter().find_map(|facet| match facet {
            Facet::Format(format, _) => Some(*format),
            _ => None,
        });
        let fits = match (kind, format, number) {
            (Kind::Integer, Some(Format::Int32), Go::Int(n)) => i32::try_from(n).is_ok(),
            (Kind::Integer, _, Go::Int(_)) => true,
            (Kind::Integer, Some(Format::Int32), Go::Float(f)) => {
                f.trunc() == f && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&f)
            }
            (Kind::Integer, _, Go::Float(f)) => f.trunc() == f && (-TWO_63..TWO_63).contains(&f),
            (Kind::Number, Some(Format::Float), Go::Float(f)) => (f as f32).is_finite(),
            _ => true,
        };
        if !fits {
            let with = match format {
                Some(Format::Int32) => "with format int32",
                Some(Format::Int64) => "with format int64",
                Some(Format::Float) => "with format float",
                _ => "(default format)",
            };
            self.plain(|v| {
                format!("{what} value must be of type {} {with} in {}", kind.as_str(), v.path)
            });
        }
        fits
    }

    fn multiple(&mut self, number: Go, factor: f64) {
        let (positive, divides, factor) = match number {
            Go::Int(n) => {
                let factor = factor as i64;
                (factor > 0, factor > 0 && n % factor == 0, Go::Int(factor))
            }
            Go::Float(f) => {
                let times = if factor < 1.0 { 1.0 / factor * f } else { f / factor };
                (factor > 0.0, is_json_integer(times), Go::Float(factor))
            }
        };
        if !positive {
            self.push(|v| {
                let text = factor.text();
                let path = &v.path;
                let why = format!("factor MultipleOf declared for {path} must be positive: {text}");
                v.error(machinery::FieldErrorKind::Invalid, text, why)
            });
        } else if !divides {
            self.invalid(|| number.text(), || format!("should be a multiple of {}", factor.text()));
        }
    }

    fn outside(&mut self, number: Go, bound: Bound, words: [&str; 2]) {
        let limit = match number {
            Go::Int(_) => Go::Int(bound.value as i64),
            Go::Float(_) => Go::Float(bound.value),
        };
        let [including, excluding] = words;
        let words = if bound.exclusive { excluding } else { including };
        self.invalid(|| number.text(), || format!("should be {words} {}", limit.text()));
    }
}

const TWO_63: f64 = 9_223_372_036_854_775_808.0;

/// Integers are compared with the whole part of a limit.
fn is_outside(
    number: Go,
    bound: Bound,
    ints: fn(i64, i64) -> bool,
    floats: fn(f64, f64) -> bool,
) -> bool {
    match number {
        Go::Int(n) => {
            let limit = bound.value as i64;
            ints(n, limit) || (bound.exclusive && n == limit)
        }
        Go::Float(f) => floats(f, bound.value) || (bound.exclusive && f == bound.value),
    }
}

// === impl Go ===

impl Go {
    fn text(self) -> String {
        match self {
            Self::Int(n) => n.to_string(),
            Self::Float(f) => print::float(f),
        }
    }
}
