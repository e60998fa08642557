//! One table of two servers' figures.

use std::fmt::Write;

use super::figures::{Figures, Row, megabytes};

/// The comparison, as Markdown. Ratios are theirs to ours for cost, ours to theirs for rate: more
/// is better for us in both.
pub(super) fn table(ours: &Figures, theirs: &Figures, objects: u32, workers: u32) -> String {
    let mut text = format!(
        "{objects} objects of 1 KB, {workers} workers\n\n\
         | request | CPU ours | theirs | less by | rate ours | theirs | more by | p99 ours | theirs |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
    );
    for row in &ours.rows {
        let other = theirs.rows.iter().find(|other| other.name == row.name);
        text.push_str(&line(row, other));
    }
    for (what, ours, theirs) in [
        ("resident memory", ours.memory.resident, theirs.memory.resident),
        ("peak of it", ours.memory.peak, theirs.memory.peak),
    ] {
        let ratio = ratio(as_float(theirs), as_float(ours));
        let (ours, theirs) = (megabytes(ours), megabytes(theirs));
        append(&mut text, format_args!("| {what} | {ours} | {theirs} | {ratio} | | | | | |\n"));
    }
    text
}

fn line(ours: &Row, theirs: Option<&Row>) -> String {
    let name = match (ours.errors, theirs.map_or(0, |row| row.errors)) {
        (0, 0) => ours.name.clone(),
        (ours_failed, theirs_failed) => {
            format!("{} (errors: {ours_failed} ours, {theirs_failed} theirs)", ours.name)
        }
    };
    let Some(theirs) = theirs else { return format!("| {name} | only ours |\n") };
    format!(
        "| {name} | {:.0} µs | {:.0} µs | {} | {:.0}/s | {:.0}/s | {} | {:.1} ms | {:.1} ms |\n",
        ours.cpu,
        theirs.cpu,
        ratio(theirs.cpu, ours.cpu),
        ours.rate,
        theirs.rate,
        ratio(ours.rate, theirs.rate),
        ours.p99,
        theirs.p99,
    )
}

fn ratio(more: f64, less: f64) -> String {
    // Processor time is counted in ticks: very little of it can read as none.
    if less > 0.0 { format!("{:.1}×", more / less) } else { "–".to_owned() }
}

#[expect(clippy::cast_precision_loss, reason = "a ratio with one decimal")]
fn as_float(bytes: u64) -> f64 {
    bytes as f64
}

fn append(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use kind_tests::process::Memory;

    use super::*;

    #[test]
    fn shows_ratios_and_errors() {
        let figures = |cpu: f64, rate: f64, errors: u64, bytes: u64| Figures {
            rows: vec![Row { name: "get".into(), rate, cpu, p99: 1.0, errors }],
            memory: Memory { resident: bytes, peak: bytes },
        };
        let table = table(
            &figures(100.0, 4000.0, 2, 50_000_000),
            &figures(400.0, 2000.0, 0, 500_000_000),
            1,
            1,
        );
        assert!(table.contains("errors: 2 ours, 0 theirs"), "{table}");
        assert!(table.contains("| 4.0× | 4000/s | 2000/s | 2.0× |"), "{table}");
        assert!(table.contains("| 50.0 MB | 500.0 MB | 10.0× |"), "{table}");
    }
}
