//! A drawing as plain data: shapes in the order in which they cover each other. Coordinates are in units of 1/96 inch,
//! from the upper left corner.

use super::font;

/// A colour: red, green, blue, and how much of what lies below it covers (0 to 1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Colour(pub u8, pub u8, pub u8, pub f64);

impl Colour {
    /// Text and axes.
    pub const INK: Colour = Colour(0x22, 0x22, 0x22, 1.0);
    /// Text of less weight.
    pub const FAINT_INK: Colour = Colour(0x55, 0x55, 0x55, 1.0);
    /// Lines of the grid.
    pub const GRID: Colour = Colour(0xdd, 0xdd, 0xdd, 1.0);
    /// The ground.
    pub const WHITE: Colour = Colour(0xff, 0xff, 0xff, 1.0);

    /// The same colour, covering so much.
    pub fn covering(self, share: f64) -> Colour {
        Colour(self.0, self.1, self.2, share)
    }

    /// The colour between this one (0) and another (1).
    pub fn towards(self, other: Colour, share: f64) -> Colour {
        let mix =
            |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * share).round() as u8;
        Colour(
            mix(self.0, other.0),
            mix(self.1, other.1),
            mix(self.2, other.2),
            1.0,
        )
    }

    /// Lightness as it is seen, 0 (black) to 100 (white): what is left in a copy in grey.
    pub fn lightness(self) -> f64 {
        let linear = |value: u8| {
            let share = f64::from(value) / 255.0;
            if share <= 0.04045 {
                share / 12.92
            } else {
                ((share + 0.055) / 1.055).powf(2.4)
            }
        };
        let luminance = 0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2);
        if luminance > 0.008856 {
            116.0 * luminance.cbrt() - 16.0
        } else {
            903.3 * luminance
        }
    }
}

/// Where a text stands in relation to its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

/// A text on one line.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    /// Where it is anchored.
    pub x: f64,
    /// Its baseline.
    pub y: f64,
    /// What it says.
    pub text: String,
    /// Height of the font's em.
    pub em: f64,
    /// Where it stands in relation to its place.
    pub anchor: Anchor,
    /// Whether it runs from below to above.
    pub upwards: bool,
    /// Its colour.
    pub colour: Colour,
}

impl Text {
    /// The box that it covers: left, top, right, bottom.
    pub fn bounds(&self) -> [f64; 4] {
        let width = font::width(&self.text, self.em);
        let (before, behind) = match self.anchor {
            Anchor::Start => (0.0, width),
            Anchor::Middle => (width / 2.0, width / 2.0),
            Anchor::End => (width, 0.0),
        };
        let (above, below) = (0.76 * self.em, 0.22 * self.em);
        if self.upwards {
            [
                self.x - above,
                self.y - behind,
                self.x + below,
                self.y + before,
            ]
        } else {
            [
                self.x - before,
                self.y - above,
                self.x + behind,
                self.y + below,
            ]
        }
    }
}

/// A shape.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Lines through points.
    Path {
        /// The points.
        points: Vec<(f64, f64)>,
        /// The line's width.
        width: f64,
        /// Its colour.
        colour: Colour,
    },
    /// An area between points.
    Area {
        /// The points.
        points: Vec<(f64, f64)>,
        /// Its colour.
        colour: Colour,
    },
    /// A filled circle.
    Dot {
        /// Its middle.
        at: (f64, f64),
        /// Its radius.
        radius: f64,
        /// Its colour.
        colour: Colour,
    },
    /// A text.
    Text(Text),
}

/// A drawing.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawing {
    /// Its width.
    pub width: f64,
    /// Its height.
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
        drawing.rectangle(0.0, 0.0, width, height, Colour::WHITE);
        drawing
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), width: f64, colour: Colour) {
        self.path(vec![from, to], width, colour);
    }

    /// Lines through points.
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

    /// An area between points.
    pub fn area(&mut self, points: Vec<(f64, f64)>, colour: Colour) {
        self.shapes.push(Shape::Area { points, colour });
    }

    /// A filled rectangle between two corners.
    pub fn rectangle(&mut self, left: f64, top: f64, right: f64, bottom: f64, colour: Colour) {
        self.area(
            vec![(left, top), (right, top), (right, bottom), (left, bottom)],
            colour,
        );
    }

    /// The outline of a rectangle.
    pub fn outline(&mut self, [left, top, right, bottom]: [f64; 4], width: f64, colour: Colour) {
        let corners = vec![
            (left, top),
            (right, top),
            (right, bottom),
            (left, bottom),
            (left, top),
        ];
        self.path(corners, width, colour);
    }

    /// A filled circle.
    pub fn dot(&mut self, at: (f64, f64), radius: f64, colour: Colour) {
        self.shapes.push(Shape::Dot { at, radius, colour });
    }

    /// A text from left to right.
    pub fn text(&mut self, at: (f64, f64), text: &str, em: f64, anchor: Anchor, colour: Colour) {
        self.push_text(at, text, em, anchor, colour, false);
    }

    /// The same in ink.
    pub fn ink(&mut self, at: (f64, f64), text: &str, em: f64, anchor: Anchor) {
        self.text(at, text, em, anchor, Colour::INK);
    }

    /// A text in ink from below to above.
    pub fn text_upwards(&mut self, at: (f64, f64), text: &str, em: f64, anchor: Anchor) {
        self.push_text(at, text, em, anchor, Colour::INK, true);
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
        let text = printable(text);
        if !text.is_empty() {
            self.shapes.push(Shape::Text(Text {
                x,
                y,
                text,
                em,
                anchor,
                upwards,
                colour,
            }));
        }
    }

    /// Its texts.
    pub fn texts(&self) -> impl Iterator<Item = &Text> {
        self.shapes.iter().filter_map(|shape| match shape {
            Shape::Text(text) => Some(text),
            _ => None,
        })
    }
}

/// A text without what XML cannot hold and what has no shape.
pub fn printable(text: &str) -> String {
    let readable = |c: char| match c {
        '\n' | '\r' | '\t' => ' ',
        c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => '\u{fffd}',
        // They would turn the direction of what follows.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            '\u{fffd}'
        }
        c => c,
    };
    text.chars().map(readable).collect()
}
