//! Who took a CPU, and for how long, against what that thread says itself. QEMU 7.2 emulates several processors with a
//! race in breakpoints, so `ci/test` runs these in a machine with one.

use std::collections::HashMap;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use hcabench::host::{pinning, priority};

use crate::machine::{Machine, wait_until};
use crate::program::{LIMIT, hcabench};
use crate::results::{Row, Table};

const WATCHED: usize = 0;
/// Each time that the busy thread takes the CPU, in milliseconds: no length fits another.
const BUSY: [u64; 8] = [10, 15, 23, 35, 53, 80, 120, 180];
const NAME: &str = "busybody";

/// What the busy thread measured by its own readings of the clock.
struct Busy {
    thread: i32,
    lengths: Vec<u64>,
}

/// Takes the watched CPU from whoever has it, for these times.
fn be_busy() -> Busy {
    let work = || {
        pinning::pin_current_thread(WATCHED).unwrap();
        priority::set_fifo(50).unwrap();
        let lengths = BUSY.map(|millis| {
            sleep(Duration::from_millis(60));
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(millis) {}
            begun.elapsed().as_nanos() as u64
        });
        Busy {
            thread: nix::unistd::gettid().as_raw(),
            lengths: lengths.into(),
        }
    };
    let thread = std::thread::Builder::new().name(NAME.to_owned());
    thread.spawn(work).unwrap().join().unwrap()
}

/// Watches while the thread is busy. Returns that, the jumps, what was shown, and the most memory, in KiB.
fn watch(causes: &str, out: &Path) -> (Busy, Table, String, u64) {
    // The thread inherits where it may run.
    let allowed = pinning::current_affinity().unwrap();
    let words = format!(
        "clock --clock monotonic-raw --cpu {WATCHED} --duration 8s --threshold 100us \
         --baseline-iterations 1k --causes {causes}"
    );
    let running = hcabench(&words).out(out).start();
    let status = format!("/proc/{}/status", running.id());
    let tasks = format!("/proc/{}/task", running.id());
    let names = || {
        let tasks = std::fs::read_dir(&tasks).into_iter().flatten().flatten();
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        names.map(|name| name.trim().to_owned()).collect::<Vec<_>>()
    };
    // The baseline is measured by a thread of the same name, and the tracepoints are opened behind it.
    let begins = || {
        let names = names();
        let has = |name: &str| names.iter().any(|it| it == name);
        out.join("settings.json").exists()
            && has(&format!("watch-{WATCHED}"))
            && (causes != "trace" || has("trace-reader"))
    };
    wait_until("a watch begins", LIMIT, begins);
    sleep(Duration::from_millis(1000));
    let busy = be_busy();
    let text = std::fs::read_to_string(&status).unwrap();
    let memory = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let memory = memory.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    assert_eq!(pinning::current_affinity().unwrap(), allowed);
    let ended = running.wait(LIMIT).expect(0);
    let jumps = Table::read(&out.join(format!("cpu{WATCHED}/jumps.csv")));
    (busy, jumps, ended.stdout, memory.unwrap())
}

/// Who had the CPU in a jump, and for how many nanoseconds.
fn parts(jump: &Row) -> HashMap<String, u64> {
    let parts = jump
        .text("trace")
        .split(';')
        .filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, nanos) = part.rsplit_once(':').unwrap();
            (name.to_owned(), nanos.parse().unwrap())
        })
        .collect()
}

#[test]
fn a_thread_that_takes_the_cpu_is_named_with_the_time_that_it_measured_itself() {
    let machine = Machine::take();
    let (busy, jumps, shown, memory) = watch("trace", &machine.out("results"));
    let name = format!("{NAME} ({})", busy.thread);
    let of_busy: Vec<(&Row, HashMap<String, u64>)> = jumps
        .rows
        .iter()
        .map(|jump| (jump, parts(jump)))
        .filter(|(_, parts)| parts.contains_key(&name))
        .collect();
    for (jump, parts) in &of_busy {
        // Nobody is charged for more than the jump, and who has the most is the cause, unless the machine stood still.
        let all: u64 = parts.values().sum();
        assert!(jump.count("jump_ns") >= all, "{jump:?}");
        let most = parts.values().max() == parts.get(&name);
        if most && jump.count("rest_ns") < parts[&name] {
            assert_eq!(jump.text("cause"), format!("thread {name}"), "{jump:?}");
        }
    }
    // Between what it and what interrupted it are charged for, to a tenth: a machine may stand still meanwhile.
    let mut left: Vec<&HashMap<String, u64>> = of_busy.iter().map(|(_, parts)| parts).collect();
    let mut fits = |own: &&u64| {
        let (own, tenth) = (**own, **own / 10);
        let found = left.iter().position(|parts| {
            let all: u64 = parts.values().sum();
            (own / 2..=own + tenth).contains(&parts[&name]) && all + tenth >= own
        });
        // A jump is one of them only.
        found.map(|at| left.swap_remove(at)).is_some()
    };
    let close = busy.lengths.iter().filter(|own| fits(own)).count();
    assert!(close > BUSY.len() / 2, "{of_busy:?}, {:?}", busy.lengths);
    let timer = jumps.rows.iter().filter(|jump| {
        let parts = parts(jump);
        parts
            .iter()
            .any(|(name, nanos)| name.starts_with("LOC ") && *nanos > 0)
    });
    assert!(timer.count() > 10, "{shown}");
    assert!(shown.contains("exactly, by the trace"), "{shown}");
    let words: Vec<&str> = shown.split_whitespace().collect();
    let ran = words.join(" ");
    let ran = ran
        .split(&format!("ran instead on CPU {WATCHED}: "))
        .nth(1)
        .unwrap_or_default();
    assert!(ran.contains(&format!("{name} ")), "{shown}");
    assert!((1000..=64 << 10).contains(&memory), "{memory} KiB");
}

#[test]
fn counters_claim_no_duration() {
    let machine = Machine::take();
    let (busy, jumps, shown, _) = watch("counters", &machine.out("results"));
    assert!(!shown.contains("exactly, by the trace"), "{shown}");
    let long = |jump: &&Row| jump.count("jump_ns") >= busy.lengths[0];
    assert!(jumps.rows.iter().filter(long).count() > 0);
    for jump in &jumps.rows {
        assert_eq!((jump.text("trace"), jump.text("rest_ns")), ("", ""));
        assert!(!jump.text("cause").contains(NAME), "{jump:?}");
    }
}
