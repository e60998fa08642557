//! Semantic versions.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::eval::Evaluated;
use crate::op::Op;
use crate::value::{EvalError, V};

/// A version of semver 2.0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Semver {
    major: u64,
    minor: u64,
    patch: u64,
    pre: Vec<Pre>,
    build: Vec<String>,
}

/// A part of a pre-release; numbers come before texts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Pre {
    Number(u64),
    Text(String),
}

impl Semver {
    /// Reads a whole version.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (rest, build) = match rest.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (rest, None),
        };
        let (patch, pre) = match rest.split_once('-') {
            Some((patch, pre)) => (patch, Some(pre)),
            None => (rest, None),
        };
        let (major, minor) = (number(major, "Major")?, number(minor, "Minor")?);
        let patch = number(patch, "Patch")?;
        let mut version = Self { major, minor, patch, pre: Vec::new(), build: Vec::new() };
        for part in pre.into_iter().flat_map(|pre| pre.split('.')) {
            version.pre.push(Pre::parse(part)?);
        }
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !part.bytes().all(is_part) {
                return Err(format!("Invalid character(s) found in build meta data {part:?}"));
            }
            version.build.push(part.to_owned());
        }
        Ok(version)
    }

    /// Reads a version that may lack parts, begin with `v` or have leading zeros.
    fn parse_tolerant(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text
            .splitn(3, '.')
            .map(|part| {
                if part.len() < 2 {
                    return part.to_owned();
                }
                let trimmed = part.trim_start_matches('0');
                if trimmed.starts_with(|c: char| c.is_ascii_digit()) {
                    trimmed.to_owned()
                } else {
                    format!("0{trimmed}")
                }
            })
            .collect();
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return Err("short version cannot contain PreRelease/Build meta data".to_owned());
            }
            parts.resize(3, "0".to_owned());
        }
        Self::parse(&parts.join("."))
    }

    /// The order of precedence, which ignores build metadata.
    pub(crate) fn cmp_precedence(&self, other: &Self) -> Ordering {
        let release = (self.major, self.minor, self.patch);
        release.cmp(&(other.major, other.minor, other.patch)).then_with(|| {
            match (self.pre.is_empty(), other.pre.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => self.pre.cmp(&other.pre),
            }
        })
    }
}

impl Pre {
    fn parse(part: &str) -> Result<Self, String> {
        if part.is_empty() {
            return Err("Prerelease is empty".to_owned());
        }
        if part.bytes().all(|b| b.is_ascii_digit()) {
            if part.len() > 1 && part.starts_with('0') {
                let text = "Numeric PreRelease version must not contain leading zeroes";
                return Err(format!("{text} {part:?}"));
            }
            return part
                .parse()
                .map(Self::Number)
                .map_err(|_| format!("strconv.ParseUint: parsing {part:?}: value out of range"));
        }
        if part.bytes().all(is_part) {
            return Ok(Self::Text(part.to_owned()));
        }
        Err(format!("Invalid character(s) found in prerelease {part:?}"))
    }
}

const fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

fn number(text: &str, name: &str) -> Result<u64, String> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!(
            "Invalid character(s) found in {} number {text:?}",
            name.to_lowercase()
        ));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{name} number must not contain leading zeroes {text:?}"));
    }
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing {text:?}: value out of range"))
}

impl std::fmt::Display for Semver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        for (at, part) in self.pre.iter().enumerate() {
            f.write_str(if at == 0 { "-" } else { "." })?;
            match part {
                Pre::Number(number) => write!(f, "{number}")?,
                Pre::Text(text) => f.write_str(text)?,
            }
        }
        for (at, part) in self.build.iter().enumerate() {
            f.write_str(if at == 0 { "+" } else { "." })?;
            f.write_str(part)?;
        }
        Ok(())
    }
}

pub(super) fn call<'a>(op: Op, args: &[V<'a>]) -> Evaluated<'a> {
    let parse = |text: &str, tolerant: bool| {
        if tolerant { Semver::parse_tolerant(text) } else { Semver::parse(text) }
    };
    let made = |text: &str, tolerant: bool| {
        let version = parse(text, tolerant).map_err(EvalError::failed)?;
        Ok(V::Semver(Arc::new(version)))
    };
    match (op, args) {
        (Op::Semver, [V::String(text)]) => made(text, false),
        (Op::Semver, [V::String(text), V::Bool(tolerant)]) => made(text, *tolerant),
        (Op::IsSemver, [V::String(text)]) => Ok(V::Bool(parse(text, false).is_ok())),
        (Op::IsSemver, [V::String(text), V::Bool(tolerant)]) => {
            Ok(V::Bool(parse(text, *tolerant).is_ok()))
        }
        (Op::Major, [V::Semver(version)]) => Ok(V::Int(version.major as i64)),
        (Op::Minor, [V::Semver(version)]) => Ok(V::Int(version.minor as i64)),
        (Op::Patch, [V::Semver(version)]) => Ok(V::Int(version.patch as i64)),
        (_, [V::Semver(a), V::Semver(b)]) => {
            let order = a.cmp_precedence(b);
            match op {
                Op::CompareTo => Ok(V::Int(order as i64)),
                Op::IsGreaterThan => Ok(V::Bool(order == Ordering::Greater)),
                Op::IsLessThan => Ok(V::Bool(order == Ordering::Less)),
                _ => Err(EvalError::no_such_overload()),
            }
        }
        _ => Err(EvalError::no_such_overload()),
    }
}
