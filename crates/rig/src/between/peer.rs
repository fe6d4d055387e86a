//! The other host as it is asked for, and how it is reached.

use std::net::{Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::error::PeerError;
use crate::host::interrupt;
use crate::launch::resolving::resolve;
use crate::launch::secret::{Secret, SecretSource};
use crate::launch::wire::{Wire, WireError};
use crate::results::document::Program;
use crate::rig::benchmark::Failure;
use crate::rig::child;
use crate::rig::named::named;
use crate::rig::ports::{PortRequest, SERVING};
use crate::time::Nanos;

/// How long the other host may take to be reached.
const REACHING: Duration = Duration::from_secs(10);

/// How long an end that has another secret is asked again: it may be too busy to look at this one.
const NOT_ADMITTED: Duration = Duration::from_millis(500);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// The other host, and how its clock is compared.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PeerConfig {
    /// Host and TCP port.
    pub peer: String,
    /// What distinguishes this run from others; otherwise the process does.
    pub run: Option<String>,
    /// The secret that it has, too.
    #[serde(default)]
    pub secret: SecretSource,
    /// How long the other host is waited for in all, however long each wait may take.
    pub limit: Option<Duration>,
    /// Probes of each phase.
    pub probes: u32,
    /// How far the two clocks lie apart at the most, if that is declared.
    pub uncertainty: Option<Nanos>,
    /// How far their rates lie apart at the most, in parts per million.
    pub drift: u32,
}

named! {
    /// The benchmarks that are measured between two hosts.
    ServedBenchmark {
        /// Messages between two adapters.
        Hca = "hca",
        /// Samples through node-types.
        Node = "node",
    }
}

/// Who asks, and for what run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hello {
    /// The program that asks.
    pub program: Program,
    /// What distinguishes this run from any other; the processes of its rounds have the same.
    pub run: String,
    /// The host that asks, for people.
    pub host: String,
    /// What it measures.
    pub benchmark: ServedBenchmark,
    /// The port that messages are to arrive at, if it is named.
    pub port: Option<PortRequest>,
}

/// What is sent before it is known what is measured.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Greeting {
    Hello(Box<Hello>),
    Failed(Failure),
}

/// The addresses of a host; `HOST` or `HOST:PORT`, IPv6 in brackets where a port follows.
fn addresses_of(peer: &str, default_port: u16) -> Result<Vec<SocketAddr>, String> {
    let is_ipv6 = peer.parse::<Ipv6Addr>().is_ok();
    let with_port = peer.rsplit_once(':').filter(|_| !is_ipv6);
    let with_port = with_port.and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) = with_port.unwrap_or((peer, default_port));
    match resolve(host.trim_matches(['[', ']']), port) {
        Ok(found) if found.is_empty() => Err("it has no address".to_owned()),
        found => found,
    }
}

/// What distinguishes this run from others: its parent, where this process measures a round of it.
fn run_name(boot_id: &str) -> String {
    let process = match child::is_any() {
        true => nix::unistd::getppid(),
        false => nix::unistd::getpid(),
    };
    // Processes of two containers may have one number.
    let of_container = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{boot_id}-{}-{process}", of_container.display())
}

/// Keeps the connection of a run open as long as its process is there, so that no other run comes in between two rounds,
/// each of which is a process with a separate connection.
fn keep_open(wire: &Wire) -> Result<(), PeerError> {
    static KEPT: OnceLock<OwnedFd> = OnceLock::new();
    if !child::is_any() {
        let copy = wire.as_fd().try_clone_to_owned();
        let copy =
            copy.map_err(|error| PeerError::Here(format!("keeping a connection open: {error}")))?;
        let _ = KEPT.set(copy);
    }
    Ok(())
}

/// Connects to an address, and shows the secret. An end whose port is flooded may let a genuine connection go.
fn connect(address: SocketAddr, secret: Option<&Secret>) -> Result<Wire, WireError> {
    let begun = Instant::now();
    loop {
        let mut wire = Wire::connect(address, REACHING)?;
        let shown = wire.show(secret, REACHING);
        let is_again = matches!(shown, Err(WireError::NotAdmitted(_)))
            && begun.elapsed() < NOT_ADMITTED
            && interrupt::requested().is_none();
        if !is_again {
            return shown.map(|()| wire);
        }
        std::thread::sleep(PAUSE);
    }
}

impl PeerConfig {
    /// Connects to the other host and greets it. `host` and `boot_id` are those of this one.
    ///
    /// # Errors
    /// When it is not reached.
    pub fn reach(
        &self,
        benchmark: ServedBenchmark,
        port: Option<&PortRequest>,
        (host, boot_id): (&str, &str),
    ) -> Result<Wire, PeerError> {
        let addresses = addresses_of(&self.peer, SERVING).map_err(|reason| match interrupt::requested() {
            Some(signal) => PeerError::Wire(WireError::Interrupted(signal)),
            None => PeerError::Usage(format!(
                "--peer {}: {reason}: allowed is HOST or HOST:PORT of a host where hcabench serve runs",
                self.peer
            )),
        })?;
        let secret = self.secret.load();
        let secret = secret.map_err(|error| PeerError::Usage(error.to_string()))?;
        let mut reached = connect(addresses[0], secret);
        for address in &addresses[1..] {
            let Err(before) = &reached else {
                break;
            };
            let next = connect(*address, secret);
            // That the secrets differ shows more than that no process listens elsewhere.
            let is_of_secret = next.as_ref().is_err_and(WireError::is_of_secret);
            if next.is_ok() || is_of_secret || !before.is_of_secret() {
                reached = next;
            }
        }
        let mut wire = reached?;
        if let Some(limit) = self.limit {
            wire.end_at(Instant::now() + limit);
        }
        let run = match &self.run {
            Some(run) => run.clone(),
            None => {
                keep_open(&wire)?;
                run_name(boot_id)
            }
        };
        let hello = Hello {
            program: Program::this(),
            run,
            host: host.to_owned(),
            benchmark,
            port: port.cloned(),
        };
        wire.send(&Greeting::Hello(Box::new(hello)), super::message::ANSWER)?;
        Ok(wire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_a_host_with_or_without_a_port() {
        for (peer, expected) in [
            ("127.0.0.1", "127.0.0.1:18599"),
            ("127.0.0.1:7", "127.0.0.1:7"),
            ("[::1]", "[::1]:18599"),
            ("::1", "[::1]:18599"),
            ("[::1]:7", "[::1]:7"),
        ] {
            let found = addresses_of(peer, SERVING).unwrap();
            assert_eq!(found, [expected.parse().unwrap()], "{peer}");
        }
        assert!(addresses_of("", SERVING).is_err());
    }
}
