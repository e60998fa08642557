//! What those who debug a server type: profiles that Go's own tool reads, and the filter of the log.

use std::fs::File;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use kind_tests::scenario::Need;
use kind_tests::{Hub, Kubectl, Run, Tool, cargo, hub, scenario};

use crate::support::{check_contains, json};

#[test]
fn a_profile_is_read_by_go_s_tool() {
    scenario("a_profile_is_read", &[Need::Tool(Tool::Kubectl)], |run| {
        let mut options = hub::Options::new(hub::PROGRAM.path(cargo::Profile::Dev)?);
        options.arguments.push("--profiling".to_owned());
        let mut hub = Hub::with(run, "hub", options)?;
        let kubectl = Kubectl::new(run, Tool::Kubectl, &hub.kubeconfig())?;
        let base = kubectl.context("base");
        profile(run, &hub, &base)?;
        let state = json(&base.ok(&["get", "--raw=/debug/state"])?)?;
        ensure!(state["store"]["backend"] == "embedded", "{state}");
        ensure!(state["store"]["fileBytes"].as_u64() > Some(0), "{state}");
        let flag = "--raw=/debug/flags/v";
        let said = base.ok_with_input(&["replace", flag, "--filename=-"], "4\n")?;
        check_contains(&said, &["successfully set the log filter to debug"])?;
        ensure!(base.ok(&["get", flag])? == "debug\n");
        // The usual context is that of `root`, below which there is nothing of this.
        check_contains(&kubectl.fails(&["get", "--raw=/debug/state"])?, &["NotFound"])?;
        hub.terminate()
    });
}

fn profile(run: &Run, hub: &Hub, base: &Kubectl) -> Result<()> {
    let file = run.folder().join("cpu.pb.gz");
    let mut taking = Command::new(base.program())
        .arg("--kubeconfig")
        .arg(hub.kubeconfig())
        .args(["--context=base", "get", "--raw=/debug/pprof/profile?seconds=3"])
        .stdout(File::create(&file)?)
        .stderr(Stdio::inherit())
        .spawn()
        .context("start kubectl")?;
    // Each of them is a handshake, which is work.
    let mut asked = 0;
    let taken = loop {
        base.ok(&["get", "--raw=/openapi/v3"])?;
        asked += 1;
        if let Some(taken) = taking.try_wait()? {
            break taken;
        }
    };
    ensure!(taken.success() && asked > 3, "{taken} after {asked}");
    let read = Command::new("go")
        .args(["tool", "pprof", "-top", "-sample_index=samples"])
        .arg(&file)
        .output()
        .context("run go")?;
    let text = String::from_utf8(read.stdout)?;
    ensure!(read.status.success(), "{text}{}", String::from_utf8_lossy(&read.stderr));
    check_contains(&text, &["Type: samples", "Duration: 3", "tokio::runtime::"])
}
