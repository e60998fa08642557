//! Values without parts in JSON, some of which are messages on the wire.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use machinery::time::{MicroTime, Time};
use serde_json::Value;

use super::ProtoError;
use super::wire::{Raw, Reader, Writer};
use crate::model::Scalar;

mod duration;

/// Seconds from year 1 to 1970: Go's zero time, which is null in JSON and an empty message here.
const ZERO_TIME: i64 = -62_135_596_800;

/// Decodes the value of a field.
pub(super) fn decode(name: &str, scalar: Scalar, raw: Raw<'_>) -> Result<Value, ProtoError> {
    Ok(match scalar {
        Scalar::String => raw.text(name)?.into(),
        Scalar::Bool => (raw.varint(name)? != 0).into(),
        // Go keeps the low 32 bits.
        Scalar::Int32 => (raw.varint(name)? as u32).cast_signed().into(),
        Scalar::Int64 => raw.varint(name)?.cast_signed().into(),
        Scalar::Double => double(name, raw.double(name)?)?,
        Scalar::Bytes => STANDARD.encode(raw.bytes(name)?).into(),
        Scalar::Time | Scalar::MicroTime => time(name, scalar, raw)?,
        Scalar::Duration => {
            let nanos = single(name, raw)?.map_or(Ok(0), |raw| raw.varint(name))?;
            duration::print(nanos.cast_signed()).into()
        }
        Scalar::Quantity => single(name, raw)?.map_or(Ok("0"), |raw| raw.text(name))?.into(),
        Scalar::IntOrString => int_or_string(name, raw)?,
        Scalar::Strings => {
            let mut reader = Reader::new(raw.bytes(name)?);
            let mut items = Vec::new();
            while let Some((number, raw)) = reader.next()? {
                if number == 1 {
                    items.push(raw.text(name)?.into());
                }
            }
            Value::Array(items)
        }
        Scalar::Raw | Scalar::Json | Scalar::FieldsV1 => {
            return Err(ProtoError::Value(format!("{name}: raw JSON is no scalar")));
        }
    })
}

/// Encodes a value, or the zero value, as the field `number`. `None` when the value isn't one of
/// the type; what is written then is useless.
pub(super) fn encode(
    writer: &mut Writer,
    number: u32,
    scalar: Scalar,
    value: Option<&Value>,
) -> Option<()> {
    let end = writer.len();
    match scalar {
        Scalar::String => {
            let text = value.map_or(Some(""), Value::as_str)?;
            writer.bytes(number, text.as_bytes());
            return Some(());
        }
        Scalar::Bool => {
            let value = value.map_or(Some(false), Value::as_bool)?;
            writer.varint(number, u64::from(value));
            return Some(());
        }
        Scalar::Int32 | Scalar::Int64 => {
            let value = value.map_or(Some(0), Value::as_i64)?;
            writer.varint(number, value.cast_unsigned());
            return Some(());
        }
        Scalar::Double => {
            let value = value.map_or(Some(0.0), Value::as_f64)?;
            writer.double(number, value);
            return Some(());
        }
        Scalar::Bytes => {
            let text = value.map_or(Some(""), Value::as_str)?;
            writer.bytes(number, &STANDARD.decode(text).ok()?);
            return Some(());
        }
        Scalar::Time => {
            if let Some(value) = value {
                encode_time(writer, Time::parse(value.as_str()?).ok()?.timestamp());
            }
        }
        Scalar::MicroTime => {
            if let Some(value) = value {
                encode_time(writer, MicroTime::parse(value.as_str()?).ok()?.timestamp());
            }
        }
        Scalar::Duration => {
            let nanos = value.map_or(Some(0), |value| duration::parse(value.as_str()?))?;
            writer.varint(1, nanos.cast_unsigned());
        }
        Scalar::Quantity => {
            let text = value.map_or(Some("0"), Value::as_str)?;
            writer.bytes(1, text.as_bytes());
        }
        Scalar::IntOrString => {
            let (kind, int, text) = match value {
                None => (0, 0, ""),
                Some(Value::String(text)) => (1, 0, text.as_str()),
                Some(value) => (0, value.as_i64()?, ""),
            };
            writer.bytes(3, text.as_bytes());
            writer.varint(2, int.cast_unsigned());
            writer.varint(1, kind);
        }
        Scalar::Raw | Scalar::Json | Scalar::FieldsV1 => {
            if let Some(value) = value {
                writer.bytes(1, &serde_json::to_vec(value).ok()?);
            }
        }
        Scalar::Strings => {
            for item in value.map_or(Some(&[][..]), |value| Some(value.as_array()?))?.iter().rev() {
                writer.bytes(1, item.as_str()?.as_bytes());
            }
        }
    }
    writer.delimit(number, end);
    Some(())
}

