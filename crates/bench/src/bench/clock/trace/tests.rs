use super::super::jump::Jump;
use super::*;

const TIMER: Interrupter = Interrupter::Vector(0);
const OTHER: Interrupter = Interrupter::Thread(7);

/// A trace on a clock of half a nanosecond a tick, whose zero is 1000 ticks behind the epoch of the jumps.
fn trace(
    stretches: &[(u64, &[(Interrupter, u64)])],
    lost: &[(u64, u64)],
    kept_above: u64,
) -> Trace {
    let stretch = |&(middle, parts): &(u64, &[(Interrupter, u64)])| {
        let mut all = Parts::default();
        for (place, &(source, nanos)) in all.iter_mut().zip(parts) {
            *place = (Some(source), nanos);
        }
        (middle, all, 0)
    };
    let found = TraceRecords {
        stretches: stretches.iter().map(stretch).collect(),
        lost: lost.to_vec(),
        kept_above,
        records: 1,
    };
    let anchors = Anchors::made_up(&[(51_000, 500), (20_051_000, 10_000_500)]);
    let name = |source: Interrupter| match source {
        TIMER => "LOC local timer".to_owned(),
        _ => "sshd".to_owned(),
    };
    Trace::named(found, anchors, name)
}

const EPOCH: u64 = 50_000;

/// Jumps by when they began and how long they lasted, in nanoseconds of the trace's clock.
fn jumps(jumps: &[(u64, u64)]) -> JumpStore {
    let mut store = JumpStore::new(16).unwrap();
    for &(begin, length) in jumps {
        store.push(Jump::new(begin * 2, length * 2, Cause::NotSampled), None);
    }
    store
}

fn causes(store: &JumpStore, names: &CounterNames) -> Vec<String> {
    store
        .iter()
        .map(|jump| jump.cause.describe(names))
        .collect()
}

#[test]
fn each_jump_has_what_lies_in_it_with_exact_durations() {
    let mut store = jumps(&[
        (10_000, 3000),
        (20_000, 30_000),
        (90_000, 2000),
        (200_000, 50_000),
    ]);
    let stretches: [(u64, &[(Interrupter, u64)]); 5] = [
        (11_500, &[(TIMER, 1200)]),
        // Too short for a jump.
        (15_000, &[(TIMER, 100)]),
        (35_000, &[(OTHER, 20_000), (TIMER, 4000)]),
        (49_000, &[(TIMER, 900)]),
        // What is left is far more than the way in and out, as where a hypervisor had the CPU.
        (201_000, &[(TIMER, 1000)]),
    ];
    let traced = trace(&stretches, &[], 0).matched(&mut store, EPOCH);
    let names = traced.names();
    assert_eq!(
        causes(&store, &names),
        [
            "interrupt LOC local timer",
            "thread sshd (7)",
            "unexplained",
            "unexplained"
        ]
    );
    let words: Vec<_> = store
        .iter()
        .map(|jump| traced.in_words(jump).unwrap())
        .collect();
    assert_eq!(words[0], ("LOC local timer:1200".to_owned(), 1800));
    let expected = "sshd (7):20000;LOC local timer:4900";
    assert_eq!(words[1], (expected.to_owned(), 5100));
    assert_eq!(words[2], (String::new(), 2000));
    assert_eq!(words[3].1, 49_000);
    let mut shares: Vec<(String, u64)> = traced
        .shares()
        .map(|(cause, nanos)| (cause.describe(&names), nanos))
        .collect();
    shares.sort();
    let shares: Vec<(&str, u64)> = shares.iter().map(|it| (it.0.as_str(), it.1)).collect();
    // All of the jumps' time, and each nanosecond once.
    assert_eq!(
        shares,
        [
            (
                "interrupt LOC local timer",
                1200 + 1800 + 4900 + 1000 + ENTRY
            ),
            ("thread sshd (7)", 25_100),
            ("unexplained", 51_000 - ENTRY)
        ]
    );
    let ran = traced.ran();
    assert_eq!((ran.len(), ran[0].thread, ran[0].ran_ns), (1, 7, 20_000));
    let alone = store
        .causes()
        .iter()
        .find(|(cause, _)| matches!(cause, Cause::Interrupts(_)));
    assert_eq!(alone.unwrap().1.alone, 1);
}

