//! What an entry needs next.

use std::time::Duration;

use super::answers::{Ask, Flight, Subject};
use super::entry::{Adopt, Copy, Entry, Id, Note, Remake, Work};
use super::merging::Manner;
use super::{Engine, millis, side};
use crate::brake::Turn;
use crate::lists::MOST;
use crate::{Action, ActionId, Kind, Now, Request, Side, names};

/// A minute, in milliseconds.
const MINUTE: u64 = 60_000;

/// How long it is remembered that an object was released, in milliseconds: watches are later than
/// answers.
const REMEMBERED: u64 = 60_000;

/// The longest between two looks at what is in the place of a copy: no watch shows it.
const LONGEST_LOOK: Duration = Duration::from_secs(30);

/// What to ask, and the request for it.
pub(super) type Step = (Ask, Request);

/// When to look again; the earliest counts.
#[derive(Debug, Default)]
pub(super) struct Wake(Option<u64>);

// === impl Wake ===

impl Wake {
    pub(super) fn at(&mut self, at: u64) {
        self.0 = Some(self.0.map_or(at, |known| known.min(at)));
    }

    /// Goes on if the brake lets a delete through, and comes again when it may.
    pub(super) fn through(&mut self, turn: Turn) -> Option<()> {
        match turn {
            Turn::Go => Some(()),
            Turn::Later(at) => {
                self.at(at);
                None
            }
            Turn::Paused => None,
        }
    }
}

// === impl Engine ===

impl Engine {
    /// The next request for an entry, if it needs one that can be made now.
    pub(super) fn plan_entry(&mut self, id: Id, now: Now) -> Option<Action> {
        if self.index.get(id).is_none_or(|entry| entry.in_flight) {
            return None;
        }
        let clock = millis(now.clock);
        let mut wake = Wake::default();
        let step = self.next_step(id, now, &mut wake);
        if let Some((ask, request)) = step {
            let kind = ask.kind();
            if let Some(entry) = self.index.get_mut(id) {
                entry.in_flight = true;
                entry.applying = matches!(ask, Ask::Apply { .. });
            }
            return Some(self.launch(Subject::Entry(id), ask, kind, request));
        }
        if self.is_done_with(id, clock, &mut wake) {
            self.given_up.remove(&id);
            self.index.leave_place(id);
            self.leave_space(id);
            self.index.remove(id);
        } else if let Some(at) = wake.0 {
            self.index.wake(id, at.max(clock + 1));
        }
        None
    }

    pub(super) fn launch(
        &mut self,
        subject: Subject,
        ask: Ask,
        kind: Kind,
        request: Request,
    ) -> Action {
        self.next_action += 1;
        let id = ActionId(self.next_action);
        let side = request.side;
        self.flights.insert(id, Flight { subject, ask, side });
        Action { id, kind, request }
    }

    /// Whether there is nothing left to know about an entry.
    fn is_done_with(&mut self, id: Id, now: u64, wake: &mut Wake) -> bool {
        let Some(entry) = self.index.get_mut(id) else { return false };
        if entry.up.is_some() || entry.ours().is_some() || entry.in_flight || entry.verify {
            return false;
        }
        if let Some((_, at)) = entry.released {
            if now < at.saturating_add(REMEMBERED) {
                wake.at(at + REMEMBERED);
                return false;
            }
            entry.released = None;
        }
        true
    }

    fn next_step(&mut self, id: Id, now: Now, wake: &mut Wake) -> Option<Step> {
        let entry = self.index.get(id)?;
        self.synced(entry.key.kind)?;
        let (up, down) =
            (self.is_open(id, Side::Upstream, now), self.is_open(id, Side::Downstream, now));
        for until in [&up, &down].into_iter().filter_map(|open| open.err()) {
            wake.at(until);
        }
        let open = [up.is_ok(), down.is_ok()];
        let step = if entry.verify && open[0] {
            self.held(id, Work::Up, now, wake)?;
            self.get_upstream(id).map(|request| (Ask::GetUpstream, request))
        } else if entry.up.is_none() {
            self.orphan_step(id, open, now, wake)
        } else if entry.is_going() {
            self.removal_step(id, open, now, wake)
        } else {
            self.copy_step(id, open, now, wake)
        };
        step.or_else(|| open[0].then(|| self.report_step(id, now, wake)).flatten())
    }

