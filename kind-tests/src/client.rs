//! A plain HTTPS client: it sends exactly what a case says, and shows exactly what comes back.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::client::WantsClientCert;
use rustls::{ClientConfig, ClientConnection, ConfigBuilder, RootCertStore, StreamOwned};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;

use crate::kubeconfig::Access;

/// The longest answer that is read.
const LONGEST_ANSWER: u64 = 32 << 20;

/// The longest pause within an answer: watches of this test end long before.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A client of one server, as its administrator.
#[derive(Clone, Debug)]
pub struct Client {
    access: Access,
    prefix: String,
    token: Option<String>,
    config: Arc<ClientConfig>,
    /// The longest pause within an answer, and for a request to be taken.
    pause: Duration,
}

/// A connection that is kept from one request to the next.
#[derive(Debug)]
pub struct Session<'c> {
    client: &'c Client,
    stream: Option<Stream>,
}

/// What is sent.
#[derive(Debug)]
pub struct Request<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub headers: &'a [(String, String)],
    pub body: Option<&'a [u8]>,
    /// The answer is read up to so many lines only.
    pub lines: Option<usize>,
}

/// What comes back.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    /// By name in lower case; several of one name are joined by a line break.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

/// The reading side of a connection. It never writes, so it reads on when sending has failed.
#[derive(Debug)]
struct Incoming(StreamOwned<ClientConnection, TcpStream>);

type Stream = BufReader<Incoming>;

// === impl Client ===

impl Client {
    /// A client of the current context's server, below `prefix` rather than the context's path.
    ///
    /// # Errors
    /// When the kubeconfig has not what it takes.
    pub fn new(kubeconfig: &Path, prefix: &str) -> Result<Self> {
        let access = Access::read(kubeconfig, None)?;
        let text = std::fs::read_to_string(kubeconfig)?;
        let file: Value = serde_saphyr::from_str(&text)?;
        let user = &file["users"][0]["user"];
        let config = trusting(&access)?;
        let pem = |field: &str| user[field].as_str().map(|text| STANDARD.decode(text)).transpose();
        let config = match (pem("client-certificate-data")?, pem("client-key-data")?) {
            (Some(certificate), Some(key)) => {
                let chain = CertificateDer::pem_slice_iter(&certificate).collect::<Result<_, _>>();
                config.with_client_auth_cert(chain?, PrivateKeyDer::from_pem_slice(&key)?)?
            }
            _ => config.with_no_client_auth(),
        };
        let token = user["token"].as_str().map(ToOwned::to_owned);
        let (prefix, pause) = (prefix.to_owned(), LONGEST_PAUSE);
        Ok(Self { access, prefix, token, config: config.into(), pause })
    }

    /// A client without identity, which waits at most `pause` for more of an answer.
    ///
    /// # Errors
    /// When the server's authority is none.
    pub fn anonymous(access: Access, pause: Duration) -> Result<Self> {
        let config = trusting(&access)?.with_no_client_auth();
        Ok(Self { access, prefix: String::new(), token: None, config: config.into(), pause })
    }

    /// Sends a request over a connection of its own and reads the answer.
    ///
    /// # Errors
    /// When there is no answer, or it is no HTTP.
    pub fn ask(&self, request: &Request<'_>) -> Result<Response> {
        self.ask_over(&mut self.connect()?, request, "close")
    }

    /// Sends a request, as [`Self::ask`], and hands each line of the answer to `each` as it comes,
    /// until that returns false or the answer ends. Returns the status; of another than 200 the
    /// lines are none of what was asked for.
    ///
    /// # Errors
    /// When there is no answer, it is no HTTP, or it breaks off.
    pub fn follow(
        &self,
        request: &Request<'_>,
        mut each: impl FnMut(&[u8]) -> bool,
    ) -> Result<u16> {
        let mut stream = self.connect()?;
        self.send(&mut stream, request, "close")?;
        let (status, headers) = read_head(&mut stream)?;
        let chunked = headers.get("transfer-encoding").is_some_and(|coding| coding == "chunked");
        if !chunked {
            return Ok(status);
        }
        let mut pending = Vec::new();
        while read_chunk(&mut stream, &mut pending)? {
            while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = pending.drain(..=end).collect();
                if !each(line.trim_ascii_end()) {
                    return Ok(status);
                }
            }
            ensure!(pending.len() as u64 <= LONGEST_ANSWER, "a line is too long");
        }
        Ok(status)
    }

    /// Requests over one connection, one after the other.
    pub fn session(&self) -> Session<'_> {
        Session { client: self, stream: None }
    }

    fn authority(&self) -> Result<&str> {
        let authority = self.access.server.strip_prefix("https://").context("not https")?;
        Ok(authority.split('/').next().unwrap_or(authority))
    }

    fn connect(&self) -> Result<Stream> {
        let authority = self.authority()?;
        let (host, _port) = authority.rsplit_once(':').context("no port")?;
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())?;
        let socket = TcpStream::connect(authority)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(self.pause))?;
        socket.set_write_timeout(Some(self.pause))?;
        let connection = ClientConnection::new(self.config.clone(), name)?;
        Ok(BufReader::new(Incoming(StreamOwned::new(connection, socket))))
    }

    /// Sends a request and reads the answer; `connection` says what becomes of the connection.
    fn ask_over(
        &self,
        stream: &mut Stream,
        request: &Request<'_>,
        connection: &str,
    ) -> Result<Response> {
        // A server may answer before it has read all, and then close.
        let sent = self.send(stream, request, connection);
        read(stream, request).with_context(|| match sent {
            Ok(()) => "read the answer".to_owned(),
            Err(error) => format!("read the answer, after sending had failed: {error:#}"),
        })
    }

    fn send(&self, stream: &mut Stream, request: &Request<'_>, connection: &str) -> Result<()> {
        let mut head = format!(
            "{} {}{} HTTP/1.1\r\nHost: {}\r\nConnection: {connection}\r\nUser-Agent: diff/1\r\n",
            request.method,
            self.prefix,
            request.path,
            self.authority()?
        );
        if let Some(token) = &self.token {
            head += &format!("Authorization: Bearer {token}\r\n");
        }
        for (name, value) in request.headers {
            head += &format!("{name}: {value}\r\n");
        }
        let body = request.body.unwrap_or_default();
        if request.body.is_some() {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        head += "\r\n";
        let mut message = head.into_bytes();
        message.extend_from_slice(body);
        let out = &mut stream.get_mut().0;
        out.write_all(&message)?;
        Ok(out.flush()?)
    }
}

