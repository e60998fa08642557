//! The server over real HTTP and TLS on loopback, in this process, over a store in memory.
//!
//! One binary, so that it is linked once.

mod client;
mod discovery;
mod forms;
mod hostile;
mod objects;
mod public;
