use super::*;
use crate::host::made_up::Machine;

fn groups(machine: &Machine) -> ControlGroups {
    ControlGroups::from_files(&SystemFiles::below(machine.root()))
}

fn nothing<T>() -> Known<T> {
    Known::default()
}

/// Why there may be a CPU quota that does not show.
fn unknown_quota(machine: &Machine) -> String {
    let found = groups(machine).cpu_quotas();
    assert_eq!(found.limit, None, "{found:?}");
    found.unknown.expect("it is not known that there is none")
}

#[test]
fn the_tightest_limit_on_the_way_to_the_root_counts() {
    let machine = Machine::new(1, 1, 1);
    machine
        .in_group("0::/a/b/c", &[("/", "cgroup2", "rw")])
        .file("cgroup/a/memory.max", "1000")
        .file("cgroup/a/memory.current", "900")
        .file("cgroup/a/b/memory.max", "500")
        .file("cgroup/a/b/memory.current", "100")
        .file("cgroup/a/b/c/memory.max", "max")
        .file("cgroup/pids.max", "30")
        .file("cgroup/pids.current", "28")
        .file("cgroup/a/b/pids.max", "20")
        .file("cgroup/a/b/pids.current", "17");
    let found = groups(&machine).memory_limit();
    assert_eq!(found.unknown, None);
    let found = found.limit.unwrap();
    assert_eq!((found.limit, found.free), (1000, 100));
    assert!(found.file.ends_with("a/memory.max"));
    let threads = groups(&machine).thread_limit().limit.unwrap();
    assert_eq!((threads.limit, threads.free), (30, 2));
    machine.in_group("0::/elsewhere", &[("/", "cgroup2", "rw")]);
    assert_eq!(groups(&machine).memory_limit(), nothing());
}

#[test]
fn processes_that_were_killed_for_memory_are_those_of_the_own_group() {
    for (line, mount, file, counts) in [
        (
            "7:memory:/a/b",
            ("/", "cgroup", "rw,memory"),
            "memory.oom_control",
            "oom_kill_disable 0\nunder_oom 0\noom_kill 2",
        ),
        (
            "0::/a/b",
            ("/", "cgroup2", "rw"),
            "memory.events",
            "max 7\noom 3\noom_kill 2\noom_group_kill 0",
        ),
    ] {
        let machine = Machine::new(1, 1, 1);
        machine.in_group(line, &[mount]);
        machine.file(&format!("cgroup/a/{file}"), "oom_kill 9");
        machine.file("cgroup/a/b/tasks", "");
        assert_eq!(groups(&machine).killed_for_memory(), None);
        machine.file(&format!("cgroup/a/b/{file}"), counts);
        assert_eq!(groups(&machine).killed_for_memory(), Some(2));
    }
}

#[test]
fn clean_pages_of_files_are_free() {
    let machine = Machine::new(1, 1, 1);
    let counts =
        "anon 90\nfile 900\nfile_dirty 40\nfile_writeback 10\ninactive_file 700\nactive_file 200";
    machine
        .in_group("0::/a", &[("/", "cgroup2", "rw")])
        .file("cgroup/a/memory.max", "1000")
        .file("cgroup/a/memory.current", "990")
        .file("cgroup/a/memory.stat", counts);
    assert_eq!(groups(&machine).memory_limit().limit.unwrap().free, 860);
}

#[test]
fn version_1_is_read_and_its_lack_of_a_limit_is_none() {
    let machine = Machine::new(1, 1, 1);
    let mounts = [
        ("/", "cgroup", "rw,memory"),
        ("/", "cgroup", "rw,cpu,cpuacct"),
        ("/", "cgroup2", "rw"),
    ];
    machine
        .in_group("5:cpu,cpuacct:/x\n4:memory:/x\n0::/", &mounts)
        .file("cgroup/x/memory.limit_in_bytes", "4096")
        .file("cgroup/x/memory.usage_in_bytes", "96")
        .file("cgroup/memory.limit_in_bytes", "9223372036854771712")
        .file("cgroup1/x/cpu.cfs_quota_us", "-1")
        .file("cgroup1/x/cpu.cfs_period_us", "100000")
        .file("cgroup2/pids.max", "70");
    assert_eq!(groups(&machine).memory_limit().limit.unwrap().free, 4000);
    assert_eq!(groups(&machine).cpu_quotas(), nothing());
    // What no hierarchy of version 1 controls, that of version 2 beside them may.
    assert_eq!(groups(&machine).thread_limit().limit.unwrap().limit, 70);
}

