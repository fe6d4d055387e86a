//! The sending loop.

use super::completion::Collect;
use super::control::Control;
use super::port::{Failure, SendPort};
use super::signalling::Signalling;
use crate::pacing::Pacing;
use crate::time::{Clock, Ticks};

/// Whether others may rewrite the stamp of a message that is being posted.
pub trait StampMode {
    /// Called between the stamp and the posting of message `sequence`.
    fn stamped(control: &Control, sequence: u32);
}

/// The stamp stays as it is: t_subm.
#[derive(Debug)]
pub struct SubmitStamp;

impl StampMode for SubmitStamp {
    #[inline(always)]
    fn stamped(_control: &Control, _sequence: u32) {}
}

/// The stamp is rewritten by a thread of its own until the HCA reads it: t_send.
#[derive(Debug)]
pub struct SendStamp;

impl StampMode for SendStamp {
    // Before posting, because an HCA may read the message before the posting call has returned.
    #[inline(always)]
    fn stamped(control: &Control, sequence: u32) {
        control.set_posted(sequence + 1);
    }
}

/// How a sending loop ended.
#[derive(Debug, Default)]
pub struct SendOutcome {
    /// Messages that were accepted by the port.
    pub posted: u32,
    /// When it began; a schedule begins with it.
    pub started: Ticks,
    /// What kept the rest from being posted.
    pub failure: Option<Failure>,
}

/// What is to be sent.
#[derive(Debug)]
pub struct BurstSend<'a> {
    /// Which messages ask for a completion.
    pub signalling: Signalling,
    /// Where t_subm of each message goes; its length is how many there are.
    pub submitted: &'a mut [Ticks],
    /// Shared with the other threads of the burst.
    pub control: &'a Control,
}

