//! Instructions a message, or a reading, takes in the hot loops, counted by callgrind: the difference of a long and a
//! short run of one thread. Prints a table; run it on two commits to compare them. What the verbs do, and what waits for
//! another thread, is not in it. The loops of queues: `queue_runner`.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hcabench::bench::clock::hot_loop::watch;
use hcabench::bench::clock::recorder::{CountingRecorder, Recorder};
use hcabench::bench::hca::loops::completion::{Collector, NoCollection};
use hcabench::bench::hca::loops::control::Control;
use hcabench::bench::hca::loops::memory_port;
use hcabench::bench::hca::loops::memory_port::MemorySendPort;
use hcabench::bench::hca::loops::port::BusyPolling;
use hcabench::bench::hca::loops::receiver::receive;
use hcabench::bench::hca::loops::sender::{BurstSend, SendStamp, StampMode, SubmitStamp, send};
use hcabench::bench::hca::loops::signalling::Signalling;
use hcabench::bench::hca::loops::tag::{Expected, Tag};
use hcabench::buffer::{Arrival, Bytes, PageSize, Region};
use hcabench::generators::chase::Chase;
use hcabench::pacing::{NoPause, Pacing};
use hcabench::terminal::table::{Column, Table};
use hcabench::time::{Reading, Ticks};
use shared::{Counter, Failed, callgrind};

#[path = "../tests/loops/completed.rs"]
mod completed;
mod shared;

const USAGE: &str = "\
Usage: cargo bench --bench instructions
Counts the instructions a message takes in the hot loops, in a minute. Needs valgrind.";

const SHORT: u32 = 2_000;
const LONG: u32 = 12_000;

const KINDS: [&str; 8] = [
    "hca: sender, t_subm",
    "hca: sender, t_send",
    "hca: sender, t_subm, completions taken in its pauses",
    "hca: completion thread",
    "hca: receiver",
    "clock: a reading, only jumps",
    "clock: a reading, counted",
    "memory: a step of the chase",
];

/// A clock that never jumps: each reading is 20 ticks behind the one before it.
#[derive(Clone, Copy)]
struct Steady;

impl Reading for Steady {
    #[inline(always)]
    fn read_beside<T>(&self, work: impl FnOnce() -> T) -> (Ticks, T) {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let next = LAST.load(Ordering::Relaxed) + 20;
        LAST.store(next, Ordering::Relaxed);
        (Ticks(next), work())
    }
}

fn main() -> ExitCode {
    shared::main("instructions", USAGE, |words| match words {
        [] => Some(print_table()),
        // What callgrind runs.
        ["once", kind, count] => Some(once(kind, count)),
        _ => None,
    })
}

fn print_table() -> Result<bool, Failed> {
    let mut table = Table::new(vec![
        Column::text("loop"),
        Column::number("instructions", "a message"),
    ]);
    for kind in KINDS {
        let [(short, of_short), (long, of_long)] = [counted(kind, SHORT)?, counted(kind, LONG)?];
        let each = (of_long - of_short) / (long - short);
        table.row([kind.to_owned(), format!("{each:.2}")]);
    }
    println!("{}", table.render(None));
    Ok(true)
}

/// Messages of a run below callgrind, as it prints them, and all instructions of the process.
fn counted(kind: &str, count: u32) -> Result<(f64, f64), Failed> {
    let (messages, instructions) = callgrind(&["once", kind, &count.to_string()])?;
    Ok((messages.trim().parse()?, instructions))
}

fn once(kind: &str, count: &str) -> Result<bool, Failed> {
    let count = count.parse()?;
    let kind = KINDS.iter().position(|known| *known == kind);
    let messages = match kind.ok_or("no such loop")? {
        0 => posted::<SubmitStamp>(count, NoPause),
        1 => posted::<SendStamp>(count, NoPause),
        2 => posted_and_completed(count),
        3 => all_completed(count),
        4 => received(count),
        5 => watched(count, &mut |_: u64| ()),
        6 => watched(count, &mut CountingRecorder::default()),
        _ => chased(count),
    };
    println!("{messages}");
    Ok(true)
}

fn sending<'a>(submitted: &'a mut [Ticks], control: &'a Control) -> BurstSend<'a> {
    BurstSend {
        signalling: Signalling::new(black_box(1), black_box(1)),
        submitted,
        control,
    }
}

fn port(count: u32) -> MemorySendPort {
    memory_port::connect(count as usize, Tag::new(1).immediate_data(0)).0
}

fn posted<S: StampMode>(count: u32, mut pacing: impl Pacing) -> u64 {
    let (control, mut submitted) = (Control::default(), vec![Ticks(0); count as usize]);
    let burst = sending(&mut submitted, &control);
    let (mut port, mut left) = (port(count), NoCollection);
    let sent = send::<S>(&Counter, &mut port, &mut pacing, &mut left, burst);
    u64::from(sent.posted)
}

fn posted_and_completed(count: u32) -> u64 {
    let (control, mut submitted) = (Control::default(), vec![Ticks(0); count as usize]);
    let mut stamps = vec![Ticks(0); count as usize];
    let completions = completed::completed(&control);
    let mut collector = Collector::new(completions, &mut stamps, count, Tag::new(0), &control);
    let burst = sending(&mut submitted, &control);
    let (mut port, mut pacing) = (port(count), NoPause);
    let sent = send::<SubmitStamp>(&Counter, &mut port, &mut pacing, &mut collector, burst);
    assert_eq!(collector.into_outcome().succeeded, count);
    u64::from(sent.posted)
}

fn all_completed(count: u32) -> u64 {
    let (control, mut stamps) = (Control::default(), vec![Ticks(0); count as usize]);
    control.set_posted(count);
    let completions = completed::completed(&control);
    let collector = Collector::new(completions, &mut stamps, count, Tag::new(0), &control);
    u64::from(collector.run(&Counter, BusyPolling).succeeded)
}

fn received(count: u32) -> u64 {
    let (control, tag) = (Control::default(), Tag::new(1));
    let (mut from, mut to) = memory_port::connect(count as usize, tag.immediate_data(0));
    let mut submitted = vec![Ticks(0); count as usize];
    let burst = sending(&mut submitted, &control);
    send::<SubmitStamp>(&Counter, &mut from, &mut NoPause, &mut NoCollection, burst);
    let mut arrivals = vec![Arrival::default(); count as usize];
    let expected = Expected::new(1, count as usize, &[]);
    let outcome = receive(
        &Counter,
        &mut to,
        BusyPolling,
        expected,
        &mut arrivals,
        &control,
    );
    outcome.received as u64
}

fn watched(count: u32, recorder: &mut impl Recorder) -> u64 {
    let limit = recorder.direct_limit();
    let from = Steady.read();
    watch(&Steady, recorder, from, u64::from(count), limit).readings
}

fn chased(count: u32) -> u64 {
    let length = Bytes(1 << 16);
    let region = Region::new(length, PageSize::Small, None).expect("64 KiB can be mapped");
    let mut chase = Chase::new(region, length, 5, || true).expect("a small chase is made");
    // By time: the more of it, the more steps.
    chase
        .run(Duration::from_millis(u64::from(count) / 50))
        .steps
}
