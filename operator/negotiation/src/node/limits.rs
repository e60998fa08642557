//! Limits of numbers, lengths and counts.

use serde_json::{Map, Number, Value};

/// A limit of numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bound {
    pub(crate) value: Number,
    /// Whether the limit itself is outside.
    pub(crate) exclusive: bool,
}

/// The limits of a schema; the field names are those of the keywords.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Limits {
    pub(crate) minimum: Option<Bound>,
    pub(crate) maximum: Option<Bound>,
    /// `minLength`, `minItems`, `minProperties`, where they are above zero.
    pub(crate) least: [Option<i64>; 3],
    /// `maxLength`, `maxItems`, `maxProperties`
    pub(crate) most: [Option<i64>; 3],
}

/// The keywords of [`Limits::least`].
pub(crate) const LEAST: [&str; 3] = ["minLength", "minItems", "minProperties"];
/// The keywords of [`Limits::most`].
pub(crate) const MOST: [&str; 3] = ["maxLength", "maxItems", "maxProperties"];

// === impl Limits ===

impl Limits {
    /// Takes the limits out of a schema's keywords.
    pub(super) fn take(keywords: &mut Map<String, Value>) -> Self {
        let mut bound = |keyword: &str, exclusive: &str| {
            let exclusive = keywords.remove(exclusive) == Some(Value::Bool(true));
            match keywords.remove(keyword) {
                Some(Value::Number(value)) => Some(Bound { value, exclusive }),
                _ => None,
            }
        };
        let minimum = bound("minimum", "exclusiveMinimum");
        let maximum = bound("maximum", "exclusiveMaximum");
        let mut count = |keyword: &&str| keywords.remove(*keyword).and_then(|v| v.as_i64());
        let least = LEAST.each_ref().map(|keyword| count(keyword).filter(|n| *n > 0));
        let most = MOST.each_ref().map(count);
        Self { minimum, maximum, least, most }
    }

    /// The keywords that are limits.
    pub(crate) const KEYWORDS: [&str; 8] = [
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
    ];

    /// What it says by a keyword; empty if nothing.
    pub(crate) fn text(&self, keyword: &str) -> String {
        let count = |keywords: [&str; 3], counts: [Option<i64>; 3]| {
            let found = keywords.into_iter().zip(counts).find(|(name, _)| *name == keyword);
            found.and_then(|(_, count)| count).map(|count| count.to_string())
        };
        match keyword {
            "minimum" => self.minimum.as_ref().map(Bound::text),
            "maximum" => self.maximum.as_ref().map(Bound::text),
            _ => count(LEAST, self.least).or_else(|| count(MOST, self.most)),
        }
        .unwrap_or_default()
    }

    pub(super) fn print(&self, into: &mut Map<String, Value>) {
        let bounds = [
            ("minimum", "exclusiveMinimum", &self.minimum),
            ("maximum", "exclusiveMaximum", &self.maximum),
        ];
        for (keyword, exclusive, bound) in bounds {
            if let Some(bound) = bound {
                into.insert(keyword.into(), Value::Number(bound.value.clone()));
                if bound.exclusive {
                    into.insert(exclusive.into(), true.into());
                }
            }
        }
        for (keywords, counts) in [(LEAST, self.least), (MOST, self.most)] {
            for (keyword, count) in keywords.into_iter().zip(counts) {
                if let Some(count) = count {
                    into.insert(keyword.into(), count.into());
                }
            }
        }
    }

    /// A pair of limits that leaves no value, if there is one, by its keywords.
    pub(crate) fn contradiction(&self) -> Option<(&'static str, &'static str)> {
        if let (Some(low), Some(high)) = (&self.minimum, &self.maximum)
            && (low.float() > high.float()
                || (low.float() == high.float() && (low.exclusive || high.exclusive)))
        {
            return Some(("minimum", "maximum"));
        }
        let counts = self.least.iter().zip(self.most).zip(LEAST.into_iter().zip(MOST));
        counts.filter_map(|((low, high), keywords)| ((*low)? > high?).then_some(keywords)).next()
    }
}

// === impl Bound ===

impl Bound {
    pub(crate) fn float(&self) -> f64 {
        self.value.as_f64().unwrap_or_default()
    }

    /// Whether what is at or above this limit is at or above the other; `up` is -1 for limits from
    /// above. Where values are whole, servers read limits with a fraction as one of the whole numbers
    /// beside them, so it has to hold whichever they take.
    pub(crate) fn implies(&self, other: &Self, up: f64) -> bool {
        if self == other {
            return true;
        }
        let readings = |bound: &Self| {
            let value = bound.float();
            [value.floor(), value, value.ceil()].map(|value| up * value)
        };
        let others = readings(other);
        readings(self).into_iter().all(|own| {
            others.iter().all(|other_value| {
                own > *other_value || (own == *other_value && (self.exclusive || !other.exclusive))
            })
        })
    }

    /// The narrower of two limits; among equal ones any order gives the same.
    pub(crate) fn narrower(self, other: Self, up: f64) -> Self {
        let rank = |bound: &Self| (up * bound.float(), bound.exclusive);
        match rank(&self).partial_cmp(&rank(&other)) {
            Some(std::cmp::Ordering::Less) => other,
            Some(std::cmp::Ordering::Greater) => self,
            _ if self.value.to_string() <= other.value.to_string() => self,
            _ => other,
        }
    }

    /// As a report says it.
    pub(crate) fn text(&self) -> String {
        let exclusive = if self.exclusive { " (exclusive)" } else { "" };
        format!("{}{exclusive}", self.value)
    }
}
