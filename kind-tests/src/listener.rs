//! A port of loopback, and what is done with its connections.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result};

/// A free port of loopback, whose connections are handed out one after the other. Closes when it is
/// dropped.
#[derive(Debug)]
pub(crate) struct Listener {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
}

// === impl Listener ===

impl Listener {
    /// Hands each connection to `each`, which must not take long.
    ///
    /// # Errors
    /// When there is no free port.
    pub(crate) fn start(mut each: impl FnMut(TcpStream) + Send + 'static) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("find a free port")?;
        let address = listener.local_addr()?;
        let ended = Arc::new(AtomicBool::new(false));
        let told = ended.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                if told.load(Ordering::Acquire) {
                    break;
                }
                client.into_iter().for_each(&mut each);
            }
        });
        Ok(Self { address, ended })
    }

    /// Its address, `https://ADDRESS:PORT`.
    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        // Wakes the one that accepts.
        TcpStream::connect(self.address).ok();
    }
}

/// The address in `https://ADDRESS:PORT`.
///
/// # Errors
/// When it is none.
pub(crate) fn address_of(server: &str) -> Result<SocketAddr> {
    let address = server.trim_start_matches("https://");
    address.parse().with_context(|| format!("{server} is no address"))
}
