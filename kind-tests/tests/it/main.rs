//! Tests over real programs: upstream's, and our server as a process. By subject.

mod conformance;
mod control_plane;
mod differential;
mod first_steps;
mod kubectl;
mod leftovers;
mod support;
