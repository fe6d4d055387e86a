//! Colours that stay apart for the colour-blind (those of Okabe and Ito, 2008), in an order in which neighbours differ in
//! lightness, and a second sign for each: a kind of line and of mark.

use super::drawing::{Colour, Drawing};

const COLOURS: [Colour; 7] = [
    Colour(0x00, 0x72, 0xb2, 1.0),
    Colour(0xe6, 0x9f, 0x00, 1.0),
    Colour(0x00, 0x00, 0x00, 1.0),
    Colour(0xcc, 0x79, 0xa7, 1.0),
    Colour(0xd5, 0x5e, 0x00, 1.0),
    Colour(0x56, 0xb4, 0xe9, 1.0),
    Colour(0x00, 0x9e, 0x73, 1.0),
];

const DASHES: [&[f64]; 5] = [
    &[],
    &[8.0, 4.0],
    &[2.0, 3.0],
    &[9.0, 3.0, 2.0, 3.0],
    &[14.0, 4.0],
];

/// As many series as can be told apart.
pub const MOST_SERIES: usize = 14;

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Its colour.
    pub colour: Colour,
    /// Lengths of strokes and gaps of its line; none for a line without gaps.
    pub dashes: &'static [f64],
    /// Its mark.
    pub mark: Mark,
}

/// A mark's shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A filled circle.
    Dot,
    /// A filled square.
    Square,
    /// A filled triangle.
    Triangle,
    /// A filled diamond.
    Diamond,
    /// Two crossing lines.
    Cross,
    /// An upright cross.
    Plus,
    /// A triangle on its head.
    Wedge,
}

const MARKS: [Mark; 7] = [
    Mark::Dot,
    Mark::Square,
    Mark::Triangle,
    Mark::Diamond,
    Mark::Cross,
    Mark::Plus,
    Mark::Wedge,
];

/// The look of the series of this number, from 0.
pub fn look(number: usize) -> Look {
    let round = number / COLOURS.len();
    Look {
        colour: COLOURS[number % COLOURS.len()],
        dashes: DASHES[(number + 2 * round) % DASHES.len()],
        mark: MARKS[(number + 3 * round) % MARKS.len()],
    }
}

/// Which look each series of a figure has: the number given here, else its own. So that what is the same in several
/// figures looks the same.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Looks(pub Vec<usize>);

impl Looks {
    /// The look of the series of this number.
    pub fn of(&self, number: usize) -> Look {
        look(self.0.get(number).copied().unwrap_or(number))
    }
}

impl Look {
    /// Draws the mark.
    pub fn mark_at(&self, drawing: &mut Drawing, (x, y): (f64, f64), radius: f64) {
        let colour = self.colour;
        let area = |drawing: &mut Drawing, corners: &[(f64, f64)]| {
            let points = corners
                .iter()
                .map(|(dx, dy)| (x + dx * radius, y + dy * radius));
            drawing.area(points.collect(), colour);
        };
        match self.mark {
            Mark::Dot => drawing.dot((x, y), radius, colour),
            Mark::Square => area(
                drawing,
                &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            ),
            Mark::Triangle => area(drawing, &[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]),
            Mark::Wedge => area(drawing, &[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)]),
            Mark::Diamond => area(drawing, &[(0.0, -1.3), (1.1, 0.0), (0.0, 1.3), (-1.1, 0.0)]),
            Mark::Cross | Mark::Plus => {
                let ends = if self.mark == Mark::Cross {
                    [(-0.9, -0.9), (0.9, 0.9), (-0.9, 0.9), (0.9, -0.9)]
                } else {
                    [(-1.2, 0.0), (1.2, 0.0), (0.0, -1.2), (0.0, 1.2)]
                };
                let end =
                    |number: usize| (x + ends[number].0 * radius, y + ends[number].1 * radius);
                drawing.line(end(0), end(1), radius * 0.6, colour);
                drawing.line(end(2), end(3), radius * 0.6, colour);
            }
        }
    }
}

/// The colour of a share of what is bad, 0 to 1: from light to dark, so that it reads in grey as well.
pub fn heat(share: f64) -> Colour {
    const STEPS: [Colour; 4] = [
        Colour(0xfd, 0xf0, 0xc0, 1.0),
        Colour(0xe6, 0x9f, 0x00, 1.0),
        Colour(0xb0, 0x30, 0x20, 1.0),
        Colour(0x3a, 0x00, 0x2a, 1.0),
    ];
    let place = share.clamp(0.0, 1.0) * (STEPS.len() - 1) as f64;
    let below = (place as usize).min(STEPS.len() - 2);
    STEPS[below].towards(STEPS[below + 1], place - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_told_apart_by_lightness_or_by_line_and_mark() {
        for number in 0..MOST_SERIES {
            for other in 0..number {
                let (one, two) = (look(number), look(other));
                let lighter = (one.colour.lightness() - two.colour.lightness()).abs();
                let apart = lighter > 20.0 || one.dashes != two.dashes || one.mark != two.mark;
                assert!(apart, "{number} and {other} are the same in grey");
                assert!(
                    one.colour != two.colour || one.dashes != two.dashes && one.mark != two.mark,
                    "{number} and {other} of the same colour"
                );
                assert_ne!(one, two);
            }
            assert!(
                look(number).colour.lightness() < 75.0,
                "{number} is too light on white"
            );
        }
        for (one, two) in [(0, 1), (1, 2), (0, 2)] {
            let lighter = look(one).colour.lightness() - look(two).colour.lightness();
            assert!(lighter.abs() > 20.0, "{one} and {two}: {lighter}");
        }
    }

    #[test]
    fn heat_gets_darker() {
        let steps: Vec<f64> = (0..=20)
            .map(|step| heat(f64::from(step) / 20.0).lightness())
            .collect();
        assert!(steps.is_sorted_by(|a, b| a > b), "{steps:?}");
    }
}
