//! Stamps that adapters gave completions: converted to the run's clock, and compared with ours.

use serde::Serialize;

use crate::bench::hca::message::Message;
use crate::stats::Summary;
use crate::time::{CounterKind, CounterLine, CounterPair, bend_ns};

/// The stamps of one end of a burst.
#[derive(Debug, Clone)]
pub struct HardwareBurst {
    kind: CounterKind,
    /// The message and the stamp, as the adapter counts, in the order in which they were taken; 0 is no stamp.
    stamps: Vec<(usize, u64)>,
    /// Readings of the adapter's clock before and after.
    pub pairs: Option<(CounterPair, CounterPair)>,
}

impl HardwareBurst {
    /// Of messages with the places of their stamps.
    pub fn of(
        kind: CounterKind,
        messages: impl Iterator<Item = (usize, usize)>,
        at: impl Fn(usize) -> u64,
    ) -> Self {
        HardwareBurst {
            kind,
            stamps: messages
                .map(|(message, place)| (message, at(place)))
                .collect(),
            pairs: None,
        }
    }
}

/// The completions of a message as its adapters saw them, in nanoseconds of the run's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HardwareTimes {
    pub completed_ns: Option<u64>,
    pub received_ns: Option<u64>,
}

/// What the stamps of both ends add up to over bursts.
#[derive(Debug, Clone, Default)]
pub struct HardwareStampTally {
    /// Of each message of the point.
    pub messages: Vec<HardwareTimes>,
    /// Of the sender's completions.
    pub sender: EndStamps,
    /// Of the receiver's.
    pub receiver: EndStamps,
}

/// The stamps of one end.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct EndStamps {
    /// From the adapter's stamp to ours, as they were taken.
    #[serde(skip)]
    lags: Vec<i64>,
    /// Completions that we stamped.
    pub completions: u64,
    /// Those without a stamp of the adapter, or where its clock could not be read.
    pub missing: u64,
    /// Those whose stamp lies outside of the burst.
    pub outside: u64,
    /// By how much a converted stamp can be off.
    pub error_ns: u64,
    /// Waits of more than [`LONG_WAIT_NS`] of a completion for a loop that had nothing else to take.
    pub waits: u64,
    /// The longest of them.
    pub longest_wait_ns: u64,
    /// The rate of the adapter's clock, as its driver reports and as the readings show.
    pub nominal_khz: Option<f64>,
    pub seen_khz: Option<f64>,
    /// By how much the latter can be off, as a share of it.
    pub seen_within: Option<f64>,
}

/// A loop that polls takes a completion at once, unless something else has its CPU for so long.
pub const LONG_WAIT_NS: i64 = 20_000;

/// Above this the rate that a driver reports is wrong.
const MOST_OFF: f64 = 1e-3;

impl HardwareStampTally {
    /// With room for so many messages.
    pub fn with_room_for(messages: usize) -> Self {
        let end = || EndStamps {
            lags: Vec::with_capacity(messages),
            ..EndStamps::default()
        };
        HardwareStampTally {
            messages: Vec::with_capacity(messages),
            sender: end(),
            receiver: end(),
        }
    }

    /// Adds a burst, whose messages are judged, with the stamps of sender and receiver.
    pub fn add(&mut self, messages: &[Message], bursts: &[Option<HardwareBurst>; 2]) {
        let from = self.messages.len();
        self.messages
            .resize(from + messages.len(), HardwareTimes::default());
        let times = &mut self.messages[from..];
        let [sender, receiver] = bursts;
        if let Some(burst) = sender {
            self.sender.add(burst, times, |at| {
                (messages[at].completed_ns, |it| &mut it.completed_ns)
            });
        }
        if let Some(burst) = receiver {
            self.receiver.add(burst, times, |at| {
                (messages[at].received_ns, |it| &mut it.received_ns)
            });
        }
    }

    /// Adds what all readings of the clocks of sender and receiver show, in their order: two a burst.
    pub fn finish(&mut self, kinds: [Option<CounterKind>; 2], pairs: &[Vec<CounterPair>; 2]) {
        let ends = [&mut self.sender, &mut self.receiver];
        for ((end, kind), pairs) in ends.into_iter().zip(kinds).zip(pairs) {
            if let Some(kind) = kind {
                end.finish(kind, pairs);
            }
        }
    }
}

/// Our stamp of a message, and where that of the adapter goes.
type Place = (Option<u64>, fn(&mut HardwareTimes) -> &mut Option<u64>);

