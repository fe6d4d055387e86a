//! What each process of the job does: all serve and measure, rank 0 conducts besides.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::FabricArguments;
use super::conducting::{Place, conduct, told};
use crate::arguments::UsageError;
use crate::bench::hca::between::listening::{Event, Service, serve};
use crate::bench::hca::between::pair::PairEnd;
use crate::bench::hca::settings::config::Config;
use crate::host::interrupt;
use crate::host::machine_name::machine_name;
use crate::host::pinning::current_affinity;
use crate::launch::agent::{Agent, Work};
use crate::launch::conductor::Limits;
use crate::launch::error::LaunchError;
use crate::launch::identity::Identity;
use crate::launch::message::{Hello, Order, PairReport, Start};
use crate::launch::rendezvous;
use crate::launch::wire::listen_at;
use crate::results::Record;
use crate::results::schema::fabric as columns;
use crate::results::schema::{between, hca};
use crate::results::text::printable;

/// How long rank 0's own measuring may take to end.
const LEAVING: Duration = Duration::from_millis(800);
/// How long ranks may come one after the other.
const GATHERING: Duration = Duration::from_secs(60);

/// What a rank does for rank 0.
struct RankWork(Arc<PairEnd>);

impl Work for RankWork {
    fn prepare(&mut self, start: &Start) -> Result<Value, String> {
        self.0.prepare(start).map_err(|error| error.to_string())
    }

    fn measure(&mut self, order: &Order) -> Result<PairReport, String> {
        let mut report = self.0.measure(order)?;
        for direction in &mut report.directions {
            direction.figures = of_fabric(&direction.figures);
        }
        Ok(report)
    }
}

/// The figures of a pair, from the columns that two hosts have: rank 0 takes in those of all pairs, and no others.
fn of_fabric(figures: &Record) -> Record {
    let renamed = [
        (between::CLOCKS, columns::ONE_WAY_STATUS),
        (between::THETA_LOW, columns::OFFSET_LOW),
        (between::THETA_HIGH, columns::OFFSET_HIGH),
        (between::RATE_LOW, columns::RATE_LOW),
        (between::RATE_HIGH, columns::RATE_HIGH),
        (hca::RETRANSMISSIONS, columns::RETRANSMITTED),
    ];
    let mut row = Record::new();
    for column in &columns::FIGURES {
        let from = renamed.iter().find(|(_, to)| to == column);
        let name = from.map_or(column.name, |(from, _)| from.name);
        if let Some(cell) = figures.get(name) {
            row.set(column, cell.clone());
        }
    }
    row
}

/// Runs this rank. Returns the exit code.
pub(super) fn run(arguments: &FabricArguments, config: Config) -> anyhow::Result<u8> {
    interrupt::install()?;
    let (host, boot_id) = machine_name();
    let identity = arguments
        .identity(&host)
        .map_err(|error| UsageError(error.to_string()))?;
    let asked = arguments.hca.between.config();
    let words = crate::arguments::expanded_arguments().iter();
    let words = words.map(|word| word.to_string_lossy().into_owned());
    let settings = json!({ "arguments": of_all(words), "drift": asked.drift });
    let pair = Arc::new(PairEnd::new(config, asked));
    let serves = serve_others(&pair, arguments.bind)?;
    let cpus = current_affinity()?.to_string();
    let hello = Hello::new(&identity, settings, (boot_id, cpus), serves);
    if identity.rank > 0 {
        let agent = Agent::meet(&identity.rendezvous, &hello, GATHERING)?;
        agent.attend(&mut RankWork(pair))?;
        return Ok(0);
    }
    lead(arguments, &identity, hello, pair)
}

/// What differs from rank to rank.
const OF_A_RANK: [&str; 2] = ["--rank", "--bind"];

/// The command line without what differs from rank to rank.
fn of_all(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut all = Vec::new();
    let mut words = words;
    while let Some(word) = words.next() {
        let name = word.split('=').next().unwrap_or_default();
        match OF_A_RANK.contains(&name) {
            false => all.push(word),
            // Its value is the next word, unless it is in this one.
            true if name == word => drop(words.next()),
            true => {}
        }
    }
    all
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
fn serve_others(pair: &Arc<PairEnd>, bind: Option<IpAddr>) -> anyhow::Result<SocketAddr> {
    let bind = serving_address(bind)?;
    let (told, address) = channel();
    let told = Mutex::new(told);
    let service = Service {
        bind: SocketAddr::new(bind, 0),
        port: None,
        once: false,
        pair: Some(Arc::clone(pair)),
    };
    std::thread::Builder::new()
        .name("hcabench-serve".to_owned())
        .spawn(move || {
            let tell = move |event| match event {
                Event::Listening(address) => {
                    let told = told.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    let _ = told.send(address);
                }
                Event::Refused { peer, reason } => {
                    eprintln!("hcabench: refused {peer}: {}", printable(&reason));
                }
                // The rank that asked tells it.
                Event::Failed { .. } | Event::Begun { .. } | Event::Over { .. } => {}
            };
            if let Err(error) = serve(&service, tell) {
                eprintln!("hcabench: {error}");
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
    hello: Hello,
    pair: Arc<PairEnd>,
) -> anyhow::Result<u8> {
    let place = Place::find(arguments, identity)?;
    let listener = rendezvous::listen(&identity.rendezvous).map_err(told)?;
    let terms = hello.terms.clone();
    let rendezvous = identity.rendezvous.clone();
    let agent = std::thread::Builder::new().name("hcabench-rank0".to_owned());
    let agent = agent.spawn(move || -> Result<(), LaunchError> {
        Agent::meet(&rendezvous, &hello, GATHERING)?.attend(&mut RankWork(pair))
    })?;
    let limits = Limits {
        gather: GATHERING,
        measure: arguments.pair_timeout,
        ..Limits::default()
    };
    let code = conduct(arguments, identity, &place, (listener, terms, limits))?;
    // It ends by what it is told, unless its device keeps it.
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
        let of = |line: &str| of_all(line.split(' ').map(str::to_owned)).join(" ");
        for (line, expected) in [
            ("fabric --rank 3 --bind ::1 --burst 9", "fabric --burst 9"),
            (
                "fabric --rank=3 --burst=9 --bind=10.0.0.7",
                "fabric --burst=9",
            ),
            ("fabric --ranks 4", "fabric --ranks 4"),
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
