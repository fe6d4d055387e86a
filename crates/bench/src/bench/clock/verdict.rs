//! What a watch comes to, in two sentences: how much of the time was taken and the worst of it, and what took most of
//! it and can be done about that.

use crate::results::units;
use crate::sorting::sort_by_key;

use super::cause::Cause;
use super::config::{Causes, Config};
use super::result::{ClockResult, CpuResult};

/// Who takes the time, and what can be done about it; `None` if it is no stop.
fn remedy(cause: Cause, cpu: &CpuResult, config: &Config) -> Option<(&'static str, &'static str)> {
    let is_trace = config.causes == Causes::Trace;
    let told = match cause {
        Cause::Backward => return None,
        Cause::Smi => (
            "the firmware (SMIs)",
            "look in its setup for what it does in the background, or ask its maker",
        ),
        Cause::Throttled => (
            "throttling by a CPU quota",
            "lift the quota of the control group, which hcabench host --for clock names",
        ),
        Cause::InvoluntarySwitch | Cause::Thread(_) if config.priority.is_none() => (
            "other threads",
            "keep those named below off this CPU (cpuset, taskset, isolcpus=), or run with --priority",
        ),
        Cause::InvoluntarySwitch | Cause::Thread(_) => (
            "threads before a --priority",
            "raise it, and check kernel.sched_rt_runtime_us, which takes 5 % of each second by default",
        ),
        Cause::VoluntarySwitch => (
            "what stopped or blocked this process",
            "look for signals, debuggers and limits of its cgroup",
        ),
        Cause::MajorFault | Cause::MinorFault => (
            "page faults",
            "find what takes memory from this process (swap, compaction, NUMA balancing)",
        ),
        Cause::Interrupts(_) | Cause::Softirqs(_) => (
            "interrupts",
            "move them to other CPUs (/proc/irq/N/smp_affinity), and the timer's with nohz_full=",
        ),
        Cause::Steal => HYPERVISOR,
        Cause::Unexplained if is_trace => (
            "events without a tracepoint: page faults, NMIs, the firmware (SMIs) or a hypervisor",
            "compare with --causes counters, which counts page faults, steal time and, as root, SMIs",
        ),
        Cause::Unexplained if cpu.guest => (
            "what this kernel does not know of, likely the hypervisor",
            HYPERVISOR.1,
        ),
        Cause::Unexplained => (
            "what the kernel does not know of, likely the firmware (SMIs)",
            "run it as root, which may count SMIs",
        ),
        Cause::NotSampled if config.causes == Causes::Off => (
            "causes that were not read",
            "leave out --causes off to find out",
        ),
        Cause::RecordsLost => (
            "events whose records the trace lost",
            "leave a CPU that is not watched to the thread that reads them",
        ),
        Cause::NotSampled if is_trace && cpu.traced.is_none() => (
            "events hidden from the trace, as the clock was set back",
            "choose another --clock",
        ),
        Cause::NotSampled if is_trace => (
            "what was too short and too frequent to be kept",
            "raise --threshold, so that the stops that matter are kept",
        ),
        Cause::NotToldApart | Cause::NotWatched | Cause::NotSampled => (
            "events without a counter",
            "raise --threshold, so that counters are read behind the stops that matter",
        ),
    };
    Some(told)
}

const HYPERVISOR: (&str, &str) = (
    "the hypervisor",
    "pin each virtual CPU to a separate CPU of the host",
);

