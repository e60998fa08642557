//! The difference between two objects, as sets of fields.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::element::Element;
use super::items::{Group, Index, ItemKey};
use super::problem::Problems;
use super::schema::{ApplySchema, Form, Forms, ListForm, MapForm, Type};
use super::set::{FieldSet, Node};
use super::validate::{check_scalar, invalid_atom};
use super::value::equal;

/// What a change did. No field is in two of the sets.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    /// What is gone.
    pub(super) removed: FieldSet,
    /// What was there with another value.
    pub(super) modified: FieldSet,
    /// What is new.
    pub(super) added: FieldSet,
}

/// Compares two valid objects of one type.
///
/// # Errors
/// When they aren't valid.
pub(super) fn compare<'s, S: ApplySchema<'s>>(
    ty: Type<S>,
    old: &Value,
    new: &Value,
) -> Result<Changes, Problems> {
    let Diff { removed, modified, added } = walk(ty, Some(old), Some(new))?;
    Ok(Changes { removed: removed.below, modified: modified.below, added: added.below })
}

/// What a change did at one place and below it.
#[derive(Debug, Default)]
struct Diff {
    removed: Part,
    modified: Part,
    added: Part,
}

#[derive(Debug, Default)]
struct Part {
    member: bool,
    below: FieldSet,
}

/// The nodes of one place while they are gathered.
#[derive(Debug, Default)]
struct Gathered {
    removed: Vec<Node>,
    modified: Vec<Node>,
    added: Vec<Node>,
}

fn walk<'s, S: ApplySchema<'s>>(
    ty: Type<S>,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Result<Diff, Problems> {
    let forms = ty.forms();
    let (was, is) = (forms.deduce(old), forms.deduce(new));
    let mut earlier = None;
    let forms: Forms = match (old, new) {
        (_, None) => was,
        (None, _) => is,
        _ if was == is => is,
        _ => {
            // A value of another form: its parts are gone, and the new one's have come.
            earlier = Some(of_form(ty, was, old, new)?.0);
            is
        }
    };
    let (mut diff, leaf) = of_form(ty, forms, old, new)?;
    if let Some(earlier) = earlier {
        diff.removed.join(earlier.removed);
        diff.modified.join(earlier.modified);
        diff.added.join(earlier.added);
    }
    if !leaf {
        diff.added.member |= old.is_none();
        diff.removed.member |= old.is_some() && new.is_none();
    }
    Ok(diff)
}

/// Compares two values as if both had this form. Tells, too, whether they were taken as a whole.
fn of_form<'s, S: ApplySchema<'s>>(
    ty: Type<S>,
    forms: Forms,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Result<(Diff, bool), Problems> {
    let parts = match forms.one().ok_or_else(invalid_atom)? {
        Form::Scalar(scalar) => {
            let old = check_scalar(scalar, old, "lhs: ");
            let new = check_scalar(scalar, new, "rhs: ");
            if let (Err(mut problems), Err(more)) = (old, new) {
                problems.add(more);
                return Err(problems);
            }
            None
        }
        Form::List(form) => {
            let (old, new) = (items(old), items(new));
            let whole = form == ListForm::Atomic || (old.is_empty() && new.is_empty());
            if whole { None } else { Some(of_items(ty, old, new)?) }
        }
        Form::Map(form) => {
            let (old, new) = (fields(old), fields(new));
            let empty = |fields: Option<&Map<String, Value>>| fields.is_none_or(Map::is_empty);
            let whole = form == MapForm::Atomic || (empty(old) && empty(new));
            if whole { None } else { Some(of_fields(ty, old, new)?) }
        }
    };
    let leaf = parts.is_none();
    let mut diff = parts.unwrap_or_default();
    if leaf {
        match (old, new) {
            (None, _) => diff.added.member = true,
            (_, None) => diff.removed.member = true,
            (Some(old), Some(new)) => diff.modified.member = !equal(old, new),
        }
    }
    Ok((diff, leaf))
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn fields(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

fn of_fields<'s, S: ApplySchema<'s>>(
    ty: Type<S>,
    old: Option<&Map<String, Value>>,
    new: Option<&Map<String, Value>>,
) -> Result<Diff, Problems> {
    let mut gathered = Gathered::default();
    let mut problems = Problems::default();
    let mut visit = |name: &String, old: Option<&Value>, new: Option<&Value>| {
        let found = match ty.field(name) {
            Some(inner) => walk(inner, old, new),
            None => Err(invalid_atom()),
        };
        match found {
            Ok(diff) => gathered.add(|| Element::field(&**name), diff),
            Err(found) => problems.add(found.below(format_args!(".{name}"))),
        }
    };
    let mut old = old.into_iter().flatten().peekable();
    let mut new = new.into_iter().flatten().peekable();
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((old, _)), Some((new, _))) => old.cmp(new),
        };
        let was = if order.is_le() { old.next() } else { None };
        let is = if order.is_ge() { new.next() } else { None };
        if let Some((name, _)) = was.or(is) {
            visit(name, was.map(|(_, value)| value), is.map(|(_, value)| value));
        }
    }
    problems.result()?;
    Ok(gathered.into())
}

fn of_items<'s, S: ApplySchema<'s>>(
    ty: Type<S>,
    old: &[Value],
    new: &[Value],
) -> Result<Diff, Problems> {
    let (was, missing) = Index::of(ty, old);
    let (is, more) = Index::of(ty, new);
    let mut problems = Problems::default();
    for (at, why) in missing.into_iter().chain(more) {
        problems.add(Problems::new(format!("element {at}: {why}")));
    }
    let mut gathered = Gathered::default();
    let (mut was, mut is) = (was.groups().peekable(), is.groups().peekable());
    loop {
        let order = match (key(was.peek()), key(is.peek())) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(was), Some(is)) => was.cmp(is),
        };
        let was = if order.is_le() { was.next() } else { None }.unwrap_or_default();
        let is = if order.is_ge() { is.next() } else { None }.unwrap_or_default();
        let Some((key, _)) = was.first().or(is.first()) else { break };
        match of_group(ty, &values(was, old), &values(is, new)) {
            Ok(diff) => gathered.add(|| key.to_element(), diff),
            Err(found) => problems.add(found.below(key.to_element())),
        }
    }
    problems.result()?;
    Ok(gathered.into())
}

