//! What the process tells about itself.

use std::time::Duration;

use parking_lot::Mutex;
use prometheus::Registry;
use runtime::pages::Pages;
use std::sync::Arc;
use tokio::time::Instant;

use crate::metrics::Metrics;
use crate::sync::Progress;

/// How long the engine may be without a turn; it has one every few seconds.
const STUCK: Duration = Duration::from_secs(60);

/// What the process does.
#[derive(Debug)]
pub(super) struct State {
    role: Mutex<Role>,
}

#[derive(Clone, Debug)]
enum Role {
    /// It has not seen who leads.
    Starting,
    /// Another leads, or nobody yet.
    StandsBy,
    /// It works.
    Leads { why_not_ready: String, turn: Option<(u64, Instant)> },
}

/// The pages.
pub(super) struct AgentPages {
    pub(super) state: Arc<State>,
    pub(super) metrics: Metrics,
}

// === impl State ===

impl State {
    pub(super) fn new() -> Self {
        Self { role: Mutex::new(Role::Starting) }
    }

    /// Another leads.
    pub(super) fn stand_by(&self) {
        *self.role.lock() = Role::StandsBy;
    }

    /// It leads.
    pub(super) fn lead(&self) {
        let why_not_ready = "it has just begun".to_owned();
        *self.role.lock() = Role::Leads { why_not_ready, turn: None };
    }

    /// What its work waits for; nothing if it goes on.
    pub(super) fn waits_for(&self, what: &str) {
        if let Role::Leads { why_not_ready, .. } = &mut *self.role.lock() {
            what.clone_into(why_not_ready);
        }
    }

    /// How syncing goes.
    pub(super) fn progress(&self, progress: &Progress) {
        let waits_for = &progress.waits_for;
        if waits_for.is_empty() {
            self.waits_for("");
        } else {
            self.waits_for(&format!("it waits for {waits_for}"));
        }
    }

    fn ready(&self) -> Result<(), String> {
        match &*self.role.lock() {
            Role::Starting => Err("it has not seen yet who leads".to_owned()),
            // A pod that is to replace another must be ready while that one still leads.
            Role::StandsBy => Ok(()),
            Role::Leads { why_not_ready, .. } if why_not_ready.is_empty() => Ok(()),
            Role::Leads { why_not_ready, .. } => Err(why_not_ready.clone()),
        }
    }

    /// Whether the engine still has turns, given how many it has had.
    fn healthy(&self, turns: u64, now: Instant) -> Result<(), String> {
        let mut role = self.role.lock();
        let Role::Leads { turn, .. } = &mut *role else { return Ok(()) };
        match turn {
            // Before the first turn it waits for others.
            Some((seen, since)) if *seen == turns && turns > 0 => {
                if now.duration_since(*since) > STUCK {
                    return Err("the engine has had no turn for a minute".to_owned());
                }
            }
            _ => *turn = Some((turns, now)),
        }
        Ok(())
    }
}

impl Pages for AgentPages {
    fn healthy(&self) -> Result<(), String> {
        self.state.healthy(self.metrics.turn_seconds.get_sample_count(), Instant::now())
    }

    fn ready(&self) -> Result<(), String> {
        self.state.ready()
    }

    fn metrics(&self) -> &Registry {
        self.metrics.registry()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_ready() {
        let state = State::new();
        assert!(state.ready().is_err(), "nobody knows who leads");
        state.stand_by();
        assert!(state.ready().is_ok(), "it could take over");
        state.lead();
        assert!(state.ready().is_err());
        let waits = |what: &str| Progress { complete: false, waits_for: what.to_owned() };
        state.progress(&waits("the hub"));
        assert_eq!(state.ready(), Err("it waits for the hub".to_owned()));
        state.progress(&waits(""));
        assert!(state.ready().is_ok());
    }

    #[test]
    fn an_engine_without_turns_is_not_healthy() {
        let (state, begun) = (State::new(), Instant::now());
        let later = |seconds: u64| begun + Duration::from_secs(seconds);
        assert!(state.healthy(0, later(1000)).is_ok(), "it does not work");
        state.lead();
        assert!(state.healthy(0, later(0)).is_ok());
        assert!(state.healthy(0, later(1000)).is_ok(), "it has not begun");
        assert!(state.healthy(1, later(1001)).is_ok());
        assert!(state.healthy(1, later(1060)).is_ok());
        assert!(state.healthy(1, later(1062)).is_err());
        assert!(state.healthy(2, later(1063)).is_ok());
    }
}
