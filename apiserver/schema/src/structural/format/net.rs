//! Addresses, as Go's `net` and Kubernetes' sloppy variants parse them.

use std::net::Ipv6Addr;

/// Whether numbers of IPv4 addresses may begin with zeros, as before Go 1.17.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Zeros {
    Allowed,
    Refused,
}

/// An IPv4 or IPv6 address, without a zone.
pub(super) fn is_ip(text: &str, zeros: Zeros) -> bool {
    if text.contains(':') { is_ipv6(text, zeros) } else { is_ipv4(text, zeros) }
}

/// An address and the length of its prefix.
pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let most = if address.contains(':') { 128 } else { 32 };
    let digits = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
    digits && length.parse::<u32>().is_ok_and(|n| n <= most) && is_ip(address, Zeros::Allowed)
}

/// A hardware address of 6, 8 or 20 bytes, with colons, dashes, dots or nothing between them.
pub(super) fn is_mac(text: &str) -> bool {
    let groups = |separator: char, digits: usize, counts: &[usize]| {
        let mut count = 0;
        let whole = text.split(separator).all(|group| {
            count += 1;
            group.len() == digits && group.bytes().all(|b| b.is_ascii_hexdigit())
        });
        whole && counts.contains(&count)
    };
    let plain = [12, 16, 40].into_iter().any(|digits| groups(':', digits, &[1]));
    plain
        || groups(':', 2, &[6, 8, 20])
        || groups('-', 2, &[6, 8, 20])
        || groups('.', 4, &[3, 4, 10])
}

fn is_ipv4(text: &str, zeros: Zeros) -> bool {
    let mut count = 0;
    let numbers = text.split('.').all(|part| {
        count += 1;
        let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let plain = zeros == Zeros::Allowed || part.len() == 1 || !part.starts_with('0');
        digits && plain && part.parse::<u32>().is_ok_and(|n| n <= 255)
    });
    numbers && count == 4
}

fn is_ipv6(text: &str, zeros: Zeros) -> bool {
    match text.rsplit_once(':') {
        // The IPv4 address at its end may have zeros where Rust's parser allows none.
        Some((start, last)) if last.contains('.') => {
            is_ipv4(last, zeros) && format!("{start}:0.0.0.0").parse::<Ipv6Addr>().is_ok()
        }
        _ => text.parse::<Ipv6Addr>().is_ok(),
    }
}
