//! Ownership after a type has changed between granular and atomic.
//!
//! A list or map that has become atomic is owned as a whole by everybody who owned a part of it.
//! The other way nothing is done: who owned the whole goes on owning its top, as upstream has it.

use super::element::Element;
use super::schema::{ApplySchema, Form, ListForm, MapForm, Type};
use super::set::{FieldSet, Node};

/// The set as the type wants it; `None` when it is so already.
pub(super) fn reconcile<'s, S: ApplySchema<'s>>(ty: Type<S>, set: &FieldSet) -> Option<FieldSet> {
    let root = Place { ty, set: Some(set), whole: false };
    // The root itself is never owned.
    match root.changed()? {
        Change::Whole => None,
        Change::Below(set) => Some(set),
    }
}

/// One place of a set while its type is looked at.
struct Place<'f, S> {
    ty: Type<S>,
    /// What is below; `None` when nothing is.
    set: Option<&'f FieldSet>,
    /// Whether it is owned itself and nothing below it is.
    whole: bool,
}

enum Change {
    /// The place is now owned as a whole.
    Whole,
    /// Something below it changed.
    Below(FieldSet),
}

// === impl Place ===

impl<'s, S: ApplySchema<'s>> Place<'_, S> {
    fn changed(&self) -> Option<Change> {
        // Without a value the first form that the type allows counts.
        match self.ty.forms().one()? {
            Form::Scalar(_) => None,
            Form::List(ListForm::Atomic) if !self.whole => Some(Change::Whole),
            Form::List(_) => self.below(|_| Some(self.ty.item())),
            Form::Map(_) if self.ty.is_free() => None,
            Form::Map(MapForm::Atomic) if !self.whole => {
                self.set.is_some_and(|set| !set.is_empty()).then_some(Change::Whole)
            }
            Form::Map(_) => self.below(|element| match element {
                Element::Field(name) => self.ty.field(name),
                _ => self.ty.other(),
            }),
        }
    }

    fn below(&self, inner: impl Fn(&Element) -> Option<Type<S>>) -> Option<Change> {
        let set = self.set?;
        let mut copy: Option<FieldSet> = None;
        for (at, node) in set.nodes.iter().enumerate() {
            let Some(ty) = inner(&node.element) else { continue };
            let below = Some(&node.below).filter(|below| !below.is_empty());
            let place = Place { ty, set: below, whole: node.member && below.is_none() };
            let Some(change) = place.changed() else { continue };
            let copy = copy.get_or_insert_with(|| set.clone());
            if let Some(Node { member, below, .. }) = copy.nodes.get_mut(at) {
                match change {
                    Change::Whole => {
                        *member = true;
                        *below = FieldSet::new();
                    }
                    Change::Below(set) => *below = set,
                }
            }
        }
        copy.map(Change::Below)
    }
}
