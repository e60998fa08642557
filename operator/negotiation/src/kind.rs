//! Which values a schema is about, as a set.

/// A set of kinds of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind(u8);

/// The sets that schemas can name, and their names.
const NAMED: [(Kind, &str); 8] = [
    (Kind::OBJECT, "object"),
    (Kind::ARRAY, "array"),
    (Kind::STRING, "string"),
    (Kind::INTEGER, "integer"),
    (Kind::NUMBER, "number"),
    (Kind::BOOLEAN, "boolean"),
    (Kind::INT_OR_STRING, "int-or-string"),
    (Kind::ANY, "any"),
];

// === impl Kind ===

impl Kind {
    pub(crate) const INTEGER: Self = Self(1);
    /// Integers, and what has a fraction.
    pub(crate) const NUMBER: Self = Self(1 | 2);
    pub(crate) const STRING: Self = Self(4);
    pub(crate) const INT_OR_STRING: Self = Self(1 | 4);
    pub(crate) const BOOLEAN: Self = Self(8);
    pub(crate) const OBJECT: Self = Self(16);
    pub(crate) const ARRAY: Self = Self(32);
    pub(crate) const ANY: Self = Self(63);

    /// The kind that `type` names.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        // The last two are no values of `type`.
        let plain = NAMED.iter().take(6);
        plain.into_iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }

    pub(crate) fn name(self) -> &'static str {
        NAMED.iter().find(|(kind, _)| *kind == self).map_or("nothing", |(_, name)| name)
    }

    /// What both have in common; every such set has a name, or is empty.
    pub(crate) fn and(self, other: Self) -> Option<Self> {
        let both = self.0 & other.0;
        (both != 0).then_some(Self(both))
    }

    pub(crate) fn is_within(self, other: Self) -> bool {
        self.0 & other.0 == self.0
    }

    /// Whether none of its values has parts.
    pub(crate) fn is_scalar(self) -> bool {
        self.0 & (Self::OBJECT.0 | Self::ARRAY.0) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kinds_have_in_common_has_a_name() {
        for (left, _) in NAMED {
            for (right, _) in NAMED {
                if let Some(both) = left.and(right) {
                    assert!(NAMED.iter().any(|(kind, _)| *kind == both), "{left:?} {right:?}");
                    assert!(both.is_within(left) && both.is_within(right));
                }
            }
        }
        assert_eq!(Kind::NUMBER.and(Kind::INT_OR_STRING), Some(Kind::INTEGER));
        assert_eq!(Kind::STRING.and(Kind::BOOLEAN), None);
        assert_eq!(Kind::parse("any"), None);
        assert_eq!(Kind::parse("number"), Some(Kind::NUMBER));
    }
}