/// Go prints whole numbers without a fraction, and JSON knows no infinity.
fn double(name: &str, value: f64) -> Result<Value, ProtoError> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Ok((value as i64).into());
    }
    let number = serde_json::Number::from_f64(value);
    number.map(Value::Number).ok_or_else(|| ProtoError::Value(format!("{name} is not finite")))
}

/// The last field 1 of a message.
fn single<'a>(name: &str, raw: Raw<'a>) -> Result<Option<Raw<'a>>, ProtoError> {
    let mut reader = Reader::new(raw.bytes(name)?);
    let mut found = None;
    while let Some((number, raw)) = reader.next()? {
        if number == 1 {
            found = Some(raw);
        }
    }
    Ok(found)
}

fn time(name: &str, scalar: Scalar, raw: Raw<'_>) -> Result<Value, ProtoError> {
    let message = raw.bytes(name)?;
    if message.is_empty() {
        return Ok(Value::Null);
    }
    let mut reader = Reader::new(message);
    let (mut seconds, mut nanos) = (0, 0);
    while let Some((number, raw)) = reader.next()? {
        match number {
            1 => seconds = raw.varint(name)?.cast_signed(),
            2 => nanos = (raw.varint(name)? as u32).cast_signed(),
            _ => {}
        }
    }
    // Go reads fractions of a second only for MicroTime.
    let nanos = if scalar == Scalar::Time { 0 } else { nanos / 1000 * 1000 };
    if seconds == ZERO_TIME && nanos == 0 {
        return Ok(Value::Null);
    }
    let moment = Timestamp::new(seconds, nanos)
        .map_err(|_| ProtoError::Value(format!("{name}: time out of range")))?;
    let text = match scalar {
        Scalar::Time => Time::at(moment).to_string(),
        _ => MicroTime::at(moment).to_string(),
    };
    Ok(Value::String(text))
}

fn encode_time(writer: &mut Writer, moment: Timestamp) {
    // Seconds are rounded down, so that nanoseconds count forward.
    let (mut seconds, mut nanos) = (moment.as_second(), moment.subsec_nanosecond());
    if nanos < 0 {
        seconds -= 1;
        nanos += 1_000_000_000;
    }
    if seconds != ZERO_TIME || nanos != 0 {
        writer.varint(2, i64::from(nanos).cast_unsigned());
        writer.varint(1, seconds.cast_unsigned());
    }
}

fn int_or_string(name: &str, raw: Raw<'_>) -> Result<Value, ProtoError> {
    let mut reader = Reader::new(raw.bytes(name)?);
    let (mut kind, mut int, mut text) = (0, 0, "");
    while let Some((number, raw)) = reader.next()? {
        match number {
            1 => kind = raw.varint(name)?,
            2 => int = (raw.varint(name)? as u32).cast_signed(),
            3 => text = raw.text(name)?,
            _ => {}
        }
    }
    match kind {
        0 => Ok(int.into()),
        1 => Ok(text.into()),
        _ => Err(ProtoError::Value(format!("{name}: impossible IntOrString.Type"))),
    }
}