fn key<'i, 'v>(group: Option<&Group<'i, 'v>>) -> Option<&'i ItemKey<'v>> {
    group?.first().map(|(key, _)| key)
}

fn values<'v>(group: Group<'_, '_>, items: &'v [Value]) -> Vec<&'v Value> {
    group.iter().filter_map(|(_, at)| items.get(*at)).collect()
}

/// The items with one key. Several are compared as one whole.
fn of_group<'s, S: ApplySchema<'s>>(
    ty: Type<S>,
    was: &[&Value],
    is: &[&Value],
) -> Result<Diff, Problems> {
    let mut diff = Diff::default();
    match (was, is) {
        ([], []) => {}
        ([] | [_], [] | [_]) => {
            diff = walk(ty.item(), was.first().copied(), is.first().copied())?;
        }
        ([_, _, ..], [_, _, ..]) => {
            let same = was.len() == is.len() && was.iter().zip(is).all(|(a, b)| equal(a, b));
            diff.modified.member = !same;
        }
        (_, [] | [_]) => {
            if let [is] = is {
                diff = walk(ty.item(), None, Some(is))?;
            }
            diff.removed.member = true;
        }
        ([] | [_], _) => {
            if let [was] = was {
                diff = walk(ty.item(), Some(was), None)?;
            }
            diff.added.member = true;
        }
    }
    Ok(diff)
}

// === impl Gathered ===

impl Gathered {
    /// Adds what happened at a place below. Most of the time nothing did, and nothing is made.
    fn add(&mut self, element: impl Fn() -> Element, diff: Diff) {
        let Diff { removed, modified, added } = diff;
        let parts = [
            (&mut self.removed, removed),
            (&mut self.modified, modified),
            (&mut self.added, added),
        ];
        for (nodes, Part { member, below }) in parts {
            if member || !below.is_empty() {
                nodes.push(Node { element: element(), member, below });
            }
        }
    }
}

impl From<Gathered> for Diff {
    fn from(gathered: Gathered) -> Self {
        let part = |nodes| Part { member: false, below: FieldSet::from_nodes(nodes) };
        Self {
            removed: part(gathered.removed),
            modified: part(gathered.modified),
            added: part(gathered.added),
        }
    }
}

// === impl Part ===

impl Part {
    fn join(&mut self, other: Self) {
        self.member |= other.member;
        self.below.add(other.below);
    }
}
