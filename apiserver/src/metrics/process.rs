//! What the kernel says of this process, under the names that every Prometheus client has.

use std::fs;

/// Clock ticks of `/proc` in a second; Linux has shown 100 to user space on every platform.
const TICKS: f64 = 100.0;

/// Bytes of a page as `/proc/self/statm` counts them on the platforms that this runs on.
const PAGE: u64 = 4096;

/// Name, type, help and value of each figure that can be read now.
pub(crate) fn figures() -> Vec<(&'static str, &'static str, &'static str, f64)> {
    let mut figures = Vec::new();
    if let Some((cpu, started)) = fs::read_to_string("/proc/self/stat").ok().and_then(|t| stat(&t))
    {
        let name = "process_cpu_seconds_total";
        figures.push((name, "counter", "User and system CPU time in seconds.", cpu));
        if let Some(boot) = fs::read_to_string("/proc/stat").ok().and_then(|text| boot(&text)) {
            let name = "process_start_time_seconds";
            figures.push((name, "gauge", "Start time in seconds since 1970.", boot + started));
        }
    }
    if let Some(pages) = fs::read_to_string("/proc/self/statm").ok().and_then(|t| resident(&t)) {
        let name = "process_resident_memory_bytes";
        figures.push((name, "gauge", "Resident memory in bytes.", (pages * PAGE) as f64));
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        let name = "process_open_fds";
        figures.push((name, "gauge", "Open file descriptors.", open.count() as f64));
    }
    figures
}

/// CPU seconds, and seconds from boot to the start.
fn stat(text: &str) -> Option<(f64, f64)> {
    // The command's name may hold spaces and parentheses: fields are counted after its end.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<f64>().ok();
    Some(((number(11)? + number(12)?) / TICKS, number(19)? / TICKS))
}

fn boot(text: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix("btime ")).and_then(|t| t.trim().parse().ok())
}

fn resident(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_kernel_are_read() {
        let line = "7 (a) b) S 1 1 1 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 4 0 12300 1 1";
        assert_eq!(stat(line), Some((3.0, 123.0)));
        assert_eq!(stat("nonsense"), None);
        assert_eq!(boot("cpu 1\nbtime 1700000000\n"), Some(1_700_000_000.0));
        assert_eq!(resident("100 42 7"), Some(42));
    }
}
