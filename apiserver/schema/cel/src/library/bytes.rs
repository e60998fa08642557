//! Base64, as the format `byte` of a schema has it.

/// The bytes that padded standard base64 stands for; line ends are left out, as Go leaves them out.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let symbols: Vec<u8> = text.bytes().filter(|b| !matches!(b, b'\n' | b'\r')).collect();
    if !symbols.len().is_multiple_of(4) {
        return None;
    }
    let body = symbols.iter().rev().skip_while(|b| **b == b'=').count();
    if symbols.len() - body > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(body / 4 * 3 + 2);
    let (mut bits, mut count) = (0_u32, 0_u32);
    for symbol in symbols.iter().take(body) {
        let value = match symbol {
            b'A'..=b'Z' => symbol - b'A',
            b'a'..=b'z' => symbol - b'a' + 26,
            b'0'..=b'9' => symbol - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count & 0xff) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(out)
}

/// Bytes as padded standard base64.
pub(crate) fn encode(bytes: &[u8]) -> String {
    const SYMBOLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let symbol = SYMBOLS.get((bits >> (18 - 6 * at) & 63) as usize).copied();
            let given = at <= chunk.len();
            text.push(char::from(symbol.filter(|_| given).unwrap_or(b'=')));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn base64_is_written() {
        for text in ["", "a", "ab", "abc", "abcd", "\u{7ff}\u{1f600}?>"] {
            let written = encode(text.as_bytes());
            assert_eq!(written.len() % 4, 0, "{written}");
            assert_eq!(decode(&written).as_deref(), Some(text.as_bytes()), "{written}");
        }
        assert_eq!(encode(&[0xfb, 0xff]), "+/8=");
    }

    #[test]
    fn base64_is_read() {
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(decode(text).as_deref(), expect.map(str::as_bytes), "{text:?}");
        };
        check("", Some(""));
        check("YQ==", Some("a"));
        check("YWI=", Some("ab"));
        check("YWJj", Some("abc"));
        check("YW\nJj", Some("abc"));
        check("YQ", None);
        check("Y===", None);
        check("YQ=a", None);
        check("Y-==", None);
    }
}
