//! Which addresses calls may reach that tenants cause.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A range of addresses, as `127.0.0.0/8` or `::1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    base: IpAddr,
    prefix: u8,
}

/// A text that is no range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an address or a range of addresses, as 127.0.0.1 or 10.0.0.0/8")]
pub struct InvalidNetwork;

/// Decides about addresses: public and private ones may be reached, and of the special ones only
/// those that are allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reachable {
    allowed: Vec<Network>,
}

// === impl Network ===

impl Network {
    /// Every loopback address.
    pub fn loopback() -> [Self; 2] {
        [
            Self { base: Ipv4Addr::new(127, 0, 0, 0).into(), prefix: 8 },
            Self { base: Ipv6Addr::LOCALHOST.into(), prefix: 128 },
        ]
    }

    /// Every address there is.
    pub fn everything() -> [Self; 2] {
        [
            Self { base: Ipv4Addr::UNSPECIFIED.into(), prefix: 0 },
            Self { base: Ipv6Addr::UNSPECIFIED.into(), prefix: 0 },
        ]
    }

    /// Whether an address is in the range.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(u32::from(32 - self.prefix)).unwrap_or(0);
                base.to_bits() & mask == address.to_bits() & mask
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(u32::from(128 - self.prefix)).unwrap_or(0);
                base.to_bits() & mask == address.to_bits() & mask
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let (base, prefix) = text.split_once('/').map_or((text, None), |(b, p)| (b, Some(p)));
        let base: IpAddr = base.parse().map_err(|_| InvalidNetwork)?;
        let most = if base.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => most,
            Some(prefix) => prefix.parse().ok().filter(|p| *p <= most).ok_or(InvalidNetwork)?,
        };
        Ok(Self { base, prefix })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

// === impl Reachable ===

impl Reachable {
    /// With these ranges of special addresses allowed.
    pub fn new(allowed: Vec<Network>) -> Self {
        Self { allowed }
    }

    /// Whether an address may be reached.
    pub fn permits(&self, address: IpAddr) -> bool {
        self.allowed.iter().any(|network| network.contains(address)) || !is_special(address)
    }
}

/// Addresses that mean this machine, its link, or no single machine, in any form.
fn is_special(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_special_v4(address),
        IpAddr::V6(address) => is_special_v6(address),
    }
}

fn is_special_v4(address: Ipv4Addr) -> bool {
    // All of 0.0.0.0/8 means this host, and 240.0.0.0/4 holds the broadcast address.
    address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.octets()[0] == 0
        || address.octets()[0] >= 240
}

fn is_special_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match segments {
        // Unspecified, loopback, mapped and compatible forms of IPv4: none is needed to name a host.
        [0, 0, 0, 0, 0, 0 | 0xffff, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] => true,
        // Translated forms lead to the address in them.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            is_special_v4(v4(high, low))
        }
        // A network may translate under any prefix here, so nothing is known of where it leads.
        [0x64, 0xff9b, 1, ..] => true,
        // Teredo holds an address that is hard to see.
        [0x2001, 0, ..] => true,
        [first, ..] => {
            first & 0xffc0 == 0xfe80 || first & 0xffc0 == 0xfec0 || address.is_multicast()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_addresses_are_refused_in_every_form() {
        let check = |text: &str, expect: bool| {
            let reachable = Reachable::new(Vec::new());
            assert_eq!(reachable.permits(text.parse().unwrap()), expect, "{text}");
        };
        for special in [
            "127.0.0.1",
            "127.255.0.1",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001:0:1::1",
        ] {
            check(special, false);
        }
        for usual in
            ["8.8.8.8", "10.0.0.1", "192.168.1.1", "2001:db8::1", "fd00::1", "64:ff9b::808:808"]
        {
            check(usual, true);
        }
    }

    #[test]
    fn ranges_open_what_is_special() {
        let check = |network: &str, address: &str, expect: bool| {
            let network: Network = network.parse().unwrap();
            let reachable = Reachable::new(vec![network]);
            assert_eq!(reachable.permits(address.parse().unwrap()), expect, "{network} {address}");
        };
        check("127.0.0.0/8", "127.3.4.5", true);
        check("127.0.0.1", "127.0.0.2", false);
        check("127.0.0.1/32", "::ffff:127.0.0.1", false);
        check("::1", "::1", true);
        check("::/0", "127.0.0.1", false);
        check("0.0.0.0/0", "169.254.1.1", true);
        for wrong in ["", "x", "1.2.3.4/33", "::1/129", "1.2.3.4/", "1.2.3.4/-1"] {
            assert_eq!(wrong.parse::<Network>(), Err(InvalidNetwork), "{wrong}");
        }
    }
}
