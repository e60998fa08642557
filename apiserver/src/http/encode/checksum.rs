//! CRC-32 of texts that are put together from parts (RFC 1952 §8).
//!
//! The sum of `a` followed by `b` is the sum of `a` times x^(8·length of b), plus the sum of `b`, in
//! GF(2)[x] modulo the polynomial. The library's way finds that power at each join; here it is kept
//! with the part, so that joining one costs some tens of nanoseconds.

use flate2::Crc;

/// The polynomial, with its bits reflected and without x^32.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// 1, reflected.
const ONE: u32 = 1 << 31;

/// x^8, reflected: one byte.
const BYTE: u32 = 1 << 23;

/// The sum of some bytes, and what it takes to put it behind another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checksum {
    sum: u32,
    /// The number of bytes, modulo 2^32 as gzip has it.
    length: u32,
    /// x^(8·length).
    shift: u32,
}

// === impl Checksum ===

/// Of no bytes.
impl Default for Checksum {
    fn default() -> Self {
        Self { sum: 0, length: 0, shift: ONE }
    }
}

impl Checksum {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut crc = Crc::new();
        crc.update(bytes);
        Self { sum: crc.sum(), length: crc.amount(), shift: power(bytes.len()) }
    }

    /// Puts the bytes of `next` behind.
    pub(super) fn append(&mut self, next: Self) {
        self.sum = product(next.shift, self.sum) ^ next.sum;
        self.length = self.length.wrapping_add(next.length);
        self.shift = product(self.shift, next.shift);
    }

    pub(super) fn sum(self) -> u32 {
        self.sum
    }

    pub(super) fn length(self) -> u32 {
        self.length
    }
}

/// The product of two polynomials, reflected, modulo the polynomial.
fn product(a: u32, mut b: u32) -> u32 {
    let mut out = 0;
    let mut rest = a;
    while rest != 0 {
        // The highest bit is the lowest power.
        out ^= b & (rest >> 31).wrapping_neg();
        rest <<= 1;
        b = (b >> 1) ^ (POLYNOMIAL & (b & 1).wrapping_neg());
    }
    out
}

/// x^(8·bytes).
fn power(mut bytes: usize) -> u32 {
    let (mut out, mut square) = (ONE, BYTE);
    while bytes > 0 {
        if bytes & 1 == 1 {
            out = product(out, square);
        }
        square = product(square, square);
        bytes >>= 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Sums of parts make the sum of the whole, however it is cut.
        #[test]
        fn parts_make_the_whole(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..8)) {
            let mut joined = Checksum::default();
            for part in &parts {
                joined.append(Checksum::of(part));
            }
            prop_assert_eq!(joined, Checksum::of(&parts.concat()));
        }
    }
}
