//! Connections handed to several servers in turn, as a load balancer in front of replicas does.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result};

/// A port of loopback behind which several servers are. Closes when it is dropped.
#[derive(Debug)]
pub struct Balancer {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
}

// === impl Balancer ===

impl Balancer {
    /// Hands each new connection to the next of `servers`, by their `https://` addresses; one that
    /// cannot be reached is passed over.
    ///
    /// # Errors
    /// When an address is none, or there is no free port.
    pub fn start(servers: &[&str]) -> Result<Self> {
        let parse = |server: &&str| {
            let address = server.trim_start_matches("https://");
            address.parse::<SocketAddr>().with_context(|| format!("{server} is no address"))
        };
        let servers = servers.iter().map(parse).collect::<Result<Vec<_>>>()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("find a free port")?;
        let address = listener.local_addr()?;
        let ended = Arc::new(AtomicBool::new(false));
        let told = ended.clone();
        thread::spawn(move || {
            let mut turns = servers.iter().cycle();
            for client in listener.incoming() {
                if told.load(Ordering::Acquire) {
                    break;
                }
                let Ok(client) = client else { continue };
                let mut tries = turns.by_ref().take(servers.len());
                // A client that finds no server sees its connection closed.
                if let Some(server) = tries.find_map(|server| TcpStream::connect(server).ok()) {
                    join(&client, &server).ok();
                }
            }
        });
        Ok(Self { address, ended })
    }

    /// Its address, `https://ADDRESS:PORT`.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        // Wakes the one that accepts.
        TcpStream::connect(self.address).ok();
    }
}

/// Copies both ways, until both have ended.
fn join(client: &TcpStream, server: &TcpStream) -> io::Result<()> {
    for (from, to) in [(client, server), (server, client)] {
        from.set_nodelay(true)?;
        let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
        thread::spawn(move || {
            io::copy(&mut from, &mut to).ok();
            to.shutdown(Shutdown::Write).ok();
        });
    }
    Ok(())
}
