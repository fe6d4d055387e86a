//! After a burst: what became of each message.

use super::in_flight::set_in_flight;
use crate::bench::hca::loops::tag::Tag;
use crate::bench::hca::message::{Counts, Fate, Message};
use crate::bench::hca::settings::config::Timestamp;
use crate::buffer::Arrival;
use crate::rig::ledger::{self, Ledger};
use crate::time::{Clock, Nanos, Ticks};

/// What the loops stored of one burst.
#[derive(Debug, Clone, Copy)]
pub struct Burst<'a> {
    /// The burst's number among the measured ones.
    pub repeat: u32,
    /// t_subm of each posted message.
    pub submitted: &'a [Ticks],
    /// t_comp of each, zero where there was no completion.
    pub completed: &'a [Ticks],
    /// What arrived, in order.
    pub arrivals: &'a [Arrival],
    /// When each was meant to be posted, if that was told.
    pub intended: Option<&'a [Ticks]>,
    /// Which moment the messages carry.
    pub timestamp: Timestamp,
}

/// How far the clock of the CPU that rewrites stamps may be behind the sender's or ahead of the receiver's before a
/// stamp is no stamp of this run. Clocks that differ by as much are of no use; of all that a stranger can put there, one
/// of 10^13 lies so near.
const CLOCKS_DIFFER: Nanos = Nanos(1_000_000);

/// Judges each message of a burst. `delivered` tells what stamp an arrival brought for the message of that number, if
/// it is as it was sent. Arrivals of another clock than the sender's are stamped in nanoseconds.
pub fn judge(
    clock: &impl Clock,
    burst: Burst<'_>,
    other_clock: bool,
    delivered: impl Fn(&Arrival, u32) -> Option<Ticks>,
) -> (Vec<Message>, Counts) {
    let nanos = |ticks: Ticks| clock.to_nanos(ticks).0;
    let tolerance = clock.ticks_in(CLOCKS_DIFFER);
    let mut ledger = Ledger::new(&[burst.submitted.len()]);
    let mut messages = posted(clock, burst);
    let mut not_restamped = 0;
    let completed = burst.completed.iter().map(|stamp| stamp.0).max();
    let last_completed = completed.filter(|stamp| *stamp > 0).unwrap_or(u64::MAX);
    for arrival in burst.arrivals {
        let sequence = Tag::sequence(arrival.label);
        if ledger.arrived(0, sequence as usize) != ledger::Arrival::First {
            continue;
        }
        let message = &mut messages[sequence as usize];
        message.received_ns = Some(match other_clock {
            false => nanos(arrival.stamp),
            true => arrival.stamp.0,
        });
        let submitted = burst.submitted[sequence as usize];
        let is_of_this_run = |stamp: &Ticks| match burst.timestamp {
            Timestamp::Submit => *stamp == submitted,
            // A stamp a little before t_subm or after the arrival is a clock that differs between two CPUs, and is
            // warned of: the message is as it was sent.
            Timestamp::Send => {
                let earliest = submitted.0.saturating_sub(tolerance.0);
                let latest = match other_clock {
                    false => arrival.stamp.0.saturating_add(tolerance.0),
                    // By the sender's clock nothing later is known of it.
                    true => last_completed.saturating_add(tolerance.0),
                };
                (earliest..=latest).contains(&stamp.0)
            }
        };
        let stamp = delivered(arrival, sequence).filter(is_of_this_run);
        message.fate = if stamp.is_some() {
            Fate::Received
        } else {
            ledger.damaged();
            Fate::Corrupted
        };
        if burst.timestamp == Timestamp::Send {
            message.never_restamped = stamp == Some(submitted);
            not_restamped += u64::from(message.never_restamped);
            message.sent_ns = stamp.filter(|&stamp| stamp != submitted).map(nanos);
        }
    }
    // By the sender's clock.
    set_in_flight(&mut messages, |message| match other_clock {
        false => message.received_ns,
        true => message.completed_ns,
    });
    let tally = ledger.close();
    let counts = Counts {
        sent: tally.sent,
        received: tally.received - tally.damaged,
        lost: tally.lost,
        corrupted: tally.damaged,
        duplicated: tally.duplicated,
        // With a number that was never posted.
        foreign: tally.never_sent,
        not_restamped,
        ..Counts::default()
    };
    (messages, counts)
}

