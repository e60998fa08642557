//! Programs that start an API server for themselves find ours, and don't notice.

use kind_tests::envtest::Assets;
use kind_tests::scenario::Need;
use kind_tests::{Tool, scenario};

/// A manager with leader election, caches, events, finalizers and owners, made with controller-runtime,
/// and its tests of itself.
#[test]
fn a_controller_embeds_our_server() {
    let tools = [Tool::Etcd, Tool::KubeApiserver, Tool::Kubectl, Tool::Controller];
    scenario("a_controller_embeds_our_server", &tools.map(Need::Tool), |run| {
        Assets::prepare(run)?.run_program(Tool::Controller)
    });
}
