//! Amounts of a resource: `100m`, `1.5`, `2Gi`, `12e6`.
//!
//! A value is a whole number of 10^-9 in an `i128`: upstream too keeps nine decimals, and rounds
//! what is finer away from zero. Texts are upstream's canonical ones: no fraction, and the
//! largest suffix that leaves a whole number.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

/// An amount. Equality, order and hash are those of the number; the notation is for printing.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nano: i128,
    notation: Notation,
}

/// Which family of suffixes a quantity prints with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// `n u m "" k M G T P E`: powers of 1000.
    DecimalSi,
    /// `Ki Mi Gi Ti Pi Ei`: powers of 1024.
    BinarySi,
    /// `e3`, `e6`: powers of ten.
    DecimalExponent,
}

/// Why a text is no quantity.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum InvalidQuantity {
    /// Not a number followed by letters.
    #[error(
        "quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// There are no digits.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// The letters are no suffix.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// Beyond about 10^29, where no resource is; upstream has no bound here.
    #[error("quantity is too large")]
    TooLarge,
}

/// Units of [`Quantity::nano`] in one.
const ONE: i128 = 1_000_000_000;
/// Binary quantities end at the largest `i64`; larger ones are read as this.
const MAX_BINARY: i128 = i64::MAX as i128 * ONE;

const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// The parts of a text: `sign`, digits before and after the point, and the suffix.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

// === impl Quantity ===

impl Quantity {
    /// Zero.
    pub const ZERO: Self = Self { nano: 0, notation: Notation::DecimalSi };

    /// A whole number.
    pub fn new(value: i64, notation: Notation) -> Self {
        Self { nano: i128::from(value) * ONE, notation }
    }

    /// A number of thousandths.
    pub fn from_milli(value: i64, notation: Notation) -> Self {
        Self { nano: i128::from(value) * (ONE / 1000), notation }
    }

    /// Reads a text such as `100m`, `-1.5`, `2Gi` or `12e6`.
    ///
    /// # Errors
    /// [`InvalidQuantity`], whose texts are upstream's.
    pub fn parse(text: &str) -> Result<Self, InvalidQuantity> {
        let parts = Parts::split(text)?;
        let suffix = Suffix::parse(parts.suffix)?;
        if parts.whole.len() + parts.fraction.len() == 0 && suffix.wants_digits() {
            return Err(InvalidQuantity::Number);
        }
        let (absolute, notation) = match suffix {
            Suffix::Decimal(exponent, notation) => (
                parts.scaled(exponent.saturating_add(9)).ok_or(InvalidQuantity::TooLarge)?,
                notation,
            ),
            // Nine more decimals than are kept, so that the product is rounded once.
            Suffix::Binary(shift) => {
                let product = parts.scaled(18).and_then(|v| v.checked_mul(1_i128 << shift));
                let value = product.map_or(MAX_BINARY, |v| divide_up(v, ONE).min(MAX_BINARY));
                let tiny = value > 0 && value < ONE;
                (value, if tiny { Notation::DecimalSi } else { Notation::BinarySi })
            }
        };
        let nano = if parts.negative { -absolute } else { absolute };
        Ok(Self { nano, notation })
    }

    /// The family of suffixes it prints with.
    pub fn notation(self) -> Notation {
        self.notation
    }

    /// Whether it is zero.
    pub fn is_zero(self) -> bool {
        self.nano == 0
    }

    /// Whether it is below zero.
    pub fn is_negative(self) -> bool {
        self.nano < 0
    }

    /// The whole number, a fraction rounded away from zero; `None` beyond an `i64`.
    pub fn value(self) -> Option<i64> {
        self.in_units_of(ONE)
    }

    /// The number of thousandths, rounded away from zero; `None` beyond an `i64`.
    pub fn milli_value(self) -> Option<i64> {
        self.in_units_of(ONE / 1000)
    }

    /// The sum, in this one's notation (the other's if this is zero); `None` when out of range.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let notation = if self.is_zero() { other.notation } else { self.notation };
        Some(Self { nano: self.nano.checked_add(other.nano)?, notation })
    }

    /// The difference, in this one's notation; `None` when out of range.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        let notation = if self.is_zero() { other.notation } else { self.notation };
        Some(Self { nano: self.nano.checked_sub(other.nano)?, notation })
    }

    fn in_units_of(self, unit: i128) -> Option<i64> {
        let magnitude = divide_up(self.nano.checked_abs()?, unit);
        i64::try_from(if self.nano < 0 { -magnitude } else { magnitude }).ok()
    }

    /// How often 1024 divides a whole number of at least 1024 in magnitude.
    fn binary(self) -> Option<(i128, &'static str)> {
        let mut value = self.nano / ONE;
        if self.nano % ONE != 0 || value.unsigned_abs() < 1024 {
            return None;
        }
        let mut suffix = "";
        for next in BINARY {
            if value % 1024 != 0 {
                break;
            }
            value /= 1024;
            suffix = next;
        }
        Some((value, suffix))
    }
}

