//! What is particular to a sweep in which several threads share queues: what they take, can note, and are told of.

use std::time::Duration;

use super::config::Config;
use super::cpus::Cpus;
use super::error::RunError;
use super::memory::{self, Needs};
use super::notes::Notes;
use super::plan::Point;
use super::result::RunResult;
use super::roles::{RECEIVER, SENDER};
use super::seats::Seats;
use super::sharing::lines;
use super::task::Task;
use crate::host::{HugePages, MemoryLock, Topology};
use crate::node::wiring::Wiring;
use crate::results::finding::{Finding, kinds};
use crate::results::schema::queue as columns;
use crate::rig::error::RigError;
use crate::rig::memory::Allowance;
use crate::rig::priority::SpinPlacement;
use crate::time::{Clock, Ticks};

/// The most elements that a thread notes in a round.
pub(crate) const MOST_NOTED: usize = 1 << 20;
/// In so long each thread that shares a CPU has had it several times.
const SOME_TIME_SLICES: Duration = Duration::from_millis(100);

/// What the queues of a point take.
pub(super) fn queue_bytes(point: &Point) -> u64 {
    let size = (point.capacity, point.payload);
    match &point.wiring {
        Some(wiring) => bytes_of_lines(wiring, size),
        None => memory::queue_bytes(point.capacity, point.payload, 1),
    }
}

fn bytes_of_lines(wiring: &Wiring, (capacity, payload): (usize, usize)) -> u64 {
    let lines = lines(wiring);
    let senders = lines.iter().map(|line| line.producers.len());
    senders
        .map(|senders| memory::queue_bytes(capacity, payload, senders))
        .sum()
}

/// No two CPUs have a meaning: each thread has its own.
pub(super) const ANY_CPUS: Cpus = Cpus {
    sender: 0,
    receiver: 0,
    cores: None,
};

/// Checks that the threads of each wiring may have the priority that is asked for.
pub(super) fn permit(
    config: &Config,
    wirings: &[Wiring],
    topology: &Topology,
) -> Result<(), RunError> {
    let allowed = topology.allowed().len();
    for wiring in wirings {
        let threads = (wiring.publishers + wiring.subscribers) as usize;
        let places = SpinPlacement {
            shares_cpu: threads > allowed,
            leaves_cpu: threads < allowed,
            options: "--producers and --consumers, together no more than CPUs",
        };
        places.permit(config.priority)?;
    }
    Ok(())
}

/// What a run of a wiring takes, through queues for so many elements of so many bytes, where each thread can note so
/// many elements.
pub(super) fn needs(config: &Config, wiring: &Wiring, largest: (usize, usize), room: u64) -> Needs {
    let producers = wiring.publishers as usize;
    let of_producer = Notes::room(SENDER, config, room as usize);
    let of_consumer = Task::room_of_receiver(room as usize, producers, largest.0);
    let mut rooms = vec![(SENDER, of_producer); producers];
    let ends = producers + wiring.subscribers as usize;
    rooms.resize(ends, (RECEIVER, of_consumer));
    Needs::of_many(config, &rooms, bytes_of_lines(wiring, largest))
}

/// How many elements each thread can note, of which the stamps can be locked.
pub(super) fn room(
    config: &Config,
    wirings: &[Wiring],
    largest: (usize, usize),
    limit: &MemoryLock,
) -> Result<u64, RunError> {
    let (allowed, pages) = (Allowance::of_this_process(), HugePages::read());
    let most = (config.duration().as_secs_f64() * memory::MOST_STAMPED_PER_S) as u64;
    let most = most.clamp(memory::FEWEST, MOST_NOTED as u64);
    let fits = |room: u64| {
        let mut needs = wirings.iter().map(|it| needs(config, it, largest, room));
        needs.all(|it| it.fit(config, allowed.as_ref(), limit, pages))
    };
    let room = memory::largest(most, fits).max(memory::FEWEST);
    if let Some(allowed) = &allowed {
        for wiring in wirings {
            let [publishers, subscribers] = [wiring.publishers, wiring.subscribers];
            let options = format!("--producers {publishers} with --consumers {subscribers}");
            let needs = needs(config, wiring, largest, room);
            needs.require(allowed, &options).map_err(RigError::Memory)?;
        }
    }
    Ok(room)
}

/// The threads of a clean run that were starved, by what they are; `None` where that may not be the queue's doing:
/// threads that share a CPU have it in turn.
pub(super) fn starved(
    run: &RunResult,
    seats: &Seats,
    clock: &impl Clock,
) -> Option<Vec<&'static str>> {
    let [first, last] = run.ends.sender.passed.span;
    let span = clock.to_nanos(Ticks(last.0.saturating_sub(first.0))).0;
    let is_told = !seats.placement.shares_cpu() || u128::from(span) >= SOME_TIME_SLICES.as_nanos();
    let shares = run.shares.as_ref().filter(|_| is_told)?;
    Some(shares.starved())
}

/// A thread that was starved.
pub(super) fn of_starved(point: &Point, end: &str) -> Finding {
    let scenario = point.wiring.map_or("", |wiring| wiring.scenario.name());
    Finding::of(&kinds::STARVED)
        .measure("least_percent", columns::STARVED_PERCENT)
        .listed("threads", format!("{end} ({}, {scenario})", point.queue))
}

/// Where a thread had no more room.
pub(super) fn of_length(run: &RunResult, room: u64) -> Option<Finding> {
    let shares = run.shares.as_ref()?;
    let most = shares.producers.iter().chain(&shares.consumers).max();
    most.filter(|most| **most >= room).map(|_| {
        Finding::of(&kinds::RECORD_FULL)
            .measure("elements", room as f64)
            .measure("shortest_ns", SOME_TIME_SLICES.as_nanos() as f64)
    })
}
