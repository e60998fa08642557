//! What the registry refuses and why, free of HTTP: `http/status.rs` alone knows codes.

use machinery::GroupResource;
use machinery::field::FieldError;
use machinery::gvr::Gvk;

/// Upstream's machine-readable reasons (`metav1.StatusReason`) that this server gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The request is malformed.
    BadRequest,
    /// The caller is not known.
    Unauthorized,
    /// The caller may not do this, or nobody may now.
    Forbidden,
    /// There is no such object.
    NotFound,
    /// There is such an object already.
    AlreadyExists,
    /// The object is not as the request assumes.
    Conflict,
    /// The object breaks the rules of its kind.
    Invalid,
    /// The resource has no such verb.
    MethodNotAllowed,
    /// None of the accepted media types can be given.
    NotAcceptable,
    /// The body's media type is not understood.
    UnsupportedMediaType,
    /// The body is too large.
    RequestEntityTooLarge,
    /// History does not reach back so far.
    Expired,
    /// What was asked for has not happened yet, or took too long.
    Timeout,
    /// The server is too busy.
    TooManyRequests,
    /// The server, or its store, is not ready.
    ServiceUnavailable,
    /// The server failed; the cause is in its log under the request's id.
    InternalError,
    /// No reason is given, as upstream does for a few old errors.
    Unknown,
}

/// Something refused, with all that a `Status` says of it.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    reason: Reason,
    message: String,
    details: Details,
    /// Code and reason that somebody else gives, as a webhook.
    told: Option<(u16, String)>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What an [`Error`] is about (`metav1.StatusDetails`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// The object's name.
    pub name: String,
    /// The group of the resource or kind.
    pub group: String,
    /// The resource; for [`Reason::Invalid`] the kind.
    pub kind: String,
    /// The object's UID.
    pub uid: String,
    /// One for each problem.
    pub causes: Vec<Cause>,
    /// Seconds to wait before another try; 0 for none.
    pub retry_after_seconds: u32,
    /// A token to go on listing with, for [`Reason::Expired`].
    pub continue_token: Option<String>,
    /// Whether a `Status` has details though they say nothing: clients of the generic errors
    /// below find them there.
    pub shown_empty: bool,
}

/// One problem (`metav1.StatusCause`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Machine-readable reason, as `FieldValueRequired`.
    pub reason: String,
    /// Text for people.
    pub message: String,
    /// The path of the field.
    pub field: String,
}

// === impl Error ===

impl Error {
    /// An error of any reason.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        let details = Details::default();
        Self(Box::new(Inner { reason, message: message.into(), details, told: None, source: None }))
    }

    /// An error that says nothing of what it is about, but has details (upstream's
    /// `NewGenericServerResponse`).
    pub fn generic(reason: Reason, message: impl Into<String>) -> Self {
        let mut error = Self::new(reason, message);
        error.0.details.shown_empty = true;
        error
    }

    /// A refusal whose code and reason are somebody else's, as a webhook's.
    pub(crate) fn told(
        code: u16,
        reason: &str,
        message: impl Into<String>,
        details: Details,
    ) -> Self {
        let mut error = Self::new(Reason::Unknown, message);
        error.0.details = details;
        error.0.told = Some((code, reason.to_owned()));
        error
    }

    /// The code and reason that somebody else gives.
    pub(crate) fn told_status(&self) -> Option<(u16, &str)> {
        self.0.told.as_ref().map(|(code, reason)| (*code, reason.as_str()))
    }

    /// The request is malformed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Reason::BadRequest, message)
    }

    /// `configmaps "a" not found`.
    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        Self::new(Reason::NotFound, format!("{resource} {name:?} not found")).about(resource, name)
    }

    /// `configmaps "a" already exists`.
    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        Self::new(Reason::AlreadyExists, format!("{resource} {name:?} already exists"))
            .about(resource, name)
    }

    /// As [`already_exists`](Self::already_exists), of an object that is on its way out.
    pub fn still_exists(resource: &GroupResource, name: &str) -> Self {
        let mut error = Self::already_exists(resource, name);
        error.0.message.insert_str(0, "object is being deleted: ");
        error
    }

    /// `Operation cannot be fulfilled on configmaps "a": why`.
    pub fn conflict(resource: &GroupResource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        Self::new(Reason::Conflict, message).about(resource, name)
    }

    /// The optimistic lock failed: the object has changed since it was read.
    pub fn modified(resource: &GroupResource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        Self::conflict(resource, name, why)
    }

    /// `configmaps "a" is forbidden: why`.
    pub fn forbidden(resource: &GroupResource, name: &str, why: &str) -> Self {
        let message = if name.is_empty() {
            format!("{resource} is forbidden: {why}")
        } else {
            format!("{resource} {name:?} is forbidden: {why}")
        };
        Self::new(Reason::Forbidden, message).about(resource, name)
    }

    /// Turns `why` into `configmaps "a" is forbidden: why`, keeping its causes.
    #[must_use]
    pub fn about_forbidden(mut self, resource: &GroupResource, name: &str) -> Self {
        let Self(inner) = Self::forbidden(resource, name, &self.0.message);
        let Inner { message, details, .. } = *inner;
        self.0.message = message;
        let causes = std::mem::take(&mut self.0.details.causes);
        self.0.details = Details { causes, ..details };
        self
    }

    /// `ConfigMap "a" is invalid: [problems]`, with a cause for each problem.
    pub fn invalid(kind: &Gvk, name: &str, problems: &[FieldError]) -> Self {
        let message =
            format!("{kind} {name:?} is invalid: {}", machinery::field::aggregate(problems));
        let mut error = Self::new(Reason::Invalid, message);
        error.0.details = Details {
            name: name.into(),
            group: kind.group_version.group.as_ref().into(),
            kind: kind.kind.as_ref().into(),
            causes: problems.iter().map(Cause::from).collect(),
            ..Details::default()
        };
        error
    }

    /// The server failed; `source` goes to the log, never to the client.
    pub fn internal(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let mut error = Self::new(Reason::InternalError, "internal error");
        error.0.source = Some(source.into());
        error
    }

    /// Names the resource and object that the error is about.
    #[must_use]
    pub fn about(mut self, resource: &GroupResource, name: &str) -> Self {
        self.0.details.name = name.into();
        self.0.details.group = resource.group.as_ref().into();
        self.0.details.kind = resource.resource.as_ref().into();
        self
    }

    /// Adds a cause.
    #[must_use]
    pub fn cause(mut self, reason: &str, message: impl Into<String>, field: &str) -> Self {
        let (reason, field) = (reason.into(), field.into());
        self.0.details.causes.push(Cause { reason, message: message.into(), field });
        self
    }

    /// Asks the client to try again after so many seconds.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.0.details.retry_after_seconds = seconds;
        self
    }

    /// Gives a token to go on listing with.
    #[must_use]
    pub fn continue_with(mut self, token: String) -> Self {
        self.0.details.continue_token = Some(token);
        self
    }

    /// The reason.
    pub fn reason(&self) -> Reason {
        self.0.reason
    }

    /// The text for the client.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What the error is about.
    pub fn details(&self) -> &Details {
        &self.0.details
    }
}

/// The client's text only; the cause is in [`std::error::Error::source`].
impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

impl From<&FieldError> for Cause {
    fn from(problem: &FieldError) -> Self {
        let reason = problem.kind.reason().into();
        Self { reason, message: problem.body(), field: problem.field.clone() }
    }
}