impl FromStr for Quantity {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// Prints the canonical form.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nano == 0 {
            return f.write_str("0");
        }
        if self.notation == Notation::BinarySi
            && let Some((value, suffix)) = self.binary()
        {
            return write!(f, "{value}{suffix}");
        }
        let (mut value, mut exponent) = (self.nano, -9);
        // SI ends at E; exponents may grow as long as zeros last.
        let end = if self.notation == Notation::DecimalExponent { i32::MAX } else { 18 };
        while exponent < end && value % 1000 == 0 {
            value /= 1000;
            exponent += 3;
        }
        match self.notation {
            Notation::DecimalExponent if exponent == 0 => write!(f, "{value}"),
            Notation::DecimalExponent => write!(f, "{value}e{exponent}"),
            Notation::DecimalSi | Notation::BinarySi => {
                let suffix = DECIMAL.iter().find(|(_, e)| *e == exponent).map_or("", |(s, _)| s);
                write!(f, "{value}{suffix}")
            }
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nano.hash(state);
    }
}

/// What a suffix multiplies by.
enum Suffix {
    /// A power of ten.
    Decimal(i64, Notation),
    /// A power of two.
    Binary(u32),
}

// === impl Suffix ===

impl Suffix {
    /// Upstream takes a missing number for zero, except on its slow path.
    fn wants_digits(&self) -> bool {
        match self {
            Self::Decimal(exponent, _) => *exponent < -9,
            Self::Binary(shift) => *shift >= 50,
        }
    }

    fn parse(text: &str) -> Result<Self, InvalidQuantity> {
        if let Some((_, exponent)) = DECIMAL.iter().find(|(suffix, _)| *suffix == text) {
            return Ok(Self::Decimal(i64::from(*exponent), Notation::DecimalSi));
        }
        if let Some(index) = BINARY.iter().position(|suffix| *suffix == text) {
            return Ok(Self::Binary(10 * (index as u32 + 1)));
        }
        let digits = text.strip_prefix(['e', 'E']).ok_or(InvalidQuantity::Suffix)?;
        let exponent = digits.parse().map_err(|_| InvalidQuantity::Suffix)?;
        Ok(Self::Decimal(exponent, Notation::DecimalExponent))
    }
}

// === impl Parts ===

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Result<Self, InvalidQuantity> {
        if text.is_empty() {
            return Err(InvalidQuantity::Format);
        }
        let negative = text.starts_with('-');
        let rest = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, rest) = split_while(rest, |b| b.is_ascii_digit());
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => split_while(rest, |b| b.is_ascii_digit()),
            None => ("", rest),
        };
        let (_, exponent) = split_while(suffix, |b| b"eEinumkKMGTP".contains(&b));
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        let (_, trailing) = split_while(exponent, |b| b.is_ascii_digit());
        if !trailing.is_empty() {
            return Err(InvalidQuantity::Format);
        }
        Ok(Self { negative, whole, fraction, suffix })
    }

    /// The magnitude times ten to the `exponent`, rounded up; `None` beyond an `i128`.
    fn scaled(&self, exponent: i64) -> Option<i128> {
        let digits = || {
            let all = self.whole.bytes().chain(self.fraction.bytes());
            all.skip_while(|b| *b == b'0').map(|b| i128::from(b - b'0'))
        };
        if digits().next().is_none() {
            return Some(0);
        }
        // How many of the digits stand before the point once the exponent is applied.
        let significant = i64::try_from(digits().count()).ok()?;
        let fraction = i64::try_from(self.fraction.len()).ok()?;
        let kept = significant.checked_sub(fraction)?.checked_add(exponent)?;
        if kept > 39 {
            return None;
        }
        let kept = usize::try_from(kept).unwrap_or(0);
        let mut value = 0_i128;
        for digit in digits().chain(std::iter::repeat(0)).take(kept) {
            value = value.checked_mul(10)?.checked_add(digit)?;
        }
        let lost = digits().skip(kept).any(|digit| digit != 0);
        value.checked_add(i128::from(lost))
    }
}

fn split_while(text: &str, wanted: impl Fn(u8) -> bool) -> (&str, &str) {
    let length = text.bytes().take_while(|b| wanted(*b)).count();
    // Only ASCII bytes are wanted, so the cut is never inside a character.
    text.split_at_checked(length).unwrap_or((text, ""))
}

/// Division of a non-negative number, rounded up.
fn divide_up(value: i128, by: i128) -> i128 {
    value / by + i128::from(value % by != 0)
}

#[cfg(test)]
mod tests;
