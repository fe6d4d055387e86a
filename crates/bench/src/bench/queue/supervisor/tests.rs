//! Ends that do not leave by themselves, and what the supervisor makes of them.

use super::*;
use crate::bench::queue::control::Ending;
use crate::bench::queue::faulty::{
    self, BLOCKS, BLOCKS_AT_THE_END, BLOCKS_FOR_A_WHILE, COUNT, IS_MADE_SLOWLY, LONG, NOTHING,
};
use crate::bench::queue::notes::Notes;
use crate::bench::queue::roles::{RECEIVER, SENDER};
use crate::pacing::{EndLoad, Load};

fn task(patience: Duration) -> Task {
    Task {
        patience,
        limit: Duration::from_secs(600),
        ..Task::new(
            faulty::clock(),
            false,
            &faulty::point(),
            &faulty::config(),
            COUNT as u64,
        )
    }
}

fn run<const FAULT: u8>(
    task: &Task,
    signal: Option<Duration>,
) -> (Result<PerEnd<Vec<EndReport>>, RunError>, Duration) {
    let _turn = faulty::turn();
    let begun = Instant::now();
    let requested = || {
        let delay = signal?;
        (begun.elapsed() >= delay).then_some(Signal::SIGTERM)
    };
    let ended = supervise(faulty::make_of::<FAULT>(), task, &requested, None);
    (ended.map(|(reports, _)| reports), begun.elapsed())
}

#[test]
fn a_signal_does_not_wait_for_a_queue_to_be_made_or_an_operation_to_return() {
    let delay = Duration::from_millis(300);
    let task = task(LONG);
    for run in [run::<IS_MADE_SLOWLY>, run::<BLOCKS>] {
        let (ended, took) = run(&task, Some(delay));
        let is_expected = matches!(
            ended,
            Err(RunError::Rig(RigError::Interrupted(Signal::SIGTERM)))
        );
        assert!(is_expected, "{ended:?}");
        assert!(took >= delay, "no thread had begun: {took:?}");
        assert!(took < LONG, "{took:?}");
    }
}

#[test]
fn an_operation_that_does_not_return_ends_the_run_after_the_timeout() {
    let task = task(Duration::from_millis(200));
    let stuck = |ended: &Result<_, RunError>| match ended {
        Err(RunError::Rig(RigError::Stuck { role, .. })) => Some(*role),
        _ => None,
    };
    let (ended, took) = run::<BLOCKS>(&task, None);
    assert_eq!(stuck(&ended), Some(SENDER), "{ended:?}");
    let error = ended.unwrap_err();
    assert!(error.fails_its_point() && error.leaves_thread_behind());
    let text = error.as_failure_of_point();
    assert!(text.contains("this process has to end"), "{text}");
    let is_in_time = took < longest_silence(&task) + 3 * PATIENCE.grace;
    assert!(is_in_time, "{took:?}");
    let (ended, _) = run::<BLOCKS_AT_THE_END>(&task, None);
    assert_eq!(stuck(&ended), Some(RECEIVER), "{ended:?}");
}

#[test]
fn an_operation_that_returns_too_late_is_told_from_one_that_blocks() {
    let task = task(Duration::from_millis(200));
    let (ended, _) = run::<BLOCKS_FOR_A_WHILE>(&task, None);
    let Err(RunError::Rig(RigError::Silent { role, .. })) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(role, SENDER);
}

#[test]
fn pauses_are_no_silence_however_many_follow_each_other() {
    let pause = Duration::from_millis(400);
    let wait = EndLoad {
        load: Load::ConstantWait { wait_ns: 4e8 },
        ..EndLoad::NONE
    };
    for at_sender in [true, false] {
        let mut task = task(Duration::from_millis(1200));
        task.count = 6;
        *(if at_sender {
            &mut task.point.sender
        } else {
            &mut task.point.receiver
        }) = wait;
        // The sender's last pause ends with the receiver.
        let pauses = if at_sender { 5 } else { 6 };
        assert!(longest_silence(&task) < 5 * pause);
        let (ended, took) = run::<NOTHING>(&task, None);
        let ends = ended.unwrap();
        let (sender, receiver) = (&ends.sender[0], &ends.receiver[0]);
        assert_eq!(receiver.end.tally.noted, 6);
        assert_eq!(sender.end.tally.ending, Ending::Complete);
        assert_eq!(receiver.end.tally.ending, Ending::Complete);
        assert!(took >= pauses * pause, "{took:?}");
        let paced = if at_sender { sender } else { receiver };
        let Notes::Times(records) = &paced.notes else {
            panic!("the clock was asked for");
        };
        for pair in records[..6].windows(2) {
            let apart = pair[1][1].0 - pair[0][2].0;
            assert!(apart >= pause.as_nanos() as u64, "{apart}");
        }
    }
}

#[test]
fn what_goes_through_without_its_pauses_when_the_run_is_told_to_stop_is_no_result() {
    // All of it is in the queue at once, so that the receiver neither waits nor looks around until the end.
    let mut task = Task {
        limit: Duration::from_millis(300),
        ..task(LONG)
    };
    task.point.capacity = COUNT;
    task.point.receiver.load = Load::ConstantWait { wait_ns: 1e7 };
    let (ended, _) = run::<NOTHING>(&task, None);
    assert!(matches!(ended, Err(RunError::TooSlow { .. })), "{ended:?}");
}

#[test]
fn a_run_that_goes_on_and_on_is_told_from_one_that_is_silent() {
    let mut task = Task {
        limit: Duration::from_millis(300),
        ..task(LONG)
    };
    task.point.sender.load = Load::ConstantRate { rate_per_s: 100.0 };
    let (ended, _) = run::<NOTHING>(&task, None);
    assert!(matches!(ended, Err(RunError::TooSlow { .. })), "{ended:?}");
}