pub(super) fn of(result: &ClockResult, config: &Config) -> String {
    let share = |cpu: &&CpuResult| cpu.jumped().total as f64 / cpu.watched.elapsed().max(1) as f64;
    let Some(cpu) = result
        .cpus
        .iter()
        .max_by(|a, b| share(a).total_cmp(&share(b)))
    else {
        return String::new();
    };
    let length = |ticks: u64| units::duration(result.nanos_f64(ticks as f64));
    let name = match result.cpus.len() {
        1 => format!("CPU {}", cpu.cpu),
        cpus => format!("CPU {} of {cpus}", cpu.cpu),
    };
    let (taken, of) = (cpu.jumped(), length(cpu.watched.elapsed()));
    if taken.count == 0 {
        let limit = length(cpu.threshold);
        return format!(
            "{name} was never taken for longer than {limit} in {of}. There is nothing to change."
        );
    }
    let cause_of = |cause: Cause| cause.describe(&cpu.names);
    let jumps = cpu.watched.jumps.iter();
    let worst = jumps
        .filter(|jump| jump.cause != Cause::Backward)
        .max_by_key(|jump| jump.length);
    let worst = worst.map_or_else(String::new, |jump| format!(" ({})", cause_of(jump.cause)));
    let percent = share(&cpu) * 100.0;
    let first = format!(
        "{name} was taken for {percent:.3} % of {of}, for {} at the worst{worst}.",
        length(taken.largest)
    );
    // Who takes it, what to do about it, how long together, and the cause that took most.
    let mut kinds: Vec<(&str, &str, u64, Cause)> = Vec::new();
    let mut add = |cause: Cause, total: u64| {
        let told = remedy(cause, cpu, config);
        let Some((who, what)) = told else { return };
        match kinds.iter_mut().find(|kind| kind.0 == who) {
            Some(kind) => kind.2 += total,
            None => kinds.push((who, what, total, cause)),
        }
    };
    let ticks = |nanos: f64| (nanos / result.nanos_f64(1.0)) as u64;
    let mut causes = totals(cpu, ticks);
    // Threads under SCHED_FIFO have no quota.
    if config.priority.is_none() {
        let throttled = ticks(cpu.throttled.thread_ns as f64);
        let found = causes.iter().find(|(cause, _)| *cause == Cause::Throttled);
        let missing = throttled.saturating_sub(found.map_or(0, |it| it.1));
        add(Cause::Throttled, take_throttled(&mut causes, missing));
    }
    sort_by_key(&mut causes, |(_, total)| std::cmp::Reverse(*total));
    let of_others = |(cause, _): &&(Cause, u64)| *cause == Cause::InvoluntarySwitch;
    let told = causes.iter().find(of_others).map_or(0, |it| it.1);
    // What the thread waited is the scheduler's word: it is more than was found stop by stop, and missing elsewhere.
    let waited = cpu.waited.filter(|_| cpu.traced.is_none()).unwrap_or(0);
    let waited = waited.saturating_sub(cpu.throttled.thread_ns);
    let waited = ticks(waited as f64).min(taken.total);
    let mut hidden = waited.saturating_sub(told);
    if hidden > 0 {
        add(Cause::InvoluntarySwitch, hidden);
    }
    for (cause, total) in causes {
        let others = if cause.tells_nothing() {
            hidden.min(total)
        } else {
            0
        };
        hidden -= others;
        add(cause, total - others);
    }
    let Some((who, what, total, cause)) = kinds.into_iter().max_by_key(|kind| kind.2) else {
        return first;
    };
    let of_that = total as f64 / taken.total.max(1) as f64 * 100.0;
    let most = match cause {
        Cause::Interrupts(_) | Cause::Softirqs(_) | Cause::Thread(_) => {
            format!(", most of them {}", cause_of(cause))
        }
        Cause::Throttled => {
            let group = cpu.throttled.group;
            format!(
                ", in {} of {} periods of the group",
                group.throttled, group.periods
            )
        }
        _ => String::new(),
    };
    format!("{first} The main cause is {who}, {of_that:.0} % of that{most}: {what}.")
}

/// Takes time that a quota is known to have stopped the thread for out of causes that it can look like, first of those
/// that tell nothing; returns how much was found there.
fn take_throttled(causes: &mut [(Cause, u64)], missing: u64) -> u64 {
    let mut left = missing;
    let looks_like: [fn(Cause) -> bool; 2] = [Cause::tells_nothing, Cause::may_be_throttling];
    for looks_like in looks_like {
        for (_, total) in causes.iter_mut().filter(|(cause, _)| looks_like(*cause)) {
            let part = left.min(*total);
            (*total, left) = (*total - part, left - part);
        }
    }
    missing - left
}

