//! Containers that lack what the program reads: /proc, /sys, the loopback interface. Not every machine lets its users
//! make namespaces; this one does.

use crate::machine::{Machine, NamespaceAfar};
use crate::program::{LIMIT, Program, hcabench, path};
use crate::testing::{Has as _, temporary};
use std::collections::BTreeSet;
use std::path::Path;

const QUEUE: &str = "queue --queue lamport --count 300 --warmup 1ms --clock monotonic";
const NODE: &str = "node --rate 1k --duration 100ms --warmup 0 --timer timerfd --out node --force";

/// The program where an empty file system is mounted over these.
fn without(hidden: &str, folder: &Path, words: &str) -> Program {
    let mount =
        format!("for it in {hidden}; do mount -t tmpfs none $it || exit 99; done; exec \"$@\"");
    let starter = ["unshare", "--mount", "sh", "-c", &mount, "sh"];
    Program::under(&starter, path(), words).in_folder(folder)
}

/// The program in a network namespace of its own, where the loopback interface is down.
fn without_network(folder: &Path, words: &str) -> Program {
    let starter = ["unshare", "--net"];
    Program::under(&starter, path(), words).in_folder(folder)
}

/// What comes of a connection from another network namespace to this one, at the port of `serve`: the exit code, and all
/// that is read. It is 124 where the connection stays open.
fn knock_from_afar(greeting: &str) -> (Option<i32>, String) {
    let line = format!(
        "exec 3<>/dev/tcp/10.99.0.1/18599 && printf %s '{greeting}' >&3 && timeout 30 cat <&3"
    );
    let bash = Program::under(&["ip", "netns", "exec", "afar"], "bash", "-c");
    let ended = bash.word(&line).run();
    (ended.status.code(), ended.stdout + &ended.stderr)
}

/// Measures from the other namespace to this one.
fn from_afar_is_measured(options: &str, secret: &str, is_found: bool) {
    let folder = &*temporary("");
    let serve = hcabench(&format!("serve --once {options}"));
    let serving = serve.env("HCABENCH_SECRET", secret).start();
    serving.wait_for_line("serving at 0.0.0.0:18599");
    let node = format!(
        "node --peer 10.99.0.1 --type udp --poll event --timer timerfd --probes 20 --hugepages off --rate 200 --count 20 \
         --warmup 0 --rounds 2 --out run {options}"
    );
    let node = Program::under(&["ip", "netns", "exec", "afar"], path(), &node);
    node.env("HCABENCH_SECRET", secret)
        .in_folder(folder)
        .ends(0);
    serving.wait(LIMIT).expect(0);
    let findings = std::fs::read_to_string(folder.join("run/findings.json")).unwrap();
    assert_eq!(findings.contains("without-secret"), is_found, "{findings}");
}

#[test]
fn from_another_namespace_serve_is_reached_with_a_secret_only_and_shows_nothing() {
    let _machine = Machine::take();
    let _afar = NamespaceAfar::begin();
    let serving = hcabench("serve --once").start();
    serving.wait_for_line("serving at 127.0.0.1:18599");
    let (code, told) = knock_from_afar("GET / HTTP/1.1");
    assert_eq!(code, Some(1));
    told.has(&["Connection refused"]);
    drop(serving);
    let serving = hcabench("serve")
        .env("HCABENCH_SECRET", "known to this test alone")
        .start();
    serving.wait_for_line("serving at 0.0.0.0:18599");
    let nothing = (Some(0), String::new());
    assert_eq!(knock_from_afar("GET / HTTP/1.1"), nothing);
    drop(serving);
    let serving = hcabench("serve --without-secret").start();
    serving.wait_for_line("serving at 0.0.0.0:18599");
    // It is not of hcabench, and gets no answer here either.
    assert_eq!(knock_from_afar("{}"), nothing);
    drop(serving);
    from_afar_is_measured("--without-secret", "known to none", true);
    from_afar_is_measured("", "known to this test alone", false);
}

