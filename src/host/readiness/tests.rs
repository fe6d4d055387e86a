//! Tests of the checks on made-up machines.

use super::Verdict::{Advice, Good, Spoils};
use super::*;
use crate::host::fingerprint::Cpuid;
use crate::host::made_up::Machine;
use crate::host::memory_lock::Limit;

const MEBIBYTE: u64 = 1 << 20;

/// A machine on which nothing is left to advise.
fn best() -> Machine {
    let machine = Machine::new(2, 4, 1);
    machine
        .isolate("2-3,6-7")
        .file("sys/devices/system/cpu/nohz_full", "2-3,6-7")
        .file(
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            "tsc",
        )
        .file("proc/cpuinfo", "flags\t: fpu tsc constant_tsc nonstop_tsc")
        .file("proc/loadavg", "0.02 0.03 0.01 1/200 4000")
        .file(
            "proc/meminfo",
            "MemTotal: 100 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB",
        )
        .file("proc/sys/kernel/numa_balancing", "0")
        .file("proc/sys/kernel/sched_rt_runtime_us", "-1")
        .file("proc/sys/kernel/sched_rt_period_us", "1000000")
        .file(
            "sys/kernel/mm/transparent_hugepage/enabled",
            "always [madvise] never",
        )
        .file("proc/1/comm", "systemd")
        .file("sys/class/infiniband/mlx5_0/device/numa_node", "0")
        .file("sys/class/infiniband/mlx5_1/device/numa_node", "1")
        .huge_pages(64, 64, 0);
    for cpu in 0..8 {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}");
        machine
            .file(&format!("{folder}/cpufreq/scaling_governor"), "performance")
            .file(&format!("{folder}/cpufreq/scaling_driver"), "intel_pstate");
        idle_state(&machine, cpu, 1, "C1", 2, 0);
        idle_state(&machine, cpu, 2, "C6", 133, 1);
    }
    machine
}

fn idle_state(
    machine: &Machine,
    cpu: usize,
    number: usize,
    name: &str,
    latency: u32,
    disable: u32,
) {
    let folder = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{number}");
    machine
        .file(&format!("{folder}/name"), name)
        .file(&format!("{folder}/latency"), &latency.to_string())
        .file(&format!("{folder}/disable"), &disable.to_string());
}

fn facts(machine: &Machine, cpuid: &Cpuid) -> Facts {
    let files = SystemFiles::below(machine.root());
    let memory_lock = MemoryLock {
        soft: Limit::Unlimited,
        hard: Limit::Unlimited,
        above_limit: false,
    };
    Facts {
        topology: machine.topology(),
        fingerprint: Fingerprint::from_files(&files, cpuid, Some(memory_lock)),
        files,
        memory_lock,
        needs: Needs {
            cores: 2,
            better_cores: 3,
            huge_pages: 8,
            locked_bytes: 17 * MEBIBYTE,
        },
    }
}

fn metal() -> Cpuid {
    Cpuid {
        invariant_tsc: Some(true),
        hypervisor_present: Some(false),
        hypervisor: None,
        emulated: Some(false),
    }
}

fn assess(machine: &Machine) -> Readiness {
    Readiness::from_facts(facts(machine, &metal()))
}

fn check<'a>(readiness: &'a Readiness, id: &str) -> &'a Check {
    readiness
        .checks
        .iter()
        .find(|check| check.id == id)
        .unwrap_or_else(|| panic!("no check {id}"))
}

/// A machine on which one thing was changed, and what is said then: the id of the check, its verdict, a part of its
/// advice, and how the machine was found (not looked at where empty).
type Case<'a> = (&'a dyn Fn(&Machine), &'a str, Verdict, &'a str, &'a str);

/// Puts a text into a file.
fn file(path: &'static str, text: &'static str) -> impl Fn(&Machine) {
    move |machine| {
        machine.file(path, text);
    }
}

