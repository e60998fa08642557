//! Flags that say how TLS is spoken.

use std::path::PathBuf;

use clap::Args;

use crate::pki::{CipherSuite, NamedCertificate, TlsOptions, TlsVersion};

#[derive(Debug, Args)]
pub(super) struct TlsArgs {
    /// Serving certificate with its chain, as PEM, instead of one of our own. Files of certificates
    /// are read again when they change.
    #[arg(long, requires = "tls_private_key_file", value_name = "FILE")]
    tls_cert_file: Option<PathBuf>,

    /// Key of the serving certificate, as PEM.
    #[arg(long, requires = "tls_cert_file", value_name = "FILE")]
    tls_private_key_file: Option<PathBuf>,

    /// Certificate and key, as PEM, for clients that ask for one of the names: CERT,KEY or
    /// CERT,KEY:NAME,*.NAME; without names those in the certificate count. Repeatable.
    #[arg(long = "tls-sni-cert-key", value_name = "CERT,KEY:NAMES")]
    tls_sni_cert_keys: Vec<NamedCertificate>,

    /// Lowest version of TLS that is spoken: VersionTLS12 or VersionTLS13. [default: VersionTLS12]
    #[arg(long, value_name = "VERSION")]
    tls_min_version: Option<TlsVersion>,

    /// Cipher suites of TLS 1.2 that are spoken, by Go's names, separated by commas; those of TLS
    /// 1.3 always are. [default: all that are safe]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tls_cipher_suites: Vec<CipherSuite>,
}

// === impl TlsArgs ===

impl TlsArgs {
    /// What the flags say.
    pub(super) fn options(self) -> TlsOptions {
        TlsOptions {
            certificate: self.tls_cert_file.zip(self.tls_private_key_file),
            named: self.tls_sni_cert_keys,
            lowest: self.tls_min_version.unwrap_or_default(),
            suites: self.tls_cipher_suites,
        }
    }
}
