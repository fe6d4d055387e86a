//! What the messages between two hosts prove about their clocks.

use super::exchange::clamped;
use super::hull::{FARTHEST, Hull, HullPoint, LinesBelow};
use super::rate::{Rate, RateLimit};
use super::rates::{BestRate, ClosestMessages, Hulls};
use super::{BoundingLines, BoundsError, Contradiction, Direction, ExchangeSummary, Message, Span};
use crate::time::Nanos;

/// What is subtracted from stamps before anything is multiplied: the epochs of two clocks may be decades apart.
#[derive(Debug, Clone, Copy)]
struct Origin {
    time: i128,
    theta: i128,
}

impl Origin {
    fn near(message: &Message) -> Self {
        let apparent = i128::from(message.received.0) - i128::from(message.posted.0);
        Origin {
            time: message.own().0.into(),
            theta: match message.direction {
                Direction::Forward => apparent,
                Direction::Backward => -apparent,
            },
        }
    }

    /// What a theta of the origin adds to the apparent latency of a direction.
    fn apparent(self, direction: Direction) -> i128 {
        match direction {
            Direction::Forward => self.theta,
            Direction::Backward => -self.theta,
        }
    }

    fn time(self, own: Nanos) -> i128 {
        i128::from(own.0) - self.time
    }

    fn point(self, message: &Message) -> Result<HullPoint, BoundsError> {
        let apparent = i128::from(message.received.0) - i128::from(message.posted.0);
        let point = HullPoint {
            time: self.time(message.own()),
            value: apparent - self.apparent(message.direction),
        };
        let is_near = |number: i128| number.abs() <= FARTHEST;
        let is_reading = |stamp: Nanos| i64::try_from(stamp.0).is_ok();
        let is_fit = is_near(point.time)
            && is_near(point.value)
            && is_reading(message.posted)
            && is_reading(message.received);
        is_fit
            .then_some(point)
            .ok_or(BoundsError::TooFarApart { message: *message })
    }

    fn message(self, direction: Direction, point: HullPoint) -> Message {
        let own = point.time + self.time;
        let apparent = point.value + self.apparent(direction);
        // They were stamps before.
        let nanos = |stamp: i128| Nanos(stamp as u64);
        match direction {
            Direction::Forward => Message::forward(nanos(own), nanos(own + apparent)),
            Direction::Backward => Message::backward(nanos(own - apparent), nanos(own)),
        }
    }
}

/// The proved bounds of theta = B - A, how far the peer's clock B is ahead of this host's clock A, at any time of A.
#[derive(Debug, Clone)]
pub struct Bounds {
    origin: Origin,
    limit: RateLimit,
    hulls: Hulls,
    least: Rate,
    most: Rate,
    forward: LinesBelow,
    backward: LinesBelow,
    /// The first and the last stamp of clock A, from the origin.
    times: [i128; 2],
}

impl Bounds {
    /// What messages prove, in O(n log n), if the rates of the clocks differ by no more than `limit`.
    ///
    /// # Errors
    /// When a direction has no message, the messages contradict each other, or stamps are years apart.
    pub fn prove(
        messages: impl IntoIterator<Item = Message>,
        limit: RateLimit,
    ) -> Result<Self, BoundsError> {
        let (mut forward, mut backward) = (Vec::new(), Vec::new());
        let mut origin = None;
        for message in messages {
            let origin = *origin.get_or_insert_with(|| Origin::near(&message));
            let points = match message.direction {
                Direction::Forward => &mut forward,
                Direction::Backward => &mut backward,
            };
            points.push(origin.point(&message)?);
        }
        let times = || forward.iter().chain(&backward).map(|point| point.time);
        let times = [times().min().unwrap_or(0), times().max().unwrap_or(0)];
        let missing = |missing| BoundsError::OneWayOnly { missing };
        let hulls = Hulls {
            forward: Hull::of(forward).ok_or(missing(Direction::Forward))?,
            backward: Hull::of(backward).ok_or(missing(Direction::Backward))?,
        };
        let origin = origin.ok_or(missing(Direction::Forward))?;
        Self::of(hulls, limit, origin, times).map_err(|best| contradiction(&best, limit, origin))
    }