    /// Whether a side can be asked for objects of an entry's type; else, when to try again.
    fn is_open(&self, id: Id, which: Side, now: Now) -> Result<(), u64> {
        let kind = self.index.get(id).and_then(|entry| self.kind(entry.key.kind));
        let missing = kind.map_or(0, |kind| kind.missing[side(which)].until);
        let until = self.gates[side(which)].until.max(missing);
        if until > millis(now.clock) { Err(until) } else { Ok(()) }
    }

    /// `None` while a kind of work pauses.
    pub(super) fn held(&self, id: Id, work: Work, now: Now, wake: &mut Wake) -> Option<()> {
        let until = self.index.get(id)?.held_until(work);
        if until > millis(now.clock) {
            wake.at(until);
            return None;
        }
        Some(())
    }

    /// What the copy of an object that is to be synced needs.
    fn copy_step(
        &mut self,
        id: Id,
        [up_open, down_open]: [bool; 2],
        now: Now,
        wake: &mut Wake,
    ) -> Option<Step> {
        let entry = self.index.get(id)?;
        let up = entry.up.as_ref()?;
        if !up.is_wanted() {
            return None;
        }
        if !self.is_listed(entry, Side::Upstream) {
            return None;
        }
        if names::is_reserved(&self.target, &entry.place.namespace) {
            let message =
                format!("nothing is synced to the namespace {:?}", &*entry.place.namespace);
            self.set_problem(id, Work::Down, "NamespaceReserved", message, now);
            return None;
        }
        if up.finalizer.is_none() {
            // Before there is a copy, the hub knows that there may be one.
            self.held(id, Work::Up, now, wake)?;
            return if up_open { Some((Ask::Claim, self.claim(id)?)) } else { None };
        }
        if up.lists.as_ref().is_some_and(|lists| lists.count() > MOST) {
            let message = format!("more than {MOST} items are to be merged into its lists");
            self.set_problem(id, Work::Down, "ApplyTooLarge", message, now);
            return None;
        }
        if !self.is_listed(entry, Side::Downstream) || !down_open {
            return None;
        }
        if self.index.get(id)?.remake != Remake::No {
            return self.remake_step(id, up_open, now, wake);
        }
        self.held(id, Work::Down, now, wake)?;
        if self.waits_for_definition(id) {
            wake.at(millis(now.clock) + super::define::LOOK);
            return None;
        }
        if !self.index.take_place(id) {
            let message = "another object's copy has the same namespace and name";
            self.set_problem(id, Work::Down, "NameTaken", message.to_owned(), now);
            self.pause(id, Work::Down, now);
            wake.at(self.index.get(id)?.held_until(Work::Down));
            return None;
        }
        match &self.index.get(id)?.copy {
            Copy::Unknown => Some((Ask::GetDownstream, self.get_downstream(id)?)),
            Copy::Absent => self.creation_step(id, up_open, now, wake),
            Copy::Foreign(_) => self.adoption_step(id, up_open),
            Copy::Ours(_) => self.repair_step(id, up_open, now, wake),
        }
    }

    fn creation_step(&mut self, id: Id, up_open: bool, now: Now, wake: &mut Wake) -> Option<Step> {
        let entry = self.index.get(id)?;
        if entry.up.as_ref()?.flags.ended {
            // What has run to its end doesn't run again because its copy was cleaned up.
            self.clear_problem(id, Work::Down);
            return None;
        }
        if !entry.place.namespace.is_empty() && !self.space_is_ready(id, now, wake) {
            return None;
        }
        self.apply_step(id, None, Manner::Plain, up_open, true)
    }

    fn adoption_step(&mut self, id: Id, up_open: bool) -> Option<Step> {
        let Copy::Foreign(foreign) = &self.index.get(id)?.copy else { return None };
        let uid = foreign.uid.clone();
        match foreign.adopt {
            // The pause is over: it may be gone.
            Adopt::No => Some((Ask::GetDownstream, self.get_downstream(id)?)),
            Adopt::Take { force } => {
                self.apply_step(id, Some(&uid), Manner::of_adoption(force), up_open, true)
            }
            Adopt::IfSame => {
                let manner = Manner::Plain;
                let (ask, mut request) = self.apply_step(id, Some(&uid), manner, up_open, true)?;
                if !matches!(ask, Ask::Apply { .. }) {
                    return Some((ask, request));
                }
                request.query.push(("dryRun", "All".to_owned()));
                Some((Ask::DryRun, request))
            }
        }
    }

