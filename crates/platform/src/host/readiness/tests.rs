//! Tests of the checks on made-up machines.

use super::Verdict::{Advice, Good, Spoils};
use super::*;
use crate::host::fingerprint::Cpuid;
use crate::host::made_up::Machine;
use crate::host::memory_lock::Limit;
use crate::time::GenericTimer;

const MEBIBYTE: u64 = 1 << 20;

/// The files of a machine on which nothing is left to advise, beside those of its CPUs.
const BEST: &str = r"
sys/devices/system/cpu/nohz_full: 2-3,6-7
sys/devices/system/clocksource/clocksource0/current_clocksource: tsc
proc/cpuinfo: flags\t: fpu tsc constant_tsc nonstop_tsc
proc/loadavg: 0.02 0.03 0.01 1/200 4000
proc/meminfo: MemTotal: 100 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB
proc/sys/kernel/numa_balancing: 0
proc/sys/kernel/sched_rt_runtime_us: -1
proc/sys/kernel/sched_rt_period_us: 1000000
sys/kernel/mm/transparent_hugepage/enabled: always [madvise] never
proc/1/comm: systemd
proc/self/limits: Max open files  1024  1048576  files
cgroup/box/cpu.max: max 100000
cgroup/box/cpuset.cpus.effective: 0-7
sys/class/infiniband/mlx5_0/device/numa_node: 0
sys/class/infiniband/mlx5_1/device/numa_node: 1";

fn best() -> Machine {
    let machine = Machine::new(2, 4, 1);
    machine
        .isolate("2-3,6-7")
        .huge_pages(64, 64, 0)
        .in_group("0::/box/inner", &[("/", "cgroup2", "rw")]);
    change(&machine, BEST);
    for cpu in 0..8 {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}");
        machine
            .file(&format!("{folder}/cpufreq/scaling_governor"), "performance")
            .file(&format!("{folder}/cpufreq/scaling_driver"), "intel_pstate")
            .idle_state(cpu, 1, "C1", 2, 0)
            .idle_state(cpu, 2, "C6", 133, 1);
    }
    machine
}

/// Writes files, given as lines of a path and a text.
fn change(machine: &Machine, files: &str) {
    let files = files.lines().filter_map(|line| line.split_once(": "));
    files.for_each(|(path, text)| {
        machine.file(path, &text.replace("\\n", "\n").replace("\\t", "\t"));
    });
}

fn facts(machine: &Machine, cpuid: &Cpuid) -> Facts {
    let files = SystemFiles::below(machine.root());
    let memory_lock = MemoryLock {
        soft: Limit::UNLIMITED,
        hard: Limit::UNLIMITED,
        above_limit: false,
    };
    Facts {
        topology: machine.topology(),
        fingerprint: Fingerprint::from_files(&files, cpuid, Some(memory_lock)),
        files,
        memory_lock,
        needs: Needs {
            devices: true,
            cores: 2,
            better_cores: 3,
            cpus: 2,
            realtime: false,
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
        generic_timer: None,
    }
}

fn assess(machine: &Machine) -> Readiness {
    Readiness::from_facts(facts(machine, &metal()))
}

fn check<'a>(readiness: &'a Readiness, id: &str) -> &'a Check {
    let found = readiness.checks.iter().find(|check| check.id == id);
    found.unwrap_or_else(|| panic!("no check {id}"))
}

/// A check's name, its verdict, a part of its advice, and how the machine was found (not looked at where empty).
type ExpectedCheck<'a> = (&'a str, Verdict, &'a str, &'a str);

#[track_caller]
fn only(change: impl Fn(&Machine), expected: ExpectedCheck<'_>) {
    let machine = best();
    change(&machine);
    said_only(&assess(&machine), expected);
}

#[track_caller]
fn said_only(readiness: &Readiness, expected: ExpectedCheck<'_>) {
    let checks = readiness.checks.iter();
    let others = checks.filter(|it| it.verdict != Good && it.id != expected.0);
    assert_eq!(others.collect::<Vec<_>>(), [] as [&Check; 0]);
    said(readiness, expected);
    assert_eq!(readiness.ready, expected.1 != Spoils);
}

