//! CRDs, their names, and what they become.

mod compiled;
mod judged;
mod laws;
