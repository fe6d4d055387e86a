//! From what the threads noted to the figures of a run.

use super::measurer::Record;
use super::result::{Depth, ElementRow, PerOperation, Times};
use crate::time::{Clock, Ticks};

/// What both ends noted of the same elements, and what of it counts.
#[derive(Debug, Clone)]
pub struct ElementRecords<'a> {
    /// By the sender, an entry an element.
    pub sent: &'a [Record],
    /// By the receiver, in the same order.
    pub received: &'a [Record],
    /// When each was meant to be sent.
    pub intended: Option<Vec<Ticks>>,
}

/// From when to when a time of the element of that number is.
pub(super) type ElementMoments = fn(&ElementRecords<'_>, usize) -> [Ticks; 2];

impl ElementRecords<'_> {
    /// Elements that both ends noted.
    pub(super) fn count(&self) -> usize {
        self.sent.len().min(self.received.len())
    }

    /// The times that each element has, without those from one CPU to the other where its stamps have none.
    pub(super) fn moments(&self, has_latencies: bool) -> PerOperation<Option<ElementMoments>> {
        let of_one_end = PerOperation::<Option<ElementMoments>> {
            enqueue: Some(|noted, at| [noted.sent[at][1], noted.sent[at][2]]),
            dequeue: Some(|noted, at| [noted.received[at][1], noted.received[at][2]]),
            ..PerOperation::default()
        };
        if !has_latencies {
            return of_one_end;
        }
        let intended: ElementMoments = |noted, at| {
            let moments = noted.intended.as_deref().unwrap_or_default();
            [moments[at], noted.received[at][2]]
        };
        PerOperation {
            latency: Some(|noted, at| [noted.sent[at][0], noted.received[at][2]]),
            intended: self.intended.is_some().then_some(intended),
            ..of_one_end
        }
    }
}

/// The times of a run, without those from one CPU to the other where its stamps have none; `None` if no element counts.
pub fn times<C: Clock>(
    clock: &C,
    noted: &ElementRecords<'_>,
    has_latencies: bool,
) -> Option<Times> {
    let depth = depth(noted.sent, noted.received)?;
    let sorted = |of: &Option<ElementMoments>| {
        let Some(of) = of else {
            return Vec::new();
        };
        let elements = 0..noted.count();
        let mut lengths: Vec<i64> = elements.map(|at| length_ns(clock, of(noted, at))).collect();
        lengths.sort_unstable();
        lengths
    };
    let samples = noted.moments(has_latencies).map(sorted);
    Some(Times::of(&samples, has_latencies.then_some(depth)))
}

/// The times of round trips, from what the sender noted: before it put an element in, and when the answer was out.
pub fn round_trips<C: Clock>(clock: &C, noted: &[Record]) -> Times {
    let lengths = noted
        .iter()
        .map(|[stamp, _, back]| length_ns(clock, [*stamp, *back]));
    let mut round_trip: Vec<i64> = lengths.collect();
    round_trip.sort_unstable();
    let samples = PerOperation {
        round_trip,
        ..PerOperation::default()
    };
    Times::of(&samples, None)
}

/// The elements that count, a row each.
pub fn rows<C: Clock>(clock: &C, noted: &ElementRecords<'_>, round: u32) -> Vec<ElementRow> {
    let at = |moment: Ticks| clock.to_nanos(moment).0;
    (0..noted.count())
        .map(|index| {
            let (sent, received) = (noted.sent[index], noted.received[index]);
            ElementRow {
                round,
                seq: index as u64,
                t_intended_ns: noted.intended.as_ref().map(|moments| at(moments[index])),
                t_stamp_ns: at(sent[0]),
                t_enqueue_ns: at(sent[1]),
                t_enqueued_ns: at(sent[2]),
                t_dequeue_ns: at(received[1]),
                t_dequeued_ns: at(received[2]),
                latency_ns: length_ns(clock, [sent[0], received[2]]),
            }
        })
        .collect()
}

/// A length of time, below zero when the clock of one CPU is behind that of the other.
pub(super) fn length_ns<C: Clock>(clock: &C, [from, to]: [Ticks; 2]) -> i64 {
    // Of the difference, so that both ends are not rounded for themselves.
    let difference = to.0.wrapping_sub(from.0) as i64;
    let length = clock.to_nanos(Ticks(difference.unsigned_abs())).0;
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    if difference < 0 { -length } else { length }
}

