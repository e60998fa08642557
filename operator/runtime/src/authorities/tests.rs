//! What `crypto/x509` answers, case by case.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};

use super::*;

/// A certificate with its key, which may sign others whatever it says of itself.
struct Made {
    der: CertificateDer<'static>,
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(vec!["hook.example".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn authority(name: &str) -> CertificateParams {
    let mut params = params(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

fn made(params: CertificateParams, by: Option<&Made>) -> Made {
    let key = KeyPair::generate().unwrap();
    let certificate = match by {
        None => params.self_signed(&key).unwrap(),
        Some(by) => params.signed_by(&key, &by.issuer).unwrap(),
    };
    let (der, pem) = (certificate.der().clone(), certificate.pem());
    Made { der, pem, issuer: Issuer::new(params, key) }
}

/// How a server is judged that shows a chain, by who believes a bundle.
fn judged(bundle: &[&Made], chain: &[&Made], name: &str) -> Result<(), Error> {
    let pem: String = bundle.iter().map(|made| made.pem.as_str()).collect();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Verifier { authorities: Authorities::of_bundle(pem.as_bytes()), provider };
    let others: Vec<_> = chain[1..].iter().map(|made| made.der.clone()).collect();
    let name = ServerName::try_from(name).unwrap();
    // In 2030: what is made here is valid from 1975 to 4096 where nothing else is said.
    let now = UnixTime::since_unix_epoch(Duration::from_hours(24 * 365 * 60));
    verifier.verify_server_cert(&chain[0].der, &others, &name, &[], now).map(drop)
}

fn refused(judged: Result<(), Error>) -> CertificateError {
    match judged {
        Err(Error::InvalidCertificate(why)) => why,
        other => panic!("{other:?}"),
    }
}

const NAME: &str = "hook.example";

#[test]
fn what_an_authority_of_the_bundle_signed() {
    let root = made(authority("root"), None);
    let middle = made(authority("middle"), Some(&root));
    let leaf = made(params("leaf"), Some(&middle));
    assert_eq!(judged(&[&root], &[&leaf, &middle], NAME), Ok(()));
    // An authority below another is one as well.
    assert_eq!(judged(&[&middle], &[&leaf], NAME), Ok(()));
    let other = made(authority("root"), None);
    let why = refused(judged(&[&other], &[&leaf, &middle], NAME));
    assert_eq!(why, CertificateError::UnknownIssuer);
    assert_eq!(refused(judged(&[], &[&leaf, &middle], NAME)), CertificateError::UnknownIssuer);
    assert!(matches!(
        refused(judged(&[&root], &[&leaf, &middle], "other.example")),
        CertificateError::NotValidForNameContext { .. }
    ));
}

#[test]
fn what_stands_in_the_bundle_itself() {
    let root = made(authority("root"), None);
    let leaf = made(params("leaf"), Some(&root));
    let alone = made(params("alone"), None);
    // As `openssl req -x509` makes them for a server.
    let own = made(authority("own"), None);
    for one in [&leaf, &alone, &own] {
        assert_eq!(judged(&[one], &[one], NAME), Ok(()));
        // Twice, and beside others.
        assert_eq!(judged(&[&root, one, one], &[one], NAME), Ok(()));
        assert!(matches!(
            refused(judged(&[one], &[one], "other.example")),
            CertificateError::NotValidForNameContext { .. }
        ));
    }
    // Another with the same name has another key.
    let again = made(params("alone"), None);
    assert_eq!(refused(judged(&[&alone], &[&again], NAME)), CertificateError::UnknownIssuer);
}

#[test]
fn what_is_no_authority_signs_nothing() {
    let leaf = made(params("leaf"), None);
    let below = made(params("below"), Some(&leaf));
    assert_eq!(refused(judged(&[&leaf], &[&below], NAME)), CertificateError::UnknownIssuer);
    assert!(judged(&[&leaf], &[&below, &leaf], NAME).is_err());
}

#[test]
fn times_and_purposes_count_also_for_what_is_given() {
    let mut old = params("old");
    old.not_after = date_time_ymd(2029, 1, 1);
    let old = made(old, None);
    let mut new = params("new");
    new.not_before = date_time_ymd(2031, 1, 1);
    let new = made(new, None);
    let why = refused(judged(&[&old], &[&old], NAME));
    assert!(matches!(why, CertificateError::ExpiredContext { .. }), "{why:?}");
    let why = refused(judged(&[&new], &[&new], NAME));
    assert!(matches!(why, CertificateError::NotValidYetContext { .. }), "{why:?}");
    for (purpose, valid) in [
        (ExtendedKeyUsagePurpose::ClientAuth, false),
        (ExtendedKeyUsagePurpose::ServerAuth, true),
        (ExtendedKeyUsagePurpose::Any, true),
    ] {
        let mut params = params("purpose");
        params.extended_key_usages = vec![purpose];
        let made = made(params, None);
        let judged = judged(&[&made], &[&made], NAME);
        if valid {
            assert_eq!(judged, Ok(()));
        } else {
            assert_eq!(refused(judged), CertificateError::InvalidPurpose);
        }
    }
}

#[test]
fn what_is_no_certificate_is_passed_over() {
    let root = made(authority("root"), None);
    let leaf = made(params("leaf"), Some(&root));
    let noise = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let pem = format!("# a comment\n{noise}{}", root.pem);
    let authorities = Authorities::of_bundle(pem.as_bytes());
    assert_eq!(authorities.given.len(), 1);
    assert!(Authorities::of_bundle(noise.as_bytes()).is_empty());
    assert!(Authorities::of_bundle(b"").is_empty());
    assert!(!Authorities::of_bundle(leaf.pem.as_bytes()).is_empty());
}