#[test]
fn quotas_of_all_levels_are_found_and_the_smallest_share_is_first() {
    let machine = Machine::new(1, 1, 1);
    machine
        .in_group("0::/pod/box", &[("/", "cgroup2", "rw")])
        .file("cgroup/pod/box/cpu.max", "200000 100000")
        // Fewer microseconds, and more of a CPU, than above.
        .file("cgroup/pod/cpu.max", "75000 50000")
        .file("cgroup/cpu.max", "max 100000");
    let all = groups(&machine).cpu_quotas().limit.unwrap();
    let cpus: Vec<f64> = all.iter().map(|quota| quota.cpus).collect();
    assert_eq!(cpus, [1.5, 2.0]);
    assert!(all[0].file.ends_with("cgroup/pod/cpu.max"));
    let version_1 = Machine::new(1, 1, 1);
    version_1
        .in_group("1:cpu:/pod/box", &[("/", "cgroup", "rw,cpu")])
        .file("cgroup/pod/box/cpu.cfs_quota_us", "-1")
        .file("cgroup/pod/box/cpu.cfs_period_us", "100000")
        .file("cgroup/pod/cpu.cfs_quota_us", "30000")
        .file("cgroup/pod/cpu.cfs_period_us", "100000");
    let found = &groups(&version_1).cpu_quotas().limit.unwrap()[0];
    assert_eq!((found.quota_us, found.period_us), (30_000, 100_000));
    assert!(found.file.ends_with("cgroup/pod/cpu.cfs_quota_us"));
}

#[test]
fn in_a_container_the_groups_are_those_below_its_mount_and_others_are_unknown() {
    let machine = Machine::new(1, 1, 1);
    // Docker without a namespace of control groups shows a group at the top of the mount.
    machine
        .in_group("1:cpu:/docker/1f", &[("/docker/1f", "cgroup", "ro,cpu")])
        .file("cgroup/cpu.cfs_quota_us", "50000")
        .file("cgroup/cpu.cfs_period_us", "100000");
    let found = groups(&machine).cpu_quotas();
    assert_eq!(found.limit.unwrap()[0].cpus, 0.5);
    let hidden = found.unknown.unwrap();
    assert!(hidden.contains("groups above ") && hidden.contains("/cgroup do not show"));
    // A group whose name begins alike, and one outside of the namespace, do not show.
    for group in ["/docker/1f2", "/", "/../other"] {
        machine
            .in_group(
                &format!("1:cpu:{group}"),
                &[("/docker/1f", "cgroup", "ro,cpu")],
            )
            .in_namespace(7);
        let expected = format!("the group {group} of this process does not show");
        assert_eq!(unknown_quota(&machine), expected);
    }
    machine.in_group("1:cpu:/../other", &[("/", "cgroup", "ro,cpu")]);
    assert!(unknown_quota(&machine).contains("/../other"));
}

#[test]
fn the_top_of_a_namespace_is_the_root_only_if_it_looks_like_it() {
    let machine = Machine::new(1, 1, 1);
    machine
        .in_group("0::/", &[("/", "cgroup2", "rw")])
        .file("cgroup/cgroup.procs", "1");
    assert_eq!(groups(&machine).cpu_quotas(), nothing());
    machine.in_namespace(7);
    assert_eq!(groups(&machine).cpu_quotas(), nothing());
    machine.file("cgroup/cgroup.events", "populated 1");
    assert!(unknown_quota(&machine).contains("groups above "));
    let version_1 = Machine::new(1, 1, 1);
    version_1
        .in_group("1:cpu:/", &[("/", "cgroup", "rw,cpu")])
        .in_namespace(7)
        .file("cgroup/cpu.cfs_quota_us", "-1");
    assert!(unknown_quota(&version_1).contains("groups above "));
    version_1.file("cgroup/cgroup.sane_behavior", "0");
    assert_eq!(groups(&version_1).cpu_quotas(), nothing());
}

