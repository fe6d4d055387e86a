//! The receiving loop.

use super::control::Control;
use super::port::{Completion, CompletionPort, Failure, PollMode, PollResult};
use super::tag::{Expected, Tag};
use crate::bench::hca::settings::limits::LARGEST_BURST;
use crate::buffer::Arrival;
use crate::time::Clock;

/// How a receiving loop ended.
#[derive(Debug, Default)]
pub struct ReceiveOutcome {
    /// Entries of the log that are filled.
    pub received: usize,
    /// Completions of messages that are not of the burst: of an earlier one, or of somebody else.
    pub strays: Strays,
    /// What ended the loop early.
    pub failure: Option<Failure>,
}

/// Completions of messages that are not of the burst. Each took a receive request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Strays {
    /// Of an earlier burst.
    pub late: u32,
    /// Of somebody else: of another queue pair, with a number that was never sent, or too large.
    pub foreign: u32,
}

impl Strays {
    /// Files a completion that is not of the burst; no burst has more than `longest` messages.
    #[cold]
    pub fn file(&mut self, completion: &Completion, expected: &Expected, longest: u32) {
        if expected.is_late(completion, longest) {
            self.late += 1;
        } else {
            self.foreign += 1;
        }
    }

    /// All of them.
    pub fn total(&self) -> u32 {
        self.late + self.foreign
    }
}

