//! Stamps that adapters gave completions: converted to the run's clock, and compared with ours.

use serde::Serialize;

use crate::bench::hca::message::Message;
use crate::stats::Summary;
use crate::time::{CounterKind, CounterLine, CounterPair, drift_ns, greatest_drift_ns};

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

/// What of one end depends on the error of its burst.
#[derive(Debug, Clone, PartialEq)]
struct OfBurst {
    from: CounterPair,
    to: CounterPair,
    error_ns: u64,
    /// How many lags there are up to its end.
    lags_to: usize,
    /// How long completions seem to have waited that may have waited long.
    waits: Vec<i64>,
}

/// Completions that waited for a loop that had nothing else to take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LongWaits {
    /// Those of more than [`LONG_WAIT_NS`] beyond the error.
    pub count: u64,
    /// The longest of them.
    pub longest_ns: u64,
}

/// The stamps of one end.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct EndStamps {
    /// From the adapter's stamp to ours, as they were taken.
    #[serde(skip)]
    lags: Vec<i64>,
    #[serde(skip)]
    bursts: Vec<OfBurst>,
    /// What these times amount to, if there are any.
    #[serde(skip)]
    pub lag: Option<Summary>,
    /// Completions that we stamped.
    pub completions: u64,
    /// Those without a stamp of the adapter, or where its clock could not be read.
    pub missing: u64,
    /// Those whose stamp lies outside of the burst.
    pub outside: u64,
    /// By how much a converted stamp can be off in any burst.
    pub error_ns: u64,
    /// Of a receiver that polls, whose messages are in the order in which it took them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<LongWaits>,
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
    /// With room for this number of messages.
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

    /// Adds what all readings of the clocks of sender and receiver show, in their order: two a burst. Where none shows
    /// how the rates change, they do by `rate_change` at the most, as a share of them. Only of a receiver that `polls`
    /// waits say something.
    pub fn finish(
        &mut self,
        kinds: [Option<CounterKind>; 2],
        pairs: &[Vec<CounterPair>; 2],
        rate_change: f64,
        polls: bool,
    ) {
        let ends = [&mut self.sender, &mut self.receiver];
        for ((end, kind), pairs) in ends.into_iter().zip(kinds).zip(pairs) {
            if let Some(kind) = kind {
                end.finish(kind, pairs, rate_change);
            }
        }
        self.receiver.waits = (kinds[1].is_some() && polls).then(|| self.receiver.long_waits());
    }
}

/// Our stamp of a message, and where that of the adapter goes.
type Place = (Option<u64>, fn(&mut HardwareTimes) -> &mut Option<u64>);