    /// Whether what others have changed in a copy may be put back now: so many times a minute, and
    /// then it is told.
    pub(super) fn may_repair(
        &mut self,
        id: Id,
        work: Work,
        now: Now,
        wake: &mut Wake,
    ) -> Option<()> {
        let clock = millis(now.clock);
        let most = self.target.limits.repairs;
        let entry = self.index.get_mut(id)?;
        if clock >= entry.repairs.1.saturating_add(MINUTE) {
            entry.repairs = (0, clock);
        }
        if entry.repairs.0 < most {
            return Some(());
        }
        wake.at(entry.repairs.1.saturating_add(MINUTE));
        let message = "somebody keeps changing fields of the copy that are the hub's";
        self.set_problem(id, work, "Drifted", message.to_owned(), now);
        None
    }

    fn repair_step(&mut self, id: Id, up_open: bool, now: Now, wake: &mut Wake) -> Option<Step> {
        let entry = self.index.get(id)?;
        let (digest, uid) = { entry.up.as_ref() }.map(|up| (up.digest, up.uid.clone()))?;
        let down = entry.ours()?;
        if down.deleting {
            // It is made again when it has gone.
            return None;
        }
        let is_other = down.of != uid;
        let changed = down.digest != Some(digest);
        let lists = self.wrong_lists(id);
        let others_merged = !lists.is_empty() && down.merged.is_some();
        let others_set = down.good.is_some_and(|good| good != down.view);
        let drifted = !changed && (others_set || others_merged);
        if !is_other && !changed && down.good == Some(down.view) && lists.is_empty() {
            self.clear_problem(id, Work::Down);
            return self.status_down_step(id, now, wake);
        }
        let copy = down.uid.clone();
        if is_other {
            return self.namesake_step(id, &copy, now, wake);
        }
        if drifted {
            self.may_repair(id, Work::Down, now, wake)?;
        }
        let step = self.apply_step(id, Some(&copy), Manner::Forced, up_open, false)?;
        if drifted
            && matches!(step.0, Ask::Apply { .. })
            && let Some(entry) = self.index.get_mut(id)
        {
            entry.repairs.0 += 1;
            if entry.repairs.0 == 1 {
                let changes: Vec<_> = { entry.drift.iter() }
                    .map(|field| match &*field.manager {
                        "" => field.path.clone(),
                        manager => format!("{} by {manager}", field.path),
                    })
                    .chain(lists)
                    .collect();
                let what = "fields of the copy that are the hub's were changed, and are put back";
                let message = format!("{what}: {}", changes.join(", "));
                let reason = "Drifted".to_owned();
                entry.note = Some(Box::new(Note { warning: true, reason, message }));
            }
        }
        Some(step)
    }

    /// A copy that has to be made again is deleted as any other: on what the live object says, and
    /// past the brake.
    fn remake_step(&mut self, id: Id, up_open: bool, now: Now, wake: &mut Wake) -> Option<Step> {
        self.held(id, Work::Down, now, wake)?;
        self.held(id, Work::Up, now, wake)?;
        let clock = millis(now.clock);
        let entry = self.index.get(id)?;
        let uid = entry.copy_of_this()?.uid.clone();
        if entry.ours()?.deleting || !self.hub.is_trusted() {
            return None;
        }
        match entry.remake {
            Remake::Proven(at) if clock <= at.saturating_add(super::remove::FRESH) => {
                let copies = self.index.copies();
                wake.through(self.brake.may(id, false, copies, clock, &self.target.limits))?;
                Some((Ask::Delete, self.delete(id, &uid)?))
            }
            _ if up_open => Some((Ask::GetUpstream, self.get_upstream(id)?)),
            _ => None,
        }
    }

    /// The copy of an object that had this name before is an orphan, and in the way.
    fn namesake_step(&mut self, id: Id, uid: &str, now: Now, wake: &mut Wake) -> Option<Step> {
        let adopt = self.adoption_of(id, false);
        if self.given_up.contains(&id) {
            return self.orphan_step(id, [true, true], now, wake);
        }
        if adopt == Adopt::IfSame {
            // To compare it, it has to be read.
            self.index.set_copy(id, Copy::Unknown);
            return Some((Ask::GetDownstream, self.get_downstream(id)?));
        }
        if let Adopt::Take { force } = adopt {
            return self.apply_step(id, Some(uid), Manner::of_adoption(force), true, true);
        }
        let what = "it is the copy of an earlier object of this name";
        let name = self.index.get(id)?.place.name.clone();
        let message = format!("{name:?} is there already: {what}");
        self.set_problem(id, Work::Down, "Collision", message, now);
        None
    }

