//! Where physical clusters come from.

use std::str::FromStr;

use anyhow::{Result, bail};

use crate::control_plane::{ControlPlane, Options};
use crate::run::Run;

/// Who makes Kubernetes clusters for tests and demos.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Provider {
    /// Processes on this machine, in network namespaces where asked.
    #[default]
    Native,
    /// `kind`, which needs Docker.
    Kind,
}

// === impl Provider ===

impl Provider {
    /// Starts a control plane.
    ///
    /// # Errors
    /// When it does not become ready, or this provider cannot make one.
    pub fn control_plane(self, run: &Run, name: &str, options: Options) -> Result<ControlPlane> {
        match self {
            Self::Native => ControlPlane::start(run, name, options),
            Self::Kind => bail!("the provider `kind` is not supported yet: use `native`"),
        }
    }
}

impl FromStr for Provider {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "native" => Ok(Self::Native),
            "kind" => Ok(Self::Kind),
            other => bail!("unknown provider {other:?}: native or kind"),
        }
    }
}
