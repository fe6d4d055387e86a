//! Colours that stay apart for the colour-blind (those of Okabe and Ito, 2008), in an order in which neighbours differ
//! in lightness, and a second sign for each: a kind of line and of mark. Series of one colour differ by shades of it
//! and by the kind of line.

use super::drawing::{Colour, Drawing};

/// How many colours there are.
pub const COLOURS: usize = 7;

const IN_ORDER: [Colour; COLOURS] = [
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

/// The number of series that can be distinguished.
pub const MOST_SERIES: usize = 14;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurveStyle {
    pub colour: Colour,
    /// Lengths of strokes and gaps of its line; none for a line without gaps.
    pub dashes: &'static [f64],
    pub mark: Mark,
}

/// A mark's shape, in units of its radius.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mark {
    Dot,
    Area(&'static [(f64, f64)]),
    /// Two lines that cross each other, between the first two places and the others.
    Cross([(f64, f64); 4]),
}

const MARKS: [Mark; 7] = [
    Mark::Dot,
    // A square.
    Mark::Area(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
    // A triangle.
    Mark::Area(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]),
    // A diamond.
    Mark::Area(&[(0.0, -1.3), (1.1, 0.0), (0.0, 1.3), (-1.1, 0.0)]),
    // Aslant, and upright.
    Mark::Cross([(-0.9, -0.9), (0.9, 0.9), (-0.9, 0.9), (0.9, -0.9)]),
    Mark::Cross([(-1.2, 0.0), (1.2, 0.0), (0.0, -1.2), (0.0, 1.2)]),
    // A triangle on its head.
    Mark::Area(&[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)]),
];

/// Which look: the number of its colour and mark, and its number among those that share them; both from 0.
pub type StyleNumber = (usize, usize);

/// The look of a series.
pub fn look((colour, shade): StyleNumber) -> CurveStyle {
    let shade = shade + colour / COLOURS;
    let colour = colour % COLOURS;
    let of = IN_ORDER[colour];
    let away = match of.lightness() > 50.0 {
        true => Colour(0, 0, 0, 1.0),
        false => Colour::WHITE,
    };
    CurveStyle {
        colour: of.towards(away, 0.3 * (shade % 3) as f64),
        dashes: DASHES[(colour + shade) % DASHES.len()],
        // Marks alone distinguish three shades.
        mark: MARKS[(colour + 3 * (shade / 3)) % MARKS.len()],
    }
}

impl CurveStyle {
    pub fn mark_at(&self, drawing: &mut Drawing, (x, y): (f64, f64), radius: f64) {
        let place = |(dx, dy): (f64, f64)| (x + dx * radius, y + dy * radius);
        match self.mark {
            Mark::Dot => drawing.dot((x, y), radius, self.colour),
            Mark::Area(corners) => {
                let corners = corners.iter().map(|&corner| place(corner));
                drawing.area(corners.collect(), self.colour);
            }
            Mark::Cross(ends) => {
                let [a, b, c, d] = ends.map(place);
                drawing.line(a, b, radius * 0.6, self.colour);
                drawing.line(c, d, radius * 0.6, self.colour);
            }
        }
    }
}

/// The colour of a share, 0 to 1, for lines: all are dark enough on white, and each is lighter than those before.
pub fn graded(share: f64) -> Colour {
    const STEPS: [Colour; 4] = [
        Colour(0x2d, 0x0a, 0x5e, 1.0),
        Colour(0x1b, 0x5e, 0xa8, 1.0),
        Colour(0x0f, 0x93, 0x84, 1.0),
        Colour(0xe0, 0x96, 0x00, 1.0),
    ];
    between(&STEPS, share)
}

/// The colour of a share of what is bad, 0 to 1: from light to dark, so that it reads in grey as well.
pub fn heat(share: f64) -> Colour {
    const STEPS: [Colour; 4] = [
        Colour(0xfd, 0xf0, 0xc0, 1.0),
        Colour(0xe6, 0x9f, 0x00, 1.0),
        Colour(0xb0, 0x30, 0x20, 1.0),
        Colour(0x3a, 0x00, 0x2a, 1.0),
    ];
    between(&STEPS, share)
}

/// The colour that lies so far along steps, 0 to 1.
fn between(steps: &[Colour], share: f64) -> Colour {
    let place = share.clamp(0.0, 1.0) * (steps.len() - 1) as f64;
    let below = (place as usize).min(steps.len() - 2);
    steps[below].towards(steps[below + 1], place - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_told_apart_by_lightness_or_by_line_and_mark() {
        let numbers = (0..MOST_SERIES).map(|number| (number, 0));
        let services = (0..3).flat_map(|service| (0..5).map(move |shade| (service, shade)));
        for all in [Vec::from_iter(numbers), services.collect()] {
            for (place, one) in all.iter().enumerate() {
                let one = look(*one);
                for two in all[..place].iter().map(|it| look(*it)) {
                    let lighter = (one.colour.lightness() - two.colour.lightness()).abs();
                    let by_colour = one.mark != two.mark && one.colour != two.colour;
                    assert!(lighter > 10.0 || one.dashes != two.dashes || one.mark != two.mark);
                    assert!(by_colour || one.dashes != two.dashes, "{one:?}, {two:?}");
                }
                assert!(one.colour.lightness() < 75.0, "too light on white: {one:?}");
            }
        }
        let first = [0, 1, 2].map(|number| look((number, 0)).colour.lightness());
        for (one, two) in [(0, 1), (1, 2), (0, 2)] {
            assert!((first[one] - first[two]).abs() > 20.0, "{first:?}");
        }
    }

    #[test]
    fn graded_lines_get_lighter_and_stay_dark_enough_on_white() {
        let shares = (0..=20).map(|step| f64::from(step) / 20.0);
        let steps: Vec<f64> = shares.map(|share| graded(share).lightness()).collect();
        assert!(steps.is_sorted_by(|a, b| a < b), "{steps:?}");
        assert!(steps[20] < 75.0, "{steps:?}");
    }

    #[test]
    fn heat_gets_darker() {
        let shares = (0..=20).map(|step| f64::from(step) / 20.0);
        let steps: Vec<f64> = shares.map(|share| heat(share).lightness()).collect();
        assert!(steps.is_sorted_by(|a, b| a > b), "{steps:?}");
    }
}
