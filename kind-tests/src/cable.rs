//! A connection that can be cut: a port of loopback with one server behind it.
//!
//! What is on its way while the cable is cut is held back and arrives when it is mended, as TCP
//! sends again what was lost; who waits meanwhile hears nothing.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;

use anyhow::Result;
use parking_lot::{Condvar, Mutex};

use crate::listener::{Listener, address_of};

/// How many bytes pass at once.
const PIECE: usize = 16 << 10;

/// How a cable is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// Everything passes.
    #[default]
    Whole,
    /// Nothing passes, and nobody is told: a firewall that drops packets, or a broken line.
    Silent,
    /// Connections are closed, old ones and new ones: a proxy whose server is gone.
    Closed,
}

/// A port of loopback that leads to a server, as long as it isn't cut. Closes when it is dropped.
#[derive(Debug)]
pub struct Cable {
    listener: Listener,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    server: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    condition: Condition,
    ended: bool,
    /// Both ends of the connections that are open, by number.
    open: HashMap<u64, [TcpStream; 2]>,
    number: u64,
}

// === impl Cable ===

impl Cable {
    /// A whole cable to the server at `https://ADDRESS:PORT`, which need not be there yet.
    ///
    /// # Errors
    /// When that is no address, or there is no free port.
    pub fn to(server: &str) -> Result<Self> {
        let server = address_of(server)?;
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { server, state, changed });
        let told = shared.clone();
        let listener = Listener::start(move |client| {
            let shared = told.clone();
            thread::spawn(move || shared.connect(client));
        })?;
        Ok(Self { listener, shared })
    }

    /// Its address, `https://ADDRESS:PORT`.
    pub fn url(&self) -> String {
        self.listener.url()
    }

    /// Cuts or mends it.
    pub fn set(&self, condition: Condition) {
        let mut state = self.shared.state.lock();
        state.condition = condition;
        if condition == Condition::Closed {
            state.close_all();
        }
        self.shared.changed.notify_all();
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.ended = true;
        state.close_all();
        self.shared.changed.notify_all();
    }
}

// === impl Shared ===

impl Shared {
    /// Whether something may pass; waits while that is open.
    fn passes(&self) -> bool {
        let mut state = self.state.lock();
        while state.condition == Condition::Silent && !state.ended {
            self.changed.wait(&mut state);
        }
        state.condition == Condition::Whole && !state.ended
    }

    /// Leads a client to the server. One that finds none sees its connection closed.
    fn connect(self: Arc<Self>, client: TcpStream) {
        if !self.passes() {
            return;
        }
        let Ok(server) = TcpStream::connect(self.server) else { return };
        let ends = [client, server];
        let Ok(copies) = both(&ends) else { return };
        let Ok(back) = both(&ends) else { return };
        let number = {
            let mut state = self.state.lock();
            if state.condition == Condition::Closed || state.ended {
                return;
            }
            state.number += 1;
            let number = state.number;
            state.open.insert(number, ends);
            number
        };
        let shared = self.clone();
        let there = thread::spawn(move || {
            let [client, server] = copies;
            shared.copy(client, server);
        });
        let [client, server] = back;
        self.copy(server, client);
        there.join().ok();
        self.state.lock().open.remove(&number);
    }

    /// Copies from one end to the other until either ends.
    fn copy(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut piece = vec![0; PIECE];
        loop {
            let read = from.read(&mut piece).unwrap_or(0);
            let bytes = piece.get(..read).unwrap_or_default();
            if bytes.is_empty() || !self.passes() || to.write_all(bytes).is_err() {
                break;
            }
        }
        // An end is news that has to pass, too.
        self.passes();
        to.shutdown(Shutdown::Write).ok();
    }
}

// === impl State ===

impl State {
    fn close_all(&mut self) {
        for end in self.open.drain().flat_map(|(_, ends)| ends) {
            end.shutdown(Shutdown::Both).ok();
        }
    }
}

fn both(ends: &[TcpStream; 2]) -> std::io::Result<[TcpStream; 2]> {
    let [one, other] = ends;
    one.set_nodelay(true)?;
    other.set_nodelay(true)?;
    Ok([one.try_clone()?, other.try_clone()?])
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::{Ipv4Addr, TcpListener};
    use std::time::Duration;

    use super::*;

    /// A server that sends back what it is sent.
    fn echo() -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                thread::spawn(move || {
                    std::io::copy(&mut client.try_clone().unwrap(), &mut { client }).ok();
                });
            }
        });
        format!("https://{address}")
    }

    fn connect(cable: &Cable) -> TcpStream {
        let stream = TcpStream::connect(address_of(&cable.url()).unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        stream
    }

    fn ask(stream: &mut TcpStream, text: &[u8]) -> std::io::Result<Vec<u8>> {
        stream.write_all(text)?;
        let mut answer = vec![0; text.len()];
        stream.read_exact(&mut answer).map(|()| answer)
    }

    #[test]
    fn what_is_held_back_arrives_later() {
        let cable = Cable::to(&echo()).unwrap();
        let mut stream = connect(&cable);
        assert_eq!(ask(&mut stream, b"one").unwrap(), b"one");
        cable.set(Condition::Silent);
        let waits = ask(&mut stream, b"two").unwrap_err();
        assert!(matches!(waits.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{waits}");
        let mut other = connect(&cable);
        ask(&mut other, b"new").unwrap_err();
        cable.set(Condition::Whole);
        for (stream, text) in [(&mut stream, b"two"), (&mut other, b"new")] {
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            let mut answer = [0; 3];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, text);
        }
    }

    #[test]
    fn a_closed_one_closes_connections() {
        let cable = Cable::to(&echo()).unwrap();
        let mut stream = connect(&cable);
        assert_eq!(ask(&mut stream, b"one").unwrap(), b"one");
        cable.set(Condition::Closed);
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        ask(&mut stream, b"two").unwrap_err();
        let mut other = connect(&cable);
        other.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        ask(&mut other, b"new").unwrap_err();
        cable.set(Condition::Whole);
        let mut third = connect(&cable);
        third.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        assert_eq!(ask(&mut third, b"yes").unwrap(), b"yes");
    }
}
