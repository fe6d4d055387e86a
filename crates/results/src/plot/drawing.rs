//! A drawing as plain data: shapes in the order in which they cover each other. Coordinates are in units of 1/96 inch,
//! from the upper left corner.

use crate::results::text::printable;

/// A colour: red, green, blue, and how much of what lies below it covers (0 to 1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Colour(pub u8, pub u8, pub u8, pub f64);

impl Colour {
    /// Text and axes.
    pub const INK: Colour = Colour(0x22, 0x22, 0x22, 1.0);
    /// Text of less weight.
    pub const FAINT_INK: Colour = Colour(0x55, 0x55, 0x55, 1.0);
    pub const GRID: Colour = Colour(0xdd, 0xdd, 0xdd, 1.0);
    pub const WHITE: Colour = Colour(0xff, 0xff, 0xff, 1.0);

    pub fn covering(self, share: f64) -> Colour {
        Colour(self.0, self.1, self.2, share)
    }

    /// The colour between this one (0) and another (1).
    pub fn towards(self, other: Colour, share: f64) -> Colour {
        let mix = |a: u8, b: u8| {
            let (a, b) = (f64::from(a), f64::from(b));
            (a + (b - a) * share).round() as u8
        };
        let Colour(red, green, blue, _) = other;
        Colour(mix(self.0, red), mix(self.1, green), mix(self.2, blue), 1.0)
    }

    /// How light it is in a copy in grey, 0 (black) to 100 (white).
    pub fn lightness(self) -> f64 {
        let Colour(red, green, blue, _) = self;
        let [red, green, blue] = [red, green, blue].map(f64::from);
        (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 2.55
    }
}

/// What of a text is at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    /// The place of its anchor, on its baseline.
    pub x: f64,
    pub y: f64,
    pub text: String,
    pub em: f64,
    pub anchor: Anchor,
    /// Whether it runs from below to above.
    pub upwards: bool,
    pub colour: Colour,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    Path {
        points: Vec<(f64, f64)>,
        width: f64,
        colour: Colour,
    },
    Area {
        points: Vec<(f64, f64)>,
        colour: Colour,
    },
    Dot {
        at: (f64, f64),
        radius: f64,
        colour: Colour,
    },
    Text(Text),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Drawing {
    pub width: f64,
    pub height: f64,
    /// What it is, for those who cannot see it.
    pub title: String,
    /// What is drawn, from the bottom up.
    pub shapes: Vec<Shape>,
}

impl Drawing {
    /// An empty drawing on white ground.
    pub fn new(size: (u32, u32), title: &str) -> Self {
        let (width, height) = (f64::from(size.0), f64::from(size.1));
        let mut drawing = Drawing {
            width,
            height,
            title: title.to_owned(),
            shapes: Vec::new(),
        };
        drawing.rectangle([0.0, 0.0, width, height], Colour::WHITE);
        drawing
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), width: f64, colour: Colour) {
        self.path(vec![from, to], width, colour);
    }

    pub fn path(&mut self, points: Vec<(f64, f64)>, width: f64, colour: Colour) {
        self.shapes.push(Shape::Path {
            points,
            width,
            colour,
        });
    }

    /// Lines through points in strokes and gaps of these lengths; all of it, if there are none.
    pub fn dashed(&mut self, points: &[(f64, f64)], dashes: &[f64], width: f64, colour: Colour) {
        if dashes.is_empty() {
            self.path(points.to_vec(), width, colour);
            return;
        }
        let (mut which, mut left) = (0, dashes[0]);
        let mut stroke: Vec<(f64, f64)> = points.first().copied().into_iter().collect();
        for pair in points.windows(2) {
            let (mut from, to) = (pair[0], pair[1]);
            loop {
                let distance = (to.0 - from.0).hypot(to.1 - from.1);
                if distance <= left {
                    left -= distance;
                    stroke.push(to);
                    break;
                }
                let share = left / distance;
                from = (
                    from.0 + (to.0 - from.0) * share,
                    from.1 + (to.1 - from.1) * share,
                );
                stroke.push(from);
                let done = std::mem::replace(&mut stroke, vec![from]);
                if which % 2 == 0 {
                    self.path(done, width, colour);
                }
                which = (which + 1) % dashes.len();
                left = dashes[which];
            }
        }
        if which % 2 == 0 && stroke.len() > 1 {
            self.path(stroke, width, colour);
        }
    }

    pub fn area(&mut self, points: Vec<(f64, f64)>, colour: Colour) {
        self.shapes.push(Shape::Area { points, colour });
    }

    pub fn rectangle(&mut self, sides: [f64; 4], colour: Colour) {
        self.area(around(sides)[..4].to_vec(), colour);
    }

    pub fn outline(&mut self, sides: [f64; 4], width: f64, colour: Colour) {
        self.path(around(sides).to_vec(), width, colour);
    }

    pub fn dot(&mut self, at: (f64, f64), radius: f64, colour: Colour) {
        self.shapes.push(Shape::Dot { at, radius, colour });
    }

    /// A text from left to right.
    pub fn text(&mut self, at: (f64, f64), text: &str, em: f64, anchor: Anchor, colour: Colour) {
        self.push_text(at, text, em, anchor, colour, false);
    }

    /// The same in ink.
    pub fn ink(&mut self, at: (f64, f64), text: &str, em: f64, anchor: Anchor) {
        self.push_text(at, text, em, anchor, Colour::INK, false);
    }

    /// A text in ink from below to above.
    pub fn text_upwards(&mut self, at: (f64, f64), text: &str, em: f64, anchor: Anchor) {
        self.push_text(at, text, em, anchor, Colour::INK, true);
    }

    /// A text from below to above in any colour.
    pub fn coloured_upwards(
        &mut self,
        at: (f64, f64),
        text: &str,
        em: f64,
        anchor: Anchor,
        colour: Colour,
    ) {
        self.push_text(at, text, em, anchor, colour, true);
    }

    fn push_text(
        &mut self,
        (x, y): (f64, f64),
        text: &str,
        em: f64,
        anchor: Anchor,
        colour: Colour,
        upwards: bool,
    ) {
        if !text.is_empty() {
            self.shapes.push(Shape::Text(Text {
                x,
                y,
                text: fit_for_xml(text),
                em,
                anchor,
                upwards,
                colour,
            }));
        }
    }

    #[cfg(any(test, feature = "testing"))]
    pub fn texts(&self) -> impl Iterator<Item = &Text> {
        self.shapes.iter().filter_map(|shape| match shape {
            Shape::Text(text) => Some(text),
            _ => None,
        })
    }
}

/// The corners of a rectangle with these sides (left, top, right, bottom), the first one twice.
pub fn around([left, top, right, bottom]: [f64; 4]) -> [(f64, f64); 5] {
    let (first, second) = ((left, top), (right, top));
    [first, second, (right, bottom), (left, bottom), first]
}

/// A text without what XML cannot hold and what would turn the direction of what follows.
pub fn fit_for_xml(text: &str) -> String {
    printable(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
