//! What has to be on the machine, and getting it there.

use std::process::Command;

use anyhow::{Result, bail};
use kind_tests::cluster;
use kind_tests::process::is_on_path;
use kind_tests::progress::say;
use kind_tests::tools::{self, Tool};

use crate::steps::{execute, step};

/// A program that Debian ships.
struct Wanted {
    program: &'static str,
    package: &'static str,
}

/// What cargo and go need to build, and what network namespaces need.
const WANTED: [Wanted; 4] = [
    Wanted { program: "cc", package: "gcc libc6-dev" },
    Wanted { program: "make", package: "make" },
    Wanted { program: "git", package: "git" },
    Wanted { program: "ip", package: "iproute2" },
];

/// Installs and builds whatever is missing.
pub(crate) fn run(all: bool) -> Result<()> {
    step("set up the machine", install_packages)?;
    let tools: &[Tool] = if all { &Tool::ALL } else { &Tool::FOR_TESTS };
    step("build the tools that are missing", || build(tools))
}

/// Builds what the cache does not have.
pub(crate) fn build(wanted: &[Tool]) -> Result<()> {
    for &tool in wanted {
        tools::ensure(tool)?;
    }
    Ok(())
}

pub(crate) fn install_packages() -> Result<()> {
    if !is_on_path("go") {
        bail!("Go is missing: install Go 1.26 and put `go` on the PATH");
    }
    let mut missing: Vec<&str> = WANTED
        .iter()
        .filter(|wanted| !is_on_path(wanted.program))
        .flat_map(|wanted| wanted.package.split(' '))
        .collect();
    missing.extend(cluster::missing_packages());
    if missing.is_empty() {
        return Ok(());
    }
    if !rustix::process::geteuid().is_root() || !is_on_path("apt-get") {
        bail!("please install: {}", missing.join(" "));
    }
    say(format!("installing {}", missing.join(" ")));
    let apt = || {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive").arg("--quiet=2");
        apt
    };
    execute(apt().arg("update"))?;
    execute(apt().args(["install", "--yes", "--no-install-recommends"]).args(missing))
}
