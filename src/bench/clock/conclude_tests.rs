//! Two CPUs whose clocks a test has written, up to the result.

use std::collections::BTreeSet;

use super::*;
use crate::bench::clock::baseline::Baseline;
use crate::bench::clock::cause::Names;
use crate::bench::clock::cause::Sampler;
use crate::bench::clock::limit::Limit;
use crate::bench::clock::recorder::Nothing;
use crate::bench::clock::result::Stored;
use crate::bench::clock::scripted::{Script, Scripted};
use crate::bench::clock::watcher::{Seen, Task, Watched, Watcher};
use crate::buffer::HugePagePolicy;
use crate::host::counters::Deltas;
use crate::host::counters::{Available, ThreadUsage};
use crate::rig::control::StopFlag;
use crate::time::{Nanos, Posix};

struct NoCounters;

impl Sampler for NoCounters {
    fn read(&mut self) -> Deltas {
        Deltas::default()
    }
}

const STEP: u64 = 20;
const READINGS: u64 = 2000;
const EPOCH: u64 = 10_000;

/// What a CPU sees whose first reading is at `start`, whose jumps, of so many ticks each, begin at these times, and that
/// is set back at others.
fn watched(start: u64, jumps: &[(u64, u64)], back: &[(u64, u64)]) -> Watched {
    let mut script = Script::of_differences(start, &[0]);
    let mut now = start;
    let mut back = back.to_vec();
    for _ in 0..READINGS {
        let jump = jumps.iter().find(|(begin, _)| *begin == now);
        let step = match (jump, back.iter().position(|(begin, _)| *begin == now)) {
            (Some((_, length)), _) => *length,
            (None, Some(at)) => back.remove(at).1.wrapping_neg(),
            (None, None) => STEP,
        };
        script.add(step);
        // Steps back are taken out of the time.
        now += if (step as i64) < 0 { 0 } else { step };
    }
    let task = Task {
        readings: Some(READINGS),
        block: 100,
        baseline: 2 * STEP,
        threshold: 2 * STEP,
        window: Some(1000),
        highest: false,
        keep: 100,
    };
    let (stop, seen) = (StopFlag::default(), Seen::default());
    script.then_steps_of(STEP).play(|| {
        let watcher = Watcher::new(
            (Scripted, AnyClock::Monotonic(Posix)),
            Nothing,
            NoCounters,
            task,
            (&stop, &seen),
        );
        watcher.unwrap().run(Ticks(EPOCH)).0
    })
}

fn result(watches: Vec<Watched>, clock: ReadingKind) -> ClockResult {
    let config = Config {
        clock,
        tsc_khz: None,
        reports: BTreeSet::new(),
        keep_all: false,
        length: Length::Iterations(READINGS),
        cpus: (0..watches.len()).collect(),
        window: Nanos(1000),
        baseline_iterations: 1000,
        threshold: None,
        coincidence: Nanos(100),
        keep: 100,
        huge_pages: HugePagePolicy::Off,
        limits: vec![Limit {
            length: Nanos(4000),
            percent: None,
        }],
    };
    let baseline = Baseline {
        mean_ticks: STEP as f64,
        least_ticks: STEP,
        quickest_ticks: STEP as f64,
        iterations: 1000,
        shortened: false,
    };
    let cpus = watches.into_iter().enumerate();
    let cpus = cpus.map(|(cpu, watched)| CpuResult {
        cpu,
        baseline,
        threshold: 2 * STEP,
        coincident: vec![0; watched.jumps.jumps().len()],
        watched,
        stored: Stored::default(),
        names: Names::default(),
        available: Available::default(),
        usage: ThreadUsage::default(),
        moved: None,
        judgements: Vec::new(),
    });
    conclude(
        &config,
        AnyClock::Monotonic(Posix),
        Vec::new(),
        cpus.collect(),
        None,
    )
}

#[test]
fn jumps_of_two_cpus_at_once_are_told_from_those_of_one() {
    let first = watched(20_000, &[(22_000, 3000), (40_000, 700)], &[]);
    let second = watched(20_300, &[(22_020, 3100), (30_020, 5000)], &[]);
    let result = result(vec![first, second], ReadingKind::Monotonic);
    let begins: Vec<Vec<u64>> = result
        .cpus
        .iter()
        .map(|cpu| {
            cpu.watched
                .jumps
                .jumps()
                .iter()
                .map(|jump| jump.begin)
                .collect()
        })
        .collect();
    // From the first reading of all on, and on one clock: the second CPU began 300 ns later.
    assert_eq!(begins, [[2000, 20_000], [2020, 10_020]]);
    assert_eq!(
        (result.cpus[0].watched.start, result.cpus[1].watched.start),
        (0, 300)
    );
    let coincident: Vec<&[u32]> = result.cpus.iter().map(|cpu| &cpu.coincident[..]).collect();
    assert_eq!(coincident, [[1, 0], [1, 0]]);
    let found = result.coincidences.unwrap();
    assert_eq!((found.jumps, found.on_all_cpus), (2, 2));
    assert_eq!(result.cpus[1].unexplained_on_several().total, 3100);
    let broken: Vec<bool> = result
        .cpus
        .iter()
        .map(|it| it.judgements[0].broken)
        .collect();
    assert_eq!(broken, [false, true]);
}

#[test]
fn a_clock_that_is_set_back_for_all_is_no_jump_of_several_cpus() {
    let of = |start| watched(start, &[(30_000, 700)], &[(25_000, 500)]);
    let result = result(vec![of(20_000), of(20_020)], ReadingKind::Realtime);
    for cpu in &result.cpus {
        assert_eq!(
            (cpu.watched.backward.steps, cpu.watched.jumps.jumps().len()),
            (1, 2)
        );
        assert_eq!(cpu.watched.jumps.jumps()[0].cause, Cause::Backward);
        assert_eq!(cpu.coincident, [0, 1]);
    }
    assert_eq!(result.coincidences.unwrap().jumps, 2);
    assert!(result.notes.iter().any(|note| note.contains("can be set")));
}
