//! A disk in memory that loses what was not synced, whole or in sectors, when its power is cut.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use redb::StorageBackend;

/// What a disk writes in one step: a cut leaves each sector old or new.
const SECTOR: usize = 512;

/// A disk. Clones are the same disk.
#[derive(Clone, Debug)]
pub(super) struct Disk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// What the power cannot take away.
    durable: Vec<u8>,
    /// What reads see.
    current: Vec<u8>,
    /// What was done since the last sync.
    pending: Vec<Pending>,
    syncs: u64,
    operations: u64,
    cut: Option<Cut>,
    off: bool,
    full: bool,
}

#[derive(Debug)]
enum Pending {
    Write(usize, Vec<u8>),
    Length(usize),
}

/// When the power goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cut {
    /// In the sync with this number, from 1.
    Sync(u64),
    /// In the write, sync or change of length with this number, from 1.
    Operation(u64),
}

/// A small generator of random numbers (splitmix64), so that a seed is all that a failure needs.
#[derive(Clone, Debug)]
pub(super) struct Random(pub(super) u64);

// === impl Random ===

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

// === impl Disk ===

impl Disk {
    pub(super) fn new() -> Self {
        Self(Arc::default())
    }

    pub(super) fn cutting(self, cut: Cut) -> Self {
        self.0.lock().cut = Some(cut);
        self
    }

    /// Grows no more from here on.
    pub(super) fn fill(&self) {
        self.0.lock().full = true;
    }

    pub(super) fn is_off(&self) -> bool {
        self.0.lock().off
    }

    pub(super) fn operations(&self) -> u64 {
        self.0.lock().operations
    }

    /// The disk as a process finds it that is started again, the power having stayed.
    pub(super) fn restart(&self) -> Self {
        let content = self.0.lock().current.clone();
        Self::holding(content)
    }

    /// The disk after the power came back: of what was not synced, each sector is there or not.
    pub(super) fn after_cut(&self, random: &mut Random) -> Self {
        let state = self.0.lock();
        let mut content = state.durable.clone();
        // One cut in four keeps all or nothing: random sectors hardly ever do.
        let keep = random.below(8);
        for pending in &state.pending {
            match pending {
                Pending::Length(length) if keep == 0 || random.below(2) == 0 => {
                    content.resize(*length, 0);
                }
                Pending::Length(_) => {}
                Pending::Write(offset, bytes) => {
                    for sector in sectors(*offset, bytes.len()) {
                        let kept = match keep {
                            0 => true,
                            1 => false,
                            _ => random.below(2) == 0,
                        };
                        if kept {
                            let end = offset + sector.end;
                            content.resize(content.len().max(end), 0);
                            content[offset + sector.start..end].copy_from_slice(&bytes[sector]);
                        }
                    }
                }
            }
        }
        Self::holding(content)
    }

    fn holding(content: Vec<u8>) -> Self {
        let state = State { durable: content.clone(), current: content, ..State::default() };
        Self(Arc::new(Mutex::new(state)))
    }
}

/// The parts of a write at `offset` that fall into one sector each, relative to the write.
fn sectors(offset: usize, length: usize) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let end = length.min(start + SECTOR - (offset + start) % SECTOR);
        let sector = start..end;
        start = end;
        (!sector.is_empty()).then_some(sector)
    })
}

// === impl State ===

impl State {
    /// Counts an operation; an error when the power is off, or goes now.
    fn operate(&mut self, sync: bool) -> io::Result<()> {
        self.operations += 1;
        self.syncs += u64::from(sync);
        self.off |= match self.cut {
            Some(Cut::Sync(number)) => sync && self.syncs == number,
            Some(Cut::Operation(number)) => self.operations == number,
            None => false,
        };
        self.powered()
    }

    fn powered(&self) -> io::Result<()> {
        if self.off { Err(io::Error::other("the power is off")) } else { Ok(()) }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        let state = self.0.lock();
        state.powered()?;
        Ok(state.current.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.0.lock();
        state.powered()?;
        let offset = usize::try_from(offset).unwrap();
        let bytes = state.current.get(offset..offset + out.len());
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.0.lock();
        let len = usize::try_from(len).unwrap();
        if state.full && len > state.current.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let result = state.operate(false);
        state.current.resize(len, 0);
        state.pending.push(Pending::Length(len));
        result
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        state.operate(true)?;
        state.pending.clear();
        state.durable = state.current.clone();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.0.lock();
        state.powered()?;
        // The write in which the power goes may be on the disk, in part.
        let result = state.operate(false);
        let offset = usize::try_from(offset).unwrap();
        let end = offset + data.len();
        if state.current.len() < end {
            state.current.resize(end, 0);
        }
        state.current[offset..end].copy_from_slice(data);
        state.pending.push(Pending::Write(offset, data.to_vec()));
        result
    }
}
