//! The schema of the kind that a request is about, whatever it is made of.
//!
//! Built-in kinds have a Go type's facts, custom ones the structural schema of their CRD, and
//! imported ones both: the facts say how Go reads and writes them and how patches merge, the CRD's
//! schema what they may hold.

use std::sync::Arc;

use machinery::field::FieldErrorKind;
use machinery::{FieldError, FieldPath, Gvk};
use patch::apply::Type;
use schema::crd::{CustomType, CustomVersion};
use schema::structural::Structural;
use schema::{ApplyType, CoerceMode, DecodeError, Schema, SchemaHash, Types, Unknown};
use serde_json::Value;

use crate::registry::{Error, Registry, Target};

/// The schema of one kind in one version.
#[derive(Clone, Debug)]
pub(super) enum Typing {
    /// One of the server's own kinds.
    Builtin(Arc<Schema>),
    /// A kind that a CRD defines.
    Custom(Custom),
}

/// A version of a custom type.
#[derive(Clone, Debug)]
pub(super) struct Custom {
    custom: Arc<CustomType>,
    version: usize,
    /// The facts of one of Kubernetes' own kinds.
    known: Option<Arc<Schema>>,
}

impl Registry {
    /// The schema of the target's kind in the target's version.
    pub(super) fn typing(&self, target: &Target) -> Result<Typing, Error> {
        let kind = Self::kind(&target.resource, &target.version);
        match &target.custom {
            Some(custom) => Typing::custom(custom, &kind)
                .ok_or_else(|| Error::internal(format!("no version {kind:?}"))),
            None => self.schema(&kind).map(Typing::Builtin),
        }
    }
}

// === impl Typing ===

impl Typing {
    /// A version of a custom type, served or not.
    pub(super) fn custom(custom: &Arc<CustomType>, kind: &Gvk) -> Option<Self> {
        let wanted = &kind.group_version.version;
        let version = custom.versions.iter().position(|version| version.name == *wanted)?;
        let known = custom.is_builtin.then(|| Types::known(kind)).flatten();
        Some(Self::Custom(Custom { custom: custom.clone(), version, known }))
    }

    /// Reads content as this kind; see [`Schema::coerce`].
    pub(super) fn coerce(
        &self,
        value: &mut Value,
        mode: CoerceMode,
    ) -> Result<Vec<Unknown>, DecodeError> {
        match self {
            Self::Builtin(schema) => schema.coerce(value, mode),
            Self::Custom(custom) => {
                custom.keep(value)?;
                custom.schema().coerce(value, mode)
            }
        }
    }

    /// Fills in what is absent.
    pub(super) fn default(&self, value: &mut Value) {
        match self {
            Self::Builtin(schema) => schema.default(value),
            Self::Custom(custom) => {
                custom.schema().default(value);
                self.zero(value);
            }
        }
    }

    /// Adds the zero values that Go always writes, where one of Kubernetes' own kinds lacks them.
    pub(super) fn zero(&self, value: &mut Value) {
        if let Self::Custom(custom) = self {
            // What Go can't read has been refused before.
            drop(custom.keep(value));
        }
    }

    /// Makes a stored object one of this kind, whatever wrote it.
    pub(super) fn repair(&self, value: &mut Value) -> Result<(), DecodeError> {
        match self {
            Self::Builtin(schema) => schema.coerce(value, CoerceMode::Drop).map(drop),
            Self::Custom(custom) => {
                custom.schema().repair(value);
                self.default(value);
                Ok(())
            }
        }
    }

    /// What is wrong with an object by its schema; with the old one, what its change made wrong.
    /// `part` is the subresource that was written, or empty.
    pub(super) fn validate(&self, new: &Value, old: Option<&Value>, part: &str) -> Vec<FieldError> {
        let Self::Custom(custom) = self else { return Vec::new() };
        let scale = custom.version().scale.as_ref();
        let mut problems = if let ("status", Some(old)) = (part, old) {
            let mut problems = custom.schema().validate_status(new, old);
            problems.extend(scale.into_iter().flat_map(|scale| scale.validate_status(new)));
            problems
        } else {
            let mut problems = custom.schema().validate(new, old);
            problems.extend(scale.into_iter().flat_map(|scale| scale.validate(new)));
            problems
        };
        custom.forgive(&mut problems);
        if !custom.schema().root().has_rules() {
            return problems;
        }
        // Rules run on values of the right types only.
        if problems.iter().any(blocks_rules) {
            let why = "some validation rules were not checked because the object was invalid; \
                       correct the existing errors to complete validation";
            problems.push(FieldError::invalid(&FieldPath::root("<nil>"), &Value::Null, why));
        } else {
            problems.extend(custom.schema().validate_rules(new, old).problems);
        }
        problems
    }

    /// How it is typed for server-side apply. Imported kinds are what their CRD says, which knows
    /// their fields whatever the release.
    pub(super) fn apply(&self) -> Type<ApplyType<'_>> {
        match self {
            Self::Builtin(schema) => schema.apply(),
            Self::Custom(custom) => custom.schema().apply(),
        }
    }

    /// The facts of a Go type, which strategic merge patches need.
    pub(super) fn facts(&self) -> Option<&Arc<Schema>> {
        match self {
            Self::Builtin(schema) => Some(schema),
            Self::Custom(custom) => custom.known.as_ref(),
        }
    }

    /// The custom type, if it is one.
    pub(super) fn custom_type(&self) -> Option<&Arc<CustomType>> {
        match self {
            Self::Builtin(_) => None,
            Self::Custom(custom) => Some(&custom.custom),
        }
    }

    /// The custom version, if it is one.
    pub(super) fn version(&self) -> Option<&CustomVersion> {
        match self {
            Self::Builtin(_) => None,
            Self::Custom(custom) => Some(custom.version()),
        }
    }

    /// Identity of the schema.
    pub(super) fn hash(&self) -> SchemaHash {
        match self {
            Self::Builtin(schema) => schema.hash(),
            Self::Custom(custom) => custom.schema().hash(),
        }
    }
}

/// Whether a problem may have left a value of a kind that rules don't expect.
fn blocks_rules(problem: &FieldError) -> bool {
    matches!(
        problem.kind,
        FieldErrorKind::NotSupported
            | FieldErrorKind::Required
            | FieldErrorKind::TooLong
            | FieldErrorKind::TooMany
            | FieldErrorKind::TypeInvalid
    )
}

// === impl Custom ===

impl Custom {
    fn version(&self) -> &CustomVersion {
        self.custom.versions.get(self.version).expect("the position was found in this list")
    }

    fn schema(&self) -> &Structural {
        &self.version().schema
    }

    /// Leaves out what upstream never checks of its own kinds: that items of lists differ in their
    /// keys. Two variables of one name in a container are bad style, but there.
    fn forgive(&self, problems: &mut Vec<FieldError>) {
        if self.known.is_some() {
            problems.retain(|problem| problem.kind != FieldErrorKind::Duplicate);
        }
    }

    /// Reads and writes content as Go does, if it is of one of Kubernetes' own kinds.
    fn keep(&self, value: &mut Value) -> Result<(), DecodeError> {
        match &self.known {
            Some(known) => known.coerce(value, CoerceMode::Keep).map(drop),
            None => Ok(()),
        }
    }
}
