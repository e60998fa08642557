//! Query parameters: a small list of pairs, and the options that the registry takes.
//!
//! Unknown parameters are ignored, as upstream does; of a parameter that is given twice the first
//! counts.

mod options;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use super::request_info::decode_query;
use crate::registry::Error;

pub(crate) use options::{PatchForm, WriteVerb, delete_options, list_options, write_options};

/// More pairs than this are refused: no client sends a tenth of it.
const MAX_PAIRS: usize = 256;

/// The parameters of a request, decoded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query<'a> {
    pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

// === impl Query ===

impl<'a> Query<'a> {
    /// Reads the part of a URL after the question mark.
    ///
    /// # Errors
    /// When an escape or the encoding is broken: guessing might list or delete too much.
    pub(crate) fn parse(raw: Option<&'a str>) -> Result<Self, Error> {
        let Some(raw) = raw.filter(|raw| !raw.is_empty()) else {
            return Ok(Self::default());
        };
        let mut pairs = Vec::with_capacity(4);
        for pair in raw.split('&').filter(|pair| !pair.is_empty()) {
            if pairs.len() == MAX_PAIRS {
                return Err(Error::bad_request("the request has too many query parameters"));
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            pairs.push((decode_query(name)?, decode_query(value)?));
        }
        Ok(Self { pairs })
    }

    /// The first value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.pairs.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_ref())
    }

    /// All values of a parameter, in order.
    pub(crate) fn all<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> + use<'a, 'q> {
        self.pairs.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_ref())
    }

    /// A parameter's value, or the empty string.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// A boolean: true unless absent, `false` or `0`; `?watch` alone is true.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// A whole number; an empty value counts as absent.
    ///
    /// # Errors
    /// With the text that Go has for what is no number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, Error> {
        let Some(text) = self.get(name).filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        text.parse::<i64>().map(Some).map_err(|error| {
            use std::num::IntErrorKind::{NegOverflow, PosOverflow};
            let why = match error.kind() {
                PosOverflow | NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            let quoted = machinery::field::go_quote(text);
            Error::bad_request(format!("strconv.ParseInt: parsing {quoted}: {why}"))
        })
    }
}
