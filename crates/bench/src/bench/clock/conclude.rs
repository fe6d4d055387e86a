//! What the threads saw, put together.

use std::time::SystemTime;

use crate::results::finding::{Finding, kinds};
use crate::time::{AnyClock, Clock, ReadingKind};

use super::cause::Cause;
use super::coincidence;
use super::config::Config;
use super::jump::Jump;
use super::result::{ClockResult, CpuResult, Judgement};
use super::verdict;

pub(super) fn conclude(
    config: &Config,
    scale: AnyClock,
    findings: Vec<Finding>,
    cpus: Vec<CpuResult>,
    begun_at: SystemTime,
    interrupted: Option<String>,
) -> ClockResult {
    let mut result = ClockResult {
        clock: config.clock,
        scale,
        begun_at,
        origin: cpus.iter().map(|cpu| cpu.watched.start).min().unwrap_or(0),
        cpus,
        coincidences: None,
        verdict: String::new(),
        findings,
        interrupted,
    };
    if config.clock == ReadingKind::Realtime {
        result.findings.push(Finding::of(&kinds::CLOCK_CAN_BE_SET));
    }
    coincide(&mut result, config);
    judge(&mut result, config);
    result.verdict = verdict::of(&result, config);
    result
}

fn coincide(result: &mut ClockResult, config: &Config) {
    if result.cpus.len() < 2 {
        return;
    }
    let tolerance = result.scale.ticks_in(config.coincidence).0;
    let begins: Vec<Vec<u64>> = result
        .cpus
        .iter_mut()
        .map(|cpu| stops(cpu).map(|jump| jump.begin).collect())
        .collect();
    let others = coincidence::others(&begins, tolerance);
    let elapsed = result.cpus.iter().map(|cpu| cpu.watched.elapsed());
    let elapsed = elapsed.max().unwrap_or(0);
    result.coincidences = Some(coincidence::summarise(&begins, &others, tolerance, elapsed));
    for (cpu, others) in result.cpus.iter_mut().zip(others) {
        for (jump, others) in stops(cpu).zip(others) {
            jump.other_cpus = others;
        }
    }
}

/// The jumps that are no steps backwards: a clock that is set back is set back for all CPUs, and that is no stop.
fn stops(cpu: &mut CpuResult) -> impl Iterator<Item = &mut Jump> {
    let jumps = cpu.watched.jumps.iter_mut();
    jumps.filter(|jump| jump.cause != Cause::Backward)
}

fn judge(result: &mut ClockResult, config: &Config) {
    let nanos_per_tick = result.scale.nanos_per_tick();
    for cpu in &mut result.cpus {
        let found = |percent: Option<f64>| match percent {
            None => Some(cpu.watched.ranking.largest),
            Some(percent) => cpu.percentile(percent),
        };
        cpu.judgements = judged(config, cpu.cpu, found, nanos_per_tick);
    }
}

/// Judges by each limit what was `found` of a percentile, or at the most, in ticks.
pub(super) fn judged(
    config: &Config,
    cpu: usize,
    found: impl Fn(Option<f64>) -> Option<u64>,
    nanos_per_tick: f64,
) -> Vec<Judgement> {
    let limits = config.limits.iter().map(|limit| {
        let found_ns = found(limit.percent).unwrap_or(0) as f64 * nanos_per_tick;
        Judgement {
            cpu,
            limit: limit.describe(),
            found_ns,
            broken: found_ns > limit.length.0 as f64,
        }
    });
    limits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::clock::config::Length;
    use crate::bench::clock::watcher::{WatchResult, WatchTask};
    use crate::rig::limit::Limit;
    use crate::time::{Nanos, Posix};

    /// Two CPUs whose watches began at `starts`, with the jumps of each: when it began, its length and cause.
    fn result(
        clock: ReadingKind,
        starts: [u64; 2],
        jumps: [[(u64, u64, Cause); 2]; 2],
    ) -> ClockResult {
        let mut config = Config::made_up(&[], Length::Iterations(2000));
        config.clock = clock;
        config.limits = vec![Limit {
            length: Nanos(4000),
            percent: None,
        }];
        let cpus = starts
            .iter()
            .zip(jumps)
            .enumerate()
            .map(|(cpu, (&start, jumps))| {
                let mut watched = WatchResult::nothing(&WatchTask::made_up(2000)).unwrap();
                (watched.start, watched.end) = (start, start + 100_000);
                for (begin, length, cause) in jumps {
                    watched.jumps.push(Jump::new(begin, length, cause), None);
                    watched.ranking.offer(begin, length);
                }
                CpuResult::made_up(cpu, watched)
            });
        conclude(
            &config,
            AnyClock::Posix(Posix::MONOTONIC),
            Vec::new(),
            cpus.collect(),
            SystemTime::UNIX_EPOCH,
            None,
        )
    }

    fn jumps_of(result: &ClockResult, cpu: usize) -> Vec<(u64, u32)> {
        let jumps = result.cpus[cpu].watched.jumps.iter();
        let with_others = jumps.map(|jump| (result.when(jump.begin), jump.other_cpus));
        with_others.collect()
    }

    #[test]
    fn jumps_of_two_cpus_at_once_are_told_from_those_of_one() {
        const WHY: Cause = Cause::Unexplained;
        let result = result(
            ReadingKind::Monotonic,
            [20_000, 20_300],
            [
                [(22_000, 3000, WHY), (40_000, 700, WHY)],
                [(22_020, 3100, WHY), (30_020, 5000, WHY)],
            ],
        );
        let [first, second] = &result.cpus[..] else {
            panic!("two CPUs");
        };
        // From the first reading of all on, and on one clock: the second CPU began 300 ns later.
        assert_eq!(result.when(second.watched.start), 300);
        assert_eq!(jumps_of(&result, 0), [(2000, 1), (20_000, 0)]);
        assert_eq!(jumps_of(&result, 1), [(2020, 1), (10_020, 0)]);
        let found = result.coincidences.unwrap();
        assert_eq!((found.jumps, found.on_all_cpus), (2, 2));
        assert_eq!(second.unexplained_on_several().total, 3100);
        assert!(!first.judgements[0].broken && second.judgements[0].broken);
    }

    #[test]
    fn a_clock_that_is_set_back_for_all_is_no_jump_of_several_cpus() {
        let jumps = [
            (25_000, 500, Cause::Backward),
            (30_000, 700, Cause::NotSampled),
        ];
        let result = result(ReadingKind::Realtime, [20_000, 20_020], [jumps; 2]);
        let expected = [[(5000, 0), (10_000, 1)], [(5000, 0), (10_000, 1)]];
        assert_eq!([0, 1].map(|cpu| jumps_of(&result, cpu)), expected);
        assert_eq!(result.coincidences.unwrap().jumps, 2);
        let found = result.findings.iter();
        assert_eq!(
            found.map(|it| &*it.kind).collect::<Vec<_>>(),
            [kinds::CLOCK_CAN_BE_SET.id]
        );
    }
}