/// Posts the messages of `burst` and stores t_subm of each; `collect` takes completions in the pauses and after the
/// last.
pub fn send<S: StampMode>(
    clock: &impl Clock,
    port: &mut impl SendPort,
    pacing: &mut impl Pacing,
    collect: &mut impl Collect,
    burst: BurstSend<'_>,
) -> SendOutcome {
    let BurstSend {
        signalling: Signalling { block, queue_pairs },
        submitted,
        control,
    } = burst;
    let count = submitted.len() as u32;
    let mut posted = 0;
    let mut failure = None;
    let mut left_of_block = block;
    let last_of_each = count.saturating_sub(queue_pairs);
    let started = clock.now();
    pacing.start_at(started);
    for (sequence, slot) in submitted.iter_mut().enumerate() {
        let sequence = sequence as u32;
        left_of_block -= 1;
        let signaled = left_of_block < queue_pairs || sequence >= last_of_each;
        if left_of_block == 0 {
            left_of_block = block;
        }
        port.prepare(sequence, signaled);
        let stamp = clock.now();
        port.stamp(stamp);
        S::stamped(control, sequence);
        if let Err(error) = port.post() {
            failure = Some(error);
            // `S` may have announced it.
            control.set_posted(posted);
            control.set_failed();
            break;
        }
        *slot = stamp;
        posted = sequence + 1;
        control.set_posted(posted);
        if posted == count {
            break;
        }
        pacing.pause(clock, || {
            collect.collect(clock);
            !control.stopped()
        });
        if control.stopped() {
            break;
        }
    }
    control.set_sender_done();
    collect.finish(clock);
    SendOutcome {
        posted,
        started,
        failure,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bench::hca::loops::completion::{Collector, NoCollection};
    use crate::bench::hca::loops::port::scripted::{
        Counting, Entry, Look, Script, any_looks, failure, journal, note,
    };
    use crate::bench::hca::loops::tag::Tag;
    use crate::pacing::{ConstantWait, NoPause};
    use crate::time::Nanos;

    /// Writes down what it is told; refuses message number `fails_at`.
    struct Recording {
        fails_at: Option<u32>,
        posted: u32,
    }

    impl SendPort for Recording {
        fn prepare(&mut self, sequence: u32, signaled: bool) {
            note(Entry::Prepare(sequence, signaled));
        }
        fn stamp(&mut self, stamp: Ticks) {
            note(Entry::Stamp(stamp.0));
        }
        fn post(&mut self) -> Result<(), Failure> {
            note(Entry::Post);
            if self.fails_at == Some(self.posted) {
                return Err(failure(12, false));
            }
            self.posted += 1;
            Ok(())
        }
    }

    /// Does something in each pause, numbered from one.
    struct Meanwhile<F> {
        pauses: u32,
        pause: F,
        finished: bool,
    }

    impl<F: FnMut(u32)> Meanwhile<F> {
        fn new(pause: F) -> Self {
            Meanwhile {
                pauses: 0,
                pause,
                finished: false,
            }
        }
    }

    impl<F: FnMut(u32)> Collect for Meanwhile<F> {
        fn collect<C: Clock>(&mut self, _clock: &C) {
            self.pauses += 1;
            assert!(self.pauses < 10_000, "the pause does not end");
            (self.pause)(self.pauses);
        }
        fn finish<C: Clock>(&mut self, _clock: &C) {
            self.finished = true;
        }
    }

    const EACH: Signalling = Signalling {
        block: 1,
        queue_pairs: 1,
    };

    fn run_with<S: StampMode>(
        stamps: &mut [Ticks],
        signalling: Signalling,
        fails_at: Option<u32>,
        mut pacing: impl Pacing,
        collect: &mut impl Collect,
        control: &Control,
    ) -> SendOutcome {
        let mut port = Recording {
            fails_at,
            posted: 0,
        };
        let burst = BurstSend {
            signalling,
            submitted: stamps,
            control,
        };
        journal();
        let outcome = send::<S>(&Counting, &mut port, &mut pacing, collect, burst);
        assert_eq!(outcome.posted, port.posted);
        outcome
    }

    fn run<S: StampMode>(
        count: usize,
        fails_at: Option<u32>,
        collect: &mut impl Collect,
        control: &Control,
    ) -> (SendOutcome, Vec<Ticks>) {
        let mut stamps = vec![Ticks(0); count];
        let outcome = run_with::<S>(&mut stamps, EACH, fails_at, NoPause, collect, control);
        (outcome, stamps)
    }

    #[test]
    fn nothing_but_the_stamp_stands_between_the_reading_and_the_posting() {
        let control = Control::default();
        let (outcome, submitted) = run::<SubmitStamp>(3, None, &mut NoCollection, &control);
        let entries = journal();
        let messages: Vec<&[Entry]> = entries
            .split(|entry| matches!(entry, Entry::Post))
            .collect();
        assert_eq!(messages.len(), 4, "{entries:?}");
        for (sequence, (message, stamp)) in messages.iter().zip(&submitted).enumerate() {
            use Entry::{Clock, Prepare, Stamp};
            let from = message.len() - 3;
            assert_eq!(
                message[from..],
                [
                    Prepare(sequence as u32, true),
                    Clock(stamp.0),
                    Stamp(stamp.0)
                ]
            );
        }
        assert!(submitted.is_sorted() && submitted[0].0 > 0);
        assert_eq!(messages[3], []);
        assert_eq!((outcome.posted, control.posted()), (3, 3));
        assert!(outcome.failure.is_none() && control.sender_done());
        assert!(!control.failed() && !control.stopped());
    }

    #[test]
    fn every_nth_of_a_queue_pair_is_signalled_and_always_the_last() {
        let counts = [1_u32, 2, 3, 7, 8, 9, 64];
        let everies = [1, 2, 3, 8, 63, 64, 65, u32::MAX];
        let cases = counts.iter().flat_map(|count| {
            let each = everies.iter();
            each.flat_map(move |every| [1, 2, 3, 64].map(|pairs| (*count, *every, pairs)))
        });
        for (count, every, queue_pairs) in cases {
            let (control, signalling) = (Control::default(), Signalling::new(every, queue_pairs));
            let (mut stamps, collect) = (vec![Ticks(0); count as usize], &mut NoCollection);
            run_with::<SubmitStamp>(&mut stamps, signalling, None, NoPause, collect, &control);
            let number = |entry: &Entry| match *entry {
                Entry::Prepare(sequence, true) => Some(sequence),
                _ => None,
            };
            let signaled: Vec<u32> = journal().iter().filter_map(number).collect();
            let wanted = |sequence: &u32| {
                let number = sequence / queue_pairs + 1;
                number.is_multiple_of(every) || sequence + queue_pairs >= count
            };
            let expected: Vec<u32> = (0..count).filter(wanted).collect();
            let of = format!("{count} messages, every {every} of {queue_pairs}");
            assert_eq!(signaled, expected, "{of}");
            assert_eq!(signalling.among(count) as usize, expected.len(), "{of}");
        }
    }

    #[test]
    fn there_is_a_pause_between_two_messages_and_none_after_the_last() {
        for (count, pauses) in [(0, 0), (1, 0), (5, 4)] {
            let control = Control::default();
            let mut collect = Meanwhile::new(|_| ());
            let (outcome, _) = run::<SubmitStamp>(count, None, &mut collect, &control);
            assert_eq!((outcome.posted as usize, collect.pauses), (count, pauses));
            assert!(control.sender_done());
        }
    }

    #[test]
    fn a_refused_posting_ends_the_loop_and_is_not_counted() {
        fn check<S: StampMode>() {
            let control = Control::default();
            let mut collect = Meanwhile::new(|_| ());
            let (outcome, submitted) = run::<S>(5, Some(2), &mut collect, &control);
            assert_eq!(outcome.posted, 2);
            assert_eq!(outcome.failure.unwrap().to_string(), "failure 12");
            assert!(control.failed() && control.sender_done() && collect.finished);
            // A message that was not posted is not to be rewritten or waited for.
            assert_eq!(control.posted(), 2);
            assert_eq!(submitted[2..], [Ticks(0); 3]);
        }
        check::<SubmitStamp>();
        check::<SendStamp>();
    }

    #[test]
    fn who_rewrites_stamps_learns_of_a_message_before_it_is_posted_and_only_then() {
        struct Asking<'a>(&'a Control, Vec<(u32, u32)>);
        impl SendPort for Asking<'_> {
            fn prepare(&mut self, _sequence: u32, _signaled: bool) {}
            fn stamp(&mut self, _stamp: Ticks) {
                self.1.push((self.0.posted(), u32::MAX));
            }
            fn post(&mut self) -> Result<(), Failure> {
                self.1.last_mut().unwrap().1 = self.0.posted();
                Ok(())
            }
        }
        fn seen<S: StampMode>() -> Vec<(u32, u32)> {
            let control = Control::default();
            let mut port = Asking(&control, Vec::new());
            let burst = BurstSend {
                signalling: EACH,
                submitted: &mut [Ticks(0); 3],
                control: &control,
            };
            send::<S>(&Counting, &mut port, &mut NoPause, &mut NoCollection, burst);
            port.1
        }
        // While the loop's own stamp is written nobody else may write; from then on everybody may.
        assert_eq!(seen::<SendStamp>(), [(0, 1), (1, 2), (2, 3)]);
        assert_eq!(seen::<SubmitStamp>(), [(0, 0), (1, 1), (2, 2)]);
    }

    #[test]
    fn a_stop_in_the_middle_of_a_long_pause_ends_the_loop() {
        let control = Control::default();
        let mut collect = Meanwhile::new(|pauses| {
            if pauses == 500 {
                control.stop();
            }
        });
        let pacing = ConstantWait::new(&Counting, Nanos(1_000_000));
        let mut stamps = [Ticks(0); 3];
        let outcome =
            run_with::<SubmitStamp>(&mut stamps, EACH, None, pacing, &mut collect, &control);
        assert_eq!((outcome.posted, collect.pauses), (1, 500));
        assert!(control.sender_done() && outcome.failure.is_none());
    }

    #[test]
    fn completions_are_taken_in_the_pauses_and_after_the_last() {
        let control = Control::default();
        let done = |request| Look::Done(request, 0);
        // A pause between two postings ends with an empty look; what comes after the last posting comes slowly.
        let none = Look::Empty;
        let looks = [
            done(0),
            none,
            none,
            done(1),
            done(2),
            none,
            none,
            none,
            done(3),
        ];
        let mut completed = [Ticks(0); 4];
        let port = Script::new(looks, none, &control);
        let mut collector = Collector::new(port, &mut completed, 4, Tag::new(0), &control);
        let (outcome, submitted) = run::<SubmitStamp>(4, None, &mut collector, &control);
        let completions = collector.into_outcome();
        assert_eq!((outcome.posted, completions.succeeded), (4, 4));
        assert!(!control.stopped());
        // After its own posting and before the next, for the first; the others as the script has it.
        assert!([submitted[0], completed[0], submitted[1]].is_sorted());
        assert!([submitted[2], completed[1], completed[2], submitted[3]].is_sorted());
        assert!(submitted[3] < completed[3]);
        // No look between preparing and posting.
        let entries = journal();
        for (at, entry) in entries.iter().enumerate() {
            if *entry == Entry::Look {
                let before = entries[..at]
                    .iter()
                    .rfind(|entry| matches!(entry, Entry::Prepare(..) | Entry::Post));
                assert_eq!(before, Some(&Entry::Post), "{entries:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_script_ends_and_is_counted_right(
            (looks, afterwards) in any_looks((0_u64..40).prop_map(|request| Look::Done(request, 0))),
            count in 0_usize..40,
            every in 1_u32..50,
            queue_pairs in 1_u32..9,
            fails_at in prop::option::of(0_u32..60),
            pause in 0_u64..20,
        ) {
            let control = Control::default();
            let mut completed = [Ticks(0); 40];
            let signalling = Signalling::new(every, queue_pairs);
            let expected = signalling.among(count as u32);
            let mut collector =
                Collector::new(Script::new(looks, afterwards, &control), &mut completed, expected, Tag::new(0), &control);
            let mut submitted = vec![Ticks(0); count];
            let pacing = ConstantWait::new(&Counting, Nanos(pause));
            let outcome = run_with::<SendStamp>(&mut submitted, signalling, fails_at, pacing, &mut collector, &control);
            let completions = collector.into_outcome();
            prop_assert_eq!(control.posted(), outcome.posted);
            prop_assert!(control.sender_done());
            let stamped = submitted.iter().take_while(|stamp| stamp.0 != 0).count();
            prop_assert_eq!(stamped as u32, outcome.posted);
            prop_assert!(submitted[stamped..].iter().all(|stamp| stamp.0 == 0));
            prop_assert!(outcome.failure.is_none() || fails_at == Some(outcome.posted));
            prop_assert!(outcome.posted as usize == count || outcome.failure.is_some() || control.stopped());
            let all = completions.succeeded + completions.failed == expected;
            prop_assert!(all || control.stopped() || completions.failed > 0);
        }
    }
}
