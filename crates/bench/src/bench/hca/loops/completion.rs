//! Taking the send queue's completions: by a thread of its own, or by the sender in its pauses.

use super::control::Control;
use super::port::{CompletionPort, Failure, PollMode, PollResult};
use super::signalling::Signalling;
use super::tag::Tag;
use crate::time::{Clock, Ticks};

/// What the sending loop does about completions.
pub trait Collect {
    /// Takes what is there.
    fn collect<C: Clock>(&mut self, clock: &C);
    /// Takes all that still come, until told to stop.
    fn finish<C: Clock>(&mut self, clock: &C);
}

/// Nothing: a thread of its own takes them.
#[derive(Debug)]
pub struct NoCollection;

impl Collect for NoCollection {
    #[inline(always)]
    fn collect<C: Clock>(&mut self, _clock: &C) {}
    #[inline(always)]
    fn finish<C: Clock>(&mut self, _clock: &C) {}
}

/// How taking completions ended.
#[derive(Debug, Default)]
pub struct CompletionOutcome {
    /// Requests that completed well.
    pub succeeded: u32,
    /// Requests that completed with an error.
    pub failed: u32,
    /// The first error that was no consequence of another, or the first at all.
    pub failure: Option<Failure>,
}

/// More completions than a burst can have.
const WITHOUT_END: u32 = u32::MAX;

/// What is told of a completion beside its stamp.
pub trait CompletionObserver {
    /// Message `sequence` has completed.
    fn completed(&mut self, control: &Control, sequence: u32);
}

/// Nothing: all messages of a burst may be in flight.
impl CompletionObserver for () {
    #[inline(always)]
    fn completed(&mut self, _control: &Control, _sequence: u32) {}
}

/// How many messages have left their send queue, for a sender that waits for room in it.
#[derive(Debug)]
pub struct SendQueueProgress {
    signalling: Signalling,
    left: u32,
}

impl SendQueueProgress {
    /// None yet of messages that are signalled so.
    pub fn new(signalling: Signalling) -> Self {
        SendQueueProgress {
            signalling,
            left: 0,
        }
    }
}

impl CompletionObserver for SendQueueProgress {
    #[inline(always)]
    fn completed(&mut self, control: &Control, sequence: u32) {
        self.left += self.signalling.freed_by(sequence);
        control.set_left(self.left);
    }
}

/// Takes completions and stores t_comp of each at its sequence number.
pub struct Collector<'a, P, T = ()> {
    port: P,
    stamps: &'a mut [Ticks],
    expected: u32,
    tag: Tag,
    control: &'a Control,
    outcome: CompletionOutcome,
    tell: T,
}

impl<'a, P: CompletionPort> Collector<'a, P> {
    /// Takes `expected` completions of the burst `tag` from `port` and stores their stamps in `stamps`; what is left of
    /// earlier bursts is dropped.
    pub fn new(
        port: P,
        stamps: &'a mut [Ticks],
        expected: u32,
        tag: Tag,
        control: &'a Control,
    ) -> Self {
        Collector {
            port,
            stamps,
            expected,
            tag,
            control,
            outcome: CompletionOutcome::default(),
            tell: (),
        }
    }

    /// The same, which tells each completion.
    pub fn telling<T: CompletionObserver>(self, tell: T) -> Collector<'a, P, T> {
        Collector {
            port: self.port,
            stamps: self.stamps,
            expected: self.expected,
            tag: self.tag,
            control: self.control,
            outcome: self.outcome,
            tell,
        }
    }
}