    fn of(
        hulls: Hulls,
        limit: RateLimit,
        origin: Origin,
        times: [i128; 2],
    ) -> Result<Self, BestRate> {
        let (from, to) = (-limit.most(), limit.most());
        let Some((least, most)) = hulls.rates(from, to) else {
            return Err(hulls.best(from, to));
        };
        Ok(Bounds {
            origin,
            limit,
            least,
            most,
            forward: LinesBelow::of(&hulls.forward, least, most),
            backward: LinesBelow::of(&hulls.backward, -most, -least),
            hulls,
            times,
        })
    }

    /// The bounds if the clocks are declared to agree within this many nanoseconds on either side, from the first stamp
    /// to the last. What is proved still holds in them: they are no wider, and no longer proved.
    ///
    /// # Errors
    /// When no clock that was declared so can have stamped these messages.
    pub fn declared(&self, uncertainty_ns: u64) -> Result<Self, BoundsError> {
        let hull_with = |hull: &Hull, direction| {
            let value = i128::from(uncertainty_ns) - self.origin.apparent(direction);
            let mut points = hull.corners().to_vec();
            // One that is far above all of them bounds nothing; one that is far below still contradicts them.
            if value <= FARTHEST {
                let value = value.max(-FARTHEST);
                points.extend(self.times.map(|time| HullPoint { time, value }));
            }
            Hull::of(points).unwrap_or_else(|| hull.clone())
        };
        let hulls = Hulls {
            forward: hull_with(&self.hulls.forward, Direction::Forward),
            backward: hull_with(&self.hulls.backward, Direction::Backward),
        };
        Self::of(hulls, self.limit, self.origin, self.times).map_err(|_| {
            let allowed = Span::new(0, 0).widened(uncertainty_ns);
            let apart = |span: &Span| {
                let below = i128::from(allowed.low_ns) - i128::from(span.high_ns);
                below.max(i128::from(span.low_ns) - i128::from(allowed.high_ns))
            };
            let corners = self.hulls.forward.corners().iter();
            let corners = corners.chain(self.hulls.backward.corners());
            let times = corners.map(|corner| corner.time).chain(self.times);
            let proved = times.map(|time| self.span(time)).max_by_key(apart);
            BoundsError::Declared {
                uncertainty_ns,
                proved: proved.unwrap_or(allowed),
            }
        })
    }

    fn span(&self, time: i128) -> Span {
        let theta = self.origin.theta;
        Span::new(
            clamped(theta - self.backward.highest(time)),
            clamped(theta + self.forward.highest(time)),
        )
    }

    /// The bounds at a time of clock A, in nanoseconds, rounded outwards. Outside of the time of the exchanges they
    /// grow with the bounds of the rate.
    pub fn at(&self, own: Nanos) -> Span {
        self.span(self.origin.time(own))
    }

    /// Bounds that hold at each moment from one time of clock A to another.
    pub fn over(&self, from: Nanos, to: Nanos) -> Span {
        // The upper bound is convex over time, the lower one concave.
        self.at(from).around(self.at(to))
    }

    /// The first stamp of clock A.
    pub fn first(&self) -> Nanos {
        Nanos((self.times[0] + self.origin.time) as u64)
    }

    /// The last stamp of clock A.
    pub fn last(&self) -> Nanos {
        Nanos((self.times[1] + self.origin.time) as u64)
    }

    /// The middle between the first and the last stamp of clock A, rounded down: the moment that one figure is given
    /// of.
    pub fn middle(&self) -> Nanos {
        let (first, last) = (self.first().0, self.last().0);
        Nanos(first + (last - first) / 2)
    }

    /// How much faster clock B runs than clock A: at least and at most, in parts per million, rounded outwards to four
    /// decimals, which results show. Where the limit is all that bounds it, it is the limit.
    pub fn rate_ppm(&self) -> [f64; 2] {
        [self.least.ppm_down(), self.most.ppm_up()]
    }

