//! The authorizer library: expressions of admission policies ask what a user may do.
//!
//! This crate builds the question; who answers is up to the caller.

use std::fmt;
use std::sync::Arc;

use crate::types::Opaque;

/// Answers what a user may do.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// Decides. A check that can't be made is a decision with an error, never a failed evaluation.
    fn authorize(&self, question: &Question<'_>) -> Decision;
}

/// What is asked, about the authorizer's own user or about a service account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question<'q> {
    /// Namespace and name of the service account, when it isn't about the user of the request.
    pub service_account: Option<(&'q str, &'q str)>,
    pub verb: &'q str,
    pub target: Target<'q>,
}

/// What the verb is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target<'q> {
    /// A path outside of the API's resources.
    Path(&'q str),
    /// A resource; empty strings stand for what wasn't said.
    Resource {
        group: &'q str,
        resource: &'q str,
        subresource: &'q str,
        namespace: &'q str,
        name: &'q str,
        field_selector: &'q str,
        label_selector: &'q str,
    },
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decision {
    pub allowed: bool,
    pub reason: String,
    pub error: Option<String>,
}

/// Values of the library: a question that is being put together, or its answer.
#[derive(Debug, Clone)]
pub(crate) enum Authz {
    Authorizer { authorizer: Arc<dyn Authorizer>, service_account: Option<(Arc<str>, Arc<str>)> },
    Path { of: Arc<Authz>, path: Arc<str> },
    Group { of: Arc<Authz>, group: Arc<str> },
    Resource(Box<ResourceCheck>),
    Decision(Decision),
}

/// A question about a resource.
#[derive(Debug, Clone)]
pub(crate) struct ResourceCheck {
    pub(crate) of: Arc<Authz>,
    pub(crate) group: Arc<str>,
    pub(crate) resource: Arc<str>,
    pub(crate) subresource: Arc<str>,
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) field_selector: Arc<str>,
    pub(crate) label_selector: Arc<str>,
}

impl ResourceCheck {
    pub(crate) fn new(of: Arc<Authz>, group: Arc<str>, resource: Arc<str>) -> Self {
        let empty: Arc<str> = "".into();
        Self {
            of,
            group,
            resource,
            subresource: Arc::clone(&empty),
            namespace: Arc::clone(&empty),
            name: Arc::clone(&empty),
            field_selector: Arc::clone(&empty),
            label_selector: empty,
        }
    }
}

impl Authz {
    pub(crate) const fn opaque(&self) -> Opaque {
        match self {
            Self::Authorizer { .. } => Opaque::Authorizer,
            Self::Path { .. } => Opaque::PathCheck,
            Self::Group { .. } => Opaque::GroupCheck,
            Self::Resource(_) => Opaque::ResourceCheck,
            Self::Decision(_) => Opaque::Decision,
        }
    }

    /// Asks `verb` of what this question is about.
    pub(crate) fn check(&self, verb: &str) -> Option<Decision> {
        let (of, target) = match self {
            Self::Path { of, path } => (of, Target::Path(path)),
            Self::Resource(check) => (
                &check.of,
                Target::Resource {
                    group: &check.group,
                    resource: &check.resource,
                    subresource: &check.subresource,
                    namespace: &check.namespace,
                    name: &check.name,
                    field_selector: &check.field_selector,
                    label_selector: &check.label_selector,
                },
            ),
            _ => return None,
        };
        let Self::Authorizer { authorizer, service_account } = &**of else { return None };
        let service_account = service_account.as_ref().map(|(ns, name)| (&**ns, &**name));
        Some(authorizer.authorize(&Question { service_account, verb, target }))
    }
}