impl<P: CompletionPort, T: CompletionObserver> Collector<'_, P, T> {
    /// Takes one completion; false if there was none.
    #[inline(always)]
    fn take<C: Clock>(&mut self, clock: &C) -> bool {
        match self.port.poll() {
            PollResult::Empty => false,
            PollResult::Done(completion) => {
                let stamp = clock.now();
                let label = completion.request as u32;
                if self.tag.is_of(label) {
                    let sequence = Tag::sequence(label);
                    if let Some(slot) = self.stamps.get_mut(sequence as usize) {
                        *slot = stamp;
                        self.port.keep_stamp(sequence as usize);
                    }
                    self.tell.completed(self.control, sequence);
                    self.outcome.succeeded += 1;
                    self.control
                        .set_completed(self.outcome.succeeded + self.outcome.failed);
                }
                true
            }
            PollResult::Failed(failure) => {
                self.fail(failure);
                true
            }
        }
    }

    #[cold]
    fn fail(&mut self, failure: Failure) {
        self.outcome.failed += 1;
        self.control.set_failed();
        self.control
            .set_completed(self.outcome.succeeded + self.outcome.failed);
        // From now on every request completes with an error, signalled or not: take what comes until told to stop. A
        // failure of the queue itself is no completion, and none follows.
        self.expected = if failure.request.is_some() {
            WITHOUT_END
        } else {
            0
        };
        match &self.outcome.failure {
            Some(first) if !first.consequence || failure.consequence => {}
            _ => self.outcome.failure = Some(failure),
        }
    }

    #[inline(always)]
    fn is_done(&self) -> bool {
        self.outcome.succeeded + self.outcome.failed >= self.expected
    }

    /// Whether requests have failed, so that nobody knows how many completions there will be.
    #[inline(always)]
    fn is_failing(&self) -> bool {
        self.expected == WITHOUT_END
    }

    /// Takes completions until all are there or it is told to stop.
    pub fn run<C: Clock, M: PollMode<P>>(mut self, clock: &C, mut mode: M) -> CompletionOutcome {
        if let Err(failure) = mode.start(&mut self.port) {
            self.fail(failure);
            return self.outcome;
        }
        self.control.announce_ready();
        let mut stopping = false;
        while !self.is_done() {
            let found = self.take(clock);
            if !found || self.is_failing() {
                // One more look after the stop flag: what came before it counts.
                if stopping {
                    break;
                }
                stopping = self.control.stopped();
            }
            if !found
                && !stopping
                && let Err(failure) = mode.idle(&mut self.port)
            {
                self.fail(failure);
                break;
            }
        }
        self.outcome
    }

    /// How it went so far.
    pub fn into_outcome(self) -> CompletionOutcome {
        self.outcome
    }
}

