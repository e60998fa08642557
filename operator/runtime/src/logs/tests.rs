use std::io::Write;

use parking_lot::Mutex;
use tracing::{debug, error, info, trace, warn};

use super::*;

/// What has been written so far.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Paper {
    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut self.0.lock())).unwrap()
    }
}

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn speak() {
    error!("an error");
    warn!("a warning");
    info!("some news");
    whisper();
}

fn whisper() {
    debug!("a decision");
    trace!("a detail");
}

#[test]
fn the_filter_changes_while_lines_are_written() {
    let paper = Paper::default();
    let writer = paper.clone();
    let (subscriber, filter) = subscriber("info", true, move || writer.clone()).unwrap();
    tracing::subscriber::with_default(subscriber, || {
        let check = |told: usize| {
            speak();
            let text = paper.take();
            assert_eq!(text.lines().count(), told, "{}: {text}", filter.text());
        };
        assert_eq!(filter.text(), "info");
        check(3);
        for (text, directives, told) in [
            ("4", "debug", 4),
            ("10", "trace", 5),
            ("0", "warn", 2),
            ("2\n", "info", 3),
            ("off", "off", 0),
            ("error, runtime=DEBUG", "error,runtime=DEBUG", 4),
            ("error,other=debug", "error,other=debug", 1),
        ] {
            assert_eq!(filter.set(text).as_deref(), Ok(directives));
            assert_eq!(filter.text(), directives);
            check(told);
        }
        for bad in ["", "11", "-1", "loud", "a=b", "=info", "info,", "[request{user=x}]=trace"] {
            assert!(matches!(filter.set(bad), Err(FilterError::Malformed(_))), "{bad}");
        }
        assert_eq!(filter.set(&"info,".repeat(1000)), Err(FilterError::TooLong));
        assert_eq!(filter.text(), "error,other=debug");
        check(1);
    });
}

fn libraries_speak() {
    info!(target: "h2::codec", "line-1");
    debug!(target: "h2::codec", "line-2");
    trace!(target: "hyper", "line-3");
}

fn others_speak() {
    warn!(target: "kube_client::client", "line-4");
    trace!(target: "store::cache", "line-5");
    debug!(target: "storefront", "line-6");
}

#[test]
fn libraries_tell_no_details_whatever_the_filter_says() {
    let paper = Paper::default();
    let writer = paper.clone();
    let (subscriber, filter) = subscriber("trace", false, move || writer.clone()).unwrap();
    tracing::subscriber::with_default(subscriber, || {
        let check = |told: &[&str]| {
            libraries_speak();
            others_speak();
            let text = paper.take();
            let all = ["line-1", "line-2", "line-3", "line-4", "line-5", "line-6"];
            for line in all {
                assert_eq!(text.contains(line), told.contains(&line), "{line}: {text}");
            }
        };
        check(&["line-1", "line-5"]);
        filter.set("trace,h2=trace,kube_client=trace,storefront=debug").unwrap();
        check(&["line-1", "line-5"]);
    });
}
