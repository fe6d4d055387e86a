//! Tests of the checks on made-up machines.

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

/// Asserts that only the check `id` has something to say, what its verdict is, and that its advice holds `words`.
#[track_caller]
fn only(readiness: &Readiness, id: &str, verdict: Verdict, words: &[&str]) {
    let others: Vec<_> = readiness
        .checks
        .iter()
        .filter(|it| it.verdict != Verdict::Good && it.id != id)
        .collect();
    assert!(others.is_empty(), "{others:#?}");
    let check = check(readiness, id);
    assert_eq!(check.verdict, verdict, "{check:?}");
    for word in words {
        assert!(
            check.advice.as_ref().unwrap().contains(word),
            "{word:?} in {check:?}"
        );
    }
    assert_eq!(readiness.ready, verdict != Verdict::Spoils);
}

#[test]
fn the_best_machine_is_good_in_everything() {
    let readiness = assess(&best());
    assert!(readiness.ready);
    assert_eq!(readiness.checks.len(), 18);
    for check in &readiness.checks {
        assert_eq!(
            (check.verdict, &check.advice),
            (Verdict::Good, &None),
            "{check:?}"
        );
    }
    assert_eq!(
        check(&readiness, "rdma_devices").found,
        "mlx5_0 on node 0 (4 cores), mlx5_1 on node 1 (4 cores)"
    );
}

#[test]
fn too_few_cores() {
    let machine = best();
    let mut facts = facts(&machine, &metal());
    for cpu in &mut facts.topology.cpus {
        cpu.allowed = cpu.id == 3;
    }
    let readiness = Readiness::from_facts(facts);
    assert_eq!(check(&readiness, "cores").verdict, Verdict::Spoils);
    assert_eq!(
        check(&readiness, "cores").found,
        "1 physical core, 1 CPU; 8 cores in the machine"
    );
    assert!(
        check(&readiness, "cores")
            .advice
            .as_ref()
            .unwrap()
            .contains("taskset")
    );

    // Two threads of one core are not two cores.
    let small = Machine::new(1, 1, 2);
    assert_eq!(check(&assess(&small), "cores").verdict, Verdict::Spoils);
    let two = Machine::new(1, 2, 1);
    assert_eq!(check(&assess(&two), "cores").verdict, Verdict::Advice);
}

#[test]
fn isolation_names_the_parameters() {
    let machine = best();
    machine.isolate("");
    only(
        &assess(&machine),
        "isolated_cpus",
        Verdict::Advice,
        &["isolcpus=managed_irq,domain,5-7 nohz_full=5-7 rcu_nocbs=5-7"],
    );
    let machine = best();
    machine.file("sys/devices/system/cpu/nohz_full", "6-7");
    let readiness = assess(&machine);
    only(
        &readiness,
        "isolated_cpus",
        Verdict::Advice,
        &["nohz_full=2-3,6-7"],
    );
    assert!(
        check(&readiness, "isolated_cpus")
            .found
            .ends_with("tick on 2-3")
    );

    // Both threads of a core, and never that of CPU 0.
    let readiness = assess(&Machine::new(1, 3, 2));
    assert!(
        check(&readiness, "isolated_cpus")
            .advice
            .as_ref()
            .unwrap()
            .contains("isolcpus=managed_irq,domain,1-2,4-5 ")
    );
    let readiness = assess(&Machine::new(1, 2, 1));
    assert!(
        !check(&readiness, "isolated_cpus")
            .advice
            .as_ref()
            .unwrap()
            .contains("isolcpus")
    );
}

#[test]
fn powersave_spoils_only_where_it_means_the_lowest_frequency() {
    let machine = best();
    let governor = "sys/devices/system/cpu/cpu3/cpufreq/scaling_governor";
    machine.file(governor, "powersave");
    only(
        &assess(&machine),
        "governor",
        Verdict::Advice,
        &["cpupower frequency-set -g performance"],
    );
    for cpu in 0..8 {
        machine.file(
            &format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_driver"),
            "acpi-cpufreq",
        );
    }
    let readiness = assess(&machine);
    only(
        &readiness,
        "governor",
        Verdict::Spoils,
        &["lowest frequency"],
    );
    assert_eq!(
        check(&readiness, "governor").found,
        "performance, powersave (acpi-cpufreq)"
    );
    machine.file(governor, "schedutil");
    only(
        &assess(&machine),
        "governor",
        Verdict::Advice,
        &["cpupower"],
    );
}

