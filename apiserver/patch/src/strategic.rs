//! The server half of strategic merge patch.





/// How the fields of one type merge: what strategic merge patch asks of a schema.
///
/// One value stands for one object type, as a struct does in Go. For a list it stands for the type
/// of the items, for a map (`additionalProperties`) `field` answers the same for every name, and
/// for values without structure (raw JSON) it answers `None`.
pub trait MergeSchema: std::fmt::Debug {
    /// How the field merges; `None` when the type has no such field.
    fn field(&self, name: &str) -> Option<FieldMerge<'_>>;

    /// The type's name in errors, as Go's struct is called: `PodSpec`.
    fn type_name(&self) -> &str {
        ""
    }
}

/// How one field merges.
#[derive(Debug, Clone, Copy)]
pub struct FieldMerge<'a> {
    /// What `x-kubernetes-patch-strategy` says.
    pub strategy: Strategy,
    /// What `x-kubernetes-patch-merge-key` says: the field that identifies an item of a list of
    /// objects. Lists of scalars with [`Strategy::Merge`] have none.
    pub merge_key: Option<&'a str>,
    /// The type of the field's value (of its items, when it is a list). `None` for scalars and for
    /// anything whose fields are unknown: objects there merge by name and lists are replaced.
    pub schema: Option<&'a dyn MergeSchema>,
}

/// What becomes of a field that both the document and the patch have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Strategy {
    /// None declared: objects merge, lists are replaced.
    #[default]
    Unset,
    /// Lists merge, objects as well.
    Merge,
    /// The patch's value replaces the document's.
    Replace,
}

impl Strategy {
    /// Parses the value of `x-kubernetes-patch-strategy`, a list joined by commas. `retainKeys` in
    /// it matters only to the client that computes a patch; the server obeys the directive
    /// `$retainKeys` wherever it stands. `None` for a strategy that doesn't exist.
    pub fn parse(text: &str) -> Option<Self> {
        let mut strategy = Self::Unset;
        for part in text.split(',') {
            match part {
                "retainKeys" | "" => {}
                "merge" if strategy == Self::Unset => strategy = Self::Merge,
                "replace" if strategy == Self::Unset => strategy = Self::Replace,
                _ => return None,
            }
        }
        Some(strategy)
    }
}
