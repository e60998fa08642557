//! The wire form of `Status`: how every failure, and some successes, are told.
//!
//! Field names and the rules for leaving fields out are Go's (`metav1.Status`). Which HTTP code
//! goes with which reason is decided elsewhere.

use serde::Serialize;

use crate::field::FieldError;

/// `v1 Status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Always `Status`.
    pub kind: &'static str,
    /// Always `v1`.
    pub api_version: &'static str,
    /// Always written, as `{}` when it says nothing.
    pub metadata: ListMeta,
    /// `Success` or `Failure`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub status: &'static str,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// For programs, one word, as `NotFound`; empty where upstream has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What the reason is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<StatusDetails>,
    /// The HTTP code, 0 when left out.
    #[serde(skip_serializing_if = "is_zero")]
    pub code: u16,
}

/// `v1 ListMeta`, the metadata of lists and of Status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListMeta {
    /// The revision of the list.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// The token for the next page.
    #[serde(rename = "continue", skip_serializing_if = "String::is_empty")]
    pub continue_: String,
    /// How many items follow this page, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_item_count: Option<i64>,
}

/// `v1 StatusDetails`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusDetails {
    /// The object's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The API group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The resource for most reasons, the kind for `Invalid`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The object's UID.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Single problems.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<StatusCause>,
    /// When to try again, in seconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

/// `v1 StatusCause`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StatusCause {
    /// For programs, as `FieldValueInvalid`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The field's path.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

// === impl Status ===

/// A failure without words.
impl Default for Status {
    fn default() -> Self {
        Self {
            kind: "Status",
            api_version: "v1",
            metadata: ListMeta::default(),
            status: "Failure",
            message: String::new(),
            reason: String::new(),
            details: None,
            code: 0,
        }
    }
}

impl Status {
    /// One line of JSON without a line end.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a Status holds strings and numbers only")
    }
}

// === impl StatusCause ===

impl From<&FieldError> for StatusCause {
    fn from(error: &FieldError) -> Self {
        Self {
            reason: error.kind.reason().to_owned(),
            message: error.body(),
            field: error.field.clone(),
        }
    }
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::FieldPath;

    #[track_caller]
    fn check(status: &Status, expect: &str) {
        assert_eq!(String::from_utf8(status.to_bytes()).unwrap(), expect);
    }

    #[test]
    fn empty_fields_are_left_out() {
        check(
            &Status::default(),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure"}"#,
        );
    }

    #[test]
    fn fields_in_upstream_order() {
        let path = FieldPath::root("metadata").child("name");
        let problem = FieldError::invalid_str(&path, "A", "no");
        let details = StatusDetails {
            name: "A".into(),
            group: "apps".into(),
            kind: "Deployment".into(),
            uid: "u".into(),
            causes: vec![StatusCause::from(&problem)],
            retry_after_seconds: 1,
        };
        let metadata = ListMeta {
            resource_version: "7".into(),
            continue_: "t".into(),
            remaining_item_count: Some(0),
        };
        let status = Status {
            metadata,
            message: "m\n".into(),
            reason: "Invalid".into(),
            details: Some(details),
            code: 422,
            ..Status::default()
        };
        check(
            &status,
            r#"{"kind":"Status","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"t","remainingItemCount":0},"status":"Failure","message":"m\n","reason":"Invalid","details":{"name":"A","group":"apps","kind":"Deployment","uid":"u","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: \"A\": no","field":"metadata.name"}],"retryAfterSeconds":1},"code":422}"#,
        );
    }
}