/// The messages of a burst by what the sender knows of them.
fn posted(clock: &impl Clock, burst: Burst<'_>) -> Vec<Message> {
    let nanos = |ticks: Ticks| clock.to_nanos(ticks).0;
    let completed = |sequence: usize| {
        let stamp = burst.completed.get(sequence).copied();
        stamp.filter(|stamp| stamp.0 != 0)
    };
    let message = |(sequence, &submitted): (usize, &Ticks)| Message {
        repeat: burst.repeat,
        sequence: sequence as u32,
        fate: Fate::Lost,
        submitted_ns: nanos(submitted),
        sent_ns: None,
        never_restamped: false,
        received_ns: None,
        completed_ns: completed(sequence).map(nanos),
        in_flight: 0,
        intended_ns: burst.intended.map(|intended| nanos(intended[sequence])),
    };
    burst.submitted.iter().enumerate().map(message).collect()
}

/// Judges each request of a burst of reads or atomics. `fetched` tells whether it brought back what it should.
pub fn judge_requests(
    clock: &impl Clock,
    burst: Burst<'_>,
    fetched: impl Fn(u32) -> bool,
) -> (Vec<Message>, Counts) {
    let mut messages = posted(clock, burst);
    let mut counts = Counts {
        sent: messages.len() as u64,
        ..Counts::default()
    };
    for message in &mut messages {
        let (fate, count) = match message.completed_ns {
            None => (Fate::Lost, &mut counts.lost),
            Some(_) if fetched(message.sequence) => (Fate::Received, &mut counts.received),
            Some(_) => (Fate::Corrupted, &mut counts.corrupted),
        };
        message.fate = fate;
        *count += 1;
    }
    set_in_flight(&mut messages, |message| message.completed_ns);
    (messages, counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Posix;

    fn arrival(sequence: u32, stamp: u64) -> Arrival {
        Arrival {
            stamp: Ticks(stamp),
            label: Tag::new(3).immediate_data(sequence),
            slot: 0,
            bytes: 8,
        }
    }

    /// `stamps` by sequence number; `None` for a broken pattern.
    fn judged(
        timestamp: Timestamp,
        stamps: Vec<Option<Ticks>>,
        arrivals: &[Arrival],
    ) -> (Vec<Message>, Counts) {
        let submitted = [Ticks(100), Ticks(200), Ticks(300), Ticks(400)];
        let completed = [Ticks(150), Ticks(0), Ticks(350), Ticks(450)];
        let burst = Burst {
            repeat: 1,
            submitted: &submitted,
            completed: &completed,
            arrivals,
            intended: None,
            timestamp,
        };
        judge(&Posix::MONOTONIC, burst, false, |_, sequence| {
            stamps[sequence as usize]
        })
    }

    /// Sent, received, lost, corrupted.
    fn ends(counts: Counts) -> (u64, u64, u64, u64) {
        (counts.sent, counts.received, counts.lost, counts.corrupted)
    }

    #[test]
    fn each_message_ends_as_received_lost_or_corrupted() {
        let stamps = vec![Some(Ticks(100)), None, Some(Ticks(300)), Some(Ticks(399))];
        let arrivals = [arrival(2, 330), arrival(0, 120), arrival(3, 440)];
        let (messages, counts) = judged(Timestamp::Submit, stamps, &arrivals);
        let fates: Vec<_> = messages.iter().map(|message| message.fate).collect();
        let (received, lost) = (Fate::Received, Fate::Lost);
        // The last one brought another stamp than was sent.
        assert_eq!(fates, [received, lost, received, Fate::Corrupted]);
        assert_eq!(ends(counts), (4, 2, 1, 1));
        let latencies: Vec<_> = messages.iter().map(Message::latency_ns).collect();
        assert_eq!(latencies, [Some(20), None, Some(30), None]);
        let completions = messages.iter().map(Message::completion_latency_ns);
        let completions: Vec<_> = completions.collect();
        assert_eq!(completions, [Some(50), None, Some(50), Some(50)]);
    }

    #[test]
    fn a_request_is_judged_by_its_completion_and_by_what_it_brought_back() {
        let burst = Burst {
            repeat: 1,
            submitted: &[Ticks(100), Ticks(200), Ticks(300)],
            completed: &[Ticks(250), Ticks(0), Ticks(350)],
            arrivals: &[],
            intended: None,
            timestamp: Timestamp::Submit,
        };
        let (messages, counts) = judge_requests(&Posix::MONOTONIC, burst, |one| one != 2);
        let fates: Vec<_> = messages.iter().map(|message| message.fate).collect();
        assert_eq!(fates, [Fate::Received, Fate::Lost, Fate::Corrupted]);
        assert_eq!(ends(counts), (3, 1, 1, 1));
        let found = messages
            .iter()
            .map(|one| (one.latency_ns(), one.completion_latency_ns()));
        let expected = [(None, Some(150)), (None, None), (None, Some(50))];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        // In flight until it is completed.
        let in_flight: Vec<_> = messages.iter().map(|message| message.in_flight).collect();
        assert_eq!(in_flight, [0, 1, 0]);
    }

    #[test]
    fn a_broken_pattern_is_corruption() {
        let (_, counts) = judged(Timestamp::Submit, vec![None; 4], &[arrival(1, 220)]);
        assert_eq!(ends(counts), (4, 0, 3, 1));
    }

    #[test]
    fn twice_and_never_sent_are_told_apart_from_received_and_from_each_other() {
        let stamps = vec![Some(Ticks(100)); 4];
        let arrivals = [arrival(0, 120), arrival(0, 130), arrival(9, 140)];
        let (messages, counts) = judged(Timestamp::Submit, stamps, &arrivals);
        assert_eq!((counts.received, counts.lost), (1, 3));
        assert_eq!((counts.duplicated, counts.foreign), (1, 1));
        assert_eq!(messages[0].latency_ns(), Some(20));
    }

    #[test]
    fn clocks_of_two_cpus_that_differ_corrupt_no_message() {
        let stamps = vec![Some(Ticks(110)), Some(Ticks(199)), Some(Ticks(331)), None];
        let arrivals = [arrival(0, 120), arrival(1, 220), arrival(2, 330)];
        let (messages, counts) = judged(Timestamp::Send, stamps, &arrivals);
        assert_eq!(ends(counts), (4, 3, 1, 0));
        let latencies: Vec<_> = messages.iter().map(Message::latency_ns).collect();
        assert_eq!(latencies, [Some(10), Some(21), Some(-1), None]);
    }

    #[test]
    fn a_message_whose_stamp_was_never_rewritten_is_counted_and_has_no_latency() {
        let stamps = [110, 200, 300].map(|stamp| Some(Ticks(stamp)));
        let arrivals = [arrival(0, 120), arrival(1, 220), arrival(2, 330)];
        let stamps = [stamps.to_vec(), vec![None]].concat();
        let (messages, counts) = judged(Timestamp::Send, stamps.clone(), &arrivals);
        assert_eq!((counts.received, counts.not_restamped), (3, 2));
        let latencies: Vec<_> = messages.iter().map(Message::latency_ns).collect();
        assert_eq!(latencies, [Some(10), None, None, None]);
        assert!(
            messages[1..]
                .iter()
                .all(|message| message.sent_ns.is_none())
        );
        // Where t_subm is the stamp nothing is to be rewritten.
        let (_, counts) = judged(Timestamp::Submit, stamps, &arrivals);
        assert_eq!((counts.received, counts.not_restamped), (2, 0));
    }

    #[test]
    fn a_send_stamp_far_behind_the_arrival_is_not_of_this_run() {
        // As the benchmark saw it: a stranger's eight bytes of 0xab.
        let strange = Some(Ticks(0xabab_abab_abab_abab));
        let just = Some(Ticks(220 + CLOCKS_DIFFER.0));
        let more = Some(Ticks(331 + CLOCKS_DIFFER.0));
        let arrivals = [arrival(0, 120), arrival(1, 220), arrival(2, 330)];
        let stamps = vec![strange, just, more, None];
        let (messages, counts) = judged(Timestamp::Send, stamps, &arrivals);
        assert_eq!(ends(counts), (4, 1, 1, 2));
        let sent: Vec<_> = messages.iter().map(|message| message.sent_ns).collect();
        assert_eq!(sent, [None, Some(220 + CLOCKS_DIFFER.0), None, None]);
    }

    #[test]
    fn a_latency_can_be_negative_and_is_shown_so() {
        let stamps = vec![Some(Ticks(100)); 4];
        let (messages, _) = judged(Timestamp::Submit, stamps, &[arrival(0, 90)]);
        assert_eq!(messages[0].latency_ns(), Some(-10));
    }
}