impl EndStamps {
    /// One with these times from the adapter's stamp to ours.
    #[cfg(test)]
    pub(crate) fn made_up(lags: &[i64], error_ns: u64) -> Self {
        EndStamps {
            lags: lags.to_vec(),
            completions: lags.len() as u64,
            error_ns,
            ..EndStamps::default()
        }
    }

    fn add(
        &mut self,
        burst: &HardwareBurst,
        times: &mut [HardwareTimes],
        place: impl Fn(usize) -> Place,
    ) {
        let line = burst
            .pairs
            .and_then(|(from, to)| CounterLine::new(burst.kind, from, to));
        self.error_ns = self.error_ns.max(line.map_or(0, |line| line.error_ns()));
        let mut taken_before = i64::MIN;
        for &(message, count) in &burst.stamps {
            // A signal may have ended the burst before.
            if message >= times.len() {
                continue;
            }
            let (Some(ours), slot) = place(message) else {
                continue;
            };
            let slot = slot(&mut times[message]);
            if slot.is_some() {
                // It came twice, and the first counts.
                continue;
            }
            self.completions += 1;
            let Some(line) = line.filter(|_| count != 0) else {
                self.missing += 1;
                continue;
            };
            let found = line.nanos(count, ours);
            *slot = u64::try_from(found).ok();
            if !line.contains(found) {
                self.outside += 1;
                continue;
            }
            let ours = ours as i64;
            self.lags.push(ours - found);
            let wait = ours - found.max(taken_before);
            if wait > LONG_WAIT_NS {
                self.waits += 1;
                self.longest_wait_ns = self.longest_wait_ns.max(wait as u64);
            }
            taken_before = ours;
        }
    }

    fn finish(&mut self, kind: CounterKind, pairs: &[CounterPair]) {
        // The first, and those after each burst: as far apart as those of which lines are made.
        let after = pairs.iter().skip(1).step_by(2);
        let apart: Vec<CounterPair> = pairs.first().into_iter().chain(after).copied().collect();
        self.error_ns += bend_ns(kind, &apart);
        self.nominal_khz = kind.hertz.map(|hertz| hertz / 1e3);
        let ends = pairs.first().zip(pairs.last());
        if let Some(line) = ends.and_then(|(first, last)| CounterLine::new(kind, *first, *last)) {
            self.seen_khz = Some(line.hertz() / 1e3);
            self.seen_within = Some(line.uncertainty());
        }
    }

    /// From the adapter's stamps to ours.
    pub fn lag(&self) -> Option<Summary> {
        Summary::of(&self.lags)
    }

    /// Stamps of the adapter that are later than ours by more than the error: no completion is taken before it is
    /// there.
    pub fn too_late(&self) -> u64 {
        let error = i64::try_from(self.error_ns).unwrap_or(i64::MAX);
        self.lags.iter().filter(|lag| **lag < -error).count() as u64
    }

