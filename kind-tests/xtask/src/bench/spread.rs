//! Much of the same work, by several workers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Result, bail};

/// Does `work` for each number below `count`, by so many workers, each with what `make` gives it.
pub(super) fn spread<S>(
    workers: u32,
    count: usize,
    make: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<()> + Sync,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let one = || -> Result<()> {
        let mut own = make();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return Ok(());
            }
            work(&mut own, at)?;
        }
    };
    thread::scope(|scope| {
        let workers = (0..workers).map(|_| scope.spawn(one)).collect::<Vec<_>>();
        let done = workers.into_iter().map(|worker| match worker.join() {
            Ok(done) => done,
            Err(_) => bail!("a worker panicked"),
        });
        done.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_done_once_and_failures_are_told() {
        let done: Vec<_> = (0..100).map(|_| AtomicUsize::new(0)).collect();
        let work = |(): &mut (), at: usize| {
            done[at].fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        spread(4, 100, || (), work).unwrap();
        assert!(done.iter().all(|times| times.load(Ordering::Relaxed) == 1));
        let failed = spread(2, 10, || (), |(), at| if at == 7 { bail!("seven") } else { Ok(()) });
        assert_eq!(failed.unwrap_err().to_string(), "seven");
    }
}
