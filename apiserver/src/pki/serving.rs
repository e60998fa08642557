//! What the server shows and trusts while it runs: replaced when files change or certificates near
//! their end, without a connection noticing. What can't be read leaves what was there.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::time::Instant;
use tracing::{info, warn};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{Pair, Pki, PkiError, TlsOptions, aws_lc_rs, files, names_of};

/// How often it is looked whether files have changed.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// How often it is looked whether our own certificates near their end.
const RENEW_EVERY: Duration = Duration::from_secs(3600);

/// The certificates that the server shows.
#[derive(Debug)]
pub(crate) struct Shown(ArcSwap<Certificates>);

#[derive(Debug)]
struct Certificates {
    /// For those who ask for no name, or for one that no other is for.
    usual: Arc<CertifiedKey>,
    named: Vec<(Vec<String>, Arc<CertifiedKey>)>,
}

/// Those who sign client certificates.
#[derive(Debug)]
pub(crate) struct Trusted(ArcSwap<Arc<dyn ClientCertVerifier>>);

/// Where all of that comes from.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) root: Option<PathBuf>,
    /// Names of our own certificate.
    pub(crate) names: Vec<String>,
    pub(crate) tls: TlsOptions,
    pub(crate) client_authorities: Option<PathBuf>,
}

// === impl Shown ===

impl Shown {
    /// The certificates of `pki` and `options`.
    ///
    /// # Errors
    /// When files can't be read, or hold something else.
    pub(crate) fn open(pki: &Pki, options: &TlsOptions) -> Result<Arc<Self>, PkiError> {
        Ok(Arc::new(Self(ArcSwap::from_pointee(certificates(&pki.serving, options)?))))
    }

    /// What is shown to who asks for `name`.
    fn of(&self, name: Option<&str>) -> Arc<CertifiedKey> {
        let shown = self.0.load();
        let Some(name) = name.map(str::to_ascii_lowercase) else { return shown.usual.clone() };
        let wild = name.split_once('.').map(|(_, rest)| format!("*.{rest}"));
        let find = |wanted: &str| {
            let is_for = |names: &&(Vec<String>, _)| names.0.iter().any(|own| own == wanted);
            shown.named.iter().find(is_for).map(|(_, key)| key.clone())
        };
        let found = find(&name).or_else(|| find(&wild?));
        found.unwrap_or_else(|| shown.usual.clone())
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.of(hello.server_name()))
    }
}

fn certificates(usual: &Pair, options: &TlsOptions) -> Result<Certificates, PkiError> {
    let usual = match &options.certificate {
        Some((certificate, key)) => certified(&read_pair(certificate, key)?)?,
        None => certified(usual)?,
    };
    let named = options.named.iter().map(|named| {
        let key = certified(&read_pair(&named.certificate, &named.key)?)?;
        let mut names = named.names.clone();
        if names.is_empty() {
            let parsed = key.cert.first().and_then(|leaf| X509Certificate::from_der(leaf).ok());
            let of_leaf = parsed.map(|(_, leaf)| names_of(&leaf)).unwrap_or_default();
            names.extend(of_leaf.iter().map(|name| name.to_ascii_lowercase()));
        }
        Ok((names, key))
    });
    Ok(Certificates { usual, named: named.collect::<Result<_, PkiError>>()? })
}

fn read_pair(certificate: &Path, key: &Path) -> Result<Pair, PkiError> {
    Ok(Pair { certificate: files::read(certificate)?, key: files::read(key)? })
}

/// A pair that fits together.
fn certified(pair: &Pair) -> Result<Arc<CertifiedKey>, PkiError> {
    let tls = |error: Box<dyn std::error::Error + Send + Sync>| PkiError::Tls(error);
    let chain = CertificateDer::pem_slice_iter(pair.certificate.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| tls(Box::new(error)))?;
    let key =
        PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).map_err(|error| tls(Box::new(error)))?;
    let key = CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider());
    Ok(Arc::new(key.map_err(|error| tls(Box::new(error)))?))
}

// === impl Trusted ===

