//! Terms and their ends, on a clock that the tests move.

use client::{Authorities, Credentials, Settings};

use super::*;

/// A candidate whose API server is not there.
fn cut_off() -> Candidate {
    let settings = Settings {
        // Nothing listens on this port of the discard service.
        server: "https://127.0.0.1:9".parse().unwrap(),
        server_name: None,
        authorities: Authorities::System,
        credentials: Credentials::None,
        reachable: None,
        user_agent: "test/0",
    };
    Candidate {
        link: Link::new(settings).unwrap(),
        namespace: "agents".into(),
        name: "kcp-agent".into(),
        identity: "one".into(),
        handover: Handover::default(),
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_cut_off_stops_before_another_may_begin() {
    let candidate = cut_off();
    let begun = Instant::now();
    let mut term = Term { election: Election::new("one", LEASE), renewed: begun };
    candidate.hold(&mut term).await;
    let held = begun.elapsed();
    assert!(held <= DEADLINE + Duration::from_millis(10), "{held:?}");
    assert!(held + MARGIN <= LEASE + Duration::from_millis(10), "{held:?}");
    assert!(held + PERIOD >= DEADLINE, "it tries until then: {held:?}");
}

#[tokio::test(start_paused = true)]
async fn a_term_that_is_over_is_not_held() {
    let candidate = cut_off();
    let renewed = Instant::now();
    let mut term = Term { election: Election::new("one", LEASE), renewed };
    // As after a machine has slept.
    tokio::time::advance(LEASE).await;
    let woken = Instant::now();
    candidate.hold(&mut term).await;
    assert_eq!(woken.elapsed(), Duration::ZERO);
}
