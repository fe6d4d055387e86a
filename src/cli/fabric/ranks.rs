//! What each process of the job does: all serve and measure, rank 0 conducts besides.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::json;

use super::FabricArguments;
use super::conducting::{FabricOutput, conduct, exit_error};
use crate::arguments::UsageError;
use crate::bench::hca::between::pair::PairEnd;
use crate::bench::hca::between::service::HcaService;
use crate::bench::hca::settings::config::Config;
use crate::between::listening::{Event, Service, serve};
use crate::driver::command_line::without;
use crate::host::interrupt;
use crate::host::machine_name::machine_name;
use crate::host::pinning::current_affinity;
use crate::host::threads;
use crate::launch::agent::Agent;
use crate::launch::conductor::Limits;
use crate::launch::entrance::Door;
use crate::launch::error::LaunchError;
use crate::launch::identity::Identity;
use crate::launch::message::Hello;
use crate::launch::rendezvous;
use crate::launch::secret::Secret;
use crate::launch::wire::listen_at;
use crate::results::text::printable;
use crate::terminal::output::say;

/// How long rank 0's own measuring may take to end.
const LEAVING: Duration = Duration::from_millis(800);
/// How long ranks may come one after the other.
const GATHERING: Duration = Duration::from_secs(60);

/// Runs this rank. Returns the exit code.
pub(super) fn run(
    arguments: &FabricArguments,
    config: Config,
    secret: Option<Secret>,
) -> anyhow::Result<u8> {
    interrupt::install()?;
    let (host, boot_id) = machine_name();
    let identity = arguments
        .identity(&host)
        .map_err(|error| UsageError(error.to_string()))?;
    // What rank 0 refuses, it refuses before anything else.
    let place = match identity.rank {
        0 => Some(FabricOutput::find(arguments, &identity)?),
        _ => None,
    };
    let asked = arguments.hca.between.config();
    let words = of_all(crate::arguments::expanded_arguments());
    let settings = json!({ "arguments": words, "drift": asked.drift });
    let pair = Arc::new(PairEnd::new(config, asked));
    let bind = match secret {
        // No other host is to reach this one.
        None if arguments.is_of_one_host(&identity) => {
            arguments.bind.or(Some(Ipv4Addr::LOCALHOST.into()))
        }
        _ => arguments.bind,
    };
    let serves = serve_others(&pair, bind, secret.clone())?;
    let cpus = current_affinity()?.to_string();
    let hello = Hello::new(&identity, settings, (boot_id, cpus), serves);
    let Some(place) = place else {
        let agent = Agent::meet_with(secret.as_ref(), &identity.rendezvous, &hello, GATHERING)?;
        agent.attend(&mut &*pair)?;
        return Ok(0);
    };
    lead(arguments, &identity, &place, (hello, pair, secret))
}

/// The command line without what differs from rank to rank.
fn of_all(words: &[OsString]) -> Vec<String> {
    let own = [("rank", true), ("bind", true), ("secret-file", true)];
    let all = without(words, &own).into_iter();
    all.map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// Where this rank serves: the address that was asked for, which must be one of this host, or all of them. Those of IPv6
/// are those of IPv4, too, where there is IPv6.
fn serving_address(bind: Option<IpAddr>) -> anyhow::Result<IpAddr> {
    let Some(address) = bind else {
        let all = IpAddr::from(Ipv6Addr::UNSPECIFIED);
        let found = listen_at((all, 0).into());
        return Ok(found.map_or(Ipv4Addr::UNSPECIFIED.into(), |_| all));
    };
    match listen_at((address, 0).into()) {
        Ok(_) => Ok(address),
        Err(error) => Err(UsageError(format!(
            "--bind {address}: {error}: allowed is an address of this host"
        ))
        .into()),
    }
}

/// Serves the measurements of other ranks from here on. Returns where.
fn serve_others(
    pair: &Arc<PairEnd>,
    bind: Option<IpAddr>,
    secret: Option<Secret>,
) -> anyhow::Result<SocketAddr> {
    let bind = serving_address(bind)?;
    let (told, address) = channel();
    let told = Mutex::new(told);
    let service = Service {
        bind: vec![SocketAddr::new(bind, 0)],
        secret,
        once: false,
    };
    let work = Arc::new(HcaService {
        port: None,
        pair: Some(Arc::clone(pair)),
    });
    let thread = std::thread::Builder::new().name("hcabench-serve".to_owned());
    threads::start(thread, move || {
        let tell = move |event| match event {
            Event::Listening(address) => {
                let told = told.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                let _ = told.send(address);
            }
            Event::Refused { peer, reason } => {
                say(format_args!(
                    "hcabench: refused {peer}: {}",
                    printable(&reason)
                ));
            }
            Event::MoreRefused { count } => {
                say(format_args!("hcabench: refused {count} more connections"));
            }
            // The rank that asked reports it.
            Event::Failed { .. } | Event::Begun { .. } | Event::Over { .. } => {}
        };
        if let Err(error) = serve(&service, work, tell) {
            say(format_args!("hcabench: {error}"));
        }
    })?;
    let address = address.recv_timeout(Duration::from_secs(10));
    let address = address.context("this rank cannot serve the others")?;
    pair.serves_at(address);
    Ok(address)
}

/// What rank 0 does.
fn lead(
    arguments: &FabricArguments,
    identity: &Identity,
    place: &FabricOutput,
    (hello, pair, secret): (Hello, Arc<PairEnd>, Option<Secret>),
) -> anyhow::Result<u8> {
    let listener = rendezvous::listen(&identity.rendezvous).map_err(exit_error)?;
    let door = Door {
        secret: secret.clone(),
        ..listener.into()
    };
    let terms = hello.terms.clone();
    let rendezvous = identity.rendezvous.clone();
    let agent = std::thread::Builder::new().name("hcabench-rank0".to_owned());
    let agent = threads::start(agent, move || -> Result<(), LaunchError> {
        Agent::meet_with(secret.as_ref(), &rendezvous, &hello, GATHERING)?.attend(&mut &*pair)
    })?;
    let limits = Limits {
        gather: GATHERING,
        measure: arguments.pair_timeout,
        ..Limits::default()
    };
    let code = conduct(arguments, identity, place, (door, terms, limits))?;
    // It ends on command, unless its device keeps it.
    let until = Instant::now() + LEAVING;
    while !agent.is_finished() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_and_address_may_differ_and_nothing_else() {
        let of =
            |line: &str| of_all(&line.split(' ').map(OsString::from).collect::<Vec<_>>()).join(" ");
        for (line, expected) in [
            ("fabric --rank 3 --bind ::1 --burst 9", "fabric --burst 9"),
            (
                "fabric --rank=3 --burst=9 --bind=10.0.0.7",
                "fabric --burst=9",
            ),
            ("fabric --ranks 4", "fabric --ranks 4"),
            ("fabric --secret-file a --depth 4", "fabric --depth 4"),
        ] {
            assert_eq!(of(line), expected);
        }
    }

    #[test]
    fn a_rank_serves_at_an_address_of_its_host_only() {
        let bound = |text: &str| serving_address(Some(text.parse().unwrap()));
        assert_eq!(bound("127.0.0.1").unwrap().to_string(), "127.0.0.1");
        assert!(serving_address(None).unwrap().is_unspecified());
        // Of a net for documentation.
        let error = bound("192.0.2.1").unwrap_err();
        assert!(error.is::<UsageError>() && error.to_string().contains("--bind 192.0.2.1: "));
    }
}
