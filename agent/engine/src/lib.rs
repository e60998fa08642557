//! The sync engine: decides what to do next from what was seen. No I/O, no clock, no async.
