//! What the load generator prints, read back.

use anyhow::{Context, Result, ensure};
use kind_tests::process::Memory;

/// The figures of one server.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    pub(super) rows: Vec<Row>,
    pub(super) memory: Memory,
}

/// One kind of request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) name: String,
    /// Requests, or events, a second.
    pub(super) rate: f64,
    /// Processor time of the server for each, in microseconds.
    pub(super) cpu: f64,
    /// Slowest of a hundred, in milliseconds.
    pub(super) p99: f64,
    /// How many failed.
    pub(super) errors: u64,
}

// === impl Figures ===

impl Figures {
    /// Reads lines such as `NAME create 1670 op/s cpu 910us p50 1ms p99 2ms errors 0`.
    pub(super) fn parse(lines: &str, memory: Memory) -> Result<Self> {
        let figures = lines.lines().filter(|line| line.contains(" cpu "));
        let rows: Vec<Row> = figures
            .map(|line| Row::parse(line).with_context(|| format!("read {line:?}")))
            .collect::<Result<_>>()?;
        ensure!(!rows.is_empty(), "the load generator printed no figures");
        Ok(Self { rows, memory })
    }
}

// === impl Row ===

impl Row {
    fn parse(line: &str) -> Result<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let after = |label: &str, unit: &str| -> Result<f64> {
            let at = words.iter().position(|&word| word == label).context("a label is missing")?;
            let word = words.get(at + 1).context("a figure is missing")?;
            Ok(word.trim_end_matches(unit).parse()?)
        };
        let word = |index: usize| words.get(index).copied().context("the line is short");
        let errors = match (after("errors", ""), after("events", ""), after("of", "")) {
            (Ok(errors), _, _) => errors,
            (_, Ok(got), Ok(wanted)) => wanted - got,
            _ => anyhow::bail!("no count of errors or events"),
        };
        Ok(Self {
            name: word(1)?.to_owned(),
            rate: word(2)?.parse()?,
            cpu: after("cpu", "us")?,
            p99: after("p99", "ms")?,
            errors: format!("{errors:.0}").parse()?,
        })
    }
}

/// Bytes for people.
pub(super) fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_kinds_of_line() {
        let lines = "\
x create                      1670 op/s  cpu    910us  p50    1.000ms  p99    2.500ms  errors 3
x   first error: no
x watch-fanout               20000 ev/s  cpu     70us  p50    1.000ms  p99    9.000ms  events 199 of 200
";
        let rows = Figures::parse(lines, Memory::default()).unwrap().rows;
        let create = Row { name: "create".into(), rate: 1670.0, cpu: 910.0, p99: 2.5, errors: 3 };
        assert_eq!(rows.first(), Some(&create));
        assert_eq!(rows.get(1).map(|row| (row.cpu, row.errors)), Some((70.0, 1)));
    }

    #[test]
    fn bytes_are_rounded_down() {
        assert_eq!(megabytes(48_260_000), "48.2 MB");
    }
}
