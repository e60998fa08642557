//! What is wrong with an object under its schema, in upstream's words.

use std::fmt;

/// Reported problems end here; upstream has no end.
const MOST: usize = 100;

/// All that is wrong with an object, with the paths of the places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Problems(Vec<Problem>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Problem {
    path: String,
    text: String,
}

// === impl Problems ===

impl Problems {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(vec![Problem { path: String::new(), text: text.into() }])
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, other: Self) {
        let room = MOST.saturating_sub(self.0.len());
        self.0.extend(other.0.into_iter().take(room));
    }

    /// The same problems, seen from one step further out.
    pub(super) fn below(mut self, step: impl fmt::Display) -> Self {
        if self.0.is_empty() {
            return self;
        }
        let step = step.to_string();
        for problem in &mut self.0 {
            problem.path.insert_str(0, &step);
        }
        self
    }

    pub(super) fn result(self) -> Result<(), Self> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [problem] = &*self.0 {
            return problem.fmt(f);
        }
        f.write_str("errors:")?;
        self.0.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.text)
    }
}

impl std::error::Error for Problems {}
