//! Which TLS is spoken: versions and cipher suites by Go's names, as kube-apiserver takes them.

use std::path::PathBuf;
use std::str::FromStr;

use rustls::crypto::CryptoProvider;
use rustls::{SupportedProtocolVersion, version};

/// How the server speaks TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// A serving certificate with its chain, and its key, as PEM, instead of our own.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Further certificates, for clients that ask for their names.
    pub named: Vec<NamedCertificate>,
    /// The lowest version that is spoken.
    pub lowest: TlsVersion,
    /// Cipher suites of TLS 1.2 that are spoken; empty for all that are safe. Those of TLS 1.3 are
    /// always.
    pub suites: Vec<CipherSuite>,
}

/// A certificate for clients that ask for a name: `CERT,KEY` or `CERT,KEY:NAME,*.NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCertificate {
    /// The certificate with its chain, as PEM.
    pub certificate: PathBuf,
    /// Its key, as PEM.
    pub key: PathBuf,
    /// Whom it is for; empty for the names in the certificate.
    pub names: Vec<String>,
}

/// A version of TLS, by Go's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsVersion {
    /// `VersionTLS12`.
    #[default]
    Tls12,
    /// `VersionTLS13`.
    Tls13,
}

/// A cipher suite, by Go's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CipherSuite(rustls::CipherSuite);

/// Go's names of the suites that both know. Go has two names for some.
const SUITES: [(&str, rustls::CipherSuite); 11] = {
    use rustls::CipherSuite as S;
    [
        ("TLS_AES_128_GCM_SHA256", S::TLS13_AES_128_GCM_SHA256),
        ("TLS_AES_256_GCM_SHA384", S::TLS13_AES_256_GCM_SHA384),
        ("TLS_CHACHA20_POLY1305_SHA256", S::TLS13_CHACHA20_POLY1305_SHA256),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", S::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", S::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", S::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
        ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", S::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
        (
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            S::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        ),
        (
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
            S::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        ),
        (
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
            S::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        ),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", S::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
    ]
};

// === impl TlsOptions ===

impl TlsOptions {
    /// The versions that are spoken.
    pub(super) fn versions(&self) -> &'static [&'static SupportedProtocolVersion] {
        const BOTH: &[&SupportedProtocolVersion] = &[&version::TLS12, &version::TLS13];
        const LAST: &[&SupportedProtocolVersion] = &[&version::TLS13];
        match self.lowest {
            TlsVersion::Tls12 => BOTH,
            TlsVersion::Tls13 => LAST,
        }
    }

    /// Leaves the suites that are spoken. As in Go, those of TLS 1.3 can't be chosen.
    pub(super) fn choose(&self, provider: &mut CryptoProvider) {
        if !self.suites.is_empty() {
            provider.cipher_suites.retain(|suite| {
                suite.tls13().is_some() || self.suites.contains(&CipherSuite(suite.suite()))
            });
        }
    }
}

// === impl TlsVersion ===

impl FromStr for TlsVersion {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "VersionTLS12" => Ok(Self::Tls12),
            "VersionTLS13" => Ok(Self::Tls13),
            "VersionTLS10" | "VersionTLS11" => Err("not safe, and not spoken here".into()),
            _ => Err("neither VersionTLS12 nor VersionTLS13".into()),
        }
    }
}

// === impl CipherSuite ===

impl FromStr for CipherSuite {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = SUITES.iter().find(|(go, _)| *go == name);
        known.map(|(_, suite)| Self(*suite)).ok_or_else(|| {
            let names: Vec<&str> = SUITES.iter().map(|(go, _)| *go).collect();
            format!("not spoken here; these are: {}", names.join(", "))
        })
    }
}

// === impl NamedCertificate ===

impl FromStr for NamedCertificate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (files, names) = text.split_once(':').unwrap_or((text, ""));
        let files: Vec<&str> = files.split(',').collect();
        let [certificate, key] = files.as_slice() else {
            return Err("not CERT,KEY or CERT,KEY:NAME,NAME".into());
        };
        if certificate.is_empty() || key.is_empty() {
            return Err("a file has no name".into());
        }
        let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        Ok(Self {
            certificate: certificate.into(),
            key: key.into(),
            names: names.map(str::to_ascii_lowercase).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_go() {
        assert_eq!("VersionTLS13".parse(), Ok(TlsVersion::Tls13));
        assert!(
            "VersionTLS10".parse::<TlsVersion>().is_err() && "1.2".parse::<TlsVersion>().is_err()
        );
        let suite = |name: &str| name.parse::<CipherSuite>();
        assert!(suite("TLS_RSA_WITH_AES_128_CBC_SHA").unwrap_err().contains("TLS_ECDHE_RSA"));
        let mut provider = rustls::crypto::aws_lc_rs::default_provider();
        let known: Vec<_> = provider.cipher_suites.iter().map(|suite| suite.suite()).collect();
        for (name, expect) in SUITES {
            assert_eq!(suite(name).unwrap().0, expect);
            assert!(known.contains(&expect), "{name}");
        }
        let one = suite("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256").unwrap();
        TlsOptions { suites: vec![one], ..TlsOptions::default() }.choose(&mut provider);
        let left: Vec<_> = provider.cipher_suites.iter().map(|suite| suite.suite()).collect();
        assert_eq!(left.len(), 4, "{left:?}");
        assert!(left.contains(&one.0));
    }

    #[test]
    fn named_certificates() {
        let check = |text: &str, expect: Option<(&str, &str, &[&str])>| {
            let got = text.parse::<NamedCertificate>().ok();
            let expect = expect.map(|(certificate, key, names)| NamedCertificate {
                certificate: certificate.into(),
                key: key.into(),
                names: names.iter().map(|name| (*name).to_owned()).collect(),
            });
            assert_eq!(got, expect, "{text}");
        };
        check("a.crt,a.key", Some(("a.crt", "a.key", &[])));
        check("a.crt,a.key:X.io, *.y.io", Some(("a.crt", "a.key", &["x.io", "*.y.io"])));
        check("a.crt", None);
        check("a.crt,", None);
        check("a,b,c", None);
    }
}
