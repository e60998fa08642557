//! Ports that nobody uses.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result};

/// Ports of loopback that are free, all of them different. Something else may take one before it is
/// used.
///
/// # Errors
/// When there are none.
pub fn free<const COUNT: usize>() -> Result<[u16; COUNT]> {
    let [ports] = free_sets::<COUNT>(1)?.try_into().ok().context("one set was asked for")?;
    Ok(ports)
}

/// The same, several times.
///
/// # Errors
/// When there are none.
pub fn free_sets<const COUNT: usize>(sets: usize) -> Result<Vec<[u16; COUNT]>> {
    // All are held until all are known, so that they differ.
    let listeners = (0..COUNT * sets)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect::<std::io::Result<Vec<_>>>()
        .context("find free ports")?;
    let ports = listeners.iter().map(|listener| Ok(listener.local_addr()?.port()));
    let ports = ports.collect::<std::io::Result<Vec<u16>>>()?;
    Ok(ports.as_chunks::<COUNT>().0.to_vec())
}
