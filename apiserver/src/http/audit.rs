//! The id of a request: in its answer, in the log, and in errors that a client may report.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use ahash::RandomState;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The header that carries the id, both ways.
pub(crate) const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// Longest id that is taken from a client.
const MAX_LEN: usize = 64;

/// Makes ids: unique, and unpredictable enough not to be mistaken for one another.
#[derive(Debug)]
pub(crate) struct AuditIds {
    next: AtomicU64,
    keys: [RandomState; 2],
}

/// The id of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuditId(HeaderValue);

// === impl AuditIds ===

impl Default for AuditIds {
    fn default() -> Self {
        Self { next: AtomicU64::new(1), keys: [RandomState::new(), RandomState::new()] }
    }
}

impl AuditIds {
    /// The client's id if it is sane, else a new one.
    pub(crate) fn of(&self, headers: &HeaderMap) -> AuditId {
        let given = headers.get(AUDIT_ID).filter(|value| {
            let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte);
            let bytes = value.as_bytes();
            !bytes.is_empty() && bytes.len() <= MAX_LEN && bytes.iter().all(plain)
        });
        match given {
            Some(value) => AuditId(value.clone()),
            None => self.make(),
        }
    }

    fn make(&self) -> AuditId {
        // Keyed hashes of a counter look random and cost no system call.
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        let [high, low] = &self.keys;
        let halves = (u128::from(high.hash_one(count)) << 64) | u128::from(low.hash_one(count));
        let id = uuid::Builder::from_random_bytes(halves.to_be_bytes()).into_uuid();
        let mut buffer = uuid::Uuid::encode_buffer();
        let text = id.hyphenated().encode_lower(&mut buffer);
        AuditId(HeaderValue::from_str(text).expect("a UUID is hexadecimal digits and dashes"))
    }
}

// === impl AuditId ===

impl AuditId {
    /// The id as a header's value.
    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }

    /// The id as text.
    pub(crate) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

impl fmt::Display for AuditId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sane_ids_of_clients_are_kept() {
        let ids = AuditIds::default();
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUDIT_ID, HeaderValue::from_str(text).unwrap());
            ids.of(&headers).to_string()
        };
        assert_eq!(of("my-id.1"), "my-id.1");
        for odd in ["", "a b", "<script>", &"x".repeat(65)] {
            let made = of(odd);
            assert!(made != odd && uuid::Uuid::parse_str(&made).is_ok(), "{made}");
        }
        assert_ne!(of(""), of(""));
    }
}
