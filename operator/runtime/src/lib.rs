//! What every process of kcp-rs shares: logs, signals, pages about itself, whose certificates it
//! believes, and tracked tasks.
//!
//! It knows nothing of Kubernetes. Start at [`Tasks`]: every task of a process is spawned through
//! it, carries a span, sees the process's cancellation and is awaited at shutdown.

mod authorities;
pub mod logs;
pub mod pages;
pub mod signals;
mod tasks;

pub use authorities::Authorities;
pub use tasks::{Tasks, cores};
