//! Turns of requests that would otherwise undo each other's work, one line for each namespace.
//!
//! Memory is held only while somebody waits or has the turn.

use std::collections::HashMap;
use std::sync::Arc;

use machinery::ClusterName;
use machinery::room::GiveRoomBack as _;
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

type Lines = Mutex<HashMap<Box<str>, Arc<tokio::sync::Mutex<()>>>>;

/// The lines in which requests wait.
#[derive(Debug, Default)]
pub(in crate::registry) struct Turns {
    lines: Arc<Lines>,
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    name: Box<str>,
    lines: Arc<Lines>,
    guard: Option<OwnedMutexGuard<()>>,
}

// === impl Turns ===

impl Turns {
    /// Waits for the turn in a namespace.
    pub(super) async fn take(&self, cluster: &ClusterName, namespace: &str) -> Turn {
        let name: Box<str> = format!("{cluster}/{namespace}").into();
        let line = self.lines.lock().entry(name.clone()).or_default().clone();
        let mut turn = Turn { name, lines: self.lines.clone(), guard: None };
        turn.guard = Some(line.lock_owned().await);
        turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut lines = self.lines.lock();
        self.guard = None;
        // Whoever waits, or is about to, holds the line, too.
        if lines.get(&self.name).is_some_and(|line| Arc::strong_count(line) == 1) {
            lines.remove(&self.name);
            lines.give_room_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn one_at_a_time_and_nothing_stays() {
        let turns = Turns::default();
        let cluster = ClusterName::root();
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = |namespace: &'static str| {
            let (turns, cluster, inside, most) = (&turns, &cluster, &inside, &most);
            async move {
                let _turn = turns.take(cluster, namespace).await;
                most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
            }
        };
        futures::future::join_all((0..10).map(|_| work("a"))).await;
        assert_eq!(most.load(Ordering::SeqCst), 1);
        let other = turns.take(&cluster, "b").await;
        work("a").await;
        drop(other);
        // One that gives up leaves nothing either.
        let held = turns.take(&cluster, "a").await;
        let waiting = turns.take(&cluster, "a");
        futures::future::select(Box::pin(waiting), Box::pin(std::future::ready(()))).await;
        drop(held);
        assert!(turns.lines.lock().is_empty());
    }
}