/// Asserts what each case says, and that no other check has anything to say.
#[track_caller]
fn only(cases: &[Case<'_>]) {
    for (change, id, verdict, advice, found) in cases {
        let machine = best();
        change(&machine);
        said_only(&assess(&machine), (id, *verdict, advice, found));
    }
}

#[track_caller]
fn said_only(readiness: &Readiness, (id, verdict, advice, found): (&str, Verdict, &str, &str)) {
    let others = readiness.checks.iter();
    let others: Vec<_> = others
        .filter(|it| it.verdict != Verdict::Good && it.id != id)
        .collect();
    assert!(others.is_empty(), "{others:#?}");
    said(readiness, (id, verdict, advice, found));
    assert_eq!(readiness.ready, verdict != Verdict::Spoils);
}

/// Asserts what a check says, whatever the others do.
#[track_caller]
fn said(readiness: &Readiness, (id, verdict, advice, found): (&str, Verdict, &str, &str)) {
    let check = check(readiness, id);
    assert_eq!(check.verdict, verdict, "{check:?}");
    let told = check.advice.as_deref().unwrap_or_default();
    assert!(told.contains(advice), "{advice:?} in {check:?}");
    assert!(found.is_empty() || check.found == found, "{check:?}");
}

#[test]
fn the_best_machine_is_good_in_everything() {
    let readiness = assess(&best());
    assert!(readiness.ready);
    assert_eq!(readiness.checks.len(), 18);
    for check in &readiness.checks {
        assert_eq!((check.verdict, &check.advice), (Good, &None), "{check:?}");
    }
    assert_eq!(
        check(&readiness, "rdma_devices").found,
        "mlx5_0 on node 0 (4 cores), mlx5_1 on node 1 (4 cores)"
    );
}

/// The best machine, of which this process may use some CPUs only.
fn confined(allowed: impl Fn(usize) -> bool) -> Readiness {
    let machine = best();
    let mut facts = facts(&machine, &metal());
    for cpu in &mut facts.topology.cpus {
        cpu.allowed = allowed(cpu.id);
    }
    Readiness::from_facts(facts)
}

#[test]
fn too_few_cores() {
    let found = "1 physical core, 1 CPU; 8 cores in the machine";
    said(
        &confined(|cpu| cpu == 3),
        ("cores", Spoils, "taskset", found),
    );
    // Two threads of one core are not two cores.
    let small = assess(&Machine::new(1, 1, 2));
    said(&small, ("cores", Spoils, "more cores", ""));
    let two = assess(&Machine::new(1, 2, 1));
    said(&two, ("cores", Advice, "polls for completions itself", ""));
    said(&assess(&Machine::new(1, 4, 2)), ("smt", Advice, "", ""));
    let far = ("rdma_devices", Advice, "CPUs of node 1", "");
    said_only(&confined(|cpu| cpu < 4), far);
}

#[test]
fn isolation_names_the_parameters() {
    let all = "isolcpus=managed_irq,domain,5-7 nohz_full=5-7 rcu_nocbs=5-7";
    let ticking = "2-3,6-7, with the scheduler's tick on 2-3";
    let none = file("sys/devices/system/cpu/isolated", "");
    let tick = file("sys/devices/system/cpu/nohz_full", "6-7");
    only(&[
        (&none, "isolated_cpus", Advice, all, "none"),
        (&tick, "isolated_cpus", Advice, "nohz_full=2-3,6-7", ticking),
    ]);
    // Both threads of a core, and never that of CPU 0.
    let threads = "isolcpus=managed_irq,domain,1-2,4-5 ";
    let readiness = assess(&Machine::new(1, 3, 2));
    said(&readiness, ("isolated_cpus", Advice, threads, ""));
    let none = assess(&Machine::new(1, 2, 1));
    said(
        &none,
        ("isolated_cpus", Advice, "with three cores or more", ""),
    );
}

#[test]
fn powersave_spoils_only_where_it_means_the_lowest_frequency() {
    let governor = |machine: &Machine, name: &str| {
        machine.file("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", name);
    };
    let acpi = |machine: &Machine| {
        for cpu in 0..8 {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq");
            machine.file(&format!("{folder}/scaling_driver"), "acpi-cpufreq");
        }
    };
    let lowest = |it: &Machine| {
        governor(it, "powersave");
        acpi(it);
    };
    let scheduled = |it: &Machine| {
        governor(it, "schedutil");
        acpi(it);
    };
    let command = "cpupower frequency-set -g performance";
    let found = "performance, powersave (acpi-cpufreq)";
    only(&[
        (
            &|it| governor(it, "powersave"),
            "governor",
            Advice,
            command,
            "",
        ),
        (&lowest, "governor", Spoils, "lowest frequency", found),
        (&scheduled, "governor", Advice, "cpupower", ""),
    ]);
}

#[test]
fn one_thing_that_is_not_as_it_should_be() {
    const SOURCE: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    const THROTTLING: &str = "proc/sys/kernel/sched_rt_runtime_us";
    const HUGE: &str = "sys/kernel/mm/transparent_hugepage/enabled";
    const SWAP: &str = "SwapTotal: 2048 kB\nSwapFree: 1024 kB";
    let two = |it: &Machine| {
        it.file("proc/71/comm", "qemu-system-x86");
        it.file("proc/72/comm", "qemu-system-x86");
    };
    // Idle states count only where they are enabled.
    let deep = |it: &Machine| idle_state(it, 5, 2, "C6", 133, 0);
    let deepest = "deepest is C6, 133 us to leave";
    let no_devices = |it: &Machine| {
        it.without("sys/class/infiniband");
    };
    let few_pages = |it: &Machine| {
        it.huge_pages(10, 6, 1);
    };
    let half = file("proc/cpuinfo", "flags\t: fpu tsc constant_tsc");
    let balancing = file("proc/sys/kernel/numa_balancing", "1");
    only(&[
        (
            &deep,
            "idle_states",
            Advice,
            "cpupower idle-set -D 10",
            deepest,
        ),
        (&no_devices, "rdma_devices", Advice, "ci/hcabench", "none"),
        (
            &file(SOURCE, "hpet"),
            "clock_source",
            Spoils,
            "clocksource=tsc",
            "",
        ),
        (
            &file(SOURCE, "acpi_pm"),
            "clock_source",
            Spoils,
            "clocksource=tsc",
            "",
        ),
        (
            &file(SOURCE, "kvm-clock"),
            "clock_source",
            Advice,
            "clocksource=tsc",
            "",
        ),
        (
            &file(SOURCE, "arch_sys_counter"),
            "clock_source",
            Good,
            "",
            "",
        ),
        (&half, "tsc", Advice, "--clock tsc", "not nonstop"),
        (&few_pages, "huge_pages", Advice, "vm.nr_hugepages=13", ""),
        (
            &file(HUGE, "[always] never"),
            "transparent_huge_pages",
            Advice,
            "echo madvise",
            "",
        ),
        (
            &balancing,
            "numa_balancing",
            Advice,
            "kernel.numa_balancing=0",
            "",
        ),
        (
            &file("proc/meminfo", SWAP),
            "swap",
            Advice,
            "swapoff -a",
            "1 MiB of 2 MiB used",
        ),
        (
            &file("proc/812/comm", "irqbalance"),
            "irqbalance",
            Advice,
            "systemctl stop irqbalance",
            "",
        ),
        (
            &file(THROTTLING, "950000"),
            "realtime_throttling",
            Advice,
            "50 ms each 1000 ms",
            "950 of each 1000 ms",
        ),
        (
            &two,
            "virtual_machines",
            Advice,
            "stop them",
            "2 qemu-system-x86",
        ),
    ]);
}

#[test]
fn what_is_there_and_unused_or_not_known_is_good() {
    let machine = best();
    machine
        .file("proc/meminfo", "SwapTotal: 2048 kB\nSwapFree: 2048 kB")
        .file("sys/class/infiniband/mlx5_0/device/numa_node", "-1")
        .without("sys/class/infiniband/mlx5_1/device");
    let readiness = assess(&machine);
    assert_eq!(check(&readiness, "swap").verdict, Good);
    assert_eq!(
        check(&readiness, "rdma_devices").found,
        "mlx5_0 on no known node, mlx5_1 on no known node"
    );
    // No TSC at all, no check.
    machine.file("proc/cpuinfo", "Features\t: fp asimd");
    let none = Readiness::from_facts(facts(&machine, &Cpuid::default()));
    assert!(none.checks.iter().all(|check| check.id != "tsc"));
}

#[test]
fn memory_that_cannot_be_locked() {
    let machine = best();
    let mut facts = facts(&machine, &metal());
    facts.memory_lock.soft = Limit::Bytes(8 * MEBIBYTE);
    let found = "8 MiB, 17 MiB needed";
    let told = ("memlock", Spoils, "ulimit -l 17408", found);
    said_only(&Readiness::from_facts(facts), told);
}

#[test]
fn a_guest_is_advice_and_emulation_spoils() {
    for (hypervisor, emulated, verdict, advice) in [
        ("KVM", false, Advice, "pin each virtual CPU"),
        ("QEMU TCG", true, Spoils, "say nothing of hardware"),
    ] {
        let cpuid = Cpuid {
            hypervisor_present: Some(true),
            hypervisor: Some(hypervisor.to_owned()),
            emulated: Some(emulated),
            ..metal()
        };
        let readiness = Readiness::from_facts(facts(&best(), &cpuid));
        said_only(&readiness, ("virtualisation", verdict, advice, ""));
    }
}

#[test]
fn load_matters_where_nothing_is_isolated() {
    let ended = "9.00 over the last minute, now 0, 8 CPUs";
    for (load, isolated, verdict, found) in [
        ("9.00 1.00 0.50 9/200 4000", true, Good, ""),
        ("9.00 1.00 0.50 9/200 4000", false, Spoils, ""),
        ("9.00 1.00 0.50 1/200 4000", false, Advice, ended),
        ("0.70 1.00 0.50 9/200 4000", false, Advice, ""),
    ] {
        let machine = best();
        machine.file("proc/loadavg", load);
        if !isolated {
            machine.isolate("");
        }
        said(&assess(&machine), ("load", verdict, "", found));
    }
}

#[test]
fn a_machine_that_tells_nothing_is_assessed_all_the_same() {
    let readiness = Readiness::from_facts(facts(&Machine::new(1, 1, 1), &Cpuid::default()));
    said(&readiness, ("cores", Spoils, "", ""));
    let told = "the kernel does not tell";
    said(&readiness, ("clock_source", Advice, "", told));
}

#[test]
fn this_machine_can_be_assessed() {
    let readiness = Readiness::assess(Needs::of_a_default_run()).unwrap();
    assert_eq!(readiness.ready, readiness.with(Spoils).next().is_none());
    let mut good = readiness.with(Good);
    assert!(good.all(|check| check.advice.is_none()));
}
