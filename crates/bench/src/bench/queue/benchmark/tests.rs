//! Rows of points, of good queues and bad ones.

use super::*;
use crate::bench::queue::cpus::CpuChoice;
use crate::bench::queue::faulty::{self, PANICS};
use crate::bench::queue::plan::{CURVE_PERCENTS, tests::sweep};
use crate::bench::queue::result::made_up;
use crate::generators::MemoryLoad;
use crate::host::CpuSet;
use crate::pacing::{EndLoad, Load};
use crate::results::schema;
use crate::rig::benchmark::RowOutcome;
use crate::testing::Refused as _;

const ANY_PAIR: CpuChoice = CpuChoice::Pair {
    sender: None,
    receiver: None,
};

fn measured(benchmark: &mut QueueBenchmark, point: usize) -> RowOutcome {
    let place = SampleFolders {
        round: 0,
        folders: Vec::new(),
    };
    let mut outcome = benchmark.measure(point, &place, &mut |_| {}).unwrap();
    outcome.rows.remove(0)
}

#[test]
fn a_queue_that_panics_fails_its_points_and_no_others() {
    let _turn = faulty::turn();
    let rate = EndLoad {
        load: Load::ConstantRate { rate_per_s: 1e6 },
        ..EndLoad::NONE
    };
    let sweep = Sweep {
        capacities: vec![64],
        payloads: vec![64],
        senders: vec![rate],
        curve: Some(rate),
        cpus: ANY_PAIR,
        ..sweep(&["lamport"])
    };
    let config = Config {
        length: RoundLength::Elements(500),
        ..made_up::config()
    };
    let mut benchmark = QueueBenchmark::new(config, sweep);
    let plan = benchmark.plan().unwrap();
    assert_eq!(plan.points.len(), CURVE_PERCENTS.len());
    benchmark.prepare(plan).unwrap();
    benchmark.make_of = |point| match point.queue.as_str() {
        "faulty" => faulty::make_of::<PANICS>(),
        _ => ends::make_of(point),
    };
    let mut bad = benchmark.points.clone();
    (bad.iter_mut()).for_each(|point| point.queue = "faulty".to_owned());
    benchmark.points.extend(bad);
    for point in [14, 15] {
        let row = measured(&mut benchmark, point);
        row.failure
            .map_or(Ok(()), Err)
            .refused(&["saturation", "panicked"]);
        assert!(!row.ends_sweep);
        assert_eq!(row.figures.text(&columns::OUTCOME), rows::FAILED);
    }
    // It is not tried again for each of its rates.
    assert_eq!(benchmark.rates.len(), 1);
    let row = measured(&mut benchmark, 13);
    assert_eq!(row.failure, None);
    let number = |column: &schema::Column| row.figures.number(column.name).unwrap();
    let (rate, saturation) = (number(&columns::RATE), number(&columns::SATURATION));
    assert!((rate - saturation).abs() <= 1.0, "{rate} {saturation}");
}

#[test]
fn a_point_under_memory_load_tells_what_was_issued_meanwhile() {
    let _turn = faulty::turn();
    let load = |percent| MemoryLoad::of_percent(percent).unwrap();
    let sweep = Sweep {
        capacities: vec![64],
        payloads: vec![8],
        cpus: ANY_PAIR,
        ..sweep(&["lamport"])
    };
    let config = Config {
        // The generator runs when the scheduler takes the CPU from the receiver: in many slices, not in one.
        length: RoundLength::Elements(100_000),
        has_memory_load: true,
        ..made_up::config()
    };
    let mut benchmark = QueueBenchmark::new(config, sweep);
    let plan = benchmark.plan().unwrap();
    assert!(benchmark.beside.is_none());
    // As if a CPU were left: the generator shares that of the receiver, wherever this runs.
    let mut point = benchmark.points[0].clone();
    let cpus = CpuSet::from_iter([point.cpus.receiver]);
    benchmark.beside = Some(RunGenerators::made_up(cpus, &[load(50)]));
    point.memory_load = load(50);
    benchmark.points.push(point);
    benchmark.prepare(plan).unwrap();
    for (point, is_loaded) in [(0, false), (1, true), (0, false), (1, true)] {
        let row = measured(&mut benchmark, point);
        assert_eq!(row.failure, None);
        let issued = row.figures.number(columns::MEMORY_LOAD_MB_S.name);
        assert_eq!(
            issued.is_some_and(|issued| issued > 0.0),
            is_loaded,
            "{issued:?}"
        );
        let calibration = &row.instrument["memory_load"];
        assert_eq!(
            calibration["peak_mb_s"].as_f64() > Some(0.0),
            is_loaded,
            "{calibration}"
        );
        let buffers = &row.obtained["memory_load"]["buffer_bytes"];
        assert_eq!(buffers.as_u64(), is_loaded.then_some(2 << 20));
    }
}
