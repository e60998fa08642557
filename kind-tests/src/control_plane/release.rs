//! Which release of Kubernetes a control plane is of.

use anyhow::Result;

use crate::tools::Tool;

/// A release of a control plane's programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Release {
    /// The one that everything else here is of.
    #[default]
    Current,
    /// The minor version before.
    Older,
}

// === impl Release ===

impl Release {
    /// Its API server.
    pub fn api_server(self) -> Tool {
        match self {
            Self::Current => Tool::KubeApiserver,
            Self::Older => Tool::KubeApiserverOlder,
        }
    }

    /// Its controllers.
    pub fn controller_manager(self) -> Tool {
        match self {
            Self::Current => Tool::KubeControllerManager,
            Self::Older => Tool::KubeControllerManagerOlder,
        }
    }

    /// Its version, as the API server tells it.
    ///
    /// # Errors
    /// When the wrapper module that pins it cannot be read.
    pub fn version(self) -> Result<String> {
        self.api_server().version()
    }
}