/// Asserts what a check says, whatever the others do.
#[track_caller]
fn said(readiness: &Readiness, (id, verdict, advice, found): ExpectedCheck<'_>) {
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
    assert_eq!(readiness.checks.len(), 23);
    for check in &readiness.checks {
        assert_eq!((check.verdict, &check.advice), (Good, &None), "{check:?}");
    }
    let expected = "mlx5_0 on node 0 (4 cores), mlx5_1 on node 1 (4 cores)";
    assert_eq!(check(&readiness, "rdma_devices").found, expected);
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
    let one = confined(|cpu| cpu == 3);
    said(&one, ("cores", Spoils, "taskset", found));
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
fn the_way_of_a_device_over_pci_express_is_judged() {
    const DEVICE: &str = "sys/class/infiniband/mlx5_0/device";
    let put = |it: &Machine, files: &[(&str, &str)]| {
        for (file, text) in files {
            it.file(&format!("{DEVICE}/{file}"), text);
        }
    };
    let link = |speed: &str, width: &str| {
        let machine = best();
        let best = [
            ("max_link_speed", "16.0 GT/s PCIe"),
            ("max_link_width", "16"),
        ];
        put(&machine, &best);
        put(
            &machine,
            &[("current_link_speed", speed), ("current_link_width", width)],
        );
        assess(&machine)
    };
    let full = link("16.0 GT/s PCIe", "16");
    said_only(&full, ("pci_link", Good, "", "mlx5_0 16.0 GT/s PCIe x16"));
    let found = "mlx5_0 8.0 GT/s PCIe x8 of 16.0 GT/s PCIe x16";
    said_only(
        &link("8.0 GT/s PCIe", "8"),
        ("pci_link", Advice, "slot", found),
    );
    // A virtual function.
    let unknown = link("Unknown", "0");
    assert!(unknown.checks.iter().all(|check| check.id != "pci_link"));

    only(
        |it| put(it, &[("link/l1_aspm", "0")]),
        ("pci_power", Good, "", ""),
    );
    let asleep = "the links of mlx5_0 may sleep (L1 of ASPM)";
    let sleeps = |it: &Machine| put(it, &[("link/l1_aspm", "1")]);
    let policy = "pcie_aspm.policy=performance";
    only(sleeps, ("pci_power", Advice, policy, asleep));
    // A kernel with the policy, and no device with the setting.
    let machine = best();
    machine.file(
        "sys/module/pcie_aspm/parameters/policy",
        "[default] performance",
    );
    let without = assess(&machine);
    assert!(without.checks.iter().all(|check| check.id != "pci_power"));

    let group = |kind: &'static str| move |it: &Machine| put(it, &[("iommu_group/type", kind)]);
    only(group("identity"), ("iommu", Good, "", "mlx5_0 identity"));
    only(
        group("DMA-FQ"),
        ("iommu", Advice, "iommu=pt", "mlx5_0 DMA-FQ"),
    );
}

#[test]
fn isolation_names_the_parameters() {
    let isolate = |it: &Machine| {
        it.isolate("");
    };
    let all = "isolcpus=managed_irq,domain,5-7 nohz_full=5-7 rcu_nocbs=5-7";
    only(isolate, ("isolated_cpus", Advice, all, "none"));
    let tick = |it: &Machine| change(it, "sys/devices/system/cpu/nohz_full: 6-7");
    let ticking = "2-3,6-7, with the scheduler's tick on 2-3";
    let advice = "nohz_full=2-3,6-7";
    only(tick, ("isolated_cpus", Advice, advice, ticking));
    // Both threads of a core, and never that of CPU 0.
    let threads = "isolcpus=managed_irq,domain,1-2,4-5 ";
    let readiness = assess(&Machine::new(1, 3, 2));
    said(&readiness, ("isolated_cpus", Advice, threads, ""));
    let none = assess(&Machine::new(1, 2, 1));
    let told = "with three cores or more";
    said(&none, ("isolated_cpus", Advice, told, ""));
}

#[test]
fn powersave_spoils_only_where_it_means_the_lowest_frequency() {
    let acpi = "acpi-cpufreq";
    let command = "cpupower frequency-set -g performance";
    let found = "performance, powersave (acpi-cpufreq)";
    for (driver, name, verdict, advice, found) in [
        ("intel_pstate", "powersave", Advice, command, ""),
        (acpi, "powersave", Spoils, "lowest frequency", found),
        (acpi, "schedutil", Advice, command, ""),
    ] {
        let set = |it: &Machine| {
            it.file("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", name);
            for cpu in 0..8 {
                let file = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_driver");
                it.file(&file, driver);
            }
        };
        only(set, ("governor", verdict, advice, found));
    }
}

/// Of each file some texts; of each what is said: the check, its verdict, a part of its advice, how it was found.
const CHANGED: &str = r"
sys/devices/system/clocksource/clocksource0/current_clocksource
hpet                             | clock_source           | Spoils | clocksource=tsc          |
acpi_pm                          | clock_source           | Spoils | clocksource=tsc          |
kvm-clock                        | clock_source           | Advice | clocksource=tsc          |
arch_sys_counter                 | clock_source           | Good   |                          |
proc/cpuinfo
flags\t: fpu tsc constant_tsc    | tsc                    | Advice | --clock tsc              | not nonstop
sys/kernel/mm/transparent_hugepage/enabled
[always] never                   | transparent_huge_pages | Advice | echo madvise             |
proc/sys/kernel/numa_balancing
1                                | numa_balancing         | Advice | kernel.numa_balancing=0  |
proc/meminfo
SwapTotal: 2 kB\nSwapFree: 1 kB  | swap                   | Advice | swapoff -a               | 1 KiB of 2 KiB used
proc/812/comm
irqbalance                       | irqbalance             | Advice | systemctl stop           |
proc/sys/kernel/sched_rt_runtime_us
950000                           | realtime_throttling    | Advice | 50 ms each 1000 ms       | 950 of each 1000 ms
proc/71/comm
qemu-system-x86                  | virtual_machines       | Advice | stop them                | 1 qemu-system-x86
proc/self/limits
Max open files  20  20  files    | ulimits                | Spoils | ulimit -n 32 or more     | open files 20 (-n)
Max processes  4  9  processes   | ulimits                | Spoils | ulimit -u 8 or more      | processes 4 (-u)
Max cpu time  60  60  seconds    | ulimits                | Advice | ulimit -t unlimited      | cpu time 60 (-t)
Max address space  4096  4096  b | ulimits                | Spoils | ulimit -v 17408 or more  | address space 4 KiB (-v)
Max stack size  8388608  unlimited  bytes | ulimits       | Good   |                          | stack size 8 MiB (-s)
cgroup/box/pids.max
3                                | pids_limit             | Spoils | --pids-limit             |
200                              | pids_limit             | Good   |                          |
cgroup/box/memory.max
16777216                         | memory_limit           | Spoils | locks 17 MiB             |
17825792                         | memory_limit           | Good   |                          |
cgroup/box/cpuset.cpus.effective
0-3                              | cpuset                 | Good   |                          |
4                                | cpuset                 | Spoils | --cpuset-cpus            |
cgroup/box/cpu.max
30000 100000                     | cpu_quota              | Spoils | limits.cpu               |
199000 100000                    | cpu_quota              | Spoils | keep 2 CPUs busy         |
250000 100000                    | cpu_quota              | Advice | echo max >               |
800000 100000                    | cpu_quota              | Good   |                          |";

#[test]
fn one_thing_that_is_not_as_it_should_be() {
    let mut path = "";
    for line in CHANGED.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [text, id, verdict, advice, found] = cells[..] else {
            path = line;
            continue;
        };
        let verdicts = [Good, Advice, Spoils];
        let verdict = verdicts.into_iter().find(|it| format!("{it:?}") == verdict);
        let put = |it: &Machine| change(it, &format!("{path}: {text}"));
        only(put, (id, verdict.unwrap(), advice, found));
    }
    // Idle states count only where they are enabled.
    let deep = |it: &Machine| {
        it.idle_state(5, 2, "C6", 133, 0);
    };
    let deepest = "deepest is C6, 133 us to leave";
    let command = "cpupower idle-set -D 10";
    only(deep, ("idle_states", Advice, command, deepest));
    let no_devices = |it: &Machine| {
        it.without("sys/class/infiniband");
    };
    only(no_devices, ("rdma_devices", Spoils, "ci/hcabench", "none"));
    // Who needs none does not care where they are.
    for (has_some, found) in [(false, "0 devices"), (true, "2 devices")] {
        let machine = best();
        if !has_some {
            no_devices(&machine);
        }
        let mut facts = facts(&machine, &metal());
        facts.needs.devices = false;
        let found = format!("{found}; none is needed");
        said_only(
            &Readiness::from_facts(facts),
            ("rdma_devices", Good, "", &found),
        );
    }
    let few_pages = |it: &Machine| {
        it.huge_pages(10, 6, 1);
    };
    only(few_pages, ("huge_pages", Advice, "vm.nr_hugepages=13", ""));
}

