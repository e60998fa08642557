//! URLs, as Go's `net/url` splits them: as much of it as rules of CRDs ask for.

use super::format;

/// The parts of a URL, not unescaped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts<'t> {
    /// `https`, in the case in which it is written.
    pub(crate) scheme: &'t str,
    /// The name and password.
    pub(crate) user: Option<&'t str>,
    /// The host and port.
    pub(crate) host: &'t str,
    /// What follows `?`.
    pub(crate) query: &'t str,
    /// What follows `#`.
    pub(crate) fragment: &'t str,
}

/// Whether a text is an absolute URI or an absolute path (`url.ParseRequestURI`).
pub(crate) fn is_request_uri(text: &str) -> bool {
    parse_request(text).is_some()
}

/// The parts of an absolute URI or path; `#` means nothing in it.
pub(crate) fn parse_request(text: &str) -> Option<Parts<'_>> {
    if text == "*" {
        return Some(Parts::default());
    }
    let plain = !text.is_empty() && !text.bytes().any(|b| b < b' ' || b == 0x7f);
    let (scheme, rest) = split_scheme(text)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    if !plain || (!rest.starts_with('/') && scheme.is_empty()) {
        return None;
    }
    with_authority(Parts { scheme, query, ..Parts::default() }, rest)
}

/// The parts of any URL, relative ones too (`url.Parse`).
///
/// # Errors
/// Go's words for what is wrong with it.
pub(crate) fn parse(text: &str) -> Result<Parts<'_>, String> {
    let failed = |why: &str| format!("parse {}: {why}", machinery::field::go_quote(text));
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    if rest.bytes().any(|b| b < b' ' || b == 0x7f) {
        return Err(failed("net/url: invalid control character in URL"));
    }
    if rest.starts_with(':') {
        return Err(failed("missing protocol scheme"));
    }
    let Some((scheme, rest)) = split_scheme(rest) else {
        return Err(failed("missing protocol scheme"));
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    if scheme.is_empty() && !rest.starts_with('/') {
        let segment = rest.split('/').next().unwrap_or_default();
        if segment.contains(':') {
            return Err(failed("first path segment in URL cannot contain colon"));
        }
    }
    if let Some(escape) = bad_escape(rest) {
        let quoted = machinery::field::go_quote(escape);
        return Err(failed(&format!("invalid URL escape {quoted}")));
    }
    let parts = Parts { scheme, query, fragment, ..Parts::default() };
    with_authority(parts, rest).ok_or_else(|| failed(&host_problem(rest)))
}

/// What is before the first colon if it can be a scheme; `None` if nothing is.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let Some((scheme, rest)) = text.split_once(':') else { return Some(("", text)) };
    let first = scheme.chars().next()?;
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let valid = first.is_ascii_alphabetic() && scheme.chars().all(inner);
    Some(if valid { (scheme, rest) } else { ("", text) })
}

/// Adds the user and host of `//user@host/path`.
fn with_authority<'t>(parts: Parts<'t>, rest: &'t str) -> Option<Parts<'t>> {
    if bad_escape(rest).is_some() {
        return None;
    }
    let triple = parts.scheme.is_empty() && rest.starts_with("///");
    let Some(rest) = rest.strip_prefix("//").filter(|_| !triple) else { return Some(parts) };
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let valid_user = user.is_none_or(|user| {
        user.chars().all(|c| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c))
    });
    (valid_user && is_host(host)).then_some(Parts { user, host, ..parts })
}

fn is_host(host: &str) -> bool {
    if let Some(inner) = host.strip_prefix('[') {
        let Some((address, port)) = inner.rsplit_once(']') else { return false };
        return format::is_ipv6(address.split('%').next().unwrap_or_default()) && is_port(port);
    }
    let port = host.rfind(':').and_then(|at| host.get(at..)).unwrap_or_default();
    let plain = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || HOST_MARKS.contains(c);
    is_port(port) && host.chars().all(plain)
}

/// What a host may hold beside letters and digits.
const HOST_MARKS: &str = "-._~!$&'()*+,;=:[]<>\"%";

/// Empty, or a colon and digits.
fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|p| p.bytes().all(|b| b.is_ascii_digit()))
}

/// The first `%` that no two hexadecimal digits follow, with what follows it.
fn bad_escape(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
    let (at, _) = text.match_indices('%').find(|(at, _)| !(hex(at + 1) && hex(at + 2)))?;
    let end = text.ceil_char_boundary(at.saturating_add(3).min(text.len()));
    text.get(at..end)
}

fn host_problem(rest: &str) -> String {
    let authority = rest.trim_start_matches('/').split('/').next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let port = host.rfind(':').and_then(|at| host.get(at..)).unwrap_or_default();
    if is_port(port) {
        let strange =
            |c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && !HOST_MARKS.contains(c);
        let c = host.chars().find(|c| strange(*c)).unwrap_or(' ');
        return format!(
            "invalid character {} in host name",
            machinery::field::go_quote(&c.to_string())
        );
    }
    format!("invalid port {} after host", machinery::field::go_quote(port))
}
