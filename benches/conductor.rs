//! What rank 0 of a large fabric takes: the real conductor, collection and analysis of `hcabench fabric`, and a thread
//! for each rank that answers its orders at once, in a process of their own. One round; all pairs of a round of the
//! schedule measure at once. Without RDMA.
//!
//! | requirement | limit |
//! | --- | --- |
//! | processor time of rank 0, for all pairs of 1024 ranks | 60 s |
//! | memory of rank 0 | 1 GiB |
//!
//! The last line has the figures in JSON. One rank is slow, so that there are suspects to be measured again. Ends with exit code 1 when a requirement is not
//! met, or when the tables are not whole.

#![expect(clippy::disallowed_methods, reason = "a test may panic")]

use std::io::BufRead as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::thread::Builder;
use std::time::{Duration, Instant};

use hcabench::cli::rank_zero;
use hcabench::launch::agent::{Agent, RankWork};
use hcabench::launch::conductor::Limits;
use hcabench::launch::identity::{Identity, Options};
use hcabench::launch::message::{DirectionReport, Hello, MeasurementOrder, PairReport};
use hcabench::launch::rendezvous::listen;
use hcabench::launch::schedule::{Concurrency, Partners, Schedule};
use hcabench::results::schema::fabric::{self, FIGURES};
use hcabench::results::schema::{Column, Data};
use hcabench::results::{Cell, Record};
use shared::{Failed, thread_time};

mod shared;

const USAGE: &str = "\
Usage: cargo bench --bench conductor [-- RANKS [OPTION...]]
Measures what rank 0 takes for all pairs of RANKS ranks, 1024 if not given. OPTION: of hcabench fabric. Exit \
code 1 when a requirement is not met.";

const RANKS: u32 = 1024;
const CPU_LIMIT: Duration = Duration::from_secs(60);
const MEMORY_LIMIT_MIB: u64 = 1024;
/// The word before port and number of ranks: this process is the scripted ranks.
const SCRIPTED: &str = "--scripted-ranks";
const SLOW: u32 = 3;
/// Thousands of threads on few CPUs come one after the other.
const GATHER: Duration = Duration::from_secs(300);

fn main() -> ExitCode {
    shared::main("conductor", USAGE, |words| match words {
        [] => Some(run(RANKS, &[])),
        [SCRIPTED, port, ranks] => Some(attend(port.parse().ok()?, ranks.parse().ok()?)),
        [ranks, options @ ..] => Some(run(ranks.parse().ok()?, options)),
    })
}

/// The process of the scripted ranks, which ends with this.
struct ScriptedRanks(Child);

