//! Base64 as Go reads it.

use base64::Engine;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};

/// Go ignores the last symbol's unused bits.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// The canonical text of the same bytes; line breaks in the input are skipped.
///
/// # Errors
/// Where Go stops reading.
pub(super) fn canonical(text: &str) -> Result<String, usize> {
    let decoded = if text.contains(['\r', '\n']) {
        LENIENT.decode(text.replace(['\r', '\n'], ""))
    } else {
        LENIENT.decode(text)
    };
    decoded.map(|bytes| STANDARD.encode(bytes)).map_err(|_| fault_at(text.as_bytes()))
}

/// Bytes written as a list of numbers, which Go reads as well.
pub(super) fn from_list(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The offset that Go's decoder complains of.
fn fault_at(text: &[u8]) -> usize {
    let breaks = |b: u8| b == b'\r' || b == b'\n';
    let skip = |mut at: usize| {
        while text.get(at).copied().is_some_and(breaks) {
            at += 1;
        }
        at
    };
    let (mut at, mut symbols) = (0, 0);
    while let Some(&byte) = text.get(at) {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' => symbols = (symbols + 1) % 4,
            b'\r' | b'\n' => {}
            b'=' if symbols >= 2 => {
                let mut next = at + 1;
                if symbols == 2 {
                    next = skip(next);
                    match text.get(next) {
                        None => return text.len(),
                        Some(b'=') => next += 1,
                        Some(_) => return next - 1,
                    }
                }
                return skip(next);
            }
            _ => return at,
        }
        at += 1;
    }
    at - symbols
}
