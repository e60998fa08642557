//! Content hashes that clients see.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256, Sha512};

/// SHA-512 in upper-case hexadecimal: the ETag of aggregated discovery and of OpenAPI v3.
pub fn upper_hex_sha512(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut text = String::with_capacity(128);
    for byte in Sha512::digest(bytes) {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from(DIGITS[usize::from(nibble)]));
        }
    }
    text
}

/// `storageVersionHash` of discovery: the first 8 bytes of the SHA-256 of `group/version/kind`,
/// in base64. The core group is empty, so that its text begins with the slash.
pub fn storage_version_hash(group: &str, version: &str, kind: &str) -> String {
    let digest = Sha256::digest(format!("{group}/{version}/{kind}"));
    STANDARD.encode(&digest[..8])
}
