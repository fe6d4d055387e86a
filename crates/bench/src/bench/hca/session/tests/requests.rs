//! Reads: no message arrives, and their completions are all there is.

use super::*;

#[test]
fn reads_go_by_their_completions_and_have_no_receiving_thread() {
    let mut trial = reads(|_, sequence| match sequence {
        5 => Does::Spoil,
        _ => Does::Lose,
    });
    for burst in 0..3 {
        let record = (trial.session).run_burst(MESSAGES as usize, &mut |_| ());
        let record = record.unwrap();
        assert_eq!(record.failure, None);
        assert!(record.arrivals.is_empty() && record.receive.is_none());
        (trial.session).judge(&Posix::MONOTONIC, burst, record, &mut trial.tally);
    }
    let expected = Counts {
        sent: 24,
        received: 21,
        corrupted: 3,
        ..Counts::default()
    };
    assert_eq!(trial.counts(), expected);
    let requests = trial.fabric.posted_requests.load(Ordering::Relaxed);
    assert_eq!(requests, 0, "receive requests");
    for message in &trial.tally.messages {
        assert_eq!((message.received_ns, message.latency_ns()), (None, None));
        assert!(message.completion_latency_ns().is_some());
    }
}

#[test]
fn a_read_that_does_not_complete_is_a_failure_though_nothing_is_to_arrive() {
    let mut trial = reads(|_, sequence| match sequence {
        2 => Does::Vanish,
        _ => Does::Lose,
    });
    let mut told = 0;
    let mut progress = |done: u32| told = done;
    let record = (trial.session).run_burst(MESSAGES as usize, &mut progress);
    let record = record.unwrap();
    let failure = record.failure.clone().unwrap();
    (trial.session).judge(&Posix::MONOTONIC, 0, record, &mut trial.tally);
    assert_eq!(told, MESSAGES - 1, "what has completed is the progress");
    let said = "1 requests of a reliable connection did not complete within --timeout";
    assert!(failure.starts_with(said), "{failure}");
    assert_eq!((trial.counts().lost, trial.counts().received), (1, 7));
    let failure = reads(|_, _| Does::Fail).burst().unwrap();
    assert!(failure.contains("the first: failure 12"), "{failure}");
}

#[test]
fn of_reads_that_a_signal_ends_only_those_completed_count() {
    static SIGNAL: AtomicBool = AtomicBool::new(false);
    let fate = |_, sequence| {
        if sequence < 3 {
            return Does::Lose;
        }
        SIGNAL.store(true, Ordering::Relaxed);
        Does::Vanish
    };
    let requested = || SIGNAL.load(Ordering::Relaxed).then_some(Signal::SIGINT);
    let mut trial = trial_of((Service::Rc, Operation::Read), fate, None, requested);
    assert_eq!(trial.burst().unwrap(), "interrupted by SIGINT");
    assert_eq!(trial.counts(), all(3));
}
