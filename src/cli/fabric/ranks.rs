//! What each process of the job does: all serve and measure, rank 0 conducts besides.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::FabricArguments;
use super::conducting::{Place, conduct};
use crate::bench::hca::between::listening::{Event, Service, serve};
use crate::bench::hca::between::pair::PairEnd;
use crate::bench::hca::config::Config;
use crate::cli::UsageError;
use crate::host::interrupt;
use crate::host::machine_name::machine_name;
use crate::host::pinning::current_affinity;
use crate::launch::agent::{Agent, Work};
use crate::launch::conductor::Limits;
use crate::launch::error::LaunchError;
use crate::launch::identity::Identity;
use crate::launch::message::{Hello, Order, PairReport, Start};
use crate::launch::rendezvous;
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
    let settings = json!({ "arguments": arguments_of_all(), "drift": asked.drift });
    let pair = Arc::new(PairEnd::new(config, asked));
    let serves = serve_others(&pair)?;
    let cpus = current_affinity()?.to_string();
    let hello = Hello::new(&identity, settings, (boot_id, cpus), serves);
    if identity.rank > 0 {
        let agent = Agent::meet(&identity.rendezvous, &hello, GATHERING)?;
        agent.attend(&mut RankWork(pair))?;
        return Ok(0);
    }
    lead(arguments, &identity, hello, pair)
}

/// The command line without what differs from rank to rank.
fn arguments_of_all() -> Vec<String> {
    let words = crate::cli::expanded_arguments().iter();
    let words: Vec<String> = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut all = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--rank" => drop(words.next()),
            other if other.starts_with("--rank=") => {}
            _ => all.push(word),
        }
    }
    all
}

/// Serves the measurements of other ranks from here on. Returns where.
fn serve_others(pair: &Arc<PairEnd>) -> anyhow::Result<SocketAddr> {
    let (told, address) = channel();
    let told = Mutex::new(told);
    let service = Service {
        bind: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
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
    pair.serves_at(address.port());
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
    let listener = rendezvous::listen(&identity.rendezvous)?;
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
