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
    let Some(theirs) = theirs else { return format!("| {} | only ours |\n", ours.name) };
    // What failed was not done: comparing its cost would flatter whoever failed.
    let (name, cost, rate) = if ours.errors + theirs.errors == 0 {
        (ours.name.clone(), ratio(theirs.cpu, ours.cpu), ratio(ours.rate, theirs.rate))
    } else {
        let errors = format!("errors: {} ours, {} theirs", ours.errors, theirs.errors);
        (format!("{} ({errors})", ours.name), "–".to_owned(), "–".to_owned())
    };
    format!(
        "| {name} | {:.0} µs | {:.0} µs | {cost} | {:.0}/s | {:.0}/s | {rate} | {:.1} ms | {:.1} ms |\n",
        ours.cpu, theirs.cpu, ours.rate, theirs.rate, ours.p99, theirs.p99,
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
        let ours = figures(100.0, 4000.0, 0, 50_000_000);
        let theirs = figures(400.0, 2000.0, 0, 500_000_000);
        let text = table(&ours, &theirs, 1, 1);
        assert!(text.contains("| 4.0× | 4000/s | 2000/s | 2.0× |"), "{text}");
        assert!(text.contains("| 50.0 MB | 500.0 MB | 10.0× |"), "{text}");
        let failed = table(&figures(1.0, 9000.0, 2, 1), &theirs, 1, 1);
        assert!(failed.contains("errors: 2 ours, 0 theirs"), "{failed}");
        assert!(failed.contains("| – | 9000/s | 2000/s | – |"), "{failed}");
    }
}
