//! IP addresses and network prefixes.

use std::net::IpAddr;

use crate::eval::Evaluated;
use crate::library::cidr::Cidr;
use crate::op::Op;
use crate::value::{EvalError, V};

/// Reads an address as Go's netip does; the error is the part behind the name of the text.
pub(super) fn parse_netip(text: &str) -> Result<IpAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let error = |why: &str| format!("ParseAddr({text:?}): {why}");
    let first = text.bytes().find(|b| matches!(b, b'.' | b':' | b'%'));
    Err(error(match first {
        Some(b'.') => return Err(error(v4_error(text))),
        Some(b':') if text.contains('%') => {
            // Zones are read by Go and refused by Kubernetes.
            return match text.split_once('%') {
                Some((address, zone)) if !zone.is_empty() && address.parse::<IpAddr>().is_ok() => {
                    Err(format!("zone:{text}"))
                }
                _ => Err(error("zone must be a non-empty string")),
            };
        }
        Some(b':') => "unable to parse IP",
        Some(_) => "missing IPv6 address",
        None => "unable to parse IP",
    }))
}

fn v4_error(text: &str) -> &'static str {
    let parts: Vec<&str> = text.split('.').collect();
    for part in &parts {
        if part.bytes().any(|b| !b.is_ascii_digit()) {
            return "unexpected character";
        }
        if part.is_empty() {
            return "IPv4 field must have at least one digit";
        }
        if part.len() > 1 && part.starts_with('0') {
            return "IPv4 field has octet with leading zero";
        }
        if part.parse::<u16>().is_ok_and(|value| value > 255) || part.len() > 3 {
            return "IPv4 field has value >255";
        }
    }
    if parts.len() > 4 { "IPv4 address too long" } else { "IPv4 address too short" }
}

fn parse(text: &str) -> Result<IpAddr, EvalError> {
    let address = parse_netip(text).map_err(|why| {
        if why.starts_with("zone:") {
            EvalError::failed(format_args!("IP address {text:?} with zone value is not allowed"))
        } else {
            EvalError::failed(format_args!(
                "IP Address {text:?} parse error during conversion from string: {why}"
            ))
        }
    })?;
    if is_mapped(address) {
        let text = format_args!("IPv4-mapped IPv6 address {text:?} is not allowed");
        return Err(EvalError::failed(text));
    }
    Ok(address)
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

fn parse_cidr(text: &str) -> Result<Cidr, EvalError> {
    const WHAT: &str = "network address parse error during conversion from string";
    let cidr = Cidr::parse(text)
        .map_err(|why| EvalError::failed(format_args!("{WHAT}: {WHAT}: {why}")))?;
    if is_mapped(cidr.address) {
        return Err(EvalError::failed(format_args!(
            "{WHAT}: IPv4-mapped IPv6 address {text:?} is not allowed"
        )));
    }
    Ok(cidr)
}

pub(super) fn call<'a>(op: Op, args: &[V<'a>]) -> Evaluated<'a> {
    Ok(match (op, args) {
        (Op::Ip, [V::String(text)]) => V::Ip(parse(text)?),
        (Op::Ip, [V::Cidr(cidr)]) => V::Ip(cidr.address),
        (Op::IsIp, [V::String(text)]) => V::Bool(parse(text).is_ok()),
        (Op::IpIsCanonical, [V::String(text)]) => V::Bool(parse(text)?.to_string() == **text),
        (Op::Cidr, [V::String(text)]) => V::Cidr(parse_cidr(text)?),
        (Op::IsCidr, [V::String(text)]) => V::Bool(parse_cidr(text).is_ok()),
        (Op::PrefixLength, [V::Cidr(cidr)]) => V::Int(cidr.bits.into()),
        (Op::Masked, [V::Cidr(cidr)]) => V::Cidr(cidr.masked()),
        (Op::ContainsIp, [V::Cidr(cidr), V::Ip(other)]) => V::Bool(cidr.contains(*other)),
        (Op::ContainsIp, [V::Cidr(cidr), V::String(text)]) => {
            // Upstream doesn't say what is wrong with the text.
            let other = parse(text).map_err(|_| EvalError::no_such_overload())?;
            V::Bool(cidr.contains(other))
        }
        (Op::ContainsCidr, [V::Cidr(cidr), V::Cidr(other)]) => {
            V::Bool(cidr.contains_prefix(*other))
        }
        (Op::ContainsCidr, [V::Cidr(cidr), V::String(text)]) => {
            V::Bool(cidr.contains_prefix(parse_cidr(text)?))
        }
        (_, [V::Ip(address)]) => property(op, *address)?,
        _ => return Err(EvalError::no_such_overload()),
    })
}

fn property<'a>(op: Op, address: IpAddr) -> Evaluated<'a> {
    let multicast = match address {
        IpAddr::V4(v4) => matches!(v4.octets(), [224, 0, 0, _]),
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    };
    let unicast = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments()[0] & 0xffc0 == 0xfe80,
    };
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    Ok(match op {
        Op::Family => V::Int(if address.is_ipv4() { 4 } else { 6 }),
        Op::IsUnspecified => V::Bool(address.is_unspecified()),
        Op::IsLoopback => V::Bool(address.is_loopback()),
        Op::IsLinkLocalMulticast => V::Bool(multicast),
        Op::IsLinkLocalUnicast => V::Bool(unicast),
        Op::IsGlobalUnicast => V::Bool(
            !address.is_unspecified()
                && !address.is_loopback()
                && !address.is_multicast()
                && !unicast
                && !broadcast,
        ),
        _ => return Err(EvalError::no_such_overload()),
    })
}
