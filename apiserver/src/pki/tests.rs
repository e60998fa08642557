//! Certificates over restarts.

use std::os::unix::fs::PermissionsExt;

use super::*;

fn names(extra: &[&str]) -> Vec<String> {
    ["localhost", "127.0.0.1", "::1"].iter().chain(extra).map(|name| (*name).to_owned()).collect()
}

#[test]
fn certificates_are_kept_until_something_changes() {
    let root = tempfile::tempdir().unwrap();
    let now = Timestamp::now();
    let open = |names: &[String], now| Pki::open(Some(root.path()), names, now).unwrap();
    let first = open(&names(&[]), now);
    let same = |a: &Pair, b: &Pair| a.certificate == b.certificate && a.key == b.key;
    let again = open(&names(&[]), now);
    assert!(same(&first.serving, &again.serving) && same(&first.admin, &again.admin));
    let renamed = open(&names(&["hub.example"]), now);
    assert!(!same(&first.serving, &renamed.serving) && same(&first.admin, &renamed.admin));
    assert_eq!(first.ca, renamed.ca);
    let later = open(&names(&["hub.example"]), now + jiff::SignedDuration::from_hours(24 * 340));
    assert!(!same(&renamed.serving, &later.serving) && !same(&renamed.admin, &later.admin));
    std::fs::remove_file(root.path().join("pki/ca.key")).unwrap();
    let new_ca = open(&names(&["hub.example"]), now);
    assert!(new_ca.ca != first.ca && !same(&new_ca.admin, &later.admin));
    for entry in std::fs::read_dir(root.path().join("pki")).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn the_pairs_serve_and_verify() {
    let pki = Pki::open(None, &names(&[]), Timestamp::now()).unwrap();
    let verifier = pki.client_verifier().unwrap();
    let options = TlsOptions::default();
    let shown = Shown::open(&pki, &options).unwrap();
    assert!(server_config(&options, shown).is_ok());
    let admin = CertificateDer::from_pem_slice(pki.admin.certificate.as_bytes()).unwrap();
    let now = rustls_pki_types::UnixTime::now();
    assert!(verifier.verify_client_cert(&admin, &[], now).is_ok());
    let server = CertificateDer::from_pem_slice(pki.serving.certificate.as_bytes()).unwrap();
    assert!(verifier.verify_client_cert(&server, &[], now).is_err());
    let foreign = Pki::open(None, &[], Timestamp::now()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let authorities = folder.path().join("clients.crt");
    std::fs::write(&authorities, &foreign.ca).unwrap();
    let foreign = CertificateDer::from_pem_slice(foreign.admin.certificate.as_bytes()).unwrap();
    assert!(verifier.verify_client_cert(&foreign, &[], now).is_err());

    let mut trusting = pki;
    trusting.trust_clients(&authorities).unwrap();
    let verifier = trusting.client_verifier().unwrap();
    assert!(verifier.verify_client_cert(&foreign, &[], now).is_ok());
    assert!(verifier.verify_client_cert(&admin, &[], now).is_ok());
    std::fs::write(&authorities, "no certificate").unwrap();
    let error = trusting.trust_clients(&authorities).unwrap_err();
    assert!(error.to_string().ends_with("clients.crt holds no usable certificate"), "{error}");
}

#[test]
fn a_broken_key_is_an_error_that_names_the_file() {
    let root = tempfile::tempdir().unwrap();
    Pki::open(Some(root.path()), &[], Timestamp::now()).unwrap();
    std::fs::write(root.path().join("pki/ca.key"), "garbage").unwrap();
    let error = Pki::open(Some(root.path()), &[], Timestamp::now()).unwrap_err();
    assert!(error.to_string().ends_with("ca.key holds no usable private key"), "{error}");
}

#[test]
fn kubeconfigs_have_two_contexts() {
    let pki = Pki::open(None, &[], Timestamp::now()).unwrap();
    let text = admin_kubeconfig(&pki, "https://localhost:6443", true);
    for line in [
        "    server: https://localhost:6443\n",
        "    server: https://localhost:6443/clusters/root\n",
        "current-context: root\n",
    ] {
        assert!(text.contains(line), "{line}");
    }
    assert_eq!(text.matches("certificate-authority-data").count(), 2);
    assert!(!admin_kubeconfig(&pki, "https://h:1", false).contains("certificate-authority-data"));

    // The operator is asked in all logical clusters, and is somebody else.
    let operator = operator_kubeconfig(&pki, "https://localhost:6443", true);
    assert!(operator.contains("    server: https://localhost:6443\n"), "{operator}");
    let subject = |pem: &str| {
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let (_, certificate) = X509Certificate::from_der(&der).unwrap();
        certificate.subject().to_string()
    };
    let expect = format!("CN={OPERATOR}, O={OPERATORS}");
    assert_eq!(subject(&pki.operator.certificate), expect);
    assert_ne!(subject(&pki.admin.certificate), expect);
}