    /// An apply, or the read of what is to be applied.
    fn apply_step(
        &mut self,
        id: Id,
        uid: Option<&str>,
        manner: Manner,
        up_open: bool,
        first: bool,
    ) -> Option<Step> {
        let up = self.index.get(id)?.up.as_ref()?;
        if up.body.is_none() {
            let request = self.get_upstream(id).filter(|_| up_open)?;
            return Some((Ask::GetUpstream, request));
        }
        if let Some(uid) = uid
            && self.needs_check(id, uid)
        {
            return Some((Ask::Check, self.get_downstream(id)?));
        }
        let request = self.apply(id, uid, manner)?;
        if let Some(entry) = self.index.get_mut(id) {
            entry.merging = manner != Manner::Gentle;
            // It counts once: whatever comes of it, what is there then is another version.
            entry.checked = None;
        }
        Some((Ask::Apply { new: uid.is_none(), first }, request))
    }

    /// What becomes of an object that is in the place of a copy and not ours.
    pub(super) fn adoption_of(&self, id: Id, of_others: bool) -> Adopt {
        let Some(entry) = self.index.get(id) else { return Adopt::No };
        let shared = { self.kind(entry.key.kind) }
            .is_some_and(|kind| kind.rule.is_shared(&entry.place.name));
        match self.target.adoption {
            _ if of_others => Adopt::No,
            _ if shared => Adopt::Take { force: false },
            crate::Adoption::Never => Adopt::No,
            crate::Adoption::IfNoDiff => Adopt::IfSame,
            crate::Adoption::Always => Adopt::Take { force: true },
        }
    }

    /// Something is in the place of a copy that isn't ours.
    pub(super) fn collide(
        &mut self,
        id: Id,
        mut foreign: super::entry::Foreign,
        adopt: Adopt,
        what: &str,
        now: Now,
    ) {
        foreign.adopt = adopt;
        self.index.set_copy(id, Copy::Foreign(Box::new(foreign)));
        if adopt == Adopt::No {
            let place = self.index.get(id).map(|entry| entry.place.clone());
            let name = place.map(|place| place.name).unwrap_or_default();
            let message = format!("{name:?} is there already: {what}");
            self.set_problem(id, Work::Down, "Collision", message, now);
            self.pause_at_most(id, Work::Down, LONGEST_LOOK, now);
        }
    }

    /// Whether the first list of an entry's type has been complete.
    pub(super) fn is_listed(&self, entry: &Entry, which: Side) -> bool {
        self.kind(entry.key.kind).is_some_and(|kind| kind.streams[side(which)].complete)
    }

    /// A copy whose object the hub doesn't show: it stays, unless a person has given it up.
    fn orphan_step(&mut self, id: Id, open: [bool; 2], now: Now, wake: &mut Wake) -> Option<Step> {
        let uid = self.index.get(id)?.ours()?.uid.clone();
        if !self.given_up.contains(&id) || !self.hub.is_trusted() {
            return None;
        }
        self.held(id, Work::Up, now, wake)?;
        self.held(id, Work::Down, now, wake)?;
        let entry = self.index.get_mut(id)?;
        let removal = entry.removal.get_or_insert_default();
        if removal.evidence.is_none() {
            return if open[0] { Some((Ask::GetUpstream, self.get_upstream(id)?)) } else { None };
        }
        if removal.sent.is_some() || !open[1] {
            return None;
        }
        self.farewell_step(id, &uid, false)
    }

    /// Pauses a kind of work of an entry, longer each time.
    pub(super) fn pause(&mut self, id: Id, work: Work, now: Now) {
        self.pause_at_most(id, work, self.target.limits.longest_backoff, now);
    }

    fn pause_at_most(&mut self, id: Id, work: Work, longest: Duration, now: Now) {
        let longest = longest.min(self.target.limits.longest_backoff);
        let Some(entry) = self.index.get_mut(id) else { return };
        let mut hold = *entry.hold(work);
        self.lengthen(&mut hold, millis(now.clock), longest);
        if let Some(entry) = self.index.get_mut(id) {
            *entry.hold(work) = hold;
        }
    }
}
