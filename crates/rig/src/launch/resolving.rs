//! The addresses of hosts by their names, within a time limit.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::host::{interrupt, threads};

/// How long a name server may take.
const RESOLVING: Duration = Duration::from_secs(10);
/// How often it is looked whether a signal has come.
const LOOK: Duration = Duration::from_millis(100);

/// The addresses of a host at a port.
///
/// # Errors
/// When there are none, no name server answers within [`RESOLVING`], or a signal has come.
pub(crate) fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let (give, take) = channel();
    let name = host.to_owned();
    // A name server that does not answer keeps only this thread.
    threads::start(std::thread::Builder::new(), move || {
        let addresses = (name.as_str(), port).to_socket_addrs();
        let _ = give.send(addresses.map(Iterator::collect::<Vec<_>>));
    })
    .map_err(|error| error.to_string())?;
    let until = Instant::now() + RESOLVING;
    while Instant::now() < until && interrupt::requested().is_none() {
        match take.recv_timeout(LOOK) {
            Ok(found) => return found.map_err(|error| error.to_string()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Err("no name server answers".to_owned())
}