impl<P: CompletionPort, T: CompletionObserver> Collect for Collector<'_, P, T> {
    #[inline(always)]
    fn collect<C: Clock>(&mut self, clock: &C) {
        // A broken queue fails at each look, and would never be empty.
        while !self.is_done() && !self.control.stopped() && self.take(clock) {}
    }

    fn finish<C: Clock>(&mut self, clock: &C) {
        let mut stopping = false;
        while !self.is_done() {
            if !self.take(clock) || self.is_failing() {
                // As in `run`.
                if stopping {
                    break;
                }
                stopping = self.control.stopped();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bench::hca::loops::port::scripted::{
        Counting, Entry, Eventful, Look, Script, any_looks, arrival_orders, journal,
    };
    use crate::bench::hca::loops::port::{BusyPolling, EventPort, WaitForEvent};

    fn done(request: u64) -> Look {
        Look::Done(request, 0)
    }

    const POLLING: u32 = 0;
    const SLEEPING: u32 = 1;

    /// Takes `expected` completions of burst 0 in one of three ways: polling, sleeping, or as the sender does it.
    fn collect(
        port: impl EventPort,
        way: u32,
        room: usize,
        expected: u32,
        control: &Control,
    ) -> (CompletionOutcome, Vec<Ticks>) {
        let mut stamps = vec![Ticks(0); room];
        let mut collector = Collector::new(port, &mut stamps, expected, Tag::new(0), control);
        let outcome = match way {
            POLLING => collector.run(&Counting, BusyPolling),
            SLEEPING => collector.run(&Counting, WaitForEvent::default()),
            _ => {
                collector.collect(&Counting);
                collector.finish(&Counting);
                collector.into_outcome()
            }
        };
        (outcome, stamps)
    }

    fn run(
        looks: &[Look],
        room: usize,
        expected: u32,
        control: &Control,
    ) -> (CompletionOutcome, Vec<Ticks>) {
        let port = Script::new(looks.iter().copied(), Look::Empty, control);
        collect(port, POLLING, room, expected, control)
    }

    #[test]
    fn each_stamp_is_read_after_its_completion_and_stands_at_its_sequence_number() {
        let control = Control::default();
        journal();
        let (outcome, stamps) = run(&[done(1), Look::Empty, done(3), done(0)], 4, 3, &control);
        use Entry::{Clock, Look as Looked};
        assert_eq!(
            journal(),
            [Looked, Clock(1), Looked, Looked, Clock(2), Looked, Clock(3)]
        );
        assert_eq!(stamps, [Ticks(3), Ticks(1), Ticks(0), Ticks(2)]);
        assert_eq!((outcome.succeeded, outcome.failed), (3, 0));
        assert!(outcome.failure.is_none() && !control.failed() && !control.stopped());
        assert_eq!(control.completed(), 3);
        assert_eq!(control.ready(), 1);
        // One of an unknown request is counted, and stored nowhere.
        let (outcome, stamps) = run(&[done(2), done(65_535)], 2, 2, &Control::default());
        assert_eq!((outcome.succeeded, &stamps[..]), (2, &[Ticks(0); 2][..]));
    }

    #[test]
    fn missing_completions_end_with_the_word_to_stop_and_what_came_before_it_counts() {
        for way in 0..3 {
            let control = Control::default();
            let looks = [done(0), Look::Stop, Look::Empty, done(1)];
            let mut port = Script::new(looks, Look::Empty, &control);
            port.sleeping_fails_at = Some(0);
            let (outcome, stamps) = collect(port, way, 3, 3, &control);
            assert_eq!((outcome.succeeded, outcome.failed), (2, 0), "{way}");
            assert_eq!(stamps[2], Ticks(0));
        }
    }

    #[test]
    fn a_completion_of_another_burst_is_not_taken_for_one_of_this() {
        let control = Control::default();
        let (old, new) = (Tag::new(4), Tag::new(5));
        let of = |tag: Tag, sequence| done(u64::from(tag.immediate_data(sequence)));
        let looks = [of(old, 0), of(new, 1), of(old, 1), of(new, 0)];
        let port = Script::new(looks, Look::Empty, &control);
        let mut stamps = [Ticks(0); 2];
        let before = Counting.now().0;
        let collector = Collector::new(port, &mut stamps, 2, new, &control);
        let outcome = collector.run(&Counting, BusyPolling);
        assert_eq!((outcome.succeeded, outcome.failed), (2, 0));
        // The fourth and the second reading of the clock.
        assert_eq!(stamps, [Ticks(before + 4), Ticks(before + 2)]);
    }

    #[test]
    fn the_first_failure_that_is_no_consequence_is_kept() {
        for (looks, kept) in [
            (&[(1, false)][..], 1),
            (&[(1, true), (2, true)], 1),
            (&[(1, false), (2, false)], 1),
            (&[(1, false), (2, true)], 1),
            (&[(1, true), (2, false)], 2),
            (
                &[(1, true), (2, true), (3, false), (4, false), (5, true)],
                3,
            ),
        ] {
            let control = Control::default();
            let failed = |&(code, consequence): &(i64, bool)| Look::Failed(code, consequence);
            let looks: Vec<Look> = looks.iter().map(failed).collect();
            let (outcome, _) = run(&looks, 4, looks.len() as u32, &control);
            assert!(control.failed());
            let counts = (outcome.succeeded, outcome.failed as usize);
            assert_eq!(counts, (0, looks.len()));
            assert_eq!(outcome.failure.unwrap().code, kept);
        }
    }

    #[test]
    fn after_a_failure_all_that_comes_is_counted_until_the_word_to_stop() {
        // Unsignalled requests make no completion unless they fail: one is expected, many come.
        let failed = Look::Failed(2, true);
        let looks = [Look::Failed(1, false), failed, Look::Empty, failed];
        let control = Control::default();
        let (outcome, _) = run(&looks, 3, 1, &control);
        assert_eq!((outcome.succeeded, outcome.failed), (0, 3));
        assert_eq!(control.completed(), 3);
        assert!(control.stopped());
    }

    #[test]
    fn an_event_that_cannot_be_had_ends_the_loop() {
        for (arming, sleeping, code, succeeded) in [
            (Some(0), None, 100, 0),
            (Some(1), None, 100, 2),
            (None, Some(0), 200, 1),
        ] {
            let control = Control::default();
            let looks = [done(0), Look::Empty, done(1), Look::Empty, done(2)];
            let mut port = Script::new(looks, Look::Empty, &control);
            (port.arming_fails_at, port.sleeping_fails_at) = (arming, sleeping);
            let (outcome, _) = collect(port, SLEEPING, 3, 3, &control);
            assert_eq!(outcome.succeeded, succeeded);
            assert_eq!(outcome.failure.unwrap().code, code);
            assert!(control.failed() && !control.stopped());
            // Nothing is sent when it could not even start.
            assert_eq!(control.ready(), u32::from(arming != Some(0)));
        }
    }

    #[test]
    fn no_completion_is_slept_through() {
        for arrivals in arrival_orders(3, 11) {
            let control = Control::default();
            let port = Eventful::new(&arrivals, &control);
            let (outcome, _) = collect(port, SLEEPING, 3, 3, &control);
            assert_eq!(outcome.succeeded, 3, "{arrivals:?}");
            assert!(!control.stopped());
        }
    }

    #[test]
    fn taking_in_between_waits_for_nothing_and_taking_the_rest_goes_on_over_empty_looks() {
        let control = Control::default();
        let mut stamps = [Ticks(0); 5];
        let looks = [
            &[Look::Empty, done(0), done(1)][..],
            &[Look::Empty, done(2)],
            &[Look::Empty, Look::Empty, done(3)],
        ];
        let port = Script::new(looks.concat(), Look::Empty, &control);
        let mut collector = Collector::new(port, &mut stamps, 4, Tag::new(0), &control);
        for succeeded in [0, 2] {
            collector.collect(&Counting);
            assert_eq!(collector.outcome.succeeded, succeeded);
        }
        collector.finish(&Counting);
        assert_eq!(collector.outcome.succeeded, 4);
        assert!(!control.stopped());
    }

    #[test]
    fn a_broken_queue_does_not_hold_the_sender() {
        let control = Control::default();
        let mut stamps = [Ticks(0); 2];
        let port = Script::new([done(0)], Look::Broken(9), &control);
        let mut collector = Collector::new(port, &mut stamps, 2, Tag::new(0), &control);
        collector.collect(&Counting);
        let outcome = collector.into_outcome();
        assert_eq!((outcome.succeeded, outcome.failed), (1, 1));
    }

    proptest! {
        #[test]
        fn any_script_ends_and_is_counted_right(
            (looks, afterwards) in any_looks(prop_oneof![6 => 0_u64..40, 1 => 0_u64..65_536].prop_map(done)),
            expected in 0_u32..40,
            way in 0_u32..3,
        ) {
            let control = Control::default();
            let port = Script::new(looks, afterwards, &control);
            journal();
            let (outcome, stamps) = collect(port, way, 40, expected, &control);
            let readings = journal().iter().filter(|entry| matches!(entry, Entry::Clock(_))).count();
            prop_assert_eq!(readings, outcome.succeeded as usize);
            prop_assert_eq!(control.completed(), outcome.succeeded + outcome.failed);
            prop_assert_eq!(control.failed(), outcome.failed > 0);
            prop_assert_eq!(outcome.failure.is_some(), outcome.failed > 0);
            prop_assert!(outcome.succeeded <= expected || outcome.failed > 0);
            let all = outcome.succeeded + outcome.failed == expected;
            prop_assert!(all || control.stopped() || outcome.failed > 0);
            prop_assert!(stamps.iter().filter(|stamp| stamp.0 != 0).count() <= outcome.succeeded as usize);
        }
    }
}