    /// What others need of this, in a few numbers.
    pub fn exchanged(&self) -> ExchangeSummary {
        let at = self.middle();
        let time = self.origin.time(at);
        let room = self.hulls.best(self.least, self.most);
        let rate_ppb = room.rate.ppb();
        let rate = Rate::of(rate_ppb.into(), 1_000_000_000);
        // Rounded towards each other, which leaves all messages on their side.
        let (upper, lower) = (
            self.hulls.forward.touched(rate),
            self.hulls.backward.touched(-rate),
        );
        let high = upper.value + rate.gain_down(time - upper.time);
        let low = lower.value + (-rate).gain_down(time - lower.time);
        ExchangeSummary {
            at,
            lasted_ns: self.last().0 - self.first().0,
            theta: self.at(at),
            rate_ppm: self.rate_ppm(),
            lines: BoundingLines {
                rate_ppb,
                low_ns: clamped(self.origin.theta - low),
                high_ns: clamped(self.origin.theta + high),
            },
        }
    }

    /// The limit of the rate under which this is proved.
    pub fn limit(&self) -> RateLimit {
        self.limit
    }

    /// Bounds of the latency of a message, in nanoseconds of clock B; see [`Direction::latency`]. `None` if the message
    /// contradicts what is proved, which no message can that is part of the proof.
    pub fn latency(&self, message: &Message) -> Option<Span> {
        let theta = self.at(message.own());
        message.direction.latency(message.apparent_ns(), theta)
    }

    /// The least latency of a direction's messages as what others are compared with; `None` if none of the messages is
    /// of that direction.
    ///
    /// # Errors
    /// When the stamps of a message are years away from those that the bounds are made of.
    pub fn baseline(
        &self,
        direction: Direction,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<Option<Baseline>, BoundsError> {
        let messages = messages.into_iter();
        let of_direction = messages.filter(|message| message.direction == direction);
        let points = of_direction.map(|message| self.origin.point(&message));
        let hull = Hull::of(points.collect::<Result<_, _>>()?);
        let (least, most) = match direction {
            Direction::Forward => (self.least, self.most),
            Direction::Backward => (-self.most, -self.least),
        };
        Ok(hull.map(|hull| Baseline {
            lines: LinesBelow::of(&hull, least, most),
            origin: self.origin,
            direction,
        }))
    }
}

/// The least latency among some messages of one direction, at each rate of the clocks that is possible.
#[derive(Debug, Clone)]
pub struct Baseline {
    lines: LinesBelow,
    origin: Origin,
    direction: Direction,
}

impl Baseline {
    /// By how much a message's latency exceeds the least of the messages, in nanoseconds of clock B: at least and at
    /// most. Theta cancels out. The bounds are one number where theta is constant, else they are as far apart as the
    /// bounds of the rate let theta move between the two messages. `None` of a message of the other direction or with
    /// stamps that are years away. A message that was not among them may have less than the least: that counts as 0.
    pub fn excess(&self, message: &Message) -> Option<Span> {
        if message.direction != self.direction {
            return None;
        }
        let point = self.origin.point(message).ok()?;
        let low = point.value - self.lines.highest(point.time);
        let high = point.value - self.lines.lowest(point.time);
        Some(Span::new(clamped(low.max(0)), clamped(high.max(0))))
    }
}

fn contradiction(best: &BestRate, limit: RateLimit, origin: Origin) -> BoundsError {
    let both = |pair: &ClosestMessages| {
        [
            origin.message(Direction::Forward, pair.forward),
            origin.message(Direction::Backward, pair.backward),
        ]
    };
    let mut messages: Vec<Message> = best.pairs.iter().flat_map(both).collect();
    messages.sort_by_key(|message| (message.own(), message.direction.name()));
    messages.dedup();
    BoundsError::Contradiction(Contradiction {
        limit,
        rate_ppm: best.rate.ppm(),
        missing_ns: clamped(best.missing),
        messages,
    })
}
