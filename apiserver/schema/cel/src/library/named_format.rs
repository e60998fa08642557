//! Named formats: checks of texts with the messages of Kubernetes' validation.

use std::sync::Arc;

use machinery::name;

use crate::eval::Evaluated;
use crate::library::{bytes, time, url};
use crate::op::Op;
use crate::value::{EvalError, V};

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedFormat {
    Dns1123Label,
    Dns1123Subdomain,
    Dns1035Label,
    QualifiedName,
    Dns1123LabelPrefix,
    Dns1123SubdomainPrefix,
    Dns1035LabelPrefix,
    LabelValue,
    Uri,
    Uuid,
    Byte,
    Date,
    DateTime,
}

impl NamedFormat {
    fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "dns1123Label" => Self::Dns1123Label,
            "dns1123Subdomain" => Self::Dns1123Subdomain,
            "dns1035Label" => Self::Dns1035Label,
            "qualifiedName" => Self::QualifiedName,
            "dns1123LabelPrefix" => Self::Dns1123LabelPrefix,
            "dns1123SubdomainPrefix" => Self::Dns1123SubdomainPrefix,
            "dns1035LabelPrefix" => Self::Dns1035LabelPrefix,
            "labelValue" => Self::LabelValue,
            "uri" => Self::Uri,
            "uuid" => Self::Uuid,
            "byte" => Self::Byte,
            "date" => Self::Date,
            "datetime" => Self::DateTime,
            _ => return None,
        })
    }

    /// The length of a pattern that upstream counts a check as.
    pub(crate) const fn max_regex_size(self) -> u64 {
        match self {
            Self::Dns1123Label
            | Self::Dns1035Label
            | Self::Dns1123LabelPrefix
            | Self::Dns1035LabelPrefix => 30,
            Self::Dns1123Subdomain | Self::Dns1123SubdomainPrefix | Self::QualifiedName => 60,
            Self::LabelValue => 40,
            Self::Uri => 1103,
            Self::Uuid => 70,
            Self::Byte => 84,
            Self::Date | Self::DateTime => 71,
        }
    }

    /// What is wrong with `text`.
    fn problems(self, text: &str) -> Vec<String> {
        let one = |ok: bool, problem: &str| {
            if ok { Vec::new() } else { vec![problem.to_owned()] }
        };
        match self {
            Self::Dns1123Label => name::dns1123_label(text),
            Self::Dns1123LabelPrefix => name::dns1123_label(&masked(text)),
            Self::Dns1123Subdomain => name::dns1123_subdomain(text),
            Self::Dns1123SubdomainPrefix => name::dns1123_subdomain(&masked(text)),
            Self::Dns1035Label => name::dns1035_label(text),
            Self::Dns1035LabelPrefix => name::dns1035_label(&masked(text)),
            Self::QualifiedName => name::qualified_name(text),
            Self::LabelValue => name::label_value(text),
            Self::Uri => url::Url::parse_request(text).err().into_iter().collect(),
            Self::Uuid => one(is_uuid(text), "does not match the UUID format"),
            Self::Byte => one(!text.is_empty() && bytes::decode(text).is_some(), "invalid base64"),
            Self::Date => {
                let date = text.len() == 10 && time::parse_json_time(text).is_some();
                one(date, "invalid date")
            }
            Self::DateTime => {
                let time = text.len() > 10 && time::parse_json_time(text).is_some();
                one(time, "invalid datetime")
            }
        }
    }
}

/// A prefix may end with a dash, since something follows.
fn masked(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut chars = rest.chars();
            chars.next_back();
            format!("{}a", chars.as_str())
        }
        _ => prefix.to_owned(),
    }
}

/// A UUID with or without dashes.
fn is_uuid(text: &str) -> bool {
    let hex = |part: &str| part.bytes().all(|b| b.is_ascii_hexdigit());
    let lengths = [8, 4, 4, 4, 12];
    let mut rest = text;
    for (at, length) in lengths.into_iter().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((part, after)) = rest.split_at_checked(length) else { return false };
        if !hex(part) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

/// `format.dns1123Label()` and its like.
pub(super) fn constant<'a>(op: Op) -> Evaluated<'a> {
    let name = op.name().strip_prefix("format.").unwrap_or_default();
    NamedFormat::of_name(name).map(V::Format).ok_or_else(EvalError::no_such_overload)
}

pub(super) fn call<'a>(op: Op, args: &[V<'a>]) -> Evaluated<'a> {
    match (op, args) {
        (Op::FormatNamed, [V::String(name)]) => {
            let format = NamedFormat::of_name(name);
            Ok(V::Optional(format.map(|format| Arc::new(V::Format(format)))))
        }
        (Op::Validate, [V::Format(format), V::String(text)]) => {
            let problems = format.problems(text);
            if problems.is_empty() {
                return Ok(V::Optional(None));
            }
            let list = V::list(problems.into_iter().map(V::string).collect());
            Ok(V::Optional(Some(Arc::new(list))))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}