/// Takes completions until `arrivals` is full, or it is told to stop.
pub fn receive<C: Clock, P: CompletionPort, M: PollMode<P>>(
    clock: &C,
    port: &mut P,
    mut mode: M,
    expected: Expected,
    arrivals: &mut [Arrival],
    control: &Control,
) -> ReceiveOutcome {
    let mut outcome = ReceiveOutcome::default();
    if let Err(failure) = mode.start(port) {
        control.set_failed();
        outcome.failure = Some(failure);
        return outcome;
    }
    control.announce_ready();
    let mut received = 0;
    let mut furthest = 0;
    let mut stopping = false;
    while received < arrivals.len() {
        match port.poll() {
            PollResult::Done(completion) => {
                let stamp = clock.now();
                arrivals[received] = Arrival {
                    stamp,
                    label: completion.immediate_data,
                    slot: completion.request as u32,
                    bytes: completion.bytes,
                };
                port.keep_stamp(received);
                if expected.includes(&completion) {
                    received += 1;
                    furthest = furthest.max(Tag::sequence(completion.immediate_data) + 1);
                    control.set_received(furthest);
                } else {
                    // It is overwritten by the next one.
                    outcome.strays.file(&completion, &expected, LARGEST_BURST);
                    if control.stopped() {
                        break;
                    }
                }
            }
            PollResult::Failed(failure) if failure.foreign => {
                outcome.strays.foreign += 1;
                if control.stopped() {
                    break;
                }
            }
            PollResult::Empty => {
                // One more look after the stop flag, at all that may still be there: what came before it counts.
                if stopping && !port.finds_behind(usize::MAX) {
                    break;
                }
                stopping = control.stopped();
                if !stopping && let Err(failure) = mode.idle(port) {
                    control.set_failed();
                    outcome.failure = Some(failure);
                    break;
                }
            }
            PollResult::Failed(failure) => {
                control.set_failed();
                outcome.failure = Some(failure);
                break;
            }
        }
    }
    outcome.received = received;
    outcome
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bench::hca::loops::port::scripted::{
        Counting, Entry, Eventful, Look, Script, any_looks, arrival_orders, journal,
    };
    use crate::bench::hca::loops::port::{BusyPolling, WaitForEvent};
    use crate::time::Ticks;

    const BURST: u32 = 4;

    fn message(sequence: u32) -> Look {
        Look::Done(
            u64::from(sequence) + 10,
            Tag::new(BURST).immediate_data(sequence),
        )
    }

    fn late(sequence: u32) -> Look {
        Look::Done(
            u64::from(sequence) + 70,
            Tag::new(BURST - 1).immediate_data(sequence),
        )
    }

    fn run<P: CompletionPort>(
        port: &mut P,
        mode: impl PollMode<P>,
        expected: Expected,
        room: usize,
        control: &Control,
    ) -> (ReceiveOutcome, Vec<Arrival>) {
        let mut arrivals = vec![Arrival::default(); room];
        let outcome = receive(&Counting, port, mode, expected, &mut arrivals, control);
        (outcome, arrivals)
    }

    fn either(
        port: &mut Script<'_>,
        event: bool,
        room: usize,
        control: &Control,
    ) -> (ReceiveOutcome, Vec<Arrival>) {
        let expected = Expected::new(BURST, room, &[]);
        if event {
            run(port, WaitForEvent::default(), expected, room, control)
        } else {
            run(port, BusyPolling, expected, room, control)
        }
    }

    fn poll(
        looks: &[Look],
        afterwards: Look,
        room: usize,
        control: &Control,
    ) -> (ReceiveOutcome, Vec<Arrival>) {
        let mut port = Script::new(looks.iter().copied(), afterwards, control);
        either(&mut port, false, room, control)
    }

    fn sequences(arrivals: &[Arrival]) -> Vec<u32> {
        let sequence = |arrival: &Arrival| Tag::sequence(arrival.label);
        arrivals.iter().map(sequence).collect()
    }

    #[test]
    fn the_clock_is_read_right_after_a_completion_was_seen_and_at_no_other_time() {
        let control = Control::default();
        let empty = Look::Empty;
        let looks = [empty, message(0), empty, empty, message(1)];
        journal();
        let (outcome, arrivals) = poll(&looks, empty, 2, &control);
        use Entry::{Clock, Look as Looked};
        assert_eq!(
            journal(),
            [Looked, Looked, Clock(1), Looked, Looked, Looked, Clock(2)]
        );
        assert_eq!(outcome.received, 2);
        let expected = |sequence: u32| Arrival {
            stamp: Ticks(u64::from(sequence) + 1),
            label: Tag::new(BURST).immediate_data(sequence),
            slot: sequence + 10,
            bytes: 8,
        };
        assert_eq!(arrivals, [expected(0), expected(1)]);
        assert_eq!(control.received(), 2);
        assert!(!control.failed() && !control.stopped());
        assert_eq!(control.ready(), 1);
    }

    #[test]
    fn what_is_lost_ends_the_loop_when_it_is_told_to_stop() {
        let control = Control::default();
        let looks = [message(0), Look::Empty, message(2)];
        let (outcome, arrivals) = poll(&looks, Look::Empty, 4, &control);
        assert_eq!((outcome.received, outcome.strays.late), (2, 0));
        assert!(outcome.failure.is_none() && !control.failed());
        assert_eq!(sequences(&arrivals[..2]), [0, 2]);
        assert_eq!(arrivals[2..], [Arrival::default(); 2]);
    }

    #[test]
    fn what_came_before_the_word_to_stop_counts() {
        // Both times the loop finds nothing, and messages and word come before it asks for the word.
        for event in [false, true] {
            let control = Control::default();
            let looks = [Look::Stop, Look::Empty, message(0), message(1)];
            let mut port = Script::new(looks, Look::Empty, &control);
            port.sleeping_fails_at = Some(0);
            let (outcome, _) = either(&mut port, event, 4, &control);
            assert_eq!(outcome.received, 2);
            let failure = outcome.failure;
            assert!(failure.is_none(), "nobody sleeps after the stop flag");
        }
    }

    #[test]
    fn messages_of_others_are_told_from_late_ones_and_take_no_place() {
        let control = Control::default();
        let tag = Tag::new(BURST);
        let (ours, other) = (17, 18);
        let looks = [
            Look::From(other, tag.immediate_data(0)),
            Look::From(ours, tag.immediate_data(0)),
            Look::Misfit,
            Look::From(ours, tag.immediate_data(2)),
            Look::From(ours, Tag::new(BURST + 1).immediate_data(1)),
            Look::From(ours, Tag::new(BURST - 1).immediate_data(1)),
            Look::From(ours, tag.immediate_data(1)),
        ];
        let mut port = Script::new(looks, Look::Empty, &control);
        let sources = [ours];
        let expected = Expected::new(BURST, 2, &sources);
        let (outcome, arrivals) = run(&mut port, BusyPolling, expected, 2, &control);
        let (late, foreign) = (1, 4);
        assert_eq!(outcome.strays, Strays { late, foreign });
        // Those of the burst overwrite them.
        assert_eq!((outcome.received, control.received()), (2, 2));
        assert_eq!(sequences(&arrivals), [0, 1]);
        assert!(arrivals.iter().all(|arrival| tag.is_of(arrival.label)));
        assert!(outcome.failure.is_none() && !control.failed() && !control.stopped());
    }

    #[test]
    fn strays_without_end_do_not_keep_it_from_stopping() {
        for (look, is_late) in [(message(9), false), (Look::Misfit, false), (late(1), true)] {
            let control = Control::default();
            let (outcome, _) = poll(&[message(0)], look, 4, &control);
            let strays = outcome.strays;
            assert_eq!((outcome.received, strays.late > 0), (1, is_late));
            assert!(strays.total() >= 1 && outcome.failure.is_none());
        }
    }

    #[test]
    fn a_failed_receive_ends_the_loop() {
        let control = Control::default();
        let looks = [message(0), Look::Failed(7, false), message(1)];
        let (outcome, _) = poll(&looks, Look::Empty, 4, &control);
        assert_eq!(outcome.received, 1);
        assert_eq!(outcome.failure.unwrap().to_string(), "failure 7");
        assert!(control.failed() && !control.stopped());
    }

    #[test]
    fn an_event_that_cannot_be_had_ends_the_loop() {
        for (arming, sleeping, code, received) in [
            (Some(0), None, 100, 0),
            (Some(1), None, 100, 2),
            (None, Some(0), 200, 1),
            (None, Some(1), 200, 3),
        ] {
            let control = Control::default();
            let looks = [0, 1, 2, 3].map(|sequence| [message(sequence), Look::Empty]);
            let mut port = Script::new(looks.into_iter().flatten(), Look::Empty, &control);
            (port.arming_fails_at, port.sleeping_fails_at) = (arming, sleeping);
            let (outcome, _) = either(&mut port, true, 4, &control);
            assert_eq!(outcome.received, received);
            assert_eq!(outcome.failure.unwrap().code, code);
            assert!(control.failed() && !control.stopped());
            // Nothing is sent to where nobody listens.
            assert_eq!(control.ready(), u32::from(arming != Some(0)));
        }
    }

    #[test]
    fn no_completion_is_slept_through_and_waiting_for_what_is_lost_ends() {
        let mut sleeps = 0;
        for (count, latest) in [(3, 11), (2, 8)] {
            for arrivals in arrival_orders(count, latest) {
                let control = Control::default();
                let mut port = Eventful::new(&arrivals, &control);
                let expected = Expected::new(0, 3, &[]);
                let (outcome, _) = run(&mut port, WaitForEvent::default(), expected, 3, &control);
                assert_eq!(outcome.received, count, "{arrivals:?}");
                assert!(control.stopped() == (count < 3) && outcome.failure.is_none());
                sleeps += port.sleeps;
            }
        }
        // Else nothing was tested.
        assert!(sleeps > 100);
    }

    fn any_message() -> impl Strategy<Value = Look> {
        prop_oneof![
            6 => any::<u16>().prop_map(|sequence| message(sequence.into())),
            2 => any::<u16>().prop_map(|sequence| late(sequence.into())),
            2 => (any::<u64>(), any::<u32>()).prop_map(|(request, data)| Look::Done(request, data)),
            1 => Just(Look::Misfit),
        ]
    }

    proptest! {
        #[test]
        fn any_script_ends_and_is_counted_right(
            (looks, afterwards) in any_looks(any_message()),
            room in 0_usize..40,
            event in any::<bool>(),
        ) {
            let control = Control::default();
            let mut port = Script::new(looks, afterwards, &control);
            let tag = Tag::new(BURST);
            journal();
            let (outcome, log) = either(&mut port, event, room, &control);
            let readings = journal().iter().filter(|entry| matches!(entry, Entry::Clock(_))).count();
            prop_assert!(readings >= outcome.received + outcome.strays.late as usize);
            prop_assert!(readings <= outcome.received + outcome.strays.total() as usize);
            prop_assert!(outcome.received <= room);
            let last = outcome.received.checked_sub(1).map(|last| Tag::sequence(log[last].label));
            prop_assert_eq!(control.received(), last.map_or(0, |sequence| sequence + 1));
            prop_assert!(log[..outcome.received].iter().all(|arrival| tag.is_of(arrival.label)));
            prop_assert!(log[..outcome.received].is_sorted_by_key(|arrival| arrival.stamp));
            prop_assert_eq!(control.failed(), outcome.failure.is_some());
            prop_assert!(outcome.received == room || control.stopped() || control.failed());
        }
    }
}
