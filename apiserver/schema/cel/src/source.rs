//! Where in an expression something stands, and errors that show it.

use std::fmt::{self, Write};

/// Errors of one expression that are shown; upstream truncates at the same number.
const MAX_ERRORS: usize = 100;

/// Lines longer than this many bytes are not shown below an error.
const MAX_SNIPPET: usize = 16_384;

/// What is wrong with an expression. The text is as upstream writes it: for each problem the
/// position, the line, and a mark below it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct CompileError {
    text: String,
}

/// A problem at a byte of the expression; `None` stands before the first line.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) at: Option<u32>,
    pub(crate) message: String,
}

/// Problems found so far. At most [`MAX_ERRORS`] are kept; the rest is counted.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    kept: Vec<Problem>,
    count: usize,
}

impl Problems {
    pub(crate) fn add(&mut self, at: u32, message: impl fmt::Display) {
        self.push(Some(at), message);
    }

    pub(crate) fn add_nowhere(&mut self, message: impl fmt::Display) {
        self.push(None, message);
    }

    fn push(&mut self, at: Option<u32>, message: impl fmt::Display) {
        self.count += 1;
        if self.count <= MAX_ERRORS {
            self.kept.push(Problem { at, message: message.to_string() });
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The error that shows all problems in the order of their places.
    pub(crate) fn into_error(mut self, source: &str) -> CompileError {
        self.kept.sort_by_key(|problem| problem.at.map_or(0, |at| at + 1));
        let mut text = String::new();
        for problem in &self.kept {
            if !text.is_empty() {
                text.push('\n');
            }
            show(&mut text, source, problem);
        }
        if self.count > MAX_ERRORS {
            // Writing to a string can't fail.
            write!(text, "\n{} more errors were truncated", self.count - MAX_ERRORS).ok();
        }
        CompileError { text }
    }
}

fn show(out: &mut String, source: &str, problem: &Problem) {
    let Some(at) = problem.at else {
        write!(out, "ERROR: <input>:-1:0: {}", problem.message).ok();
        return;
    };
    let at = (at as usize).min(source.len());
    let before = source.get(..at).unwrap_or(source);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line_number = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let lead = before.get(line_start..).unwrap_or_default();
    let column = lead.chars().count();
    write!(out, "ERROR: <input>:{line_number}:{}: {}", column + 1, problem.message).ok();
    let rest = source.get(line_start..).unwrap_or_default();
    let line = rest.split('\n').next().unwrap_or_default();
    if line.len() > MAX_SNIPPET || source.is_empty() {
        return;
    }
    out.push_str("\n | ");
    out.extend(line.chars().map(|c| if c == '\t' { ' ' } else { c }));
    out.push_str("\n | ");
    out.extend(lead.chars().map(|c| if c.len_utf8() > 1 { '\u{ff0e}' } else { '.' }));
    let marked = line.chars().nth(column);
    out.push(if marked.is_some_and(|c| c.len_utf8() > 1) { '\u{ff3e}' } else { '^' });
}
