//! From values to places, and the ticks of an axis.

use serde::Serialize;

use super::PlotError;
use crate::results::units::fixed;

/// What the numbers on an axis are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds, shown in the unit that fits.
    Nanoseconds,
    /// Bytes a second, shown in the unit that fits.
    BytesPerSecond,
    /// 10^9 bytes a second.
    GigabytesPerSecond,
    Percent,
    Number,
}

/// How values become places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ScaleKind {
    Linear,
    Log,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it is, without unit.
    pub label: String,
    pub low: f64,
    pub high: f64,
    pub kind: ScaleKind,
    pub unit: Unit,
    /// Ticks given by the caller; of others there are as many as fit.
    pub given: Option<Vec<(f64, String)>>,
    /// Whether these are names of places 0, 1, 2 and so on.
    pub named: bool,
}

const NANOSECONDS: [(f64, &str); 4] = [(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")];
const BYTES: [(f64, &str); 4] = [(1.0, "B/s"), (1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s")];

impl Axis {
    /// An axis over a range, which is widened where it has no width.
    pub fn new(label: &str, (low, high): (f64, f64), kind: ScaleKind, unit: Unit) -> Self {
        let (low, high) = widened(low, high, kind);
        Axis {
            label: label.to_owned(),
            low,
            high,
            kind,
            unit,
            given: None,
            named: false,
        }
    }

    /// An axis of places 0, 1, 2 and so on with a name each.
    pub fn named(label: &str, names: Vec<(f64, String)>) -> Self {
        let range = (-0.5, names.len() as f64 - 0.5);
        Axis {
            given: Some(names),
            named: true,
            ..Self::new(label, range, ScaleKind::Linear, Unit::Number)
        }
    }

    /// The share of the axis below a value; outside 0 to 1 for what is outside its range.
    pub fn share(&self, value: f64) -> f64 {
        match self.kind {
            ScaleKind::Linear => (value - self.low) / (self.high - self.low),
            // What has no logarithm lies below everything.
            ScaleKind::Log if value <= 0.0 => -1.0,
            ScaleKind::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        }
    }

    pub fn holds(&self, value: f64) -> bool {
        (-1e-9..=1.0 + 1e-9).contains(&self.share(value))
    }

    /// How many of these values lie outside of the axis; an error when all do, and there are any.
    pub fn outside(
        &self,
        what: &'static str,
        values: impl Iterator<Item = f64> + Clone,
    ) -> Result<usize, PlotError> {
        let outside = values.clone().filter(|value| !self.holds(*value)).count();
        let all_are = outside == values.clone().count();
        match ends(values).filter(|_| all_are) {
            None => Ok(outside),
            Some((lowest, highest)) => Err(PlotError::Outside {
                what,
                from: self.in_words(lowest),
                to: self.in_words(highest),
                on_any_range: self.kind == ScaleKind::Log && highest <= 0.0,
            }),
        }
    }

    /// The unit that the numbers are shown in, and how many of the values make one of it.
    fn shown_in(&self) -> (f64, &'static str) {
        let largest = self.high.abs().max(self.low.abs());
        match self.unit {
            Unit::BytesPerSecond => {
                let mut sizes = BYTES.iter().rev();
                *sizes
                    .find(|(size, _)| largest >= 2.0 * size)
                    .unwrap_or(&BYTES[0])
            }
            Unit::Nanoseconds => {
                let fits = NANOSECONDS
                    .iter()
                    .rev()
                    .find(|(size, _)| largest >= if *size >= 1e9 { 2.0 } else { 15.0 } * size);
                *fits.unwrap_or(&NANOSECONDS[0])
            }
            Unit::GigabytesPerSecond => (1.0, "GB/s"),
            Unit::Percent => (1.0, "%"),
            Unit::Number => (1.0, ""),
        }
    }

    /// The label with its unit.
    pub fn title(&self) -> String {
        let in_words = self.kind == ScaleKind::Log && self.unit == Unit::Nanoseconds;
        match self.shown_in() {
            (_, "") => self.label.clone(),
            // Each tick has a separate unit.
            _ if in_words || self.given.is_some() => self.label.clone(),
            (_, unit) => format!("{} ({unit})", self.label),
        }
    }

    /// Values and texts of its ticks, at most about this many.
    pub fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        if let Some(given) = &self.given {
            return given.clone();
        }
        match self.kind {
            ScaleKind::Linear => self.linear_ticks(most),
            ScaleKind::Log => self.log_ticks(most),
        }
    }

    fn linear_ticks(&self, most: usize) -> Vec<(f64, String)> {
        let (size, _) = self.shown_in();
        let (low, high) = (self.low / size, self.high / size);
        let step = round_step((high - low) / most.max(2) as f64);
        let (first, last) = ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor());
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let text = |number: i64| fixed(number as f64 * step, decimals);
        (first as i64..=last as i64)
            .map(|number| (number as f64 * step * size, text(number)))
            .collect()
    }

    fn log_ticks(&self, most: usize) -> Vec<(f64, String)> {
        /// These multiples of each of a number of powers of ten.
        const SETS: [(i32, &[f64]); 6] = [
            (1, &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]),
            (1, &[1.0, 2.0, 5.0]),
            (1, &[1.0, 3.0]),
            (1, &[1.0]),
            (2, &[1.0]),
            (3, &[1.0]),
        ];
        let ends = (self.low.log10().floor(), self.high.log10().ceil());
        let inside = self.low * (1.0 - 1e-9)..=self.high * (1.0 + 1e-9);
        let of = |(every, parts): (i32, &[f64])| -> Vec<(f64, String)> {
            let powers = (ends.0 as i32..=ends.1 as i32).filter(|it| it.rem_euclid(every) == 0);
            let values =
                powers.flat_map(|power| parts.iter().map(move |it| it * 10_f64.powi(power)));
            let values = values.filter(|value| inside.contains(value));
            values.map(|value| (value, self.in_words(value))).collect()
        };
        let mut sets = SETS.into_iter().map(of);
        let fits = sets.find(|ticks| (2..=most).contains(&ticks.len()));
        // The title of such an axis has no unit.
        let in_words = |(value, _)| (value, self.in_words(value));
        fits.unwrap_or_else(|| self.linear_ticks(most).into_iter().map(in_words).collect())
    }

    /// A value with its unit.
    pub fn in_words(&self, value: f64) -> String {
        match self.unit {
            Unit::Nanoseconds => duration(value),
            Unit::BytesPerSecond => {
                let (size, unit) = self.shown_in();
                format!("{} {unit}", plain(value / size))
            }
            Unit::GigabytesPerSecond => format!("{} GB/s", plain(value)),
            Unit::Percent => format!("{} %", plain(value)),
            Unit::Number => plain(value),
        }
    }
}

/// The least and the largest of values; `None` without any.
pub(super) fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |ends, value| match ends {
        None => Some((value, value)),
        Some((low, high)) => Some((value.min(low), value.max(high))),
    })
}