// === impl Session ===

impl Session<'_> {
    /// Sends a request over the connection, or a new one where the server has ended that, and reads
    /// the answer.
    ///
    /// # Errors
    /// When there is no answer, or it is no HTTP.
    pub fn ask(&mut self, request: &Request<'_>) -> Result<Response> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.client.connect()?,
        };
        let response = self.client.ask_over(&mut stream, request, "keep-alive")?;
        let header = |name: &str| response.headers.get(name).map(String::as_str);
        // Of an answer without an end of its own, or of a part of one, nothing can follow.
        let ends = header("content-length").is_some() || header("transfer-encoding").is_some();
        if ends && request.lines.is_none() && header("connection") != Some("close") {
            self.stream = Some(stream);
        }
        Ok(response)
    }

    /// Sends an object as JSON, or nothing, and reads one: the status, and what came back.
    ///
    /// # Errors
    /// As [`Self::ask`], and when the answer is no JSON.
    pub fn json(&mut self, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
        let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
        let body = body.map(serde_json::to_vec).transpose()?;
        let body = body.as_deref();
        let answer = self.ask(&Request { method, path, headers: &headers, body, lines: None })?;
        Ok((answer.status, serde_json::from_slice(&answer.body).context("an answer in JSON")?))
    }
}

/// TLS towards the server that `access` vouches for, without an identity yet.
fn trusting(access: &Access) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(access.authority.as_bytes()) {
        roots.add(certificate?)?;
    }
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let config = ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    Ok(config)
}

// === impl Incoming ===

impl Read for Incoming {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let StreamOwned { conn, sock } = &mut self.0;
        loop {
            match conn.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    conn.read_tls(sock)?;
                    conn.process_new_packets().map_err(std::io::Error::other)?;
                }
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                outcome => return outcome,
            }
        }
    }
}

/// The status and the headers of an answer, by name in lower case.
fn read_head(stream: &mut Stream) -> Result<(u16, BTreeMap<String, String>)> {
    let status = line(stream)?;
    let status = status.split(' ').nth(1).with_context(|| format!("no status: {status:?}"))?;
    let status = status.parse()?;
    let mut headers = BTreeMap::<String, String>::new();
    loop {
        let line = line(stream)?;
        if line.is_empty() {
            return Ok((status, headers));
        }
        let (name, value) = line.split_once(':').with_context(|| format!("header {line:?}"))?;
        let value = value.trim();
        let entry = headers.entry(name.to_ascii_lowercase());
        entry.and_modify(|all| *all += &format!("\n{value}")).or_insert_with(|| value.to_owned());
    }
}

fn read(stream: &mut Stream, request: &Request<'_>) -> Result<Response> {
    let (status, headers) = read_head(stream)?;
    let mut body = Vec::new();
    let chunked = headers.get("transfer-encoding").is_some_and(|coding| coding == "chunked");
    if request.method == "HEAD" {
    } else if chunked {
        read_chunks(stream, &mut body, request.lines)?;
    } else if let Some(length) = headers.get("content-length") {
        stream.take(length.parse::<u64>()?.min(LONGEST_ANSWER)).read_to_end(&mut body)?;
    } else {
        stream.take(LONGEST_ANSWER).read_to_end(&mut body)?;
    }
    Ok(Response { status, headers, body })
}

fn read_chunks(stream: &mut Stream, body: &mut Vec<u8>, lines: Option<usize>) -> Result<()> {
    while read_chunk(stream, body)? {
        ensure!(body.len() as u64 <= LONGEST_ANSWER, "the answer is too long");
        let complete = body.iter().filter(|byte| **byte == b'\n').count();
        if lines.is_some_and(|lines| complete >= lines) {
            break;
        }
    }
    Ok(())
}

/// Reads one chunk; false if it was the last, which is empty.
fn read_chunk(stream: &mut Stream, body: &mut Vec<u8>) -> Result<bool> {
    let size = line(stream)?;
    let size = u64::from_str_radix(size.trim(), 16).with_context(|| format!("{size:?}"))?;
    if size == 0 {
        // What follows it belongs to this answer, too.
        while !line(stream)?.is_empty() {}
        return Ok(false);
    }
    ensure!(size <= LONGEST_ANSWER, "the answer is too long");
    stream.take(size).read_to_end(body)?;
    line(stream)?;
    Ok(true)
}

fn line(stream: &mut Stream) -> Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        bail!("the connection has ended");
    }
    Ok(line.trim_end().to_owned())
}
