//! What pods run in tests and in the demo, since nothing is pulled from a registry there.
//!
//! `sample pause` waits for SIGTERM: the sandbox image of containerd. `sample serve` answers HTTP on
//! port 8080 with the name of its pod and the text in `GREETING`, after `READY_AFTER_SECONDS`.
//! Both end well on SIGTERM, which a process that is number 1 of its container must ask for.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};

/// Longer heads of requests are not read to their end.
const LONGEST_HEAD: usize = 8 * 1024;

/// How long a client may take for its request.
const PATIENCE: Duration = Duration::from_secs(1);

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let end = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    match std::env::args().nth(1).as_deref() {
        Some("serve") => tokio::select! {
            () = end => Ok(()),
            outcome = serve() => outcome,
        },
        Some("pause") => {
            end.await;
            Ok(())
        }
        _ => Err(io::Error::other("usage: sample pause|serve")),
    }
}

async fn serve() -> io::Result<()> {
    let text = |name: &str| std::env::var(name).unwrap_or_default();
    let wait = text("READY_AFTER_SECONDS").parse().unwrap_or_default();
    tokio::time::sleep(Duration::from_secs(wait)).await;
    let body = format!("{} from {}\n", text("GREETING"), text("HOSTNAME"));
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let listener = TcpListener::bind(("0.0.0.0", 8080)).await?;
    tokio::io::stdout().write_all(b"listening on port 8080\n").await?;
    loop {
        let (stream, _) = listener.accept().await?;
        // One after the other: answers are short, and one that fails or dawdles is dropped.
        let talked = tokio::time::timeout(PATIENCE, talk(stream, &answer)).await;
        talked.unwrap_or(Ok(())).unwrap_or_default();
    }
}

async fn talk(mut stream: TcpStream, answer: &str) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < LONGEST_HEAD {
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}