/// The scale that fits values between these ends, unless another was asked for.
pub(super) fn fitting((lowest, highest): (f64, f64), asked: Option<ScaleKind>) -> ScaleKind {
    let wide = lowest > 0.0 && highest / lowest > 30.0;
    asked.unwrap_or(if wide {
        ScaleKind::Log
    } else {
        ScaleKind::Linear
    })
}

/// The range of an axis for values between these ends, a linear one from zero.
pub(super) fn with_room((lowest, highest): (f64, f64), kind: ScaleKind) -> (f64, f64) {
    match kind {
        ScaleKind::Linear => {
            let low = lowest.min(0.0);
            (low, highest + (highest - low) * 0.05)
        }
        ScaleKind::Log => (lowest / 1.2, highest * 1.2),
    }
}

/// `1 curve lies`, `3 curves lie`; empty for none.
pub fn counted(count: usize, noun: &str, one: &str, more: &str) -> String {
    match count {
        0 => String::new(),
        1 => format!("1 {noun} {one}"),
        count => format!("{count} {noun}s {more}"),
    }
}

/// Nanoseconds with three digits in the unit that fits, without zeros behind the point.
pub fn duration(nanoseconds: f64) -> String {
    let size = NANOSECONDS
        .iter()
        .rev()
        .find(|(size, _)| nanoseconds.abs() >= 0.9995 * size);
    let (size, unit) = size.unwrap_or(&NANOSECONDS[0]);
    let value = nanoseconds / size;
    let decimals = match value.abs() {
        small if small < 9.995 => 2,
        small if small < 99.95 => 1,
        _ => 0,
    };
    format!("{} {unit}", trimmed(&fixed(value, decimals)))
}

