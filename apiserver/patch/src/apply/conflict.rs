//! Fields that an apply would take from others, and what clients are told about them.

use std::fmt::{self, Write as _};

use machinery::field::go_quote;

use super::element::Element;
use super::managers::{ManagerId, Operation};
use super::set::FieldSet;

/// A field that another manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Its owner.
    pub manager: ManagerId,
    /// Where it is.
    pub path: Box<[Element]>,
}

/// All conflicts of an apply; at least one. They are sorted by manager.
///
/// Prints as the message of upstream's status does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

// === impl Conflict ===

impl Conflict {
    /// The message of its cause in the status: `conflict with "name" using v1`.
    pub fn message(&self) -> String {
        format!("conflict with {}", Named(&self.manager))
    }

    /// The field of its cause: `.spec.replicas`.
    pub fn field(&self) -> String {
        self.path.iter().fold(String::new(), |mut text, element| {
            write!(text, "{element}").expect("a String takes any text");
            text
        })
    }
}

// === impl Conflicts ===

impl Conflicts {
    /// The fields.
    pub(super) fn fields(&self) -> FieldSet {
        let mut set = FieldSet::new();
        for conflict in &self.0 {
            set.insert(&conflict.path);
        }
        set
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [conflict] = &*self.0 {
            let message = conflict.message();
            return write!(f, "Apply failed with 1 conflict: {message}: {}", conflict.field());
        }
        write!(f, "Apply failed with {} conflicts: ", self.0.len())?;
        let of_managers = self.0.chunk_by(|a, b| a.manager == b.manager);
        for (at, conflicts) in of_managers.enumerate() {
            let Some(first) = conflicts.first() else { continue };
            let line = if at == 0 { "" } else { "\n" };
            write!(f, "{line}conflicts with {}:", Named(&first.manager))?;
            conflicts.iter().try_for_each(|conflict| write!(f, "\n- {}", conflict.field()))?;
        }
        Ok(())
    }
}

impl std::error::Error for Conflicts {}

/// A manager as messages name it.
struct Named<'a>(&'a ManagerId);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.0;
        f.write_str(&go_quote(&id.name))?;
        if !id.subresource.is_empty() {
            write!(f, " with subresource {}", go_quote(&id.subresource))?;
        }
        match id.operation {
            Operation::Update => write!(f, " using {}", id.api_version),
            Operation::Apply => Ok(()),
        }
    }
}