#[test]
fn idle_states_count_only_where_enabled() {
    let machine = best();
    idle_state(&machine, 5, 2, "C6", 133, 0);
    let readiness = assess(&machine);
    only(
        &readiness,
        "idle_states",
        Verdict::Advice,
        &["cpupower idle-set -D 10"],
    );
    assert_eq!(
        check(&readiness, "idle_states").found,
        "deepest is C6, 133 us to leave"
    );
}

#[test]
fn siblings_are_advised_against() {
    let readiness = assess(&Machine::new(1, 4, 2));
    assert_eq!(check(&readiness, "smt").verdict, Verdict::Advice);
}

#[test]
fn a_device_far_from_what_we_may_use() {
    let machine = best();
    let mut facts = facts(&machine, &metal());
    for cpu in &mut facts.topology.cpus {
        cpu.allowed = cpu.id < 4;
    }
    only(
        &Readiness::from_facts(facts),
        "rdma_devices",
        Verdict::Advice,
        &["CPUs of node 1"],
    );

    let machine = best();
    machine
        .file("sys/class/infiniband/mlx5_0/device/numa_node", "-1")
        .without("sys/class/infiniband/mlx5_1/device");
    assert_eq!(
        check(&assess(&machine), "rdma_devices").found,
        "mlx5_0 on no known node, mlx5_1 on no known node"
    );
    machine.without("sys/class/infiniband");
    only(
        &assess(&machine),
        "rdma_devices",
        Verdict::Advice,
        &["ci/hcabench"],
    );
}

#[test]
fn clock_sources_that_cost_a_system_call_spoil() {
    let machine = best();
    let source = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    for (name, verdict) in [
        ("hpet", Verdict::Spoils),
        ("acpi_pm", Verdict::Spoils),
        ("kvm-clock", Verdict::Advice),
    ] {
        machine.file(source, name);
        only(
            &assess(&machine),
            "clock_source",
            verdict,
            &["clocksource=tsc"],
        );
    }
    machine.file(source, "arch_sys_counter");
    assert_eq!(
        check(&assess(&machine), "clock_source").verdict,
        Verdict::Good
    );
}

#[test]
fn a_tsc_that_may_stop() {
    let machine = best();
    machine.file("proc/cpuinfo", "flags\t: fpu tsc constant_tsc");
    let readiness = assess(&machine);
    only(&readiness, "tsc", Verdict::Advice, &["--clock tsc"]);
    assert_eq!(check(&readiness, "tsc").found, "not nonstop");
    // No TSC at all, no check.
    machine.file("proc/cpuinfo", "Features\t: fp asimd");
    let none = Readiness::from_facts(facts(&machine, &Cpuid::default()));
    assert!(none.checks.iter().all(|check| check.id != "tsc"));
}

#[test]
fn memory_that_cannot_be_had() {
    let machine = best();
    machine.huge_pages(10, 6, 1);
    only(
        &assess(&machine),
        "huge_pages",
        Verdict::Advice,
        &["vm.nr_hugepages=13"],
    );

    let machine = best();
    let mut facts = facts(&machine, &metal());
    facts.memory_lock.soft = Limit::Bytes(8 * MEBIBYTE);
    let readiness = Readiness::from_facts(facts);
    only(&readiness, "memlock", Verdict::Spoils, &["ulimit -l 17408"]);
    assert_eq!(check(&readiness, "memlock").found, "8 MiB, 17 MiB needed");
}