/// How full the queue was from the first dequeue to the last, from the moments when enqueues and dequeues ended: before
/// the first, elements of the warm-up may have been in it. An element that was gone before its enqueue had returned was never in it.
fn depth(sent: &[Record], received: &[Record]) -> Option<Depth> {
    let first = received.first()?[2].0;
    let (mut entered, mut left) = (0, 0);
    let (mut most, mut area, mut last) = (0_u64, 0_u128, first);
    while left < received.len() {
        let next_in = sent.get(entered).map(|record| record[2].0);
        let next_out = received[left][2].0;
        let (moment, is_in) = match next_in {
            Some(moment) if moment <= next_out => (moment, true),
            _ => (next_out, false),
        };
        let depth = (entered as u64).saturating_sub(left as u64);
        if moment > last {
            area += u128::from(depth) * u128::from(moment - last);
            last = moment;
        }
        if is_in {
            entered += 1;
        } else {
            left += 1;
        }
        if moment >= first {
            most = most.max((entered as u64).saturating_sub(left as u64));
        }
    }
    let span = last.saturating_sub(first);
    Some(Depth {
        max: most,
        // Where there is no span there is no area.
        mean: area as f64 / span.max(1) as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Posix;

    fn records(moments: &[[u64; 3]]) -> Vec<Record> {
        moments.iter().map(|moments| moments.map(Ticks)).collect()
    }

    #[test]
    fn each_figure_is_between_its_two_moments() {
        // Stamp, before and after; the second element failed once before it was taken.
        let sent = records(&[[100, 100, 110], [200, 230, 245]]);
        let received = records(&[[100, 120, 150], [200, 240, 290]]);
        let noted = ElementRecords {
            sent: &sent,
            received: &received,
            intended: Some([95, 140].map(Ticks).to_vec()),
        };
        let clock = Posix::MONOTONIC;
        let all = |has_latencies| times(&clock, &noted, has_latencies).unwrap();
        let times = all(true);
        let found = times.figures.all().map(|summary| {
            let summary = summary.as_ref()?;
            Some((summary.count, summary.min_ns, summary.max_ns))
        });
        let one_way = [(2, 10, 15), (2, 30, 50), (2, 50, 90), (2, 55, 150)].map(Some);
        assert_eq!((&found[..4], found[4]), (&one_way[..], None));
        let back = round_trips(&clock, &sent).figures;
        let summary = back.round_trip.unwrap();
        assert_eq!((summary.count, summary.min_ns, summary.max_ns), (2, 10, 45));
        assert_eq!(back.latency, None);
        assert_eq!(times.histograms.latency.count(), 2);

        // Those that compare the stamps of two CPUs.
        let unordered = all(false);
        assert_eq!(unordered.figures.enqueue, times.figures.enqueue);
        assert_eq!(unordered.figures.dequeue, times.figures.dequeue);
        let others = unordered.figures.all();
        assert!(others[2..].iter().all(|of| of.is_none()) && unordered.depth.is_none());
        assert!(times.depth.is_some() && unordered.histograms.latency.count() == 0);

        let rows = rows(&clock, &noted, 3);
        assert_eq!(rows.len(), 2);
        assert_eq!(
            rows[1],
            ElementRow {
                round: 3,
                seq: 1,
                t_intended_ns: Some(140),
                t_stamp_ns: 200,
                t_enqueue_ns: 230,
                t_enqueued_ns: 245,
                t_dequeue_ns: 240,
                t_dequeued_ns: 290,
                latency_ns: 90,
            }
        );
    }

    fn depth_of(entered: &[u64], left: &[u64]) -> Depth {
        let at = |moments: &[u64]| records(&moments.iter().map(|&m| [0, 0, m]).collect::<Vec<_>>());
        depth(&at(entered), &at(left)).unwrap()
    }

    #[test]
    fn depth_is_weighted_by_time() {
        // From 5 on: none, two from 10, one from 30, none from 40 to 50, one from 50 to 60.
        let found = depth_of(&[0, 8, 10, 50], &[5, 30, 40, 60]);
        assert_eq!(found.max, 2);
        let area = 2 + 2 * 20 + 10 + 10;
        let is_close = (found.mean - f64::from(area) / 55.0).abs() < 1e-12;
        assert!(is_close, "{found:?}");
    }

    #[test]
    fn depth_begins_with_the_first_dequeue_and_knows_what_was_put_in_before() {
        // Two are left when the first leaves at 12.
        let found = depth_of(&[0, 1, 2], &[12, 22, 32]);
        assert_eq!((found.max, found.mean), (2, 1.5));
    }

    #[test]
    fn what_left_before_its_enqueue_returned_was_never_in() {
        let found = depth_of(&[10, 30], &[5, 25]);
        assert_eq!((found.max, found.mean), (0, 0.0));
    }

    #[test]
    fn a_clock_that_is_behind_gives_a_length_below_zero() {
        let clock = Posix::MONOTONIC;
        assert_eq!(length_ns(&clock, [Ticks(100), Ticks(93)]), -7);
        assert_eq!(length_ns(&clock, [Ticks(u64::MAX), Ticks(4)]), 5);
    }
}
