//! What is decided without a device: which numbers of requests can work, which samples are signalled, how many
//! completions a call of write takes.

use crate::node::Settings;

/// Why these numbers cannot work, if they cannot.
pub fn refusal(settings: &Settings) -> Option<String> {
    let (sends, receives) = (settings.send_queue, settings.receive_queue);
    let (every, threshold) = (settings.verbs.signal_every, settings.receive_threshold());
    let vectorize = settings.vectorize as u32;
    if every > sends {
        return Some(format!(
            "--signal-every {every}: must be at most --send-queue, which is {sends}: a queue full of \
            requests without a completion is never empty again"
        ));
    }
    if threshold <= vectorize && settings.verbs.receive_threshold.is_none() {
        return Some(format!(
            "--receive-queue {receives}: must be above 3 * --vectorize, which is {}: it holds what is posted while \
            samples are looked for, and two calls more",
            3 * vectorize
        ));
    }
    if threshold <= vectorize {
        return Some(format!(
            "--receive-threshold {threshold}: must be above --vectorize, which is {vectorize}: one call could take all \
             that is posted"
        ));
    }
    let most = receives.saturating_sub(2 * vectorize);
    (threshold > most).then(|| {
        format!(
            "--receive-threshold {threshold}: must be at most --receive-queue - 2 * --vectorize, which is \
            {most}: below the threshold a call posts {vectorize} more"
        )
    })
}

/// Which of the samples that can be sent inline is not, and is signalled instead.
#[derive(Debug, Clone, Copy)]
pub struct Signals {
    every: u32,
    since: u32,
    inline: bool,
}

impl Signals {
    /// One in `every` inline samples is signalled; where they are not inline all are.
    pub fn new(every: u32, inline: bool) -> Self {
        Signals {
            every,
            since: 0,
            inline,
        }
    }

    /// Whether the sample is signalled that comes after `ahead` others that are not posted yet.
    #[inline(always)]
    pub fn is_signaled(&self, ahead: usize) -> bool {
        !self.inline
            || (u64::from(self.since) + ahead as u64 + 1).is_multiple_of(u64::from(self.every))
    }

    /// This many more were posted.
    #[inline(always)]
    pub fn advance(&mut self, posted: usize) {
        self.since = ((u64::from(self.since) + posted as u64) % u64::from(self.every)) as u32;
    }
}

/// Samples whose completions a call of write takes at most: as many as `count` places for samples have
/// become free, of which `released` are taken again. Where the queue was full, or the caller had no sample
/// left, there is always one: nothing else empties the queue.
#[inline(always)]
pub fn to_poll(count: usize, taken: usize, released: usize) -> usize {
    let in_need = taken < count || count == 0;
    (count - released).max(usize::from(in_need))
}

/// What a call of read does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadAction {
    /// It posts all that it was given, and looks for nothing.
    Fill,
    /// It waits for completions, at least one and at most this many.
    Poll(usize),
}

impl ReadAction {
    /// With this many requests posted, and this many empty slots given.
    #[inline(always)]
    pub fn of(posted: usize, threshold: usize, given: usize) -> Self {
        match posted < threshold {
            true => ReadAction::Fill,
            false => ReadAction::Poll(given),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::settings::Verbs;

    fn refused(every: u32, threshold: u32) -> Option<String> {
        refusal(&Settings {
            vectorize: 4,
            send_queue: 16,
            receive_queue: 32,
            verbs: Verbs {
                signal_every: every,
                receive_threshold: Some(threshold),
                ..Verbs::default()
            },
            ..Settings::of_words(3)
        })
    }

    #[test]
    fn numbers_that_cannot_work_are_refused_with_the_rule() {
        assert_eq!(refused(16, 24), None);
        assert_eq!(refused(1, 5), None);
        for (every, threshold, said) in [
            (
                17,
                24,
                "--signal-every 17: must be at most --send-queue, which is 16",
            ),
            (
                16,
                25,
                "--receive-threshold 25: must be at most --receive-queue - 2 * --vectorize, which is 24",
            ),
            (
                16,
                4,
                "--receive-threshold 4: must be above --vectorize, which is 4",
            ),
        ] {
            let reason = refused(every, threshold).unwrap();
            assert!(reason.contains(said), "{reason}");
        }
    }

    #[test]
    fn a_queue_too_short_for_the_usual_threshold_is_what_is_refused() {
        let refused = |receive_queue| {
            refusal(&Settings {
                vectorize: 4,
                receive_queue,
                ..Settings::of_words(3)
            })
        };
        assert_eq!(refused(13), None);
        let reason = refused(12).unwrap();
        assert!(
            reason.starts_with("--receive-queue 12: must be above 3 * --vectorize, which is 12")
        );
    }

    /// Posts `count` samples in calls of these lengths, of which the first `room` are taken; counts the signalled ones.
    fn signalled(mut signals: Signals, calls: &[(usize, usize)]) -> (usize, usize) {
        let (mut posted, mut signalled) = (0, 0);
        for &(length, room) in calls {
            let taken = length.min(room);
            signalled += (0..taken).filter(|&at| signals.is_signaled(at)).count();
            signals.advance(taken);
            posted += taken;
        }
        (posted, signalled)
    }

    #[test]
    fn one_in_k_inline_samples_is_signalled_and_each_that_is_not_inline() {
        for every in [1, 2, 7, 64] {
            let calls = [(1, 1), (5, 5), (3, 0), (8, 2), (4, 4)].repeat(97);
            let (posted, inline) = signalled(Signals::new(every, true), &calls);
            assert_eq!(inline, posted / every as usize, "{every}");
            let (posted, normal) = signalled(Signals::new(every, false), &calls);
            assert_eq!(normal, posted);
        }
        // A sample that was refused is decided anew.
        let mut signals = Signals::new(2, true);
        signals.advance(1);
        assert!(signals.is_signaled(0) && !signals.is_signaled(1));
        signals.advance(0);
        assert!(signals.is_signaled(0));
    }

    #[test]
    fn write_looks_for_as_many_completions_as_there_are_places() {
        // Held, inline, some of both.
        assert_eq!(to_poll(4, 4, 0), 4);
        assert_eq!(to_poll(4, 4, 4), 0);
        assert_eq!(to_poll(4, 4, 3), 1);
        // All refused, and none given.
        assert_eq!(to_poll(4, 0, 4), 1);
        assert_eq!(to_poll(0, 0, 0), 1);
    }

    #[test]
    fn read_fills_the_queue_up_to_the_threshold_first() {
        assert_eq!(ReadAction::of(0, 3, 2), ReadAction::Fill);
        assert_eq!(ReadAction::of(2, 3, 2), ReadAction::Fill);
        assert_eq!(ReadAction::of(3, 3, 2), ReadAction::Poll(2));
        assert_eq!(ReadAction::of(4, 3, 2), ReadAction::Poll(2));
    }
}
