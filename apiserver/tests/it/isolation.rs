//! One logical cluster against another: a full administrator of `a` and a ServiceAccount that is
//! one try to get at `b`, at `root` and at the server. Nothing may succeed, and nothing be told.

mod advisories;
mod debug;
mod forms;
mod inside;
mod names;
mod routes;
mod tokens;
mod told;
mod world;