    /// By how much the rate that was seen is off the one that the driver reports, if that is wrong, as a share of it.
    pub fn rate_off(&self) -> Option<f64> {
        let off = self.seen_khz? / self.nominal_khz? - 1.0;
        (off.abs() > MOST_OFF + 2.0 * self.seen_within?).then_some(off)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter of one count in 2 ns, which was 1000 when the clock was at 10,000 ns, read within 100 ns.
    const KIND: CounterKind = CounterKind {
        mask: u64::MAX >> 1,
        hertz: Some(500e6),
    };

    fn pair(ns: u64) -> CounterPair {
        CounterPair {
            count: count(ns),
            before_ns: ns - 50,
            after_ns: ns + 50,
        }
    }

    fn count(ns: u64) -> u64 {
        1000 + (ns - 10_000) / 2
    }

    fn message(received_ns: u64) -> Message {
        Message {
            received_ns: Some(received_ns),
            completed_ns: Some(received_ns + 500),
            ..Message::default()
        }
    }

    fn burst(stamps: &[(usize, u64)], pairs: Option<(u64, u64)>) -> HardwareBurst {
        HardwareBurst {
            kind: KIND,
            stamps: stamps.to_vec(),
            pairs: pairs.map(|(from, to)| (pair(from), pair(to))),
        }
    }

    #[test]
    fn each_stamp_is_at_its_message_and_what_lies_between_is_counted_at_its_end() {
        let messages = [20_000, 30_000, 40_000].map(message);
        // Out of order, and the first of two counts.
        let received = [
            (1, count(29_800)),
            (0, count(19_900)),
            (1, count(35_000)),
            (2, count(39_990)),
        ];
        let completed = [(0, count(20_480)), (2, count(40_400))];
        let bursts = [&completed[..], &received].map(|it| Some(burst(it, Some((12_000, 90_000)))));
        let mut tally = HardwareStampTally::default();
        tally.add(&messages, &bursts);
        tally.finish([Some(KIND); 2], &[vec![pair(12_000), pair(90_000)], vec![]]);
        let found = tally
            .messages
            .iter()
            .map(|it| (it.received_ns, it.completed_ns));
        let expected = [
            (Some(19_900), Some(20_480)),
            (Some(29_800), None),
            (Some(39_990), Some(40_400)),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        let lag = tally.receiver.lag().unwrap();
        assert_eq!(
            (lag.count, lag.min_ns, lag.max_ns, lag.p50_ns),
            (3, 10, 200, 100.0)
        );
        let lag = tally.sender.lag().unwrap();
        assert_eq!((lag.count, lag.min_ns, lag.max_ns), (2, 20, 100));
        assert_eq!(
            (tally.receiver.completions, tally.sender.completions),
            (3, 2)
        );
        assert_eq!((tally.sender.missing, tally.sender.outside), (0, 0));
        // Half of the interval, a count, and rounding.
        assert_eq!(tally.sender.error_ns, 50 + 3 + 1);
        assert_eq!(tally.sender.rate_off(), None);
    }

    #[test]
    fn what_is_missing_or_outside_is_counted_and_in_no_figure() {
        let messages = [20_000, 30_000, 40_000].map(message);
        let stamps = [
            (0, 0),
            (1, count(10_000)),
            (2, count(39_900)),
            (9, count(39_900)),
        ];
        let mut tally = HardwareStampTally::default();
        tally.add(
            &messages,
            &[None, Some(burst(&stamps, Some((12_000, 90_000))))],
        );
        // The clock could not be read after that burst.
        tally.add(&messages, &[None, Some(burst(&stamps[2..], None))]);
        let EndStamps {
            completions,
            missing,
            outside,
            ..
        } = tally.receiver;
        assert_eq!((completions, missing, outside), (4, 2, 1));
        assert_eq!(tally.receiver.lag().unwrap().count, 1);
        assert_eq!(tally.messages.len(), 6);
        assert_eq!(tally.messages[0].received_ns, None);
        // It is in the file.
        assert_eq!(tally.messages[1].received_ns, Some(10_000));
        assert_eq!((tally.receiver.too_late(), tally.receiver.waits), (0, 0));
    }

    #[test]
    fn a_stamp_later_than_ours_is_too_late_only_beyond_the_error() {
        let of = |later: u64| {
            let mut tally = HardwareStampTally::default();
            let stamps = [(0, count(20_000 + later))];
            tally.add(
                &[message(20_000)],
                &[None, Some(burst(&stamps, Some((12_000, 90_000))))],
            );
            let lag = tally.receiver.lag().unwrap();
            (lag.min_ns, tally.receiver.too_late())
        };
        // Negative lags are shown as they are.
        assert_eq!(of(54), (-54, 0));
        assert_eq!(of(56), (-56, 1));
    }

    #[test]
    fn a_loop_that_was_away_while_completions_lay_there_shows() {
        let messages = [20_000, 60_000, 61_000, 81_500].map(message);
        // The second lay there for 39 us, the third only because of that, the fourth came late.
        let stamps = [(0, 19_900), (1, 21_000), (2, 22_000), (3, 81_400)];
        let stamps = stamps.map(|(at, ns)| (at, count(ns)));
        let mut tally = HardwareStampTally::default();
        tally.add(
            &messages,
            &[None, Some(burst(&stamps, Some((12_000, 90_000))))],
        );
        let receiver = &tally.receiver;
        assert_eq!((receiver.waits, receiver.longest_wait_ns), (1, 39_000));
        assert_eq!(receiver.lag().unwrap().max_ns, 39_000);
    }

    #[test]
    fn a_nominal_rate_that_is_wrong_shows_only_beyond_what_readings_allow() {
        let off = |hertz: f64, length: u64| {
            let kind = CounterKind {
                hertz: Some(hertz),
                ..KIND
            };
            let mut end = EndStamps::default();
            end.finish(kind, &[pair(12_000), pair(12_000 + length)]);
            end.rate_off()
        };
        assert_eq!(off(500e6, 1_000_000), None);
        assert_eq!(off(500.1e6, 1_000_000_000), None);
        assert!(off(510e6, 1_000_000_000).is_some_and(|off| (off + 0.0196).abs() < 1e-3));
        // 100 ns each way of 10 us.
        assert_eq!(off(510e6, 10_000), None);
    }
}
