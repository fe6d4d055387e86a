//! A hostile client against a `serve` that is measuring: what strangers send, cut short, slow, changed and replayed, and
//! what an end with the right secret may lie about. `ci/measure strangers` throws 10,000 cases and prints the table.
//!
//! Frames are made by the crate `snow` itself, not by hcabench's code (`common/sealed.rs`).

mod attacks;

use crate::LIMIT;
use crate::common;
use crate::program::Running;
use crate::testing::temporary;
use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use attacks::{Drawn, HALF_OPEN, KINDS, Outcome, attack_all, keep_half_open, lie, record};
use common::node::node;
use common::sealed::Sealed;
use common::{hcabench, number, rows, until};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

const SECRET: &str = "the secret that strangers do not have";
/// Bytes of a frame of the handshake.
const GREETING: usize = 50;
/// Who greets has 5 s: one that is still there after this hangs.
const HUNG: Duration = Duration::from_secs(30);
/// Cases at a time.
const CLIENTS: usize = 300;
/// What serve may take more of memory at its most than before the first case, in KiB.
const MOST_MEMORY: u64 = 64 << 10;
const EASY: &str =
    "--poll event --timer timerfd --probes 20 --hugepages off --warmup 0 --after-miss catch-up";

/// How many cases there are in all; the table has 10,000.
fn cases() -> usize {
    let given = std::env::var("HCABENCH_STRANGERS").ok();
    given.map_or(600, |given| given.parse().expect("a number of cases"))
}

/// Memory that a process has, and had at its most, in KiB.
fn memory(process: u32) -> [u64; 2] {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    ["VmRSS:", "VmHWM:"].map(|name| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    })
}

fn serve(folder: &Path) -> (Running, SocketAddr) {
    let file = folder.join("secret");
    fs::write(&file, SECRET).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let serving = hcabench(folder, "serve --bind 127.0.0.1:0 --secret-file secret").start();
    let address = serving.line_with("serving at ").parse().unwrap();
    (serving, address)
}

#[test]
fn none_of_many_strangers_gets_through_hangs_or_disturbs_the_run() {
    let _alone = common::alone();
    let all = cases();
    let folder = &*temporary("");
    let (serving, address) = serve(folder);
    let recorded = record(folder, address);
    assert!(recorded.lines.len() > 5, "{:?}", recorded.lines);
    // Its rounds connect while strangers do: it takes three times as long as they usually do.
    let rounds = (all / 200).max(6);
    let words = format!(
        "--peer {address} {EASY} --type udp --rate 100 --duration 5s --rounds {rounds} --secret-file secret --force"
    );
    let before = memory(serving.id());
    let begun = Instant::now();
    let mut run = node(folder, &words).start();
    until("its folder", || {
        folder.join("run/INCOMPLETE").exists().then_some(())
    });
    let over = AtomicBool::new(false);
    let (mut outcomes, half_open) = std::thread::scope(|scope| {
        let half_open = scope.spawn(|| keep_half_open(address, &over));
        let outcomes = attack_all(address, &recorded, all);
        over.store(true, Ordering::Relaxed);
        (outcomes, half_open.join().unwrap())
    });
    outcomes.push(half_open);
    let kinds = || KINDS.iter().chain(&[HALF_OPEN]);
    let (took, is_measuring) = (begun.elapsed(), !run.has_ended());
    run.wait(LIMIT).expect(0);
    let after = memory(serving.id());
    println!(
        "{:<54}{:>8}{:>16}{:>14}{:>8}",
        "kind", "cases", "not connected", "got through", "hung"
    );
    for ((name, _), outcome) in kinds().zip(&outcomes) {
        println!(
            "{name:<54}{:>8}{:>16}{:>14}{:>8}",
            outcome.cases, outcome.refused, outcome.got_through, outcome.hung
        );
    }
    let rows = rows(&folder.join("run/runs.csv"));
    for row in &rows {
        println!(
            "round {}: {}, {} of {} messages",
            row["round"], row["status"], row["messages_received"], row["messages_expected"]
        );
    }
    println!(
        "serve: {} KiB before, {} KiB after, {} KiB at most; {:.0} s, the run {}",
        before[0],
        after[0],
        after[1],
        took.as_secs_f64(),
        if is_measuring {
            "went on"
        } else {
            "was over before"
        }
    );
    assert!(is_measuring, "strangers took {took:?}");
    assert_eq!(rows.len(), rounds);
    for row in &rows {
        assert_eq!(row["status"], "complete", "{row:?}");
        assert_eq!(
            number(row, "messages_received"),
            number(row, "messages_expected"),
            "{row:?}"
        );
    }
    for (outcome, (name, _)) in outcomes.iter().zip(kinds()) {
        assert_eq!((outcome.got_through, outcome.hung), (0, 0), "{name}");
        assert!(outcome.refused * 20 <= outcome.cases, "{name}: {outcome:?}");
    }
    assert!(after[1] < before[1] + MOST_MEMORY, "{before:?} {after:?}");
    serving.signal(nix::sys::signal::Signal::SIGTERM);
    let ended = serving.wait(LIMIT).expect(0);
    // Of each ten seconds some are printed, and the others counted.
    let printed = ended.stderr.matches("hcabench: refused 127.0.0.1").count();
    assert!((20..=all / 2).contains(&printed), "{printed} were printed");
    assert!(
        ended.stderr.contains(" more connections"),
        "{}",
        ended.stderr
    );
}

#[test]
fn an_end_with_the_secret_that_lies_about_lengths_and_counts_ends_nothing_but_its_own_connection() {
    let _alone = common::alone();
    let folder = &*temporary("");
    let (serving, address) = serve(folder);
    let recorded = record(folder, address);
    let before = memory(serving.id());
    let mut sum = Outcome::default();
    for case in 0..(cases() / 20) as u64 {
        let outcome = lie(address, &recorded, &mut Drawn(case + 1));
        sum.cases += outcome.cases;
        sum.refused += outcome.refused;
        sum.hung += outcome.hung;
    }
    let after = memory(serving.id());
    println!(
        "lies about lengths and counts: {} cases, {} answered with a failure, {} hung; serve: {} KiB before, {} after, \
         {} at most",
        sum.cases, sum.refused, sum.hung, before[0], after[0], after[1]
    );
    assert_eq!(sum.hung, 0);
    assert!(sum.refused * 4 > sum.cases, "hardly any was seen: {sum:?}");
    assert!(
        after[1] < before[1] + 4 * MOST_MEMORY,
        "{before:?} {after:?}"
    );
    // A genuine end is served as before.
    let words = format!(
        "--peer {address} {EASY} --type udp --rate 200 --count 20 --secret-file secret --force"
    );
    node(folder, &words).ends(0);
    assert_eq!(
        number(
            &rows(&folder.join("run/summary.csv"))[0],
            "messages_received"
        ),
        20
    );
    serving.signal(nix::sys::signal::Signal::SIGTERM);
    // A connection that failed is no failure of serve.
    serving.wait(LIMIT).expect(0);
}