fn trimmed(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

/// A number in as few digits as it needs, thousands and millions by their letters.
pub fn plain(value: f64) -> String {
    // From where on, what one of them is, and its letter.
    let letters = [(1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")];
    let found = letters.iter().find(|(from, ..)| value.abs() >= *from);
    match found {
        Some((_, size, letter)) => format!("{}{letter}", trimmed(&format!("{:.3}", value / size))),
        None => trimmed(&format!("{value:.4}")).to_owned(),
    }
}

/// 1, 2 or 5 times a power of ten, not below `least`.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let part = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|part| part * power >= least * (1.0 - 1e-9));
    part.unwrap_or(10.0) * power
}

/// A range that has a width and is finite; of a logarithmic one, above zero.
fn widened(low: f64, high: f64, kind: ScaleKind) -> (f64, f64) {
    let finite = |value: f64, other: f64| if value.is_finite() { value } else { other };
    let (low, high) = (finite(low, 0.0), finite(high, 1.0));
    let (low, high) = (low.min(high), low.max(high));
    match kind {
        ScaleKind::Linear if high - low > high.abs().max(low.abs()) * 1e-9 && high > low => {
            (low, high)
        }
        ScaleKind::Linear => {
            let beside = (low.abs() * 0.1).max(1.0);
            (low - beside, high + beside)
        }
        ScaleKind::Log => {
            let low = if low > 0.0 {
                low
            } else {
                1.0_f64.min(high.abs().max(1e-3) / 10.0)
            };
            let high = high.max(low);
            // However narrow: one that was given must stay as it is.
            if high / low > 1.0 + 1e-9 {
                (low, high)
            } else {
                (low / 1.5, high * 1.5)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Has as _;

    #[test]
    fn ticks_are_round_and_inside() {
        for (range, kind, most, texts, title) in [
            (
                (0.0, 10_000.0),
                ScaleKind::Linear,
                6,
                "0 2000 4000 6000 8000 10000",
                "latency (ns)",
            ),
            (
                (900.0, 2.5e6),
                ScaleKind::Log,
                6,
                "1 µs 10 µs 100 µs 1 ms",
                "latency",
            ),
            (
                (0.0, 43_210.0),
                ScaleKind::Linear,
                5,
                "0 10 20 30 40",
                "latency (µs)",
            ),
        ] {
            let axis = Axis::new("latency", range, kind, Unit::Nanoseconds);
            let found: Vec<String> = axis.ticks(most).into_iter().map(|tick| tick.1).collect();
            assert_eq!(found.join(" ").as_str(), texts);
            assert_eq!(axis.title().as_str(), title);
        }
    }

    #[test]
    fn no_range_is_empty_or_infinite_and_others_stay() {
        let ranges = [
            (0.0, 0.0),
            (5.0, 5.0),
            (-3.0, -3.0),
            (f64::NAN, f64::NAN),
            (7.0, f64::INFINITY),
            (0.0, 9.0),
            (1e15, 1e15),
            (1000.0, 1001.0),
        ];
        for kind in [ScaleKind::Linear, ScaleKind::Log] {
            for range in ranges {
                let axis = Axis::new("x", range, kind, Unit::Nanoseconds);
                assert!(axis.low < axis.high && axis.low.is_finite() && axis.high.is_finite());
                let ticks = axis.ticks(6);
                assert!((1..=14).contains(&ticks.len()), "{axis:?}: {ticks:?}");
                let inside = -1e-6..=1.0 + 1e-6;
                for (value, text) in ticks {
                    assert!(inside.contains(&axis.share(value)), "{axis:?}: {value}");
                    text.lacks(&["NaN", "inf"]);
                }
            }
            let axis = Axis::new("x", (1000.0, 1100.0), kind, Unit::Nanoseconds);
            assert_eq!((axis.low, axis.high), (1000.0, 1100.0));
            assert!(axis.holds(1100.0) && !axis.holds(1101.0) && !axis.holds(999.0));
        }
    }

    #[test]
    fn numbers_in_words() {
        let texts = [
            0.0, 12.0, 999.0, 1000.0, 1500.0, 21_345.0, 999_960.0, 3.2e9, -40.0,
        ]
        .map(duration);
        assert_eq!(
            texts,
            [
                "0 ns", "12 ns", "999 ns", "1 µs", "1.5 µs", "21.3 µs", "1 ms", "3.2 s", "-40 ns"
            ]
        );
        let expected = ["8", "8192", "32.768k", "1M", "0.25"];
        assert_eq!([8.0, 8192.0, 32_768.0, 1e6, 0.25].map(plain), expected);
    }
}