#[test]
fn each_quota_that_is_too_tight_is_to_be_lifted() {
    let machine = best();
    machine
        .file("cgroup/box/cpu.max", "30000 100000")
        .file("cgroup/box/inner/cpu.max", "150000 100000")
        .file("cgroup/cpu.max", "250000 100000");
    let readiness = assess(&machine);
    let group = machine.root().join("cgroup/box");
    let group = group.display();
    let found = format!("0.3 CPUs (30 of each 100 ms), {group}/cpu.max");
    let fix = format!("echo max > {group}/cpu.max && echo max > {group}/inner/cpu.max");
    said_only(&readiness, ("cpu_quota", Spoils, &fix, &found));
    let advice = check(&readiness, "cpu_quota").advice.as_ref().unwrap();
    assert!(advice.ends_with(&fix), "{advice}");
    // One thread alone needs one CPU, and more threads than CPUs need all of them.
    for (busy, quota, verdict) in [(1, "150000", Advice), (20, "790000", Spoils)] {
        machine
            .file("cgroup/box/cpu.max", &format!("{quota} 100000"))
            .file("cgroup/box/inner/cpu.max", "max 100000");
        let mut facts = facts(&machine, &metal());
        facts.needs = facts.needs.with_busy(busy);
        said(
            &Readiness::from_facts(facts),
            ("cpu_quota", verdict, "", ""),
        );
    }
    let version_1 = best();
    version_1
        .in_group("1:cpu:/x", &[("/", "cgroup", "rw,cpu")])
        .file("cgroup/x/cpu.cfs_quota_us", "30000")
        .file("cgroup/x/cpu.cfs_period_us", "100000");
    let fix = "/cgroup/x/cpu.cfs_quota_us";
    said(&assess(&version_1), ("cpu_quota", Spoils, fix, ""));
    said(&assess(&version_1), ("cpu_quota", Spoils, "echo -1 > ", ""));
}

