//! What limits the process from outside: its control groups, as in a container, and its own limits.

use super::{Assessment, Facts, ToAssessment, Verdict, count};
use crate::host::cgroup::Known;
use crate::host::limits::{ADDRESS_SPACE, CPU_TIME, FILE_SIZE, OPEN_FILES, PROCESSES, UlimitKind};
use crate::host::memory_lock::{Limit, in_units};

/// Threads that a run starts, at least.
const THREADS: u64 = 8;
/// Files that a run has open, at least.
const FILES: u64 = 32;

/// Where no limit of control groups shows.
fn unlimited<T>(known: &Known<T>) -> Assessment {
    match &known.unknown {
        None => "none".good(),
        Some(reason) => format!("unknown: {reason}").advise(
            "look at the limits of the container from outside; where this is none, mount /proc and the control groups",
        ),
    }
}

/// What is added to a limit that shows, where tighter ones may not.
fn and_unknown<T>(known: &Known<T>) -> String {
    let reason = known.unknown.as_ref();
    reason.map_or_else(String::new, |reason| format!("; {reason}"))
}

pub(super) fn cpu_quota(facts: &Facts) -> Assessment {
    let known = &facts.fingerprint.limits.cpu_quotas;
    let Some(quotas) = &known.limit else {
        return unlimited(known);
    };
    let least = quotas.first()?;
    let milliseconds = |us: u64| us as f64 / 1e3;
    let found = format!(
        "{} CPUs ({} of each {} ms), {}{}",
        (least.cpus * 100.0).round() / 100.0,
        milliseconds(least.quota_us),
        milliseconds(least.period_us),
        least.file.display(),
        and_unknown(known)
    );
    let all = facts.topology.allowed().len();
    if facts.needs.realtime {
        // It is a limit of the scheduler for ordinary threads; the one for these is in `realtime_throttling`.
        return format!("{found}; threads with --priority do not have it").good();
    }
    let busy = facts.needs.cpus.min(all);
    let cpus = count(busy, "CPU");
    let (busy, all) = (busy as f64, all as f64);
    if least.cpus >= all {
        return found.good();
    }
    // Each group has to be widened that is too tight.
    let needed = if least.cpus < busy { busy } else { all };
    let tight = quotas.iter().filter(|quota| quota.cpus < needed);
    let commands = tight.map(|quota| {
        let is_version_2 = quota.file.ends_with("cpu.max");
        let without = if is_version_2 { "max" } else { "-1" };
        format!("echo {without} > {}", quota.file.display())
    });
    let commands = commands.collect::<Vec<_>>().join(" && ");
    let how = format!(
        "lift it (Docker --cpus, Kubernetes limits.cpu, systemd CPUQuota=), or as root: {commands}"
    );
    if least.cpus < busy {
        found.spoils(format!(
            "threads keep {cpus} busy and are stopped until the period is over, which the figures contain; {how}"
        ))
    } else {
        found.advise(format!(
            "all threads are stopped until the period is over where the processes of the group use it up; {how}"
        ))
    }
}

pub(super) fn cpuset(facts: &Facts) -> Assessment {
    let known = &facts.fingerprint.limits.cpuset;
    let Some(set) = &known.limit else {
        return unlimited(known);
    };
    let topology = &facts.topology;
    let within = topology.select(|cpu| set.cpus.contains(cpu.id));
    let all = topology.cpus.len();
    if within.len() >= all {
        return format!("all of {}", count(all, "CPU")).good();
    }
    let file = set.file.display();
    let found = format!("{within} of {}, {file}", count(all, "CPU"));
    let cores = topology.cores();
    let cores = cores.iter().filter(|core| !core.is_disjoint(&within));
    if cores.count() < facts.needs.cores {
        return found.spoils(format!(
            "a run needs {} at least: widen it (Docker --cpuset-cpus, systemd AllowedCPUs=, or as root the file)",
            count(facts.needs.cores, "core")
        ));
    }
    found.good()
}

pub(super) fn memory(facts: &Facts) -> Assessment {
    let known = &facts.fingerprint.limits.memory;
    let Some(limit) = &known.limit else {
        return unlimited(known);
    };
    let needed = facts.needs.locked_bytes;
    let (most, free) = (in_units(limit.limit), in_units(limit.free));
    let (file, unknown) = (limit.file.display(), and_unknown(known));
    let found = format!("{most}, {free} free, {file}{unknown}");
    if limit.free >= needed {
        return found.good();
    }
    found.spoils(format!(
        "a run locks {}, and the kernel ends processes of a group that takes more than it may: raise it (Docker \
         --memory, Kubernetes limits.memory, systemd MemoryMax=, or as root the file)",
        in_units(needed)
    ))
}

pub(super) fn pids(facts: &Facts) -> Assessment {
    let known = &facts.fingerprint.limits.pids;
    let Some(limit) = &known.limit else {
        return unlimited(known);
    };
    let (file, free, unknown) = (limit.file.display(), limit.free, and_unknown(known));
    let found = format!("{} threads, {free} free, {file}{unknown}", limit.limit);
    if free >= THREADS {
        return found.good();
    }
    found.spoils(format!(
        "a run starts {THREADS} threads or more: raise it (Docker --pids-limit, systemd TasksMax=, or as root the file)"
    ))
}

/// None where the kernel does not report them.
pub(super) fn ulimits(facts: &Facts) -> Assessment {
    let limits = facts.fingerprint.limits.ulimits.as_ref()?;
    let mut shown = Vec::new();
    let mut worst = Verdict::Good;
    let mut advice = Vec::new();
    for (kind, limit) in limits.in_force() {
        let is_bytes = [ADDRESS_SPACE, FILE_SIZE].contains(&kind) || kind.name.ends_with("_size");
        let soft = match is_bytes {
            true => limit.soft.to_string(),
            false => limit.soft.0.to_string(),
        };
        shown.push(format!(
            "{} {soft} (-{})",
            kind.name.replace('_', " "),
            kind.option
        ));
        let Some((verdict, told)) = judged(facts, kind, limit.soft) else {
            continue;
        };
        worst = worst.max(verdict);
        advice.push(told);
    }
    let found = match shown.as_slice() {
        [] => "none".to_owned(),
        some => some.join(", "),
    };
    match (worst, advice.join("; ")) {
        (Verdict::Good, _) => found.good(),
        (Verdict::Advice, advice) => found.advise(advice),
        (Verdict::Spoils, advice) => found.spoils(advice),
    }
}

/// What is wrong with a limit that is in force, and what to do.
fn judged(facts: &Facts, kind: UlimitKind, limit: Limit) -> Option<(Verdict, String)> {
    let address_space = facts.needs.locked_bytes;
    let (needed, argument) = match kind {
        ADDRESS_SPACE => (address_space, address_space.div_ceil(1024)),
        OPEN_FILES => (FILES, FILES),
        PROCESSES => (THREADS, THREADS),
        CPU_TIME => {
            let told = "the kernel ends a run that takes more CPU time: ulimit -t unlimited";
            return Some((Verdict::Advice, told.to_owned()));
        }
        FILE_SIZE => {
            let told = "a run ends at a larger file: ulimit -f unlimited";
            return Some((Verdict::Advice, told.to_owned()));
        }
        _ => return None,
    };
    let (name, option) = (kind.name.replace('_', " "), kind.option);
    (!limit.permits(needed)).then(|| {
        let told = format!("a run needs more {name}: ulimit -{option} {argument} or more");
        (Verdict::Spoils, told)
    })
}