impl Trusted {
    /// Those of `pki`.
    ///
    /// # Errors
    /// When an authority is not usable.
    pub(crate) fn open(pki: &Pki) -> Result<Arc<Self>, PkiError> {
        Ok(Arc::new(Self(ArcSwap::from_pointee(pki.client_verifier()?))))
    }

    /// Verifies certificates by those of now.
    pub(crate) fn verifier(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::clone(&self.0.load())
    }
}

// === impl Sources ===

impl Sources {
    /// Looks again and again, without end. `renewed` is told of our own pairs when they are new.
    pub(crate) async fn follow(
        self,
        mut pki: Pki,
        shown: Arc<Shown>,
        trusted: Arc<Trusted>,
        renewed: impl Fn(&Pki) + Send,
    ) {
        let mut seen = self.versions().await;
        let mut renew_at = Instant::now() + RENEW_EVERY;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let mut changed = false;
            if Instant::now() >= renew_at {
                renew_at = Instant::now() + RENEW_EVERY;
                if let Some(new) = self.renew(&pki, Timestamp::now()) {
                    info!("our own certificates were made anew");
                    pki = new;
                    renewed(&pki);
                    changed = true;
                }
            }
            let now = self.versions().await;
            if now != seen {
                seen = now;
                changed = true;
            }
            if changed {
                self.load(&mut pki, &shown, &trusted);
            }
        }
    }

    /// Reads everything again; each part that can't be used stays as it is.
    fn load(&self, pki: &mut Pki, shown: &Shown, trusted: &Trusted) {
        match certificates(&pki.serving, &self.tls) {
            Ok(new) => shown.0.store(Arc::new(new)),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                warn!(error, "the serving certificates stay as they were");
            }
        }
        let authorities = self.client_authorities.as_deref().map(|path| pki.trust_clients(path));
        let new = authorities.transpose().and_then(|_| pki.client_verifier());
        match new {
            Ok(new) => trusted.0.store(Arc::new(new)),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                warn!(error, "the authorities of clients stay as they were");
            }
        }
        info!("certificates were read again");
    }

    /// Our own certificates, if they had to be made anew. Those in memory are not: they are as old
    /// as the process, and nothing else knows their CA. Another CA is for the next start: what was
    /// signed by the one of now is in use everywhere.
    fn renew(&self, pki: &Pki, now: Timestamp) -> Option<Pki> {
        let root = self.root.as_deref()?;
        match Pki::open(Some(root), &self.names, now) {
            Ok(new) if new.ca != pki.ca => {
                warn!("another CA is kept than that of this process: start it again");
                None
            }
            Ok(mut new) => {
                let same = new.serving.certificate == pki.serving.certificate
                    && new.admin.certificate == pki.admin.certificate
                    && new.operator.certificate == pki.operator.certificate;
                new.client_authorities.clone_from(&pki.client_authorities);
                (!same).then_some(new)
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                warn!(error, "our own certificates could not be looked at");
                None
            }
        }
    }

    async fn versions(&self) -> Vec<Option<files::Version>> {
        let pairs = self.tls.certificate.iter().flat_map(|(certificate, key)| [certificate, key]);
        let named = self.tls.named.iter().flat_map(|named| [&named.certificate, &named.key]);
        let mut versions = Vec::new();
        for path in pairs.chain(named).chain(&self.client_authorities) {
            versions.push(files::version(tokio::fs::metadata(path).await));
        }
        versions
    }
}

#[cfg(test)]
mod tests {
    use rustls_pki_types::UnixTime;

    use super::*;
    use crate::pki::NamedCertificate;

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    fn pki(name: &str) -> Pki {
        Pki::open(None, &[name.to_owned()], now()).unwrap()
    }

    fn leaf(key: &CertifiedKey) -> Vec<String> {
        names_of(&X509Certificate::from_der(&key.cert[0]).unwrap().1)
    }

