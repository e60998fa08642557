//! What an expression is compiled in: variables with their types, over Kubernetes' libraries.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::check::check;
use crate::decl::{DeclType, ObjectType};
use crate::expression::Expression;
use crate::functions::{self, Function};
use crate::parser::parse;
use crate::patches;
use crate::source::{CompileError, Problems};
use crate::types::Type;
use crate::validate::validate;

/// Variables and structures that expressions see. The libraries are those of Kubernetes 1.36.
#[derive(Debug, Clone, Default)]
pub struct Env {
    variables: Vec<(Box<str>, Arc<DeclType>)>,
    structures: BTreeMap<Box<str>, Arc<ObjectType>>,
    /// Whether expressions make patches of objects.
    patches: bool,
}

impl Env {
    /// An environment of variables. Their order is that of the inputs of an evaluation. A name may have
    /// dots (`authorizer.requestResource`).
    pub fn new<'n>(variables: impl IntoIterator<Item = (&'n str, Arc<DeclType>)>) -> Self {
        let variables = variables.into_iter().map(|(name, decl)| (name.into(), decl)).collect();
        Self { variables, structures: BTreeMap::new(), patches: false }
    }

    /// Lets expressions make structures of a type by its name (`Name{field: value}`).
    #[must_use]
    pub fn with_structure(mut self, object: Arc<ObjectType>) -> Self {
        self.structures.insert(object.name().into(), object);
        self
    }

    /// Lets expressions make patches of objects ([`crate::patches`]).
    #[must_use]
    pub fn with_patches(mut self) -> Self {
        self.patches = true;
        self
    }

    /// Parses and checks an expression.
    ///
    /// # Errors
    /// Everything that is wrong with it, with upstream's text.
    pub fn compile(&self, text: &str) -> Result<Expression, CompileError> {
        let (mut ast, root) = parse(text)?;
        let mut problems = Problems::default();
        let checked = check(self, &mut ast, root, &mut problems);
        if problems.is_empty() {
            validate(&ast, &checked, &mut problems);
        }
        if !problems.is_empty() {
            return Err(problems.into_error(text));
        }
        let variables = self.variables.iter().map(|(name, _)| name.clone()).collect();
        Ok(Expression::new(ast, root, checked, variables))
    }

    /// The declared type of a variable.
    pub fn declared(&self, name: &str) -> Option<&Arc<DeclType>> {
        self.variable(name).map(|(_, decl)| decl)
    }

    pub(crate) fn variable(&self, name: &str) -> Option<(u32, &Arc<DeclType>)> {
        let at = self.variables.iter().position(|(known, _)| **known == *name)?;
        self.variables.get(at).map(|(_, decl)| (at as u32, decl))
    }

    pub(crate) fn structure(&self, name: &str) -> Option<Arc<ObjectType>> {
        let known = self.structures.get(name).cloned();
        known.or_else(|| self.patches.then(|| patches::structure(name)).flatten())
    }

    /// The function of that qualified name.
    pub(crate) fn function(&self, name: &str) -> Option<&'static Function> {
        functions::find(name).filter(|found| self.patches || !patches::is_own(found.name))
    }

    pub(crate) fn field_type(&self, object: &ObjectType, field: &str) -> Option<Type> {
        if object.is_open() {
            return Some(Type::Dyn);
        }
        object.field(field).map(|field| field.decl.ty().clone())
    }
}
