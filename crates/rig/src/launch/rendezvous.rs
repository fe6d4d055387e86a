//! Where rank 0 listens, and how the other ranks find it.
//!
//! Without a secret, job, step and number of ranks are all that a rank has to know: rank 0 listens at one address only,
//! where one is known.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use super::error::LaunchError;
use super::identity::Rendezvous;
use super::message::{FromRank, Hello, ToRank};
use super::resolving::resolve;
use super::secret::Secret;
use super::wire::{Wire, WireError, listen_at};
use crate::host::interrupt;

/// How long one attempt to connect may take: no signal ends it.
const ATTEMPT: Duration = Duration::from_millis(800);
/// How long who is there may take to answer.
const ANSWER: Duration = Duration::from_secs(10);
/// Between two attempts: rank 0 may start later than this one.
const PAUSE: Duration = Duration::from_millis(200);

/// Has rank 0 listen.
///
/// # Errors
/// When it runs elsewhere than is set, or the port is taken.
pub fn listen(rendezvous: &Rendezvous) -> Result<TcpListener, LaunchError> {
    let mut own = Vec::new();
    let mut looked = Vec::new();
    for host in &rendezvous.hosts {
        let addresses = match resolve(host, rendezvous.port) {
            Ok(addresses) => addresses,
            Err(reason) => {
                looked.push(format!("{host}: {reason}"));
                continue;
            }
        };
        for address in addresses {
            // Only an address of this host can be listened at.
            if listen_at((address.ip(), 0).into()).is_err() {
                looked.push(format!("{host}: {}", address.ip()));
            } else if !own.contains(&address) {
                // A host may have its own name at its loopback, and others know it by another address.
                let by_name = address.ip().is_loopback() && host.parse::<IpAddr>().is_err();
                let address = if by_name { anywhere(address) } else { address };
                own.push(address);
            }
        }
    }
    let address = match own.as_slice() {
        [] => {
            let looked = looked.join(", ");
            return Err(LaunchError::NotHere { looked });
        }
        [address] => *address,
        [first, others @ ..] => {
            let ipv6 = others.iter().find(|address| address.is_ipv6());
            anywhere(*ipv6.unwrap_or(first))
        }
    };
    listen_at(address).map_err(|source| LaunchError::Listen { address, source })
}

/// All addresses of this host; those of IPv6 are those of IPv4, too.
fn anywhere(address: SocketAddr) -> SocketAddr {
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(any, address.port())
}

/// How long an end that has another secret is asked again: it may be too busy to look at this one, or of another job.
const NOT_ADMITTED: Duration = Duration::from_secs(5);

/// Finds rank 0 and sends it this rank, until it is accepted or `limit` has passed.
///
/// # Errors
/// When rank 0 refuses it or is not met.
pub(super) fn meet(
    rendezvous: &Rendezvous,
    hello: &Hello,
    secret: Option<&Secret>,
    limit: Duration,
) -> Result<Wire, LaunchError> {
    let deadline = Instant::now() + limit;
    let mut not_admitted: BTreeMap<SocketAddr, Instant> = BTreeMap::new();
    loop {
        let mut refused = None;
        let mut looked = Vec::new();
        for host in &rendezvous.hosts {
            if let Some(signal) = interrupt::requested() {
                return Err(LaunchError::Interrupted(signal));
            }
            let addresses = resolve(host, rendezvous.port).unwrap_or_else(|reason| {
                looked.push(format!("{host}: {reason}"));
                Vec::new()
            });
            for address in addresses {
                match greet(address, hello, secret) {
                    Ok(Ok(wire)) => return Ok(wire),
                    Ok(Err(reason)) => refused = Some(reason),
                    Err(error) if error.is_of_secret() => {
                        let since = not_admitted.entry(address).or_insert_with(Instant::now);
                        if since.elapsed() >= NOT_ADMITTED {
                            return Err(LaunchError::NotAdmitted(error));
                        }
                        looked.push(error.to_string());
                    }
                    Err(error) => {
                        not_admitted.remove(&address);
                        looked.push(error.to_string());
                    }
                }
            }
        }
        if let Some(reason) = refused {
            return Err(LaunchError::Refused(reason));
        }
        if Instant::now() >= deadline {
            let looked = looked.join(", ");
            return Err(LaunchError::NotMet { limit, looked });
        }
        std::thread::sleep(PAUSE);
    }
}

/// Sends this rank to the process that listens there; the inner error: rank 0 does not want it.
fn greet(
    address: SocketAddr,
    hello: &Hello,
    secret: Option<&Secret>,
) -> Result<Result<Wire, String>, WireError> {
    let mut wire = Wire::connect(address, ATTEMPT)?;
    wire.show(secret, ANSWER)?;
    wire.send(&FromRank::Hello(Box::new(hello.clone())), ANSWER)?;
    match wire.receive(ANSWER)? {
        ToRank::Welcome => Ok(Ok(wire)),
        ToRank::Refused(reason) => Ok(Err(reason)),
        _ => Err(WireError::Unfit {
            peer: address.to_string(),
            reason: "it is not rank 0".to_owned(),
            excerpt: String::new(),
        }),
    }
}