#[test]
fn what_the_kernel_does_to_memory() {
    let machine = best();
    machine.file(
        "sys/kernel/mm/transparent_hugepage/enabled",
        "[always] madvise never",
    );
    only(
        &assess(&machine),
        "transparent_huge_pages",
        Verdict::Advice,
        &["echo madvise"],
    );
    let machine = best();
    machine.file("proc/sys/kernel/numa_balancing", "1");
    only(
        &assess(&machine),
        "numa_balancing",
        Verdict::Advice,
        &["kernel.numa_balancing=0"],
    );
    let machine = best();
    machine.file("proc/meminfo", "SwapTotal: 2048 kB\nSwapFree: 1024 kB");
    let readiness = assess(&machine);
    only(&readiness, "swap", Verdict::Advice, &["swapoff -a"]);
    assert_eq!(check(&readiness, "swap").found, "1 MiB of 2 MiB used");
    machine.file("proc/meminfo", "SwapTotal: 2048 kB\nSwapFree: 2048 kB");
    assert_eq!(check(&assess(&machine), "swap").verdict, Verdict::Good);
}

#[test]
fn a_guest_is_advice_and_emulation_spoils() {
    let guest = |hypervisor: &str, emulated| Cpuid {
        hypervisor_present: Some(true),
        hypervisor: Some(hypervisor.to_owned()),
        emulated: Some(emulated),
        ..metal()
    };
    let readiness = Readiness::from_facts(facts(&best(), &guest("KVM", false)));
    only(
        &readiness,
        "virtualisation",
        Verdict::Advice,
        &["pin each virtual CPU"],
    );
    let readiness = Readiness::from_facts(facts(&best(), &guest("QEMU TCG", true)));
    only(
        &readiness,
        "virtualisation",
        Verdict::Spoils,
        &["say nothing of hardware"],
    );
}

#[test]
fn load_matters_where_nothing_is_isolated() {
    let machine = best();
    machine.file("proc/loadavg", "9.00 1.00 0.50 9/200 4000");
    assert_eq!(check(&assess(&machine), "load").verdict, Verdict::Good);
    machine.isolate("");
    assert_eq!(check(&assess(&machine), "load").verdict, Verdict::Spoils);
    machine.file("proc/loadavg", "9.00 1.00 0.50 1/200 4000");
    let ended = assess(&machine);
    assert_eq!(check(&ended, "load").verdict, Verdict::Advice);
    assert_eq!(
        check(&ended, "load").found,
        "9.00 over the last minute, now 0, 8 CPUs"
    );
    machine.file("proc/loadavg", "0.70 1.00 0.50 9/200 4000");
    assert_eq!(check(&assess(&machine), "load").verdict, Verdict::Advice);
}

#[test]
fn daemons_and_throttling() {
    let machine = best();
    machine.file("proc/812/comm", "irqbalance");
    only(
        &assess(&machine),
        "irqbalance",
        Verdict::Advice,
        &["systemctl stop irqbalance"],
    );
    let machine = best();
    machine.file("proc/sys/kernel/sched_rt_runtime_us", "950000");
    let readiness = assess(&machine);
    only(
        &readiness,
        "realtime_throttling",
        Verdict::Advice,
        &["50 ms each 1000 ms"],
    );
    assert_eq!(
        check(&readiness, "realtime_throttling").found,
        "950 of each 1000 ms"
    );
}

#[test]
fn a_machine_that_tells_nothing_is_assessed_all_the_same() {
    let readiness = Readiness::from_facts(facts(&Machine::new(1, 1, 1), &Cpuid::default()));
    assert_eq!(check(&readiness, "cores").verdict, Verdict::Spoils);
    assert_eq!(
        check(&readiness, "clock_source").found,
        "the kernel does not tell"
    );
}

#[test]
fn this_machine_can_be_assessed() {
    let readiness = Readiness::assess(Needs::of_a_default_run()).unwrap();
    assert_eq!(
        readiness.ready,
        readiness.with(Verdict::Spoils).next().is_none()
    );
    assert!(
        readiness
            .with(Verdict::Good)
            .all(|check| check.advice.is_none())
    );
}

#[test]
fn virtual_machines_beside_are_advised_against() {
    let machine = best();
    machine
        .file("proc/71/comm", "qemu-system-x86")
        .file("proc/72/comm", "qemu-system-x86");
    let readiness = assess(&machine);
    only(
        &readiness,
        "virtual_machines",
        Verdict::Advice,
        &["stop them"],
    );
    assert_eq!(
        check(&readiness, "virtual_machines").found,
        "2 qemu-system-x86"
    );
}
