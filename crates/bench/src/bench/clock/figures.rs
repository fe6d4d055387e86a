//! What a CPU's row of the summary says.

use crate::results::Record;
use crate::results::schema::clock as column;

use super::result::{ClockResult, CpuResult};

/// The figures of a CPU; `histogram`: whether its differences are written.
pub(super) fn of(result: &ClockResult, cpu: &CpuResult, histogram: bool) -> Record {
    let watched = &cpu.watched;
    let nanos = |ticks: u64| result.nanos_f64(ticks as f64);
    let whole = |ticks: u64| result.nanos(ticks).0;
    let jumped = cpu.jumped();
    let elapsed = watched.elapsed();
    let seconds = whole(elapsed) as f64 / 1e9;
    let share = jumped.total as f64 / elapsed.max(1) as f64;
    let distribution = cpu.stored.distribution.as_ref();
    let least = distribution.and_then(|it| it.min());
    let values = distribution.map_or(0, |it| it.counts().count());
    let mut record = Record::new();
    record
        .set(&column::ITERATIONS, watched.readings)
        .set(&column::ELAPSED, whole(elapsed))
        .set(&column::NANOS_PER_TICK, result.scale.nanos_per_tick())
        .set(
            &column::MEAN,
            watched.mean().map(|mean| result.nanos_f64(mean)),
        )
        .set(&column::MIN, least.map(nanos))
        .set(
            &column::MAX,
            (watched.readings > 0).then(|| nanos(watched.ranking.largest)),
        )
        .set(&column::BASELINE, nanos(cpu.baseline.ticks()))
        .set(&column::BASELINE_ITERATIONS, cpu.baseline.iterations)
        .set(&column::THRESHOLD, nanos(cpu.threshold))
        .set(&column::JUMPS, jumped.count)
        .set(
            &column::JUMP_RATE,
            (seconds > 0.0).then(|| jumped.count as f64 / seconds),
        )
        .set(&column::JUMPS_TOTAL, whole(jumped.total))
        .set(&column::JUMP_TIME, share * 100.0)
        .set(&column::JUMPS_IN_FILE, watched.jumps.iter().len())
        .set(&column::DIFFERENCES_IN_FILE, histogram.then_some(values))
        .set(&column::NOT_SAMPLED, watched.not_sampled)
        .set(
            &column::HIGHEST_WINDOW,
            watched
                .ranking
                .windows()
                .first()
                .map(|sum| nanos(sum.extra)),
        )
        .set(&column::STEPS_BACKWARDS, watched.time.steps_back)
        .set(
            &column::LARGEST_STEP_BACKWARDS,
            whole(watched.time.largest_step_back),
        )
        .set(&column::BLIND_SHARE, watched.blind_share())
        .set(
            &column::INVOLUNTARY_SWITCHES,
            cpu.usage.involuntary_switches,
        )
        .set(&column::VOLUNTARY_SWITCHES, cpu.usage.voluntary_switches)
        .set(
            &column::PAGE_FAULTS,
            cpu.usage.minor_faults + cpu.usage.major_faults,
        );
    for (percent, column) in &column::PERCENTILES {
        record.set(column, cpu.percentile(*percent).map(nanos));
    }
    record
}
