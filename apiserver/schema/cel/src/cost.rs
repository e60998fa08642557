//! Cost: what an evaluation may take, estimated before, and what its steps take.
//!
//! The unit is upstream's (about 50 ns), and so are all numbers: the estimate decides which rules a
//! custom resource may have, and the actual cost when an evaluation ends.

mod actual;
mod estimate;
mod functions;
mod library;

use crate::decl::DeclType;
use crate::types::Type;

pub(crate) use actual::actual_cost;
pub(crate) use estimate::estimate;

/// Cost of reading a string once, for each character.
pub(crate) const TRAVERSAL: f64 = 0.1;
/// Cost of a pattern, for each of its characters and each unit of the text.
pub(crate) const REGEX: f64 = 0.25;
/// Cost of an authorization check: two fit in one expression.
pub(crate) const CHECK: u64 = 350_000;
/// Base cost of a selector, and cost of each of its requirements.
pub(crate) const SELECTOR: u64 = 10;
pub(crate) const REQUIREMENT: f64 = 50.0;

/// Least and most that an evaluation costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CostEstimate {
    pub min: u64,
    pub max: u64,
}

/// Least and most elements, characters or bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeEstimate {
    pub min: u64,
    pub max: u64,
}

/// Knows how large inputs are.
pub trait SizeEstimator {
    /// The size of what `path` leads to, or none if it isn't known. The first step is a variable, the
    /// others are names of fields, `@items`, `@keys` and `@values`.
    fn size(&self, path: &[&str], ty: &Type) -> Option<SizeEstimate>;
}

/// Sizes from the declared type of `self`; `oldSelf` has the same.
#[derive(Debug, Clone, Copy)]
pub struct DeclaredSizes<'d>(pub &'d DeclType);

impl SizeEstimator for DeclaredSizes<'_> {
    fn size(&self, path: &[&str], _: &Type) -> Option<SizeEstimate> {
        let mut decl = self.0;
        for step in path.get(1..)? {
            decl = decl.part_of(step)?;
        }
        Some(SizeEstimate { min: 0, max: decl.max_elements() })
    }
}

/// Sizes of which nothing is known.
#[derive(Debug, Clone, Copy)]
pub struct UnknownSizes;

impl SizeEstimator for UnknownSizes {
    fn size(&self, _: &[&str], _: &Type) -> Option<SizeEstimate> {
        None
    }
}

/// `size` times `factor`, rounded up.
pub(crate) fn scale(size: u64, factor: f64) -> u64 {
    // A float that is too large becomes the largest number, as upstream's rule says.
    (size as f64 * factor).ceil() as u64
}

impl CostEstimate {
    pub(crate) const fn fixed(cost: u64) -> Self {
        Self { min: cost, max: cost }
    }

    pub(crate) const fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(crate) const fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    pub(crate) fn scaled(self, factor: f64) -> Self {
        Self { min: scale(self.min, factor), max: scale(self.max, factor) }
    }

    pub(crate) fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

impl SizeEstimate {
    pub(crate) const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    pub(crate) const fn fixed(size: u64) -> Self {
        Self { min: size, max: size }
    }

    pub(crate) const fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(crate) const fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    pub(crate) const fn times_cost(self, cost: CostEstimate) -> CostEstimate {
        CostEstimate {
            min: self.min.saturating_mul(cost.min),
            max: self.max.saturating_mul(cost.max),
        }
    }

    pub(crate) fn scaled(self, factor: f64) -> CostEstimate {
        CostEstimate { min: scale(self.min, factor), max: scale(self.max, factor) }
    }

    pub(crate) fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    pub(crate) const fn as_cost(self) -> CostEstimate {
        CostEstimate { min: self.min, max: self.max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_saturate() {
        assert_eq!(scale(u64::MAX, 0.1), 1_844_674_407_370_955_264);
        assert_eq!(scale(u64::MAX, 2.0), u64::MAX);
        assert_eq!(scale(1, 0.1), 1);
        assert_eq!(scale(0, 0.1), 0);
        assert_eq!(SizeEstimate::UNKNOWN.plus(SizeEstimate::fixed(1)).max, u64::MAX);
    }
}
