//! What goes wrong, and when.

use std::fmt;

/// A program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    Agent,
    Operator,
    Hub,
    Cluster,
}

/// A connection: from the one that is named first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    AgentToHub,
    AgentToCluster,
    OperatorToHub,
    OperatorToCluster,
}

/// One thing that goes wrong, or right again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing passes, and nobody is told.
    Silence(Link),
    /// Connections are closed.
    Close(Link),
    Mend(Link),
    /// SIGKILL.
    Kill(Program),
    Start(Program),
    /// What the hub holds is exported.
    Export,
    /// The hub comes back with what was exported.
    Restore,
    /// The hub comes back with an empty store.
    Anew,
    /// It comes back with the store that it had before.
    PutBack,
}

/// Faults, each after so many turns of the one who changes objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    pub(super) steps: Vec<(u64, Fault)>,
}

/// What is wrong so far.
#[derive(Debug, Default)]
struct Wrongs {
    cut: Vec<Link>,
    down: Vec<Program>,
    exported: bool,
    /// The hub has another store than before; nothing is written to it.
    anew: bool,
    /// Restored once: not again in this schedule.
    restored: bool,
}

/// Numbers that look random, the same for the same seed (splitmix64).
#[derive(Debug)]
pub(super) struct Random(u64);

const LINKS: [Link; 4] =
    [Link::AgentToHub, Link::AgentToCluster, Link::OperatorToHub, Link::OperatorToCluster];

const PROGRAMS: [Program; 4] = [Program::Agent, Program::Operator, Program::Hub, Program::Cluster];

/// Faults of one schedule, without those that end others.
const FAULTS: u64 = 8;

/// The most turns between two faults; there are some forty a second.
const LONGEST: u64 = 40;

// === impl Schedule ===

impl Schedule {
    /// The schedule of a seed. It ends with everything mended and running.
    pub(super) fn of(seed: u64) -> Self {
        let mut random = Random::of(seed);
        let mut wrongs = Wrongs::default();
        let mut steps = Vec::new();
        for _ in 0..FAULTS {
            let fault = wrongs.next(&mut random);
            steps.push((1 + random.below(LONGEST), fault));
        }
        while let Some(fault) = wrongs.mend() {
            steps.push((1 + random.below(LONGEST / 4), fault));
        }
        Self { steps }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (after, fault) in &self.steps {
            write!(f, "{after}:{fault:?} ")?;
        }
        Ok(())
    }
}

// === impl Wrongs ===

impl Wrongs {
    /// The next fault, which follows from what is wrong already.
    fn next(&mut self, random: &mut Random) -> Fault {
        let link = random.pick(&LINKS);
        let program = random.pick(&PROGRAMS);
        match random.below(10) {
            0..=2 if self.cut.contains(&link) => self.uncut(link),
            0..=2 => {
                self.cut.push(link);
                if random.below(2) == 0 { Fault::Silence(link) } else { Fault::Close(link) }
            }
            3..=5 if self.down.contains(&program) => self.start(program),
            3..=5 if !(self.anew && program == Program::Hub) => {
                self.down.push(program);
                Fault::Kill(program)
            }
            6 if !self.exported && !self.anew => {
                self.exported = true;
                Fault::Export
            }
            7 if self.exported && !self.anew && !self.restored => {
                self.restored = true;
                self.down.retain(|down| *down != Program::Hub);
                Fault::Restore
            }
            8 if !self.anew => {
                self.anew = true;
                self.down.retain(|down| *down != Program::Hub);
                Fault::Anew
            }
            _ => self.mend().unwrap_or_else(|| {
                self.down.push(Program::Agent);
                Fault::Kill(Program::Agent)
            }),
        }
    }

    /// What rights one of the wrongs, if there is any.
    fn mend(&mut self) -> Option<Fault> {
        if std::mem::take(&mut self.anew) {
            return Some(Fault::PutBack);
        }
        if let Some(program) = self.down.first().copied() {
            return Some(self.start(program));
        }
        self.cut.first().copied().map(|link| self.uncut(link))
    }

    fn uncut(&mut self, link: Link) -> Fault {
        self.cut.retain(|cut| *cut != link);
        Fault::Mend(link)
    }

    fn start(&mut self, program: Program) -> Fault {
        self.down.retain(|down| *down != program);
        Fault::Start(program)
    }
}

// === impl Random ===

impl Random {
    pub(super) fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`, which is not 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// One of several.
    pub(super) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        let index = self.below(all.len() as u64);
        all[usize::try_from(index).unwrap_or_default()]
    }
}

#[test]
fn schedules_end_well() {
    for seed in 0..500 {
        let schedule = Schedule::of(seed);
        assert_eq!(schedule, Schedule::of(seed));
        let (mut cut, mut down, mut anew) = (Vec::new(), Vec::new(), false);
        for (_, fault) in &schedule.steps {
            match fault {
                Fault::Silence(link) | Fault::Close(link) => cut.push(*link),
                Fault::Mend(link) => cut.retain(|cut| cut != link),
                Fault::Kill(program) => down.push(*program),
                Fault::Start(program) => down.retain(|down| down != program),
                Fault::Restore | Fault::Anew | Fault::PutBack => {
                    down.retain(|down| *down != Program::Hub);
                    anew = *fault == Fault::Anew;
                }
                Fault::Export => {}
            }
        }
        assert!(cut.is_empty() && down.is_empty() && !anew, "{seed}: {schedule}");
    }
}