#[test]
fn what_cannot_be_read_is_unknown() {
    let machine = Machine::new(1, 1, 1);
    assert!(unknown_quota(&machine).contains("proc/self/cgroup"));
    // A hierarchy that is mounted elsewhere only. In its root there is no limit.
    machine.in_group("0::/a", &[]);
    assert!(unknown_quota(&machine).contains("the group /a of"));
    machine.in_group("0::/", &[]);
    assert_eq!(groups(&machine).cpu_quotas(), nothing());
    machine.in_namespace(7);
    assert!(unknown_quota(&machine).contains("the group / of"));
    // No hierarchy at all, as without systemd.
    machine.in_group("", &[]);
    assert_eq!(groups(&machine).cpu_quotas(), nothing());
    machine
        .in_group("0::/a", &[("/", "cgroup2", "rw")])
        .file("cgroup/a/cpu.max", "much");
    assert!(unknown_quota(&machine).ends_with("cpu.max: \"much\" is not a quota"));
    machine.without("cgroup/a/cpu.max");
    std::fs::create_dir(machine.root().join("cgroup/a/cpu.max")).unwrap();
    assert!(unknown_quota(&machine).contains("cpu.max: "));
    machine
        .file("cgroup/cpu.max", "30000 100000")
        .file("cgroup/a/pids.max", "few");
    // What shows is a limit all the same.
    let found = groups(&machine).cpu_quotas();
    assert_eq!(found.limit.unwrap()[0].cpus, 0.3);
    assert!(found.unknown.unwrap().contains("a/cpu.max: "));
    let threads = groups(&machine).thread_limit();
    assert!(threads.limit.is_none() && threads.unknown.unwrap().contains("\"few\""));
    machine.without("cgroup/a");
    assert!(groups(&machine).memory_limit().unknown.is_some());
}

#[test]
fn a_group_without_real_time_is_named() {
    let machine = Machine::new(1, 1, 1);
    machine
        .in_group("1:cpu:/x", &[("/", "cgroup", "rw,cpu")])
        .file("cgroup/cpu.rt_runtime_us", "950000")
        .file("cgroup/x/cpu.rt_runtime_us", "0");
    let file = groups(&machine).without_realtime().unwrap();
    assert!(file.ends_with("cgroup/x/cpu.rt_runtime_us"));
    for enough in ["-1", "950000"] {
        machine.file("cgroup/x/cpu.rt_runtime_us", enough);
        assert_eq!(groups(&machine).without_realtime(), None);
    }
    machine.in_group("0::/x", &[("/", "cgroup2", "rw")]);
    assert_eq!(groups(&machine).without_realtime(), None);
}

#[test]
fn a_mount_point_may_have_any_name() {
    let machine = Machine::new(1, 1, 1);
    machine
        .in_group("0::/a b", &[])
        .file(
            "proc/self/mountinfo",
            "31 24 0:21 / /run/of\\040me\\134 rw - cgroup2 none rw",
        )
        .file("run/of me\\/a b/cpu.max", "30000 100000");
    let found = groups(&machine).cpu_quotas().limit.unwrap();
    assert!(found[0].file.ends_with("run/of me\\/a b/cpu.max"));
}

#[test]
fn the_cpus_of_a_group_are_the_effective_ones() {
    let machine = Machine::new(1, 1, 1);
    machine
        .in_group("0::/a/b", &[("/", "cgroup2", "rw")])
        .file("cgroup/a/cpuset.cpus.effective", "2-3")
        .file("cgroup/cpuset.cpus.effective", "0-7");
    let found = groups(&machine).cpus().limit.unwrap();
    assert_eq!(found.cpus.to_string(), "2-3");
    machine
        .in_group("3:cpuset:/a", &[("/", "cgroup", "rw,cpuset")])
        .file("cgroup/a/cpuset.cpus", "4");
    let found = groups(&machine).cpus().limit.unwrap();
    assert_eq!(found.cpus.to_string(), "4");
}
