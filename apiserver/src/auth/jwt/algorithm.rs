//! Signature algorithms (RFC 7518 section 3.1, RFC 8037).

/// An algorithm that tokens are signed with. Those with shared secrets, and none at all, are left
/// out: nobody here shares a secret with an issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    Es512,
    EdDsa,
}

const ALL: [Algorithm; 10] = [
    Algorithm::Rs256,
    Algorithm::Rs384,
    Algorithm::Rs512,
    Algorithm::Ps256,
    Algorithm::Ps384,
    Algorithm::Ps512,
    Algorithm::Es256,
    Algorithm::Es384,
    Algorithm::Es512,
    Algorithm::EdDsa,
];

// === impl Algorithm ===

impl Algorithm {
    /// The name in tokens and key sets.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Es512 => "ES512",
            Self::EdDsa => "EdDSA",
        }
    }

    /// The algorithm of that name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }
}
