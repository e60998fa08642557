//! The smallest HTTPS client that can ask a server whether it is ready.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};

use crate::kubeconfig::Access;

/// The longest answer that is read: health endpoints are short.
const LONGEST_ANSWER: u64 = 1 << 20;

/// GETs `path` at the root of the server, anonymously, and returns status and body.
///
/// # Errors
/// When nobody answers, or the server is not the one that `access` vouches for.
pub fn get(access: &Access, path: &str) -> Result<(u16, String)> {
    let authority = access.server.strip_prefix("https://").context("not an https address")?;
    let authority = authority.split('/').next().unwrap_or(authority);
    let (host, _port) = authority.rsplit_once(':').context("the address has no port")?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(access.authority.as_bytes()) {
        roots.add(certificate?)?;
    }
    let config =
        ClientConfig::builder_with_provider(rustls::crypto::aws_lc_rs::default_provider().into())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
    let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())?;
    let stream = TcpStream::connect(authority)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.set_write_timeout(Some(Duration::from_secs(5)))?;
    let mut stream = StreamOwned::new(ClientConnection::new(Arc::new(config), name)?, stream);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(LONGEST_ANSWER).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").context("no end of the headers")?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok((status, body.to_owned()))
}
