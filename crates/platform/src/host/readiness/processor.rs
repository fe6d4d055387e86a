//! Cores, their isolation, their threads and how fast they run.

use super::{Assessment, Facts, ToAssessment, count};
use crate::host::cpu_set::CpuSet;
use std::collections::BTreeSet;

const CPUS: &str = "sys/devices/system/cpu";

pub(super) fn cores(facts: &Facts) -> Assessment {
    let allowed = facts.topology.allowed_cores().len();
    let all = facts.topology.cores().len();
    let cpus = facts.topology.allowed().len();
    let cpus = count(cpus, "CPU");
    let mut found = format!("{}, {cpus}", count(allowed, "physical core"));
    if allowed < all {
        found += &format!("; {all} cores in the machine");
    }
    let elsewhere = if allowed < all {
        "widen what this process may use (taskset, cpuset)"
    } else {
        "use a machine with more cores"
    };
    if allowed < facts.needs.cores {
        found.spoils(format!(
            "sender and receiver would take turns or slow each other down on one core: {elsewhere}"
        ))
    } else if allowed < facts.needs.better_cores {
        found.advise(format!(
            "the sender polls for completions itself, and the rest of the process runs between the messages: {elsewhere}"
        ))
    } else {
        found.good()
    }
}

pub(super) fn isolation(facts: &Facts) -> Assessment {
    let topology = &facts.topology;
    let isolated = topology.select(|cpu| cpu.isolated && cpu.allowed);
    let ticking = topology.select(|cpu| cpu.isolated && cpu.allowed && !cpu.nohz_full);
    let isolated_cores = topology.allowed_cores_with(&isolated);
    let found = match (isolated.is_empty(), ticking.is_empty()) {
        (true, _) => "none".to_owned(),
        (false, true) => format!("{isolated}, without a tick"),
        (false, false) => format!("{isolated}, with the scheduler's tick on {ticking}"),
    };
    if isolated_cores >= facts.needs.cores && ticking.is_empty() {
        return found.good();
    }
    let chosen = if isolated_cores >= facts.needs.cores {
        isolated
    } else {
        worth_isolating(facts)
    };
    if chosen.is_empty() {
        return found.advise(
            "other threads run between the messages; with three cores or more, two could be isolated for the measurement",
        );
    }
    found.advise(format!(
        "keep other threads and the tick away: boot with isolcpus=managed_irq,domain,{chosen} nohz_full={chosen} \
         rcu_nocbs={chosen}"
    ))
}

/// The last cores, as many as a run can use, and never all or that of CPU 0; both threads of each.
fn worth_isolating(facts: &Facts) -> CpuSet {
    let cores: BTreeSet<CpuSet> = facts.topology.cores();
    if cores.len() < 3 {
        return CpuSet::new();
    }
    cores
        .iter()
        .rev()
        .filter(|core| !core.contains(0))
        .take(facts.needs.better_cores.min(cores.len() - 1))
        .flat_map(CpuSet::iter)
        .collect()
}

pub(super) fn smt(facts: &Facts) -> Assessment {
    if !facts.topology.has_smt() {
        return "off, one thread a core".good();
    }
    "on".advise(
        "what runs on the sibling of a measuring CPU slows it: echo off > /sys/devices/system/cpu/smt/control as root, \
         or boot with nosmt",
    )
}

pub(super) fn governor(facts: &Facts) -> Assessment {
    let governor_of = |cpu| {
        let file = format!("{CPUS}/cpu{cpu}/cpufreq/scaling_governor");
        facts.files.optional(&file)
    };
    let allowed = facts.topology.allowed();
    let governors: BTreeSet<String> = allowed.iter().filter_map(governor_of).collect();
    if governors.is_empty() {
        let found = match facts.fingerprint.virtualisation.guest {
            Some(true) => "none in this guest, the host decides",
            _ => "none, the kernel sets no frequency",
        };
        return found.good();
    }
    let driver = facts.fingerprint.processor.frequency_driver.as_deref();
    let names = Vec::from_iter(governors.iter().map(String::as_str)).join(", ");
    let found = driver.map_or(names.clone(), |driver| format!("{names} ({driver})"));
    let command = "cpupower frequency-set -g performance";
    // These drivers raise the frequency under load also with powersave; all others then keep to the lowest.
    let scales_by_itself =
        driver.is_some_and(|it| matches!(it, "intel_pstate" | "amd-pstate-epp" | "amd_pstate_epp"));
    if governors.iter().all(|governor| governor == "performance") {
        found.good()
    } else if governors.contains("powersave") && !scales_by_itself {
        found.spoils(format!(
            "cores are held at their lowest frequency: {command}"
        ))
    } else {
        found.advise(format!(
            "cores change their frequency during a measurement: {command}"
        ))
    }
}

pub(super) fn idle_states(facts: &Facts) -> Assessment {
    // cpupower disables states from a latency on: just above that of C1 on common processors.
    const LATENCY_US: u64 = 10;
    let allowed = facts.topology.allowed();
    let states = facts.fingerprint.idle.states.iter().flatten();
    let deepest = states
        .filter(|state| !(state.cpus.difference(&state.disabled_on)).is_disjoint(&allowed))
        .filter_map(|state| Some((state.latency_us?, &state.name)))
        .max();
    let Some((latency, name)) = deepest else {
        return "none known to the kernel".good();
    };
    let found = format!("deepest is {name}, {latency} us to leave");
    if latency < LATENCY_US {
        return found.good();
    }
    found.advise(format!(
        "a thread that sleeps (--poll event) wakes up late, and caches may be cold after a pause: \
         cpupower idle-set -D {LATENCY_US}"
    ))
}
