//! CEL as Kubernetes uses it: rules of custom resources, and expressions of admission policies.
//!
//! An [`Env`] has variables with declared types ([`DeclType`]) over the libraries of Kubernetes 1.36. It
//! compiles a text to an [`Expression`], which knows its type and estimates its cost; the expression
//! becomes a [`Program`], which is evaluated on values that borrow JSON, within a [`Budget`].
//!
//! The crate does no I/O and knows neither schemas nor HTTP. What it promises:
//!
//! - Any text is compiled in bounded time and without deep recursion; errors have upstream's texts.
//! - An evaluation ends when its budget is spent. The cost counted is upstream's, step by step.
//! - Nothing of an object is copied to evaluate an expression on it.
//!
//! The language is that of cel-go, of which Kubernetes' environment turns on: comparisons across types
//! of numbers, optional values, lists and maps of one type, UTC as the default time zone, comprehensions
//! of two variables; and the libraries for strings, sets, lists, URLs, regular expressions, quantities,
//! addresses, formats, versions and authorization.

mod ast;
pub mod authorizer;
mod check;
pub mod cost;
pub mod decl;
mod env;
mod escape;
mod eval;
mod expression;
mod fold;
mod functions;
mod lexer;
mod library;
mod literal;
mod macros;
mod op;
mod parser;
pub mod patches;
mod source;
mod types;
mod unify;
mod validate;
mod value;

pub use cost::{CostEstimate, DeclaredSizes, SizeEstimate, SizeEstimator, UnknownSizes};
pub use decl::{DeclType, Field, ListSemantics, ObjectType};
pub use env::Env;
pub use escape::escape;
pub use eval::Budget;
pub use expression::{Expression, Program};
pub use source::CompileError;
pub use types::{Opaque, Type};
pub use value::{EvalError, Record, Value};
