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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // What kube-apiserver's discovery says.
        assert_eq!(storage_version_hash("", "v1", "ConfigMap"), "qFsyl6wFWjQ=");
        assert_eq!(storage_version_hash("apps", "v1", "Deployment"), "8aSe+NMegvE=");
        // FIPS 180-4.
        let abc = upper_hex_sha512(b"abc");
        assert!(abc.starts_with("DDAF35A193617ABACC417349AE204131"), "{abc}");
        assert_eq!(abc.len(), 128);
    }
}
