//! The clocks of two hosts, and of more: what exchanged messages prove about them, and about each message's latency.
//!
//! Host A has clock A, its peer has clock B. What is asked for is theta = B - A at one moment: how far B is ahead. All
//! of this is about readings, in whole nanoseconds. Nothing is measured here, and nothing is guessed.
//!
//! # From which event to which
//!
//! | | from | to |
//! | --- | --- | --- |
//! | apparent latency | `posted`, by the sender's clock | `received`, by the receiver's |
//! | latency, bounds | `posted` | `received`, both by clock B |
//! | excess, bounds | the least latency of the direction | the message's own |
//! | half a round trip | `a_sent`, `b_sent` | `b_received`, `a_received`: both ways together, halved |
//!
//! A sender reads its clock before it posts. A receiver reads its clock after the message has come. What software does
//! in between is in the latency, and makes the bounds wider, never wrong.
//!
//! # Two clocks of one rate
//!
//! No message arrives before it is posted. A message forward that was posted at `a` and received at `b` proves theta <=
//! b - a. A message backward that was posted at `b` and received at `a` proves theta >= b - a.
//!
//! ```text
//! high  = min (received - posted) over the messages forward
//! low   = max (posted - received) over the messages backward      low <= theta <= high
//! width = least apparent latency forward + least apparent latency backward
//! ```
//!
//! No width is above the shortest round trip, and about half a round trip is all that is proved on either side of the
//! middle. If `low > high`, the messages contradict each other ([`Contradiction`]).
//!
//! # Two clocks of different rates
//!
//! Both rates are constant: theta(t) = x + y t, where t is clock A. Each message forward is a point (t, apparent
//! latency) that this line does not pass above, with t when it was posted. Each message backward is a point (t, -
//! apparent latency) that it does not pass below, with t when it was received. The pairs (x, y) of all such lines are
//! what is possible. The line lies below all upper points if it lies below their lower convex hull, and likewise above.
//!
//! - **Rate.** The room at a rate y is `min (upper - y t) - max (lower - y t)`. It is concave in y. Its two roots bound
//!   the rate ([`Bounds::rate_ppm`]). If it is negative at all rates, the messages contradict each other.
//! - **Theta at t.** The most is where the highest possible line of the best rate is at t: on the hull where an edge
//!   has a possible rate, else on the line with the least or the greatest rate that touches it.
//! - **Limit.** What is known of the rates beforehand ([`RateLimit`]) cuts the rates. With the limit 0 all this is the
//!   case of one rate.
//!
//! A clock that is set, or that changes its rate, is found if that moves theta by more than a round trip against any
//! one line; less is not found, and the bounds may then be wrong by so much.
//!
//! # A message
//!
//! - **Latency** forward: `[apparent - high(t), apparent - low(t)]`; backward: `[apparent + low(t), apparent +
//!   high(t)]`. Below 0 it is cut to 0. It is in nanoseconds of clock B.
//! - **Excess** over the least latency of its direction: theta cancels out, and with one rate it is exact. With
//!   different rates theta moves from message to message: for each possible rate the excess is `apparent - y t` less
//!   the least of that, and the bounds are the least and the most of all possible rates ([`Baseline`]).
//! - **Half a round trip** ([`Probe`]): `(a_received - a_sent - (b_sent - b_received)) / 2`. That both directions take
//!   the same is assumed.
//!
//! # Declared clocks
//!
//! Clocks that PTP or NTP keep together have an uncertainty that their user declares: -u <= theta <= u at all times.
//! These are four more points, at the first and at the last stamp ([`Bounds::declared`]). If no line is left, that
//! contradicts what is proved.
//!
//! # Several hosts
//!
//! If B is ahead of A by `high_AB` at most, and C of B by `high_BC` at most, then C is ahead of A by `high_AB +
//! high_BC` at most. The tightest bounds are shortest paths in the graph with an edge `high` from the one to the other
//! and an edge `-low` back. A cycle whose sum is negative is a contradiction, and has its hosts named ([`Hosts`]). So a
//! third host shows which direction of a pair is slow, which the pair itself cannot ([`HostExchanges`]).
//!
//! # Exactness
//!
//! Epochs may differ by 10^18 ns, where a float of 64 bits has steps of 128 ns. So all is done in integers of 128 bits,
//! from an origin near the first message: lines are fractions, and only what comes out is rounded, outwards, to whole
//! nanoseconds, and rates to four decimals of a part per million.
//!
//! # Left out
//!
//! Readings of two clocks that tick out of step differ by one number or by the next: a tick, which is a nanosecond or
//! less with the clocks that are used, is not added to the bounds. Rates that change slowly, with the temperature, are
//! taken as constant during a measurement.

mod bounds;
#[cfg(test)]
mod bounds_tests;
mod exchange;
mod hosts;
#[cfg(test)]
mod hosts_tests;
mod hull;
mod pairs;
mod rate;
mod rates;
#[cfg(test)]
mod simulated;
mod span;
mod unproved;
#[cfg(test)]
mod unproved_tests;
mod ways;
#[cfg(test)]
mod ways_tests;

pub use bounds::{Baseline, Bounds};
pub use exchange::{Direction, Message, Phase, Probe};
pub use hosts::{Cycle, Hosts, TightestBounds};
pub use pairs::HostPairs;
pub use rate::RateLimit;
pub use span::Span;
pub use unproved::{BoundsError, Contradiction};
pub use ways::{BoundingLines, Disagreement, ExchangeSummary, HostExchanges, ThirdHostComparison};
