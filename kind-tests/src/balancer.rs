//! Connections handed to several servers in turn, as a load balancer in front of replicas does.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::thread;

use anyhow::Result;

use crate::listener::{Listener, address_of};

/// A port of loopback behind which several servers are. Closes when it is dropped.
#[derive(Debug)]
pub struct Balancer {
    listener: Listener,
}

// === impl Balancer ===

impl Balancer {
    /// Hands each new connection to the next of `servers`, by their `https://` addresses; one that
    /// cannot be reached is passed over.
    ///
    /// # Errors
    /// When an address is none, or there is no free port.
    pub fn start(servers: &[&str]) -> Result<Self> {
        let servers =
            servers.iter().map(|server| address_of(server)).collect::<Result<Vec<_>>>()?;
        let count = servers.len();
        let mut turns = servers.into_iter().cycle();
        let listener = Listener::start(move |client| {
            let mut tries = turns.by_ref().take(count);
            // A client that finds no server sees its connection closed.
            if let Some(server) = tries.find_map(|server| TcpStream::connect(server).ok()) {
                join(&client, &server).ok();
            }
        })?;
        Ok(Self { listener })
    }

    /// Its address, `https://ADDRESS:PORT`.
    pub fn url(&self) -> String {
        self.listener.url()
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