impl Drop for ScriptedRanks {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Scripted;

impl RankWork for Scripted {
    fn measure(&mut self, order: &MeasurementOrder) -> Result<PairReport, String> {
        let (low, high) = (order.pair.lower(), order.pair.higher());
        Ok(PairReport {
            begun_unix_ns: 1_790_000_000_000_000_000,
            directions: [direction(low, high), direction(high, low)],
        })
    }
}

fn direction(from: u32, to: u32) -> DirectionReport {
    let mixed = (u64::from(from) << 32 | u64::from(to)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let noise = (mixed >> 40) as f64 / f64::from(1 << 24);
    let slow = if from == SLOW { 3000.0 } else { 0.0 };
    let mut figures = Record::new();
    for (place, column) in FIGURES.iter().enumerate() {
        let cell = cell(column, 1000.0 + 10.0 * place as f64 + 100.0 * noise + slow);
        figures.set(column, cell);
    }
    DirectionReport {
        figures,
        failure: None,
        ..DirectionReport::default()
    }
}

fn cell(column: &Column, number: f64) -> Cell {
    // No contradiction: the clocks are the same, and all is measured at one time.
    let bounds = [
        (fabric::OFFSET_LOW, fabric::OFFSET_HIGH),
        (fabric::LINES_LOW, fabric::LINES_HIGH),
    ];
    for (low, high) in bounds {
        if *column == low || *column == high {
            let sign = if *column == low { -1 } else { 1 };
            return Cell::from(sign * number as i64);
        }
    }
    if *column == fabric::RATE_LOW || *column == fabric::RATE_HIGH {
        return Cell::from(if *column == fabric::RATE_LOW {
            -0.5
        } else {
            0.5
        });
    }
    if *column == fabric::OFFSET_AT || *column == fabric::EXCHANGES_LASTED {
        return Cell::from(1_000_000u64);
    }
    if *column == fabric::LINES_RATE {
        return Cell::from(0i64);
    }
    match column.data {
        Data::Number(_) => Cell::from(number),
        Data::Whole => Cell::from(number as u64),
        Data::Flag => Cell::from(false),
        Data::Text | Data::Moment => Cell::from("proven"),
    }
}

fn run(ranks: u32, options: &[&str]) -> Result<bool, Failed> {
    let (Hello { terms, .. }, mut identity) = hello(0, ranks)?;
    // A free port.
    identity.rendezvous.port = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port();
    let listener = listen(&identity.rendezvous)?;
    let port = identity.rendezvous.port.to_string();
    let mut attending = ScriptedRanks(
        Command::new(std::env::current_exe()?)
            .args([SCRIPTED, &port, &ranks.to_string()])
            .spawn()?,
    );
    // As many threads as ranks wait long for a CPU.
    let limits = Limits {
        gather: GATHER,
        answer: Duration::from_secs(120),
        ..Limits::default()
    };
    let folder = tempfile::tempdir()?;
    let out = folder.path().join("out");
    let mut words = vec!["fabric", "--quiet", "--out"];
    words.push(out.to_str().ok_or("the path is not valid text")?);
    words.extend(options);
    let made = Instant::now();
    let schedule = Schedule::new(ranks, Concurrency::Together);
    let batches = schedule.batches().map(|batch| batch.len() as u64);
    let (count, all) = batches.fold((0_u64, 0), |(count, all), batch| (count + 1, all + batch));
    let made = made.elapsed();
    if (count, all) != (schedule.batch_count(), schedule.pairs()) {
        return Err("the schedule has not all pairs".into());
    }
    let (begun, before) = (Instant::now(), thread_time()?);
    let code = rank_zero(&words, &identity, (listener, terms, limits))?;
    let (elapsed, cpu) = (begun.elapsed(), thread_time()? - before);
    if !attending.0.wait()?.success() {
        return Err("the scripted ranks failed".into());
    }
    let memory = peak_memory_mib()?;
    let document = std::fs::read_to_string(out.join(fabric::FABRIC))?;
    let document: serde_json::Value = serde_json::from_str(&document)?;
    let partners = match options {
        ["--partners", count, ..] => count
            .parse::<NonZeroU32>()
            .map_or(Partners::All, Partners::AtMost),
        _ => Partners::All,
    };
    // The seed is 1 if no other is set.
    let expected = schedule.with(partners, 1).pairs();
    if document["schedule"]["pairs"].as_u64() != Some(expected) {
        return Err(format!(
            "fabric.json has not {expected} pairs: give --partners first, and no --seed"
        )
        .into());
    }
    let pairs = 2 * expected;
    let rounds = pairs / 2 / u64::from(ranks / 2);
    println!(
        "{ranks} ranks, {pairs} ordered pairs: {:.1} s, with all scripted ranks on the same CPUs",
        elapsed.as_secs_f64()
    );
    println!(
        "processor time of the thread of rank 0, from gathering to the last table: {:.1} s; at most {} s",
        cpu.as_secs_f64(),
        CPU_LIMIT.as_secs()
    );
    println!("peak memory of rank 0: {memory} MiB; at most {MEMORY_LIMIT_MIB} MiB");
    let mut bytes = 0;
    for (name, rows) in [
        ("runs.csv", pairs),
        (fabric::PAIRS, pairs),
        (fabric::NODES, ranks.into()),
        ("left_out.csv", 0),
    ] {
        let found = rows_of(&out.join(name))?;
        let of_file = out.join(name).metadata()?.len();
        bytes += of_file;
        println!("{name}: {found} rows, {} MiB", of_file >> 20);
        if found % rows.max(1) != 0 || (found == 0) != (rows == 0) {
            return Err(format!("{name} has not {rows} rows a round").into());
        }
    }
    let figures = serde_json::json!({
        "ranks": ranks, "rounds": rounds, "pairs": pairs / 2, "cpu_s": cpu.as_secs_f64(),
        "elapsed_s": elapsed.as_secs_f64(), "memory_mib": memory, "bytes": bytes,
        "schedule_of_all_s": made.as_secs_f64(),
    });
    println!("{figures}");
    Ok(code == 0 && cpu <= CPU_LIMIT && memory <= MEMORY_LIMIT_MIB)
}

/// All ranks of a fabric whose rank 0 is met at that port.
fn attend(port: u16, ranks: u32) -> Result<bool, Failed> {
    let mut attending = Vec::new();
    for rank in 0..ranks {
        let (hello, identity) = hello(rank, ranks)?;
        let mut place = identity.rendezvous;
        place.port = port;
        let attend = move || Agent::meet(&place, &hello, GATHER)?.attend(&mut Scripted);
        // The default stacks would be gigabytes of addresses.
        attending.push(Builder::new().stack_size(256 << 10).spawn(attend)?);
    }
    for rank in attending {
        rank.join().map_err(|_| "a rank panicked")??;
    }
    Ok(true)
}

/// Without the header.
fn rows_of(path: &Path) -> Result<u64, Failed> {
    let lines = std::io::BufReader::new(std::fs::File::open(path)?).lines();
    Ok((lines.count() as u64).saturating_sub(1))
}

fn hello(rank: u32, ranks: u32) -> Result<(Hello, Identity), Failed> {
    let options = Options {
        rank: Some(rank),
        ranks: Some(ranks),
        rendezvous: Some("127.0.0.1".to_owned()),
    };
    let identity = Identity::find(&options, &|_| None, &format!("node{rank:04}"))?;
    let serves = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 7000));
    let hello = Hello::new(
        &identity,
        serde_json::Value::Null,
        (format!("boot{rank}"), "0-7".to_owned()),
        serves,
    );
    Ok((hello, identity))
}

fn peak_memory_mib() -> Result<u64, Failed> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    Ok(kib
        .ok_or("/proc/self/status has no VmHWM")?
        .parse::<u64>()?
        / 1024)
}
