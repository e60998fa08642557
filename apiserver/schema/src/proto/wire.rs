//! The wire format: tags, numbers and length-delimited bytes.

use super::ProtoError;

/// Reads the fields of one message.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

/// One field's value as it stands on the wire.
#[derive(Debug, Clone, Copy)]
pub(super) enum Raw<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
}

/// Writes messages from their end to their beginning, so that lengths are known when they are due.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// The bytes in reverse.
    reversed: Vec<u8>,
}

// === impl Reader ===

impl<'a> Reader<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// The next field's number and value.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Raw<'a>)>, ProtoError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let (number, wire) = (tag >> 3, (tag & 7) as u8);
        let illegal = ProtoError::IllegalTag { number, wire };
        let Some(short) = u32::try_from(number).ok().filter(|n| (1..1 << 29).contains(n)) else {
            return Err(illegal);
        };
        let value = match wire {
            0 => Raw::Varint(self.varint()?),
            1 => {
                let (bytes, rest) = self.rest.split_first_chunk().ok_or(ProtoError::Truncated)?;
                self.rest = rest;
                Raw::Fixed64(u64::from_le_bytes(*bytes))
            }
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| ProtoError::Truncated)?;
                let split = self.rest.split_at_checked(length);
                let (bytes, rest) = split.ok_or(ProtoError::Truncated)?;
                self.rest = rest;
                Raw::Bytes(bytes)
            }
            5 => {
                self.rest = self.rest.get(4..).ok_or(ProtoError::Truncated)?;
                Raw::Fixed32
            }
            _ => return Err(illegal),
        };
        Ok(Some((short, value)))
    }

    /// A number of up to ten bytes, seven bits in each, the lowest first.
    pub(super) fn varint(&mut self) -> Result<u64, ProtoError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(ProtoError::Truncated)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ProtoError::Overflow)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

// === impl Raw ===

impl<'a> Raw<'a> {
    pub(super) fn bytes(self, field: &str) -> Result<&'a [u8], ProtoError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            other => Err(other.unexpected(field)),
        }
    }

    pub(super) fn text(self, field: &str) -> Result<&'a str, ProtoError> {
        std::str::from_utf8(self.bytes(field)?)
            .map_err(|_| ProtoError::Utf8 { field: field.to_owned() })
    }

    pub(super) fn varint(self, field: &str) -> Result<u64, ProtoError> {
        match self {
            Self::Varint(value) => Ok(value),
            other => Err(other.unexpected(field)),
        }
    }

    pub(super) fn double(self, field: &str) -> Result<f64, ProtoError> {
        match self {
            Self::Fixed64(bits) => Ok(f64::from_bits(bits)),
            other => Err(other.unexpected(field)),
        }
    }

    fn unexpected(self, field: &str) -> ProtoError {
        let wire = match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Fixed32 => 5,
        };
        ProtoError::WireType { field: field.to_owned(), wire }
    }
}

// === impl Writer ===

impl Writer {
    /// Bytes written so far, all of which come after what is written next.
    pub(crate) fn len(&self) -> usize {
        self.reversed.len()
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.reversed.extend(bytes.iter().rev());
    }

    pub(crate) fn bytes(&mut self, number: u32, bytes: &[u8]) {
        let end = self.len();
        self.raw(bytes);
        self.delimit(number, end);
    }

    /// Makes a field of what was written since [`Writer::len`] was `end`.
    pub(crate) fn delimit(&mut self, number: u32, end: usize) {
        self.number((self.len() - end) as u64);
        self.tag(number, 2);
    }

    pub(crate) fn varint(&mut self, number: u32, value: u64) {
        self.number(value);
        self.tag(number, 0);
    }

    pub(crate) fn double(&mut self, number: u32, value: f64) {
        self.raw(&value.to_bits().to_le_bytes());
        self.tag(number, 1);
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.reversed.reverse();
        self.reversed
    }

    fn tag(&mut self, number: u32, wire: u8) {
        self.number(u64::from(number) << 3 | u64::from(wire));
    }

    fn number(&mut self, mut value: u64) {
        let mut bytes = [0; 10];
        let mut length = 0;
        for byte in &mut bytes {
            *byte = (value & 0x7f) as u8 | 0x80;
            value >>= 7;
            length += 1;
            if value == 0 {
                *byte &= 0x7f;
                break;
            }
        }
        self.raw(&bytes[..length]);
    }
}