/// How long each cause took, in ticks: exactly where it was traced, else by whole jumps, as those that were not kept.
fn totals(cpu: &CpuResult, ticks: impl Fn(f64) -> u64) -> Vec<(Cause, u64)> {
    let causes = cpu.watched.jumps.causes().iter();
    let causes = causes.map(|(cause, tally)| (*cause, tally.total));
    let Some(traced) = &cpu.traced else {
        return causes.collect();
    };
    let shares = traced.shares();
    let shares = shares.map(|(cause, nanos)| (cause, ticks(nanos as f64)));
    let jumps = cpu.watched.jumps.iter();
    let kept = jumps.filter(|jump| jump.cause == Cause::NotSampled);
    let kept: u64 = kept.map(|jump| jump.length).sum();
    let not_sampled = causes.filter(|(cause, _)| *cause == Cause::NotSampled);
    let not_kept = not_sampled.map(|(cause, total)| (cause, total - kept));
    shares.chain(not_kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::clock::conclude::conclude;
    use crate::bench::clock::config::Length;
    use crate::bench::clock::jump::Jump;
    use crate::bench::clock::result::CpuThrottling;
    use crate::bench::clock::watcher::{WatchResult, WatchTask};
    use crate::host::throttling::Throttling;
    use crate::testing::Has as _;
    use crate::time::{AnyClock, Posix};

    fn verdict(priority: Option<u8>, cpus: &[&[(Cause, u64)]]) -> String {
        having_waited(0, priority, cpus)
    }

    fn having_waited(waited: u64, priority: Option<u8>, cpus: &[&[(Cause, u64)]]) -> String {
        throttled(0, waited, priority, cpus)
    }

    fn throttled(
        thread_ns: u64,
        waited: u64,
        priority: Option<u8>,
        cpus: &[&[(Cause, u64)]],
    ) -> String {
        let cpus = cpus.iter().enumerate().map(|(cpu, jumps)| {
            let mut watched = WatchResult::nothing(&WatchTask::made_up(2000)).unwrap();
            watched.end = 1_000_000;
            for (at, &(cause, length)) in jumps.iter().enumerate() {
                let jump = Jump::new(at as u64 * 100_000, length, cause);
                watched.jumps.push(jump, None);
            }
            CpuResult {
                waited: Some(waited),
                throttled: CpuThrottling {
                    group: Throttling {
                        periods: 29,
                        throttled: 28,
                        throttled_ns: 2 * thread_ns,
                    },
                    thread_ns,
                },
                ..CpuResult::made_up(cpu, watched)
            }
        });
        let mut config = Config::made_up(&[], Length::Iterations(2000));
        config.priority = priority;
        let clock = AnyClock::Posix(Posix::MONOTONIC);
        conclude(
            &config,
            clock,
            Vec::new(),
            cpus.collect(),
            std::time::SystemTime::UNIX_EPOCH,
            None,
        )
        .verdict
    }

    #[test]
    fn under_a_trace_the_advice_is_what_helps_there() {
        let watched = WatchResult::nothing(&WatchTask::made_up(2000)).unwrap();
        let cpu = CpuResult::made_up(0, watched);
        let mut config = Config::made_up(&[], Length::Iterations(2000));
        config.causes = Causes::Trace;
        let advice = |cause: Cause| remedy(cause, &cpu, &config).unwrap().1;
        assert!(advice(Cause::Unexplained).contains("--causes counters"));
        // It could not be matched.
        assert_eq!(advice(Cause::NotSampled), "choose another --clock");
    }

    #[test]
    fn throttling_goes_before_threads_and_the_hypervisor() {
        let timer = Cause::Interrupts([Some(0), None, None, None]);
        let found = [(Cause::Throttled, 9_000), (Cause::InvoluntarySwitch, 2_000)];
        let told = throttled(9_000, 11_000, None, &[&found]);
        told.has(&[
            "at the worst (throttled by a CPU quota)",
            "main cause is throttling by a CPU quota, 82 % of that, in 28 of 29 periods of the group: lift the quota",
        ]);
        // By the counters of the whole watch alone, also where the scheduler counts it as waiting.
        for looks_like in [
            Cause::NotSampled,
            Cause::InvoluntarySwitch,
            Cause::Thread(0),
            Cause::Steal,
            Cause::Unexplained,
        ] {
            let told = throttled(9_000, 9_000, None, &[&[(looks_like, 10_000), (timer, 900)]]);
            told.has(&["throttling by a CPU quota, 83 % of that"]);
        }
        // Interrupts are none, and a thread under SCHED_FIFO has no quota.
        throttled(9_000, 0, None, &[&[(timer, 9_000)]]).has(&["is interrupts, 100 %"]);
        let told = throttled(9_000, 0, Some(50), &[&[(Cause::InvoluntarySwitch, 9_000)]]);
        told.has(&["threads before a --priority, 100 %"]);
        // Without it nothing is said of it.
        let told = verdict(None, &[&[(Cause::InvoluntarySwitch, 9_000)]]);
        assert!(!told.contains("quota"), "{told}");
    }

    #[test]
    fn tells_how_much_the_worst_the_main_cause_and_what_to_change() {
        let timer = Cause::Interrupts([Some(0), None, None, None]);
        let others = Cause::InvoluntarySwitch;
        // The worst need not be of the main cause, and steps of the clock count for nothing.
        let jumps = [
            (timer, 9_000),
            (others, 6_000),
            (others, 5_000),
            (Cause::Backward, 50_000),
        ];
        let told = verdict(None, &[&[], &jumps]);
        let expected = "CPU 1 of 2 was taken for 2.000 % of 1.00 ms, for 9.00 us at the worst (interrupt ?). The main \
                        cause is other threads, 55 % of that: keep";
        told.begins(expected);
        told.has(&["--priority"]);
        let told = verdict(Some(50), &[&jumps]);
        told.begins("CPU 0 was");
        told.has(&["sched_rt_runtime_us"]);
        let told = verdict(None, &[&[(timer, 700)]]);
        told.has(&["interrupts, 100 % of that, most of them interrupt ?: move"]);
        // The scheduler's word goes before events without a counter.
        let hidden = [(Cause::NotWatched, 8_000), (others, 1_000), (timer, 3_000)];
        having_waited(6_000, None, &[&hidden]).has(&["other threads, 50 % of that"]);
        let told = verdict(None, &[&[(Cause::Backward, 700)]]);
        let nothing =
            "CPU 0 was never taken for longer than 40 ns in 1.00 ms. There is nothing to change.";
        assert_eq!(told, nothing);
    }
}
