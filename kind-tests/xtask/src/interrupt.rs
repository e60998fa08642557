//! Ctrl-C and SIGTERM: what this program has started must not outlive it.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use kind_tests::progress::say;
use kind_tests::run;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// The exit code of a program that a Ctrl-C ended, by the shell's convention.
const INTERRUPTED: i32 = 130;

/// Whether a signal has arrived.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Watches for both signals in a thread of its own; at the first, ends every process that runs
/// of this program have recorded, and exits.
pub(crate) fn end_children_on_signal() -> Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let exit = match runtime.block_on(first_signal()) {
            Ok(()) => INTERRUPTED,
            Err(error) => {
                say(format!("cannot watch for signals: {error}"));
                return;
            }
        };
        ENDING.store(true, Ordering::SeqCst);
        say("\nstopping");
        if let Err(error) = run::abandon() {
            say(format!("could not clean up: {error:#}"));
        }
        std::process::exit(exit);
    })?;
    Ok(())
}

/// After a signal, leaves the rest to the thread that it woke: what fails now fails because that
/// thread ends it.
pub(crate) fn stay_if_ending() {
    while ENDING.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

async fn first_signal() -> std::io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
