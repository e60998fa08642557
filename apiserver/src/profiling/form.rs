//! pprof's form of a profile: its messages, of which only those fields that are written.
//!
//! Written by hand instead of generated, so that no build needs a protobuf compiler. The form is
//! google/pprof's `proto/profile.proto`; strings are numbers of the table of strings.

use std::collections::HashMap;
use std::io;
use std::io::Write;
use std::time::SystemTime;

use flate2::Compression;
use flate2::write::GzEncoder;
use pprof::Frames;
use prost::Message;

/// A whole profile.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Profile {
    /// What the values of each sample are.
    #[prost(message, repeated, tag = "1")]
    pub(super) sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub(super) sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    pub(super) location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub(super) function: Vec<Function>,
    /// The first is empty.
    #[prost(string, repeated, tag = "6")]
    pub(super) string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    pub(super) time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub(super) duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    pub(super) period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    pub(super) period: i64,
}

/// What a number counts, and in what.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct ValueType {
    #[prost(int64, tag = "1")]
    pub(super) kind: i64,
    #[prost(int64, tag = "2")]
    pub(super) unit: i64,
}

/// A stack that was seen.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Sample {
    /// Innermost first.
    #[prost(uint64, repeated, tag = "1")]
    pub(super) location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub(super) value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(super) label: Vec<Label>,
}

/// What else is known of a sample.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Label {
    #[prost(int64, tag = "1")]
    pub(super) key: i64,
    #[prost(int64, tag = "2")]
    pub(super) text: i64,
}

/// A place in the program.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Location {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    /// Several where functions were inlined, the innermost first.
    #[prost(message, repeated, tag = "4")]
    pub(super) line: Vec<Line>,
}

/// A line of a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub(super) struct Line {
    #[prost(uint64, tag = "1")]
    pub(super) function_id: u64,
    #[prost(int64, tag = "2")]
    pub(super) line: i64,
}

/// A function.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Function {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(int64, tag = "2")]
    pub(super) name: i64,
    #[prost(int64, tag = "3")]
    pub(super) system_name: i64,
    #[prost(int64, tag = "4")]
    pub(super) filename: i64,
}

/// When samples were taken, and how often.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub(super) began: SystemTime,
    pub(super) length: std::time::Duration,
    /// Nanoseconds of CPU time from sample to sample.
    pub(super) period: i64,
}

/// What has got its number so far.
#[derive(Default)]
struct Tables {
    strings: HashMap<String, i64>,
    functions: HashMap<(i64, i64), u64>,
    locations: HashMap<Vec<Line>, u64>,
    profile: Profile,
}

/// A profile of stacks that were seen so often.
pub(super) fn profile(stacks: &HashMap<Frames, i64>, timing: Timing) -> Profile {
    let mut tables = Tables::default();
    tables.string("");
    let samples = ValueType { kind: tables.string("samples"), unit: tables.string("count") };
    let cpu = ValueType { kind: tables.string("cpu"), unit: tables.string("nanoseconds") };
    let thread = tables.string("thread");
    for (stack, count) in stacks {
        let location_id = stack.frames.iter().map(|symbols| tables.location(symbols)).collect();
        let label = Label { key: thread, text: tables.string(&stack.thread_name_or_id()) };
        let value = vec![*count, count.saturating_mul(timing.period)];
        tables.profile.sample.push(Sample { location_id, value, label: vec![label] });
    }
    let nanos = |length: std::time::Duration| i64::try_from(length.as_nanos()).unwrap_or(i64::MAX);
    Profile {
        sample_type: vec![samples, cpu],
        time_nanos: timing.began.duration_since(SystemTime::UNIX_EPOCH).map_or(0, nanos),
        duration_nanos: nanos(timing.length),
        period_type: Some(cpu),
        period: timing.period,
        ..tables.profile
    }
}

/// The bytes of a profile, as its readers want them.
///
/// # Errors
/// Never in practice: they are written to memory.
pub(super) fn compressed(profile: &Profile) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&profile.encode_to_vec())?;
    encoder.finish()
}

// === impl Tables ===

impl Tables {
    fn string(&mut self, text: &str) -> i64 {
        if let Some(number) = self.strings.get(text) {
            return *number;
        }
        let table = &mut self.profile.string_table;
        let number = i64::try_from(table.len()).unwrap_or(i64::MAX);
        table.push(text.to_owned());
        self.strings.insert(text.to_owned(), number);
        number
    }

    fn function(&mut self, symbol: &pprof::Symbol) -> u64 {
        let (name, filename) = (self.string(&symbol.name()), self.string(&symbol.filename()));
        if let Some(id) = self.functions.get(&(name, filename)) {
            return *id;
        }
        let system_name = self.string(&symbol.sys_name());
        let id = self.profile.function.len() as u64 + 1;
        self.profile.function.push(Function { id, name, system_name, filename });
        self.functions.insert((name, filename), id);
        id
    }

    /// The place of one frame: a function, and those that were inlined into it.
    fn location(&mut self, symbols: &[pprof::Symbol]) -> u64 {
        let lines: Vec<Line> = symbols
            .iter()
            .map(|symbol| Line {
                function_id: self.function(symbol),
                line: i64::from(symbol.lineno()),
            })
            .collect();
        if let Some(id) = self.locations.get(&lines) {
            return *id;
        }
        let id = self.profile.location.len() as u64 + 1;
        self.profile.location.push(Location { id, line: lines.clone() });
        self.locations.insert(lines, id);
        id
    }
}
