//! Formats of texts and numbers that kube-apiserver knows.
//!
//! Unknown ones are ignored, with a warning when the CRD is written. Names may have dashes
//! anywhere: `date-time` is `datetime`.

mod net;
mod text;

use super::node::Kind;

/// What `format` asks of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Format {
    /// Not known for the type: anything goes.
    Unknown,
    Int32,
    Int64,
    Float,
    Double,
    Bsonobjectid,
    Uri,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
    Isbn,
    Isbn10,
    Isbn13,
    Creditcard,
    Ssn,
    Hexcolor,
    Rgbcolor,
    Byte,
    Password,
    Date,
    Duration,
    Datetime,
    ShortName,
    LongName,
}

/// The formats of texts, by name without dashes.
const TEXTS: [(&str, Format); 26] = [
    ("bsonobjectid", Format::Bsonobjectid),
    ("uri", Format::Uri),
    ("email", Format::Email),
    ("hostname", Format::Hostname),
    ("ipv4", Format::Ipv4),
    ("ipv6", Format::Ipv6),
    ("cidr", Format::Cidr),
    ("mac", Format::Mac),
    ("uuid", Format::Uuid),
    ("uuid3", Format::Uuid3),
    ("uuid4", Format::Uuid4),
    ("uuid5", Format::Uuid5),
    ("isbn", Format::Isbn),
    ("isbn10", Format::Isbn10),
    ("isbn13", Format::Isbn13),
    ("creditcard", Format::Creditcard),
    ("ssn", Format::Ssn),
    ("hexcolor", Format::Hexcolor),
    ("rgbcolor", Format::Rgbcolor),
    ("byte", Format::Byte),
    ("password", Format::Password),
    ("date", Format::Date),
    ("duration", Format::Duration),
    ("datetime", Format::Datetime),
    ("k8sshortname", Format::ShortName),
    ("k8slongname", Format::LongName),
];

/// Whether a schema's `format` is one that its `type` (empty if not given) doesn't have.
pub(crate) fn unrecognized(format: &str, kind: &str) -> bool {
    let known = match (kind, Kind::parse(kind)) {
        ("", _) => Format::parse(format, None),
        (_, Some(kind)) => Format::parse(format, Some(kind)),
        (_, None) => Format::Unknown,
    };
    !format.is_empty() && known == Format::Unknown
}

/// Whether a text is an IPv6 address.
pub(super) fn is_ipv6(text: &str) -> bool {
    text.contains(':') && net::is_ip(text, net::Zeros::Refused)
}

// === impl Format ===

impl Format {
    /// The format of that name for values of a type, or of no particular type.
    pub(super) fn parse(name: &str, kind: Option<Kind>) -> Self {
        match (kind, name) {
            (Some(Kind::Integer), "int32") => Self::Int32,
            (Some(Kind::Integer), "int64") => Self::Int64,
            (Some(Kind::Number), "float") => Self::Float,
            (Some(Kind::Number), "double") => Self::Double,
            (None | Some(Kind::String), name) => {
                let name = name.replace('-', "");
                let found = TEXTS.iter().find(|(known, _)| *known == name);
                found.map_or(Self::Unknown, |(_, format)| *format)
            }
            _ => Self::Unknown,
        }
    }

    pub(super) fn is_known(self) -> bool {
        self != Self::Unknown
    }

    /// Whether it is a format of texts.
    pub(super) fn is_text(self) -> bool {
        !matches!(self, Self::Unknown | Self::Int32 | Self::Int64 | Self::Float | Self::Double)
    }

    /// Whether a text has the format.
    pub(super) fn is_valid(self, text: &str) -> bool {
        match self {
            Self::Unknown | Self::Int32 | Self::Int64 | Self::Float | Self::Double => true,
            Self::Password => true,
            Self::Bsonobjectid => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
            Self::Uri => super::uri::is_request_uri(text),
            Self::Email => text::is_email(text),
            Self::Hostname => text::is_hostname(text),
            Self::Ipv4 => text.contains('.') && net::is_ip(text, net::Zeros::Allowed),
            Self::Ipv6 => is_ipv6(text),
            Self::Cidr => net::is_cidr(text),
            Self::Mac => net::is_mac(text),
            Self::Uuid => text::is_uuid(text, None),
            Self::Uuid3 => text::is_uuid(text, Some('3')),
            Self::Uuid4 => text::is_uuid(text, Some('4')),
            Self::Uuid5 => text::is_uuid(text, Some('5')),
            Self::Isbn => text::is_isbn10(text) || text::is_isbn13(text),
            Self::Isbn10 => text::is_isbn10(text),
            Self::Isbn13 => text::is_isbn13(text),
            Self::Creditcard => text::is_credit_card(text),
            Self::Ssn => text::is_ssn(text),
            Self::Hexcolor => text::is_hex_color(text),
            Self::Rgbcolor => text::is_rgb_color(text),
            Self::Byte => text::is_base64(text),
            Self::Date => text::is_date(text),
            Self::Duration => text::is_duration(text),
            Self::Datetime => text::is_date_time(text),
            Self::ShortName => text::is_short_name(text),
            Self::LongName => text::is_long_name(text),
        }
    }
}

#[cfg(test)]
mod tests;
