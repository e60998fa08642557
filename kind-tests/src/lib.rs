//! Harness for tests against real Kubernetes programs.
