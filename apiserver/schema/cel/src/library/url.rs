//! URLs as Go's net/url reads them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::eval::Evaluated;
use crate::op::Op;
use crate::value::{EvalError, Key, Map, V};

/// A URL or an absolute path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    text: String,
    scheme: String,
    host: String,
    escaped_path: String,
    query: String,
}

impl Url {
    /// The whole text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Reads what a request line may hold: an absolute URL or an absolute path.
    pub(crate) fn parse_request(text: &str) -> Result<Self, String> {
        Self::parse(text).map_err(|why| format!("parse {text:?}: {why}"))
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.bytes().any(|b| b < 0x20 || b == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if text.is_empty() {
            return Err("empty url".to_owned());
        }
        let mut url = Self {
            text: text.to_owned(),
            scheme: String::new(),
            host: String::new(),
            escaped_path: String::new(),
            query: String::new(),
        };
        if text == "*" {
            url.escaped_path = "*".to_owned();
            return Ok(url);
        }
        let (scheme, rest) = split_scheme(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        // A request has no fragment, but the value has: both readings of upstream are one here.
        let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        url.query = query.to_owned();
        if !rest.starts_with('/') {
            if !scheme.is_empty() {
                // Opaque, such as mailto:a@b.
                return Ok(url);
            }
            return Err("invalid URI for request".to_owned());
        }
        let mut path = rest;
        if let Some(authority) = rest.strip_prefix("//")
            && (!scheme.is_empty() || !rest.starts_with("///"))
        {
            let end = authority.find('/').unwrap_or(authority.len());
            let (host, after) = authority.split_at_checked(end).unwrap_or((authority, ""));
            url.host = parse_authority(host)?;
            path = after;
        }
        url.escaped_path = escaped_path(path)?;
        Ok(url)
    }

    fn hostname(&self) -> &str {
        if let Some(end) = self.host.find(']') {
            return self.host.get(1..end).unwrap_or_default();
        }
        self.host.split(':').next().unwrap_or_default()
    }

    fn port(&self) -> &str {
        let after = self.host.rfind(']').map_or(0, |end| end + 1);
        let rest = self.host.get(after..).unwrap_or_default();
        let port = rest.rsplit_once(':').map_or("", |(_, port)| port);
        if port.bytes().all(|b| b.is_ascii_digit()) { port } else { "" }
    }

    /// The parameters in the order of their names.
    fn parameters(&self) -> BTreeMap<String, Vec<String>> {
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for part in self.query.split('&') {
            if part.is_empty() || part.contains(';') {
                continue;
            }
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            if let (Ok(name), Ok(value)) = (unescape(name, true), unescape(value, true)) {
                found.entry(name).or_default().push(value);
            }
        }
        found
    }
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' => return Ok(("", text)),
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => {
                let (scheme, rest) = text.split_at_checked(at).unwrap_or((text, ""));
                return Ok((scheme, rest.get(1..).unwrap_or_default()));
            }
            _ => return Ok(("", text)),
        }
    }
    Ok(("", text))
}

fn parse_authority(authority: &str) -> Result<String, String> {
    let host = match authority.rsplit_once('@') {
        Some((user, host)) => {
            let valid = |b: u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b);
            if !user.bytes().all(valid) {
                return Err("net/url: invalid userinfo".to_owned());
            }
            unescape(user, false)?;
            host
        }
        None => authority,
    };
    if host.starts_with('[') {
        let Some(end) = host.rfind(']') else { return Err("missing ']' in host".to_owned()) };
        let port = host.get(end + 1..).unwrap_or_default();
        check_port(port)?;
        return unescape_host(host);
    }
    if let Some(colon) = host.rfind(':') {
        check_port(host.get(colon..).unwrap_or_default())?;
    }
    unescape_host(host)
}

fn check_port(port: &str) -> Result<(), String> {
    let digits = port.strip_prefix(':');
    let valid = port.is_empty() || digits.is_some_and(|d| d.bytes().all(|b| b.is_ascii_digit()));
    if valid { Ok(()) } else { Err(format!("invalid port {port:?} after host")) }
}

fn unescape_host(host: &str) -> Result<String, String> {
    let allowed =
        |b: u8| b.is_ascii_alphanumeric() || b >= 0x80 || b"-_.~!$&'()*+,;=:[]<>\"%".contains(&b);
    if let Some(bad) = host.chars().find(|c| c.is_ascii() && !allowed(*c as u8)) {
        return Err(format!("invalid character {:?} in host name", bad.to_string()));
    }
    if let Some(at) = host.find('%') {
        let escape = host.get(at..(at + 3).min(host.len())).unwrap_or("%");
        let byte = host.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        if !matches!(byte, Some(0x80..)) && escape != "%25" {
            return Err(format!("invalid URL escape {escape:?}"));
        }
    }
    unescape(host, false)
}

/// The path as it was written, if it is a valid encoding, else encoded anew.
fn escaped_path(path: &str) -> Result<String, String> {
    let plain = unescape_bytes(path, false)?;
    let valid = |b: u8| b.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:@[]/%".contains(&b);
    if path.bytes().all(valid) {
        return Ok(path.to_owned());
    }
    let mut out = String::with_capacity(path.len());
    for byte in plain {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte) {
            out.push(byte.into());
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    Ok(out)
}

fn unescape(text: &str, plus: bool) -> Result<String, String> {
    Ok(String::from_utf8_lossy(&unescape_bytes(text, plus)?).into_owned())
}

fn unescape_bytes(text: &str, plus: bool) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'%' => {
                let digits = text.get(at + 1..at + 3);
                let hex = digits.filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
                let Some(value) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) else {
                    let shown = text.get(at..(at + 3).min(text.len())).unwrap_or("%");
                    return Err(format!("invalid URL escape {shown:?}"));
                };
                out.push(value);
                at += 3;
            }
            b'+' if plus => {
                out.push(b' ');
                at += 1;
            }
            byte => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    Ok(out)
}

pub(super) fn call<'a>(op: Op, args: &[V<'a>]) -> Evaluated<'a> {
    Ok(match (op, args) {
        (Op::Url, [V::String(text)]) => match Url::parse_request(text) {
            Ok(url) => V::Url(Arc::new(url)),
            Err(why) => {
                let what = "URL parse error during conversion from string";
                return Err(EvalError::failed(format_args!("{what}: {why}")));
            }
        },
        (Op::IsUrl, [V::String(text)]) => V::Bool(Url::parse_request(text).is_ok()),
        (Op::GetScheme, [V::Url(url)]) => V::string(&*url.scheme),
        (Op::GetHost, [V::Url(url)]) => V::string(&*url.host),
        (Op::GetHostname, [V::Url(url)]) => V::string(url.hostname()),
        (Op::GetPort, [V::Url(url)]) => V::string(url.port()),
        (Op::GetEscapedPath, [V::Url(url)]) => V::string(&*url.escaped_path),
        (Op::GetQuery, [V::Url(url)]) => {
            let list = |values: Vec<String>| V::list(values.into_iter().map(V::string).collect());
            let entries: BTreeMap<Key, V<'a>> = url
                .parameters()
                .into_iter()
                .map(|(name, values)| (Key::String(name.into()), list(values)))
                .collect();
            V::Map(Map::Owned(Arc::new(entries)))
        }
        _ => return Err(EvalError::no_such_overload()),
    })
}