    fn write(folder: &Path, name: &str, pki: &Pki) -> (PathBuf, PathBuf) {
        let (certificate, key) =
            (folder.join(format!("{name}.crt")), folder.join(format!("{name}.key")));
        std::fs::write(&certificate, &pki.serving.certificate).unwrap();
        std::fs::write(&key, &pki.serving.key).unwrap();
        (certificate, key)
    }

    #[test]
    fn certificates_go_by_name_and_follow_their_files() {
        let folder = tempfile::tempdir().unwrap();
        let usual = write(folder.path(), "usual", &pki("usual"));
        let (certificate, key) = write(folder.path(), "x", &pki("x.io"));
        let named = NamedCertificate { certificate, key, names: Vec::new() };
        let (certificate, key) = write(folder.path(), "y", &pki("y"));
        let wild = NamedCertificate { certificate, key, names: vec!["*.y.io".into()] };
        let tls = TlsOptions {
            certificate: Some(usual),
            named: vec![named, wild],
            ..TlsOptions::default()
        };
        let mut own = pki("own");
        let shown = Shown::open(&own, &tls).unwrap();
        let trusted = Trusted::open(&own).unwrap();
        let check = |name: Option<&str>, expect: &str| {
            assert_eq!(leaf(&shown.of(name)), [expect], "{name:?}");
        };
        check(None, "usual");
        check(Some("X.io"), "x.io");
        check(Some("a.y.io"), "y");
        check(Some("a.b.y.io"), "usual");
        check(Some("y.io"), "usual");
        write(folder.path(), "usual", &pki("next"));
        let sources = Sources { root: None, names: Vec::new(), tls, client_authorities: None };
        sources.load(&mut own, &shown, &trusted);
        check(None, "next");
        // One half of a pair is no pair: what was there stays.
        std::fs::write(folder.path().join("usual.crt"), &pki("half").serving.certificate).unwrap();
        sources.load(&mut own, &shown, &trusted);
        check(None, "next");
    }

    #[test]
    fn authorities_follow_their_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("clients.crt");
        let (first, second) = (pki("a"), pki("b"));
        std::fs::write(&file, &first.ca).unwrap();
        let mut own = pki("own");
        own.trust_clients(&file).unwrap();
        let (shown, trusted) =
            (Shown::open(&own, &TlsOptions::default()).unwrap(), Trusted::open(&own).unwrap());
        let trusts = |pki: &Pki| {
            let leaf = CertificateDer::from_pem_slice(pki.admin.certificate.as_bytes()).unwrap();
            let at = UnixTime::since_unix_epoch(Duration::from_secs(now().as_second() as u64));
            trusted.verifier().verify_client_cert(&leaf, &[], at).is_ok()
        };
        assert!(trusts(&first) && !trusts(&second));
        let sources = Sources {
            root: None,
            names: Vec::new(),
            tls: TlsOptions::default(),
            client_authorities: Some(file.clone()),
        };
        std::fs::write(&file, &second.ca).unwrap();
        sources.load(&mut own, &shown, &trusted);
        assert!(!trusts(&first) && trusts(&second));
        std::fs::write(&file, "no certificate").unwrap();
        sources.load(&mut own, &shown, &trusted);
        assert!(trusts(&second), "what was there stays");
    }

    #[test]
    fn own_certificates_are_renewed_before_they_end() {
        let folder = tempfile::tempdir().unwrap();
        let names = vec!["a".to_owned()];
        let own = Pki::open(Some(folder.path()), &names, now()).unwrap();
        let root = Some(folder.path().to_owned());
        let sources = Sources { root, names, tls: TlsOptions::default(), client_authorities: None };
        assert!(sources.renew(&own, now()).is_none());
        let later = now() + Duration::from_secs(340 * 86_400);
        let new = sources.renew(&own, later).unwrap();
        assert_eq!(new.ca, own.ca);
        assert_ne!(new.serving.certificate, own.serving.certificate);
        assert!(sources.renew(&new, later).is_none());
        for file in ["pki/ca.crt", "pki/ca.key"] {
            std::fs::remove_file(folder.path().join(file)).unwrap();
        }
        assert!(sources.renew(&new, later).is_none(), "another CA is for the next start");
    }
}