#[test]
fn an_unknown_limit_is_not_none_and_threads_with_a_priority_have_no_quota() {
    let machine = best();
    machine
        .in_group("0::/", &[("/", "cgroup2", "rw")])
        .in_namespace(4_026_532_000)
        .file("cgroup/cgroup.events", "populated 1");
    let look = |facts: Facts, id: &str| check(&Readiness::from_facts(facts), id).clone();
    for id in ["cpu_quota", "memory_limit", "pids_limit", "cpuset"] {
        let found = look(facts(&machine, &metal()), id);
        assert_eq!(found.verdict, Advice, "{found:?}");
        assert!(
            found.found.starts_with("unknown: groups above "),
            "{found:?}"
        );
        assert!(found.advice.unwrap().contains("from outside"));
    }
    machine.file("cgroup/cpu.max", "30000 100000");
    let found = look(facts(&machine, &metal()), "cpu_quota");
    assert_eq!(found.verdict, Spoils, "{found:?}");
    assert!(
        found.found.contains("/cgroup/cpu.max; groups above "),
        "{found:?}"
    );
    let mut of_priority = facts(&machine, &metal());
    of_priority.needs = of_priority.needs.with_priority(Some(50));
    let found = look(of_priority, "cpu_quota");
    assert_eq!(found.verdict, Good, "{found:?}");
    assert!(
        found
            .found
            .ends_with("threads with --priority do not have it")
    );
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
    let nodes = "mlx5_0 on no known node, mlx5_1 on no known node";
    assert_eq!(check(&readiness, "rdma_devices").found, nodes);
    assert!(readiness.checks.iter().all(|it| it.id != "generic_timer"));
    // No TSC at all, no check.
    machine.file("proc/cpuinfo", "Features\t: fp asimd");
    let none = Readiness::from_facts(facts(&machine, &Cpuid::default()));
    assert!(none.checks.iter().all(|check| check.id != "tsc"));
}