#[test]
fn what_is_beyond_the_way_in_and_out_is_unexplained_in_jumps_of_any_cause() {
    let mut store = jumps(&[(100_000, 79_000), (300_000, 80_000)]);
    let stretches: [(u64, &[(Interrupter, u64)]); 2] = [
        (140_000, &[(OTHER, 40_000)]),
        // More is left than the thread took, and less than all took.
        (340_000, &[(OTHER, 27_000), (TIMER, 18_000)]),
    ];
    let traced = trace(&stretches, &[], 0).matched(&mut store, EPOCH);
    let names = traced.names();
    assert_eq!(causes(&store, &names), ["thread sshd (7)"; 2]);
    let shares: Vec<(String, u64)> = traced
        .shares()
        .map(|(cause, nanos)| (cause.describe(&names), nanos))
        .collect();
    let expected = [
        ("thread sshd (7)", 67_000 + 2 * ENTRY),
        ("unexplained", 39_000 + 35_000 - 2 * ENTRY),
        ("interrupt LOC local timer", 18_000),
    ];
    assert_eq!(shares, expected.map(|(of, nanos)| (of.to_owned(), nanos)));
    assert!(store.causes().iter().all(|(_, tally)| tally.alone == 0));
}

#[test]
fn the_way_in_and_out_is_explained_and_so_is_what_nobody_had_within_a_stretch() {
    let mut store = jumps(&[(10_000, 8000), (50_000, 40_000)]);
    let stretches: [(u64, &[(Interrupter, u64)]); 2] =
        [(14_000, &[(TIMER, 1000)]), (70_000, &[(OTHER, 6000)])];
    let mut trace = trace(&stretches, &[], 0);
    // As of several that follow each other closely.
    trace.found.stretches[1].2 = 12_000;
    let traced = trace.matched(&mut store, EPOCH);
    let expected = ["interrupt LOC local timer", "thread sshd (7)"];
    assert_eq!(causes(&store, &traced.names()), expected);
    let beyond = 8000 - 1000 - ENTRY + 40_000 - 6000 - 12_000 - ENTRY;
    let unexplained = traced
        .shares()
        .find(|(cause, _)| *cause == Cause::Unexplained);
    assert_eq!(unexplained, Some((Cause::Unexplained, beyond)));
}

#[test]
fn what_lies_between_two_jumps_is_of_the_nearest() {
    // The clocks fit to 10 ns.
    let mut store = jumps(&[(10_000, 1000), (11_010, 1000)]);
    let stretches: [(u64, &[(Interrupter, u64)]); 2] =
        [(11_004, &[(OTHER, 900)]), (11_006, &[(TIMER, 900)])];
    let traced = trace(&stretches, &[], 0).matched(&mut store, EPOCH);
    let expected = ["thread sshd (7)", "interrupt LOC local timer"];
    assert_eq!(causes(&store, &traced.names()), expected);
}

#[test]
fn lost_records_are_told_apart_and_are_no_unexplained_time() {
    let mut store = jumps(&[(10_000, 20_000), (50_000, 30_000), (100_000, 10_000)]);
    let stretches: [(u64, &[(Interrupter, u64)]); 1] = [(60_000, &[(OTHER, 20_000)])];
    let lost = [(9000, 29_000), (75_000, 85_000)];
    let traced = trace(&stretches, &lost, 0).matched(&mut store, EPOCH);
    assert_eq!(
        causes(&store, &traced.names()),
        [
            "records of the trace lost",
            "thread sshd (7)",
            "unexplained"
        ]
    );
    let words: Vec<_> = store
        .iter()
        .map(|jump| traced.in_words(jump).unwrap())
        .collect();
    assert_eq!(words[0], ("records lost:19000".to_owned(), 1000));
    let expected = "sshd (7):20000;records lost:5000";
    assert_eq!(words[1], (expected.to_owned(), 5000));
    assert_eq!(traced.lost(), (30_000, 2));
}

#[test]
fn short_jumps_whose_stretches_were_given_up_are_not_called_unexplained() {
    // Few that were given up fill the second, too.
    let mut store = jumps(&[(10_000, 6000), (50_000, 28_000), (90_000, 28_002)]);
    let traced = trace(&[], &[], 2000).matched(&mut store, EPOCH);
    let found = causes(&store, &traced.names());
    assert_eq!(found, ["not sampled", "not sampled", "unexplained"]);
    // What is left of a jump whose cause is told.
    let mut store = jumps(&[(10_000, 20_000)]);
    let stretches: [(u64, &[(Interrupter, u64)]); 1] = [(20_000, &[(OTHER, 12_000)])];
    let traced = trace(&stretches, &[], 2000).matched(&mut store, EPOCH);
    assert_eq!(causes(&store, &traced.names()), ["thread sshd (7)"]);
    let (_, nanos) = traced
        .shares()
        .find(|it| it.0 == Cause::NotSampled)
        .unwrap();
    assert_eq!(nanos, 8000 - ENTRY);
}

#[test]
fn the_memory_of_a_trace_is_bounded_on_many_cpus() {
    for cpus in [1, 2, 3, 64, 512] {
        let is_bounded = bytes(cpus) <= (16 << 20) + cpus as u64 * (512 << 10);
        assert!(is_bounded, "{cpus}");
        assert!(ring(cpus).is_power_of_two(), "{cpus}");
        assert!(RING.start <= ring(cpus), "{cpus}");
    }
}
