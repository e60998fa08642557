//! Random schedules of changes and faults: watches that are late, cut, expired, old or empty, answers
//! that are lost, refused credentials, restarts, clocks that jump, hubs that are restored from backups
//! or made anew at the same address, physical clusters that are wiped or restored.
//!
//! Seeds choose how namespaces are mapped, one logical cluster or several, and what becomes of foreign
//! objects; definitions of types and objects that go up are among what changes.
//!
//! In every run: nothing is deleted without evidence, on neither side, nothing foreign is touched, no
//! type loses what it has; and when the faults end everything converges, and then nothing is written
//! any more.
//!
//! `ENGINE_SEED=<seed>` runs one schedule alone, `ENGINE_RUNS=<count>` more of them.

mod check;
mod deeds;
mod faults;
mod run;

use run::Run;

/// SplitMix64.
struct Random(u64);

// === impl Random ===

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Runs its share of the schedules: several tests, so that they run beside each other.
fn schedules(part: u64) {
    const PARTS: u64 = 4;
    let runs = number("ENGINE_RUNS").unwrap_or(1200);
    match number("ENGINE_SEED") {
        Some(seed) if seed % PARTS == part => Run::new(seed).run(),
        Some(_) => {}
        None => {
            { 0..runs }.filter(|seed| seed % PARTS == part).for_each(|seed| Run::new(seed).run());
        }
    }
}

#[test]
fn schedules_1() {
    schedules(0);
}

#[test]
fn schedules_2() {
    schedules(1);
}

#[test]
fn schedules_3() {
    schedules(2);
}

#[test]
fn schedules_4() {
    schedules(3);
}