#[test]
fn a_coarse_generic_timer_is_told_with_its_count() {
    let machine = best();
    for (hertz, verdict, found) in [
        (
            Some(1_000_000_000),
            Good,
            "1000.0 MHz, 1.0 ns a count, WFE event stream, no CNTVCTSS",
        ),
        (Some(25_000_000), Advice, "25.0 MHz, 40.0 ns a count, WFE"),
        (None, Spoils, "CNTFRQ_EL0 is 0"),
    ] {
        let cpuid = Cpuid {
            generic_timer: Some(GenericTimer {
                hertz,
                event_stream: true,
                self_synchronised: false,
            }),
            ..Cpuid::default()
        };
        let readiness = Readiness::from_facts(facts(&machine, &cpuid));
        let judged = check(&readiness, "generic_timer");
        assert_eq!(judged.verdict, verdict);
        assert!(judged.found.starts_with(found), "{}", judged.found);
    }
}

#[test]
fn memory_that_cannot_be_locked() {
    let machine = best();
    let mut facts = facts(&machine, &metal());
    facts.memory_lock.soft = Limit(8 * MEBIBYTE);
    let found = "8 MiB, 17 MiB needed";
    let told = ("memlock", Spoils, "ulimit -l 17408", found);
    said_only(&Readiness::from_facts(facts), told);
}

#[test]
fn a_guest_is_advice_and_emulation_spoils() {
    for (hypervisor, emulated, verdict, advice) in [
        ("KVM", false, Advice, "pin each virtual CPU"),
        ("QEMU TCG", true, Spoils, "do not describe hardware"),
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
    let told = "not reported by the kernel";
    said(&readiness, ("clock_source", Advice, "", told));
}

#[test]
fn this_machine_can_be_assessed() {
    let readiness = Readiness::assess(Needs::between_devices()).unwrap();
    assert_eq!(readiness.ready, readiness.with(Spoils).next().is_none());
    let mut good = readiness.with(Good);
    assert!(good.all(|check| check.advice.is_none()));
}

/// As in a container that has neither.
#[test]
fn what_cannot_be_read_is_unknown_and_said_once() {
    let bare = Machine::new(1, 1, 1);
    let mut facts = facts(&bare, &metal());
    facts.topology = Topology::unknown();
    facts.files = SystemFiles::below(bare.root().join("nowhere"));
    let readiness = Readiness::from_facts(facts);
    let unknown = "unknown: /sys cannot be read";
    let needed = "mount -t sysfs sysfs /sys";
    said(&readiness, ("cores", Spoils, needed, unknown));
    for id in BY_SYSFS.into_iter().skip(1) {
        said(&readiness, (id, Advice, "", unknown));
    }
    for (id, file) in [
        ("load", "proc/loadavg"),
        ("swap", "proc/meminfo"),
        ("irqbalance", "proc"),
    ] {
        said(
            &readiness,
            (id, Advice, "", &format!("unknown: /{file} cannot be read")),
        );
    }
    let mut ids: Vec<&str> = readiness.checks.iter().map(|check| check.id).collect();
    ids.dedup();
    assert_eq!(ids.len(), readiness.checks.len());
}