#[test]
fn without_proc_or_sys_host_shows_what_it_can_read() {
    let folder = &*temporary("");
    for (hidden, unknown, known) in [
        ("/proc", "/proc", "clock source"),
        ("/sys", "/sys", "kernel build"),
        ("/proc /sys", "/sys", "memlock limit"),
    ] {
        let ended = without(hidden, folder, "host --for clock").run();
        // Without /sys the CPUs are unknown. With it, something else may spoil a measurement.
        let codes = if hidden.contains("/sys") {
            1..=1
        } else {
            0..=1
        };
        assert!(codes.contains(&ended.status.code().unwrap()), "{ended:?}");
        ended.stdout.has(&[&format!("unknown: {unknown}"), known]);
        assert_eq!(ended.stderr, "");
        let unknown = ended
            .stdout
            .lines()
            .filter_map(|line| Some(line.split_once("unknown")?.0));
        let facts: Vec<&str> = unknown
            .map(|label| {
                label
                    .trim_start_matches("advice")
                    .trim_start_matches("SPOILS")
                    .trim()
            })
            .collect();
        let different: BTreeSet<&str> = facts.iter().copied().collect();
        assert_eq!(different.len(), facts.len(), "{facts:?}");
        ended.stdout.lacks(&[
            "0 CPUs",
            "0 physical cores",
            "No such file or directory (os error 2): No such",
        ]);
    }
}

#[test]
fn what_a_measurement_lacks_is_named() {
    let folder = &*temporary("");
    let sys = ["/sys/devices/system/cpu/online", "mount /proc and /sys"];
    for words in [
        QUEUE,
        "clock --duration 50ms --out clock",
        "memory --size 1M --out memory",
        &format!("{NODE} --type udp"),
    ] {
        for hidden in ["/sys", "/proc /sys"] {
            let ended = without(hidden, folder, words).ends(1).says(&sys);
            let reason = "No such file or directory";
            assert_eq!(ended.stderr.matches(reason).count(), 1, "{ended:?}");
        }
    }
    let processes = format!("{NODE} --type udp --ends processes");
    for words in [
        QUEUE,
        &format!("compare --run '{QUEUE}' --run '{QUEUE}' --rounds 1"),
        &processes,
    ] {
        let told = ["/proc is missing; mount it"];
        let ended = without("/proc", folder, words).ends(1).says(&told);
        ended.stderr.lacks(&["ulimit"]);
    }
}

#[cfg(feature = "rdma")]
#[test]
fn without_sys_devices_are_found_by_the_kernel_s_messages() {
    let folder = &*temporary("");
    let ended = without("/sys", folder, "devices").ends(0);
    ended.stdout.has(&["rxe0:1", "rxe1:1", "A run would use"]);
}

#[test]
fn node_types_that_need_the_loopback_interface_name_it() {
    let folder = &*temporary("");
    let told = ["the loopback interface is down", "ip link set lo up"];
    for (node_type, option) in [
        ("udp", "--type udp"),
        ("tcp", "--type tcp"),
        ("multicast", "--type multicast"),
        #[cfg(feature = "zeromq")]
        ("zeromq", "--type zeromq"),
        #[cfg(feature = "grpc")]
        ("grpc", "--type grpc"),
        #[cfg(feature = "mqtt")]
        ("mqtt", "--broker spawn"),
        #[cfg(feature = "nats")]
        ("nats", "--broker spawn"),
        #[cfg(feature = "redis")]
        ("redis", "--broker spawn"),
    ] {
        let ended = without_network(folder, &format!("{NODE} --type {node_type}")).ends(2);
        ended.told().has(&[option, told[0], told[1]]);
    }
    // The others can be measured.
    let others = without_network(
        folder,
        &format!("{NODE} --type loopback,shmem,unix,udp --dry-run"),
    );
    let ended = others.ends(0);
    ended
        .stdout
        .has(&["a round of 3 points", "--type udp is impossible", told[0]]);
}
