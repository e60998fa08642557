//! What identifies the items of a list.

use std::cmp::Ordering;

use serde_json::Value;

use super::element::Element;
use super::schema::{ApplySchema, ListForm, Type};
use super::value::compare;

/// What identifies an item, borrowed from the item and the schema.
#[derive(Clone, Debug)]
pub(super) enum ItemKey<'v> {
    /// Values of the keys that it has, sorted by their names.
    Keys(Vec<(&'v str, &'v Value)>),
    /// It itself.
    Value(&'v Value),
}

/// The keys of the items of a list: sorted, and where each stands.
#[derive(Debug)]
pub(super) struct Index<'v> {
    /// The items in the order of their keys; equal ones in the order of the list.
    sorted: Vec<(ItemKey<'v>, usize)>,
}

/// The items with one key.
pub(super) type Group<'i, 'v> = &'i [(ItemKey<'v>, usize)];

// === impl ItemKey ===

impl<'v> ItemKey<'v> {
    /// The key of an item of a list of type `ty`.
    ///
    /// # Errors
    /// Why it can't have one, as upstream words it.
    pub(super) fn of<'s: 'v, S: ApplySchema<'s>>(
        ty: Type<S>,
        item: &'v Value,
    ) -> Result<Self, String> {
        match ty.forms().list {
            Some(ListForm::Map) => Self::of_object(ty, item),
            Some(ListForm::Set) => match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".into())
                }
                Value::Array(_) => {
                    Err("not supported: associative list with lists as elements".into())
                }
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null"
                        .into())
                }
                scalar => Ok(Self::Value(scalar)),
            },
            Some(ListForm::Atomic) | None => Err("invalid indexing of non-associative list".into()),
        }
    }

    fn of_object<'s: 'v, S: ApplySchema<'s>>(ty: Type<S>, item: &'v Value) -> Result<Self, String> {
        let fields = match item {
            Value::Object(fields) => fields,
            Value::Null => {
                return Err("associative list with keys may not have a null element".into());
            }
            _ => return Err("associative list with keys may not have non-map elements".into()),
        };
        let of_item = ty.item();
        let mut keys = Vec::new();
        for name in ty.keys() {
            if let Some(value) = fields.get(name) {
                keys.push((name, value));
            } else if of_item.forms().map.is_none() {
                return Err(format!(
                    "couldn't find default value for {name}: associative list may not have non-map \
                     types"
                ));
            } else if let Some(default) = of_item.default_of(name) {
                keys.push((name, default));
            }
        }
        if keys.is_empty() && ty.key(0).is_some() {
            let names: Vec<String> = ty.keys().map(machinery::field::go_quote).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and \
                 doesn't have default values for any key fields)",
                names.join(" ")
            ));
        }
        keys.sort_by_key(|(name, _)| *name);
        Ok(Self::Keys(keys))
    }

    pub(super) fn to_element(&self) -> Element {
        match self {
            Self::Keys(keys) => {
                let keys = keys.iter().map(|(name, value)| ((*name).into(), (*value).clone()));
                Element::Key(keys.collect())
            }
            Self::Value(value) => Element::Value((*value).clone()),
        }
    }

    pub(super) fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Keys(a), Self::Keys(b)) => {
                let mut orders =
                    a.iter().zip(b).map(|((a, x), (b, y))| a.cmp(b).then_with(|| compare(x, y)));
                let unequal = orders.find(|order| order.is_ne());
                unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            (Self::Value(a), Self::Value(b)) => compare(a, b),
            (Self::Keys(_), Self::Value(_)) => Ordering::Less,
            (Self::Value(_), Self::Keys(_)) => Ordering::Greater,
        }
    }
}

// === impl Index ===

impl<'v> Index<'v> {
    /// The index of a list. Items without a key are left out; the problem of each is returned.
    pub(super) fn of<'s: 'v, S: ApplySchema<'s>>(
        ty: Type<S>,
        items: &'v [Value],
    ) -> (Self, Vec<(usize, String)>) {
        let mut problems = Vec::new();
        let mut sorted = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            match ItemKey::of(ty, item) {
                Ok(key) => sorted.push((key, at)),
                Err(problem) => problems.push((at, problem)),
            }
        }
        // Stable: equal keys stay in the order of the list.
        sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
        (Self { sorted }, problems)
    }

    /// The items key by key.
    pub(super) fn groups(&self) -> impl Iterator<Item = Group<'_, 'v>> {
        self.sorted.chunk_by(|(a, _), (b, _)| a.cmp(b).is_eq())
    }

    /// The items with a key.
    pub(super) fn get(&self, key: &ItemKey<'_>) -> Group<'_, 'v> {
        let start = self.sorted.partition_point(|(other, _)| other.cmp(key).is_lt());
        let rest = self.sorted.get(start..).unwrap_or_default();
        let end = rest.partition_point(|(other, _)| other.cmp(key).is_eq());
        rest.get(..end).unwrap_or_default()
    }
}
