//! Where a field is.

use std::fmt;

/// The path of a field as messages print it: `spec.containers[0].env[A]`.
///
/// The text is built as the path grows. A walk over a whole object uses one path and the
/// `enter_…`/[`leave`](Self::leave) pair, which allocate only while the path grows longer than ever.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath(String);

impl FieldPath {
    /// A path of one field; an empty name is the object itself.
    pub fn root(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// The path of a field below this one.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        let mut path = self.copy_for(name.len() + 1);
        path.enter_child(name);
        path
    }

    /// The path of an item of this list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        let mut path = self.copy_for(8);
        path.enter_index(index);
        path
    }

    /// The path of an entry of this map.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        let mut path = self.copy_for(key.len() + 2);
        path.enter_key(key);
        path
    }

    /// Goes down to a field; the answer is what [`leave`](Self::leave) takes to come back.
    pub fn enter_child(&mut self, name: &str) -> usize {
        let mark = self.0.len();
        if mark > 0 {
            self.0.push('.');
        }
        self.0.push_str(name);
        mark
    }

    /// Goes down to an item of a list.
    pub fn enter_index(&mut self, index: usize) -> usize {
        let mark = self.0.len();
        self.0.push('[');
        self.0.push_str(&index.to_string());
        self.0.push(']');
        mark
    }

    /// Goes down to an entry of a map.
    pub fn enter_key(&mut self, key: &str) -> usize {
        let mark = self.0.len();
        self.0.push('[');
        self.0.push_str(key);
        self.0.push(']');
        mark
    }

    /// Comes back from where an `enter_…` call went.
    pub fn leave(&mut self, mark: usize) {
        // A mark of another path could lie inside a character; such a call changes nothing.
        if self.0.is_char_boundary(mark) {
            self.0.truncate(mark);
        }
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn copy_for(&self, more: usize) -> Self {
        let mut text = String::with_capacity(self.0.len() + more);
        text.push_str(&self.0);
        Self(text)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
