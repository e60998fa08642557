//! What a version of a type is in a logical cluster, and who can take its objects: pure.

use std::collections::BTreeMap;

use crds::UpdateStrategy;
use negotiation::{Agreement, Difference, Type, agree, differences};

/// What a target has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'a> {
    /// What the target is called here.
    pub(super) target: &'a str,
    /// Since when (RFC 3339) it has the type.
    pub(super) since: &'a str,
    /// The type.
    pub(super) ty: &'a Type,
}

/// Who says what the type is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Standing<'a> {
    /// Somebody else; with what they say, if they have this version.
    Enforced(Option<&'a Type>),
    /// It is published, as this.
    Published(&'a Type),
    /// It isn't published; with what was negotiated before.
    Unpublished(Option<&'a Type>),
}

/// What came out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Decision {
    /// The type; `None` where there is none.
    pub(super) ty: Option<Type>,
    /// A type that takes less than what is published, for which stored objects must be looked at.
    pub(super) narrower: Option<Type>,
    /// What there is between the type and each target's, by target; blocking ones first.
    pub(super) verdicts: BTreeMap<String, Vec<Difference>>,
    /// How the targets differ from each other.
    pub(super) differences: Vec<Difference>,
}

/// How reports call the hub.
const HUB: &str = "hub";

/// Decides.
pub(super) fn decide(
    standing: Standing<'_>,
    strategy: UpdateStrategy,
    candidates: &[Candidate<'_>],
) -> Decision {
    let base = match standing {
        Standing::Enforced(None) => {
            let lacks = Difference {
                blocking: true,
                path: String::new(),
                what: "version".to_owned(),
                message: "the hub's own type does not have this version".to_owned(),
                said: Vec::new(),
            };
            let verdicts = candidates.iter().map(|c| (c.target.to_owned(), vec![lacks.clone()]));
            return Decision { verdicts: verdicts.collect(), ..Decision::default() };
        }
        Standing::Enforced(Some(ty)) => return Decision::new(Some(ty.clone()), None, candidates),
        Standing::Published(ty) => Some(ty),
        Standing::Unpublished(before) => before.filter(|_| strategy == UpdateStrategy::UpdateNever),
    };
    let Some(base) = base else {
        let agreement = together(candidates.iter());
        let left = agreement.left;
        let mut decision = Decision::new(agreement.merged, None, candidates);
        // Of who couldn't agree, the whole report tells who says what.
        decision.verdicts.extend(left.into_iter().map(|left| (left.target, left.differences)));
        decision.differences = agreement.differences;
        return decision;
    };
    if strategy == UpdateStrategy::UpdateNever {
        return Decision::new(Some(base.clone()), None, candidates);
    }
    let all = together(candidates.iter());
    if strategy == UpdateStrategy::UpdatePublished
        && let Some(merged) = &all.merged
        && !fits(base, merged)
    {
        let narrower = all.merged;
        return Decision::new(Some(base.clone()), narrower, candidates);
    }
    // What takes at least what is taken now.
    let wide = candidates.iter().filter(|candidate| fits(base, candidate.ty));
    let agreement = together(wide);
    let wider = agreement.merged.filter(|merged| fits(base, merged));
    let ty = wider.unwrap_or_else(|| base.clone());
    let mut decision = Decision::new(Some(ty), None, candidates);
    decision.differences = agreement.differences;
    decision
}

/// What candidates have in common.
fn together<'c, 'a: 'c>(candidates: impl Iterator<Item = &'c Candidate<'a>>) -> Agreement {
    let inputs: Vec<_> = candidates.map(|c| (c.target, c.since, c.ty)).collect();
    agree(&inputs)
}

/// Whether objects of one type are objects of another.
fn fits(existing: &Type, new: &Type) -> bool {
    !differences(existing, new, [HUB, ""]).iter().any(|difference| difference.blocking)
}

/// Whether nothing in a list keeps objects from being exchanged.
pub(super) fn is_compatible(differences: &[Difference]) -> bool {
    !differences.iter().any(|difference| difference.blocking)
}

// === impl Decision ===

impl Decision {
    fn new(ty: Option<Type>, narrower: Option<Type>, candidates: &[Candidate<'_>]) -> Self {
        let verdict = |candidate: &Candidate<'_>| {
            let list = match &ty {
                Some(ty) => differences(ty, candidate.ty, [HUB, candidate.target]),
                None => Vec::new(),
            };
            (candidate.target.to_owned(), list)
        };
        let verdicts = candidates.iter().map(verdict).collect();
        Self { ty, narrower, verdicts, differences: Vec::new() }
    }

    /// The decision if the narrower type takes the place of the published one.
    pub(super) fn narrowed(self, candidates: &[Candidate<'_>]) -> Self {
        let agreement = together(candidates.iter());
        let mut decision = Self::new(self.narrower, None, candidates);
        let left = agreement.left;
        decision.verdicts.extend(left.into_iter().map(|left| (left.target, left.differences)));
        decision.differences = agreement.differences;
        decision
    }

    /// The targets that take the type's objects, and those that don't.
    pub(super) fn sides(&self) -> (Vec<String>, Vec<String>) {
        let (good, bad): (Vec<_>, Vec<_>) =
            self.verdicts.iter().partition(|(_, list)| is_compatible(list));
        let names = |side: Vec<(&String, &Vec<Difference>)>| {
            side.into_iter().map(|(name, _)| name.clone()).collect()
        };
        (names(good), names(bad))
    }
}

#[cfg(test)]
mod tests {
    use negotiation::Names;
    use serde_json::{Value, json};

    use super::*;

    fn ty(fields: &Value) -> Type {
        Type {
            group: "x.io".into(),
            version: "v1".into(),
            names: Names {
                plural: "things".into(),
                singular: "thing".into(),
                kind: "Thing".into(),
                list_kind: "ThingList".into(),
                short_names: Vec::new(),
                categories: Vec::new(),
            },
            scope: "Namespaced".into(),
            schema: json!({"type": "object", "properties": {
                "spec": {"type": "object", "properties": fields}}}),
            subresources: None,
            columns: Vec::new(),
            selectable_fields: Vec::new(),
        }
    }

    fn small() -> Type {
        ty(&json!({"a": {"type": "string"}}))
    }

    fn large() -> Type {
        ty(&json!({"a": {"type": "string"}, "b": {"type": "string"}}))
    }

    fn other() -> Type {
        ty(&json!({"a": {"type": "integer"}}))
    }

    /// Decides for targets `a`, `b`, … that came in this order: the type, a narrower one, and who doesn't fit.
    fn check(
        standing: Standing<'_>,
        strategy: UpdateStrategy,
        types: &[&Type],
        expect: (Option<&Type>, Option<&Type>, &[&str]),
    ) {
        let names = ["a", "b", "c"];
        let candidates: Vec<_> = { names.iter().zip(types) }
            .map(|(target, ty)| Candidate { target, since: "2026-01-01T00:00:00Z", ty })
            .collect();
        let decision = decide(standing, strategy, &candidates);
        let (_, bad) = decision.sides();
        let same = |made: &Option<Type>, expect: Option<&Type>| match (made, expect) {
            (Some(made), Some(expect)) => fits(made, expect) && fits(expect, made),
            (None, None) => true,
            _ => false,
        };
        assert!(same(&decision.ty, expect.0), "{decision:?}");
        assert!(same(&decision.narrower, expect.1), "{decision:?}");
        assert_eq!(bad, expect.2, "{decision:?}");
    }

    #[test]
    fn who_says_what_a_type_is() {
        use Standing::{Enforced, Published, Unpublished};
        use UpdateStrategy::{UpdateNever, UpdatePublished, UpdateUnpublished};
        let (small, large, other) = (small(), large(), other());
        // Enforced: only compared.
        check(Enforced(Some(&small)), UpdatePublished, &[&large], (Some(&small), None, &[]));
        check(Enforced(Some(&large)), UpdatePublished, &[&small], (Some(&large), None, &["a"]));
        check(Enforced(None), UpdateUnpublished, &[&small], (None, None, &["a"]));
        // Not published: what all have in common, those who were first if not all can.
        let new = Unpublished(None);
        check(new, UpdateUnpublished, &[&large, &small], (Some(&small), None, &[]));
        check(new, UpdateUnpublished, &[&large, &other], (Some(&large), None, &["b"]));
        check(new, UpdateNever, &[&large], (Some(&large), None, &[]));
        let before = Unpublished(Some(&large));
        check(before, UpdateNever, &[&small], (Some(&large), None, &["a"]));
        check(before, UpdateUnpublished, &[&small], (Some(&small), None, &[]));
        // Published: more, but not less.
        check(Published(&small), UpdateUnpublished, &[&large], (Some(&large), None, &[]));
        check(Published(&small), UpdateNever, &[&large], (Some(&small), None, &[]));
        check(Published(&large), UpdateUnpublished, &[&small], (Some(&large), None, &["a"]));
        let two = [&small, &large];
        check(Published(&large), UpdateUnpublished, &two, (Some(&large), None, &["a"]));
        check(Published(&large), UpdatePublished, &two, (Some(&large), Some(&small), &["a"]));
        check(Published(&large), UpdatePublished, &[&large], (Some(&large), None, &[]));
        // Nobody serves it any more: it stays as it is.
        for strategy in [UpdateNever, UpdateUnpublished, UpdatePublished] {
            check(Published(&large), strategy, &[], (Some(&large), None, &[]));
        }
        check(new, UpdateUnpublished, &[], (None, None, &[]));
    }

    #[test]
    fn what_was_narrowed_fits_all() {
        let (small, large) = (small(), large());
        let candidate = |target, ty| Candidate { target, since: "", ty };
        let candidates = [candidate("a", &small), candidate("b", &large)];
        let published = Standing::Published(&large);
        let decision = decide(published, UpdateStrategy::UpdatePublished, &candidates);
        let decision = decision.narrowed(&candidates);
        assert_eq!(decision.sides().1, [""; 0]);
        assert_eq!(decision.differences.len(), 1);
    }
}
