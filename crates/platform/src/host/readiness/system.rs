//! What else runs, below this kernel and beside this program.

use super::{Assessment, Facts, ToAssessment, count, unknown};

pub(super) fn virtualisation(facts: &Facts) -> Assessment {
    let found = &facts.fingerprint.virtualisation;
    let name = found.hypervisor.as_deref();
    let name = name.unwrap_or("an unknown hypervisor");
    match (found.guest, found.emulated) {
        (_, Some(true)) => format!("{name}, the processor is emulated in software")
            .spoils("figures test the tool and do not describe hardware: use KVM, or measure on the machine itself"),
        (Some(true), _) => format!("guest of {name}").advise(
            "the host may stop a CPU of the guest at any moment: measure on the machine itself, or pin each virtual \
             CPU to a separate core",
        ),
        (Some(false), _) => "none".good(),
        (None, _) => "none that shows".good(),
    }
}

/// None where no process shows.
pub(super) fn virtual_machines(facts: &Facts) -> Assessment {
    let running = facts.fingerprint.virtual_machines.as_ref()?;
    if running.is_empty() {
        return "none running here".good();
    }
    let found = running
        .iter()
        .map(|(name, number)| format!("{number} {name}"));
    Vec::from_iter(found).join(", ").advise(
        "they take CPU time, caches and memory bandwidth: stop them, or keep them off the measuring CPUs (virsh vcpupin, \
         taskset)",
    )
}

pub(super) fn load(facts: &Facts) -> Assessment {
    // Below half a thread, what runs is the odd daemon.
    const QUIET: f64 = 0.5;
    let Some(text) = facts.files.optional("proc/loadavg") else {
        return unknown("proc/loadavg");
    };
    let mut fields = text.split_whitespace();
    let load: f64 = fields.next()?.parse().ok()?;
    // Threads that run or want to at this moment, of which one is ours. The average alone would remember a build
    // that has ended.
    let running: usize = fields.nth(2)?.split_once('/')?.0.parse().ok()?;
    let others = running.saturating_sub(1);
    let cpus = facts.topology.cpus.len();
    let mut found = format!("{load:.2} over the last minute, now {others}");
    if cpus == 0 {
        // Whether that is all of them is unknown.
        return found.good();
    }
    found += &format!(", {}", count(cpus, "CPU"));
    let isolated = facts.topology.select(|cpu| cpu.isolated && cpu.allowed);
    let cores_apart = facts.topology.allowed_cores_with(&isolated);
    if load < QUIET || cores_apart >= facts.needs.cores {
        found.good()
    } else if load >= cpus as f64 && others >= cpus {
        found.spoils(
            "other programs take every CPU, and latencies hold their time slices: end them (top shows them)",
        )
    } else {
        found.advise("other programs run or have run: end them (top shows them), or isolate CPUs")
    }
}

pub(super) fn interrupts(facts: &Facts) -> Assessment {
    let processes: Vec<String> = facts.files.processes().collect();
    if processes.is_empty() {
        return unknown("proc");
    }
    if !processes.iter().any(|name| name == "irqbalance") {
        return "not running".good();
    }
    "running".advise(
        "it moves interrupts onto measuring CPUs: systemctl stop irqbalance, or name the CPUs it must leave alone in \
         IRQBALANCE_BANNED_CPULIST",
    )
}

/// None where the kernel has no such limit.
pub(super) fn realtime_throttling(facts: &Facts) -> Assessment {
    let runtime: i64 = facts.files.number("proc/sys/kernel/sched_rt_runtime_us")?;
    let period: i64 = facts.files.number("proc/sys/kernel/sched_rt_period_us")?;
    if runtime < 0 || runtime >= period {
        return "off".good();
    }
    let (runtime, period) = (runtime as f64 / 1e3, period as f64 / 1e3);
    let found = format!("{runtime} of each {period} ms");
    found.advise(format!(
        "with --priority, a thread that spins may be stopped for {} ms each {period} ms: \
         sysctl kernel.sched_rt_runtime_us=-1",
        period - runtime
    ))
}
