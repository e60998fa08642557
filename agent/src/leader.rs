//! Who leads: of all agents of one SyncTarget in a physical cluster, one works.
//!
//! The rules are those of Kubernetes' own elections, on a Lease of the physical cluster.
//!
//! # Flow
//! Who finds no holder, or has seen a holder's record unchanged for as long as it says that it
//! holds, writes its own name into the Lease, and from then on renews it. Who ends in good order
//! gives the Lease back, so that the next one need not wait.
//!
//! # Guarantees
//! - Clocks are not compared: how old a record is goes by when it was seen to change, on the clock
//!   of who looks.
//! - A leader stops [`MARGIN`] before another may begin: its [`Term`] ends that long before the
//!   Lease does, counted from before the last renewal was sent, whatever becomes of later ones.
//! - What a leader hands over ([`Handover`]) is written with each renewal, and costs no write of its
//!   own but where it is urgent: then the Lease is renewed at once. The next one has it before it begins.
//! - Two never hold it at once: every write names the version of the Lease that it was decided on.

mod election;
pub mod handover;
pub mod kept;

use std::time::Duration;

use client::{Ask, JSON, Link};
use http::Method;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;
use tracing::{debug, info};

pub use election::Election;
pub(crate) use election::micro;
use election::{Decision, LeaseState};
pub use handover::Handover;

/// How long a record holds, from when it is seen.
pub const LEASE: Duration = Duration::from_secs(15);

/// How long a leader is without a renewal before it stops.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// What is left for requests that were sent before to take effect.
pub const MARGIN: Duration = Duration::from_secs(LEASE.as_secs() - DEADLINE.as_secs());

/// How often the Lease is renewed, and looked at by who waits.
const PERIOD: Duration = Duration::from_secs(2);

/// How long one request may take: several fit between two renewals that count.
const PATIENCE: Duration = Duration::from_secs(4);

/// How long after it had no answer who gives the Lease back asks again.
const AGAIN: Duration = Duration::from_millis(100);

/// A candidate.
#[derive(Debug)]
pub struct Candidate {
    /// The physical cluster.
    pub link: Link,
    /// The Lease's namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Who this is: unlike any other candidate, another run of the same program included.
    pub identity: String,
    /// What it hands over to the next one, and was handed over.
    pub handover: Handover,
}

/// A time of leading. It has to be renewed by [`Candidate::hold`], which returns when it has ended.
#[derive(Debug)]
pub struct Term {
    election: Election,
    renewed: Instant,
}

/// What one look at the Lease came to.
enum Round {
    Leads,
    Waits,
    Failed,
}

// === impl Candidate ===

impl Candidate {
    /// Waits until this one leads. `waits` is called when another is seen to lead.
    pub async fn lead(&self, waits: impl Fn()) -> Term {
        let mut election = Election::new(&self.identity, LEASE);
        loop {
            let begun = Instant::now();
            let round = tokio::time::timeout(PATIENCE, self.round(&mut election)).await;
            match round {
                Ok(Round::Leads) => {
                    info!(lease = %self.name, "leads");
                    return Term { election, renewed: begun };
                }
                Ok(Round::Waits) => waits(),
                Ok(Round::Failed) | Err(_) => {}
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// Renews for as long as that works; returns when the term has ended. Whoever works in it has to
    /// stop at once then.
    pub async fn hold(&self, term: &mut Term) {
        loop {
            let end = term.renewed + DEADLINE;
            let next = (term.renewed + PERIOD).max(Instant::now());
            if next >= end {
                break;
            }
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                () = self.handover.urgent() => {}
            }
            let begun = Instant::now();
            let round = self.round(&mut term.election);
            match tokio::time::timeout_at(end.min(begun + PATIENCE), round).await {
                Ok(Round::Leads) => term.renewed = begun,
                // Another leads.
                Ok(Round::Waits) => break,
                Ok(Round::Failed) | Err(_) => {
                    if begun + PERIOD >= end {
                        tokio::time::sleep_until(end).await;
                        break;
                    }
                    tokio::time::sleep_until(begun + PERIOD).await;
                }
            }
        }
        info!(lease = %self.name, "leads no more");
    }

    /// Gives the Lease back, if it is this one's: for who has stopped working.
    pub async fn release(&self, mut term: Term) {
        let given = tokio::time::timeout(PATIENCE, self.give_back(&mut term.election)).await;
        if given.is_err() {
            debug!("the lease is not given back");
        }
    }

    /// Tries until the Lease is another's or nobody's. A renewal that was dropped on its way may have
    /// been written all the same, or be written only now: then what was seen last is not what is there.
    async fn give_back(&self, election: &mut Election) {
        let path = self.path();
        while let Some(mut body) = election.release(Timestamp::now()) {
            let written = self.handover.write(&mut body);
            let ask = Ask::with(Method::PUT, &path, JSON, body.to_string().into_bytes());
            if self.link.ask(ask).await.is_ok_and(|told| told.status.is_success()) {
                self.handover.written(written);
                return debug!("gave the lease back");
            }
            let state = loop {
                match self.read().await {
                    Ok(state) => break state,
                    Err(_) => tokio::time::sleep(AGAIN).await,
                }
            };
            let Some(state) = state else { return };
            election.written(state, Instant::now());
        }
    }

    async fn round(&self, election: &mut Election) -> Round {
        let state = match self.read().await {
            Ok(state) => state,
            Err(why) => {
                debug!(why, "the lease can't be read");
                return Round::Failed;
            }
        };
        if let Some(lease) = state.as_ref().filter(|lease| lease.holder() != self.identity) {
            self.handover.read(lease.object());
        }
        let (method, path, mut body) =
            match election.decide(state, Instant::now(), Timestamp::now()) {
                Decision::Wait => return Round::Waits,
                Decision::Create(mut body) => {
                    body["metadata"]["namespace"] = self.namespace.clone().into();
                    body["metadata"]["name"] = self.name.clone().into();
                    (Method::POST, self.collection(), body)
                }
                Decision::Write(body) => (Method::PUT, self.path(), body),
            };
        let handed = self.handover.write(&mut body);
        let ask = Ask::with(method, &path, JSON, body.to_string().into_bytes());
        let why = match self.link.ask(ask).await {
            Ok(told) if told.status.is_success() => {
                self.handover.written(handed);
                let written = serde_json::from_slice(&told.body).unwrap_or(body);
                election.written(LeaseState::of(written), Instant::now());
                return Round::Leads;
            }
            Ok(told) => told.status.to_string(),
            Err(error) => error.to_string(),
        };
        debug!(why, "the lease can't be written");
        Round::Failed
    }

    /// The Lease, if it is there.
    async fn read(&self) -> Result<Option<LeaseState>, String> {
        let path = self.path();
        let told = self.link.ask(Ask::get(&path)).await.map_err(|error| error.to_string())?;
        match told.status.as_u16() {
            200 => {
                let lease = serde_json::from_slice::<Value>(&told.body);
                Ok(Some(LeaseState::of(lease.map_err(|error| error.to_string())?)))
            }
            404 => Ok(None),
            status => Err(status.to_string()),
        }
    }

    fn collection(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace)
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }
}

#[cfg(test)]
mod tests;
