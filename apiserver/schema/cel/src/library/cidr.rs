//! Network prefixes.

use std::fmt;
use std::net::IpAddr;

use crate::library::addresses::parse_netip;

/// An address and the number of its leading bits that name a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cidr {
    pub(crate) address: IpAddr,
    pub(crate) bits: u8,
}

/// The bits of an address, left-aligned in 128 bits, and how many there are.
fn bits_of(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()) << 96, 32),
        IpAddr::V6(v6) => (v6.to_bits(), 128),
    }
}

const fn mask(bits: u8) -> u128 {
    if bits == 0 { 0 } else { u128::MAX << (128 - bits) }
}

impl Cidr {
    /// Reads `address/bits`, as Go's netip does.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let error = |why: &str| format!("netip.ParsePrefix({text:?}): {why}");
        let Some((address, bits)) = text.rsplit_once('/') else {
            return Err(error("no '/'"));
        };
        let address = parse_netip(address).map_err(|why| error(&why))?;
        let shown = format!("bad bits after slash: {bits:?}");
        let plain = bits.bytes().all(|b| b.is_ascii_digit())
            && !bits.is_empty()
            && (bits.len() == 1 || !bits.starts_with('0'));
        if !plain || bits.len() > 3 {
            return Err(error(&shown));
        }
        let (_, width) = bits_of(address);
        match bits.parse::<u8>() {
            Ok(bits) if bits <= width => Ok(Self { address, bits }),
            _ => Err(error("prefix length out of range")),
        }
    }

    /// Bytes that the prefix has, for costs.
    pub(crate) fn byte_length(self) -> u64 {
        u64::from(self.bits).div_ceil(8)
    }

    pub(crate) fn contains(self, other: IpAddr) -> bool {
        let ((mine, width), (its, its_width)) = (bits_of(self.address), bits_of(other));
        width == its_width && (mine ^ its) & mask(self.bits) == 0
    }

    pub(crate) fn contains_prefix(self, other: Self) -> bool {
        self.bits <= other.bits && self.contains(other.address)
    }

    /// The prefix with all other bits zero.
    pub(crate) fn masked(self) -> Self {
        let address = match self.address {
            IpAddr::V4(v4) => {
                let kept = u128::from(v4.to_bits()) << 96 & mask(self.bits);
                IpAddr::V4(((kept >> 96) as u32).into())
            }
            IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & mask(self.bits)).into()),
        };
        Self { address, bits: self.bits }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}