impl EndStamps {
    /// One with these times from the adapter's stamp to ours.
    #[cfg(test)]
    pub(crate) fn made_up(lags: &[i64], error_ns: u64) -> Self {
        let pair = CounterPair {
            count: 0,
            before_ns: 0,
            after_ns: 0,
        };
        EndStamps {
            lags: lags.to_vec(),
            bursts: vec![OfBurst {
                from: pair,
                to: pair,
                error_ns,
                lags_to: lags.len(),
                waits: Vec::new(),
            }],
            lag: Summary::of(lags),
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
        // When what came before a completion was taken; where that is unknown, nothing waited.
        let mut taken_before = i64::MIN;
        let mut seen = vec![false; times.len()];
        let mut waits = Vec::new();
        for &(message, count) in &burst.stamps {
            let taken = std::mem::replace(&mut taken_before, i64::MAX);
            // A signal may have ended the burst before.
            if message >= times.len() {
                continue;
            }
            let (Some(ours), slot) = place(message) else {
                continue;
            };
            if std::mem::replace(&mut seen[message], true) {
                // It came twice, and the first counts.
                continue;
            }
            taken_before = ours as i64;
            self.completions += 1;
            let Some(line) = line.filter(|_| count != 0) else {
                self.missing += 1;
                continue;
            };
            let found = line.nanos(count, ours);
            if !line.contains(found) {
                self.outside += 1;
                continue;
            }
            *slot(&mut times[message]) = u64::try_from(found).ok();
            let ours = ours as i64;
            self.lags.push(ours - found);
            let wait = ours.saturating_sub(found.max(taken));
            if wait > LONG_WAIT_NS {
                waits.push(wait);
            }
        }
        if let Some((line, (from, to))) = line.zip(burst.pairs) {
            self.bursts.push(OfBurst {
                from,
                to,
                error_ns: line.error_ns(),
                lags_to: self.lags.len(),
                waits,
            });
        }
    }

    fn finish(&mut self, kind: CounterKind, pairs: &[CounterPair], rate_change: f64) {
        for burst in &mut self.bursts {
            let at = pairs.partition_point(|pair| pair.before_ns < burst.from.before_ns);
            let ends = [burst.from, burst.to];
            // The beginning of the burst before, and the end of the one behind.
            let before = at.checked_sub(2).and_then(|at| pairs.get(at)).copied();
            let after = pairs.get(at + 3).copied();
            let drift = drift_ns(kind, before, ends, after);
            burst.error_ns += drift.unwrap_or_else(|| greatest_drift_ns(ends, rate_change));
        }
        self.lag = Summary::of(&self.lags);
        let errors = self.bursts.iter().map(|burst| burst.error_ns);
        self.error_ns = errors.max().unwrap_or(0);
        self.nominal_khz = kind.hertz.map(|hertz| hertz / 1e3);
        let ends = pairs.first().zip(pairs.last());
        if let Some(line) = ends.and_then(|(first, last)| CounterLine::new(kind, *first, *last)) {
            self.seen_khz = Some(line.hertz() / 1e3);
            self.seen_within = Some(line.uncertainty());
        }
    }

    fn long_waits(&self) -> LongWaits {
        let mut long = LongWaits::default();
        for burst in &self.bursts {
            let error = i64::try_from(burst.error_ns).unwrap_or(i64::MAX);
            for wait in burst
                .waits
                .iter()
                .filter(|wait| **wait - error > LONG_WAIT_NS)
            {
                long.count += 1;
                long.longest_ns = long.longest_ns.max(*wait as u64);
            }
        }
        long
    }

    /// Stamps of the adapter that are later than ours by more than the error of their burst: no completion is taken
    /// before it is there.
    pub fn too_late(&self) -> u64 {
        let mut from = 0;
        let late = self.bursts.iter().map(|burst| {
            let lags = &self.lags[std::mem::replace(&mut from, burst.lags_to)..burst.lags_to];
            let error = i64::try_from(burst.error_ns).unwrap_or(i64::MAX);
            lags.iter().filter(|lag| **lag < -error).count() as u64
        });
        late.sum()
    }

    /// Whether the median of the lag is no longer than the error.
    pub fn unresolved(&self) -> Option<f64> {
        let median = self.lag.as_ref()?.p50_ns;
        (median <= self.error_ns as f64).then_some(median)
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

    /// What the times so far amount to.
    fn lag_of(stamps: &EndStamps) -> Summary {
        Summary::of(&stamps.lags).unwrap()
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
        tally.finish([Some(KIND); 2], &around(12_000, 90_000), 1e-3, true);
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
        let lag = tally.receiver.lag.as_ref().unwrap();
        assert_eq!(
            (lag.count, lag.min_ns, lag.max_ns, lag.p50_ns),
            (3, 10, 200, 100.0)
        );
        let lag = tally.sender.lag.as_ref().unwrap();
        assert_eq!((lag.count, lag.min_ns, lag.max_ns), (2, 20, 100));
        assert_eq!(
            (tally.receiver.completions, tally.sender.completions),
            (3, 2)
        );
        assert_eq!((tally.sender.missing, tally.sender.outside), (0, 0));
        // Half of the interval, a count, rounding, and a quarter of a thousandth of the length.
        assert_eq!(tally.sender.error_ns, 50 + 3 + 1 + 20);
        // The sender's completions are not in the order in which they were taken.
        assert_eq!(tally.sender.waits, None);
        assert_eq!(tally.receiver.waits, Some(LongWaits::default()));
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
        assert_eq!(lag_of(&tally.receiver).count, 1);
        assert_eq!(tally.messages.len(), 6);
        assert_eq!(tally.messages[0].received_ns, None);
        // It is in no file either, which would not tell.
        assert_eq!(tally.messages[1].received_ns, None);
        assert_eq!(tally.receiver.too_late(), 0);
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
            let lag = lag_of(&tally.receiver);
            (lag.min_ns, tally.receiver.too_late())
        };
        // Negative lags are shown as they are.
        assert_eq!(of(54), (-54, 0));
        assert_eq!(of(56), (-56, 1));
    }

    #[test]
    fn a_stamp_that_came_twice_counts_once_wherever_it_lies() {
        let mut tally = HardwareStampTally::default();
        let stamps = [(0, count(10_000)), (0, count(19_900))];
        let burst = burst(&stamps, Some((12_000, 90_000)));
        tally.add(&[message(20_000)], &[None, Some(burst)]);
        let receiver = &tally.receiver;
        assert_eq!((receiver.completions, receiver.outside), (1, 1));
        assert_eq!(tally.messages[0].received_ns, None);
    }

    #[test]
    fn each_burst_has_the_error_of_its_own_readings() {
        let mut tally = HardwareStampTally::default();
        let wide = |ns: u64| CounterPair {
            before_ns: ns - 20_000,
            after_ns: ns + 20_000,
            ..pair(ns)
        };
        let stamps = [(0, count(30_000 + 1_000))];
        let mut readings = Vec::new();
        for (from, to) in [
            (wide(50_000), wide(150_000)),
            (pair(250_000), pair(350_000)),
        ] {
            let mut burst = burst(&stamps, None);
            burst.pairs = Some((from, to));
            burst.stamps[0].1 = count((from.before_ns + to.after_ns) / 2 + 1_000);
            let ours = (from.before_ns + to.after_ns) / 2;
            tally.add(&[message(ours)], &[None, Some(burst)]);
            readings.extend([from, to]);
        }
        // Only in the second burst is a microsecond too much; together they have the error of the first.
        assert_eq!(tally.receiver.too_late(), 1);
        tally.finish([None, Some(KIND)], &[vec![], readings], 0.0, true);
        assert!(tally.receiver.error_ns > 20_000);
    }

    /// Readings of the receiver's clock around one burst.
    fn around(from: u64, to: u64) -> [Vec<CounterPair>; 2] {
        [vec![], vec![pair(from), pair(to)]]
    }

    fn waits(received: &[u64], stamps: &[(usize, u64)], rate_change: f64) -> LongWaits {
        let messages: Vec<Message> = received.iter().copied().map(message).collect();
        let mut tally = HardwareStampTally::default();
        let burst = Some(burst(stamps, Some((12_000, 90_000))));
        tally.add(&messages, &[None, burst]);
        tally.finish(
            [None, Some(KIND)],
            &around(12_000, 90_000),
            rate_change,
            true,
        );
        tally.receiver.waits.unwrap()
    }

    #[test]
    fn a_loop_that_was_away_while_completions_lay_there_shows() {
        let received = [20_000, 60_000, 61_000, 81_500];
        // The second lay there for 39 us, the third only because of that, the fourth came late.
        let stamps = [(0, 19_900), (1, 21_000), (2, 22_000), (3, 81_400)];
        let stamps = stamps.map(|(at, ns)| (at, count(ns)));
        let one = LongWaits {
            count: 1,
            longest_ns: 39_000,
        };
        assert_eq!(waits(&received, &stamps, 0.0), one);
        // With an error of 19.5 us it may have been less than 20 us.
        assert_eq!(waits(&received, &stamps, 1.0), LongWaits::default());
    }

    #[test]
    fn a_completion_behind_one_that_is_in_no_figure_did_not_wait_for_the_loop() {
        let received = [60_000, 61_000];
        for before in [(0, 0), (0, count(10_000))] {
            let stamps = [before, (1, count(22_000))];
            assert_eq!(waits(&received, &stamps, 0.0), LongWaits::default());
        }
        // When a duplicate was taken is unknown.
        let stamps = [(0, count(59_900)), (0, count(60_500)), (1, count(22_000))];
        assert_eq!(waits(&[60_000, 81_000], &stamps, 0.0), LongWaits::default());
    }

    #[test]
    fn a_nominal_rate_that_is_wrong_shows_only_beyond_what_readings_allow() {
        let off = |hertz: f64, length: u64| {
            let kind = CounterKind {
                hertz: Some(hertz),
                ..KIND
            };
            let mut end = EndStamps::default();
            end.finish(kind, &[pair(12_000), pair(12_000 + length)], 0.0);
            end.rate_off()
        };
        assert_eq!(off(500e6, 1_000_000), None);
        assert_eq!(off(500.1e6, 1_000_000_000), None);
        assert!(off(510e6, 1_000_000_000).is_some_and(|off| (off + 0.0196).abs() < 1e-3));
        // 100 ns each way of 10 us.
        assert_eq!(off(510e6, 10_000), None);
    }
}
