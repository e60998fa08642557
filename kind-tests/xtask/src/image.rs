//! `cargo xtask image`: images without a container engine.

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use kind_tests::cargo::{self, Profile};
use kind_tests::{Image, progress::say};

use crate::ImageArguments;

/// The programs that there are images of.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Program {
    /// The API server.
    #[value(name = "kcp-apiserver")]
    Apiserver,
    /// The operator.
    #[value(name = "kcp-operator")]
    Operator,
    /// The agent.
    #[value(name = "kcp-agent")]
    Agent,
}

// === impl Program ===

impl Program {
    /// Its package and its name.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Apiserver => ("apiserver", "kcp-apiserver"),
            Self::Operator => ("operator", "kcp-operator"),
            Self::Agent => ("agent", "kcp-agent"),
        }
    }
}

/// Builds the program as users run it, and writes its image.
pub(crate) fn write(arguments: &ImageArguments) -> Result<()> {
    let (package, name) = arguments.program.names();
    let program = cargo::build_static(package, name, Profile::Release)?;
    let version = env!("CARGO_PKG_VERSION");
    let tagged = arguments.name.clone().unwrap_or_else(|| format!("{name}:{version}"));
    let file = arguments.output.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.tar")));
    Image { name: tagged.clone(), program, arguments: Vec::new() }.write(&file)?;
    say(format!("{tagged} is in {}", file.display()));
    Ok(())
}
