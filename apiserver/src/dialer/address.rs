//! The addresses of a host that a tenant's call may reach.

use std::net::{IpAddr, SocketAddr};

use machinery::network::Reachable;

use super::CallError;

/// The most addresses of one name that are tried.
const MOST: usize = 8;

/// The addresses of a host that may be reached, in the resolver's order.
///
/// # Errors
/// If the name has no address, or none that may be reached.
pub(super) async fn resolve(
    rule: &Reachable,
    host: &str,
    port: u16,
) -> Result<Vec<SocketAddr>, CallError> {
    let found = match host.parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) => match tokio::net::lookup_host((host, port)).await {
            Ok(found) => found.take(MOST).collect(),
            Err(_) => Vec::new(),
        },
    };
    if found.is_empty() {
        return Err(CallError::Unknown(host.into()));
    }
    let mut reachable = found;
    reachable.retain(|address| rule.permits(address.ip()));
    if reachable.is_empty() { Err(CallError::Refused(host.into())) } else { Ok(reachable) }
}
