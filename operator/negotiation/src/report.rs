//! Reports: lists of places that differ.

use std::collections::BTreeMap;

/// The most differences that one report tells.
pub const MAX_DIFFERENCES: usize = 64;

/// The longest path and message, in characters.
const LONGEST: usize = 1_000;

/// The longest value that somebody says, in characters.
const LONGEST_VALUE: usize = 200;

/// The most targets that are named for one value.
const MOST_TARGETS: usize = 64;

/// One place in which types differ.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// Whether objects can't be exchanged because of it. Else it only narrows what is taken, or changes
    /// nothing about objects.
    pub blocking: bool,
    /// The place in an object, as `.spec.containers[*].image`; empty for what is no field.
    pub path: String,
    /// What differs, as a keyword of schemas, or `scope`, `kind`, `names`, `subresources`, `columns`.
    pub what: String,
    /// How, for people.
    pub message: String,
    /// Who says what, sorted by what is said.
    pub said: Vec<Said>,
}

/// What some say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Said {
    /// What they say; empty if they say nothing.
    pub value: String,
    /// Who says it, sorted.
    pub targets: Vec<String>,
}

/// Differences as they are found.
#[derive(Debug, Default)]
pub(crate) struct Report {
    blocking: Vec<Difference>,
    others: Vec<Difference>,
}

// === impl Report ===

impl Report {
    pub(crate) fn add(&mut self, difference: Difference) {
        let list = if difference.blocking { &mut self.blocking } else { &mut self.others };
        if list.len() < MAX_DIFFERENCES {
            list.push(difference);
        }
    }

    /// Whether one more difference would be told; of what isn't, nothing need be put together.
    pub(crate) fn has_room(&self, blocking: bool) -> bool {
        let list = if blocking { &self.blocking } else { &self.others };
        list.len() < MAX_DIFFERENCES
    }

    pub(crate) fn is_blocked(&self) -> bool {
        !self.blocking.is_empty()
    }

    /// The list: blocking ones first, each kind sorted by path.
    pub(crate) fn finish(mut self) -> Vec<Difference> {
        self.blocking.sort();
        self.others.sort();
        self.blocking.append(&mut self.others);
        self.blocking.truncate(MAX_DIFFERENCES);
        self.blocking
    }
}

// === impl Difference ===

impl Difference {
    pub(crate) fn new(
        blocking: bool,
        path: &str,
        what: &str,
        message: String,
        said: Vec<Said>,
    ) -> Self {
        Self {
            blocking,
            path: shortened(path.to_owned(), LONGEST),
            what: shortened(what.to_owned(), 63),
            message: shortened(message, LONGEST),
            said,
        }
    }
}

/// Who says what, from what each says.
pub(crate) fn said<'a>(all: impl IntoIterator<Item = (String, &'a [String])>) -> Vec<Said> {
    let mut by_value: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (value, targets) in all {
        by_value.entry(value).or_default().extend_from_slice(targets);
    }
    let one = |(value, mut targets): (String, Vec<String>)| {
        targets.sort_unstable();
        targets.dedup();
        targets.truncate(MOST_TARGETS);
        Said { value: shortened(value, LONGEST_VALUE), targets }
    };
    by_value.into_iter().take(MAX_DIFFERENCES).map(one).collect()
}

/// A text of at most some characters.
fn shortened(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text,
        Some(_) => text.chars().take(most).chain(['…']).collect(),
    }
}
