//! Medians over two settings as a surface in space, coloured by a share of what went wrong.
//!
//! The surface is drawn from back to front, each piece covering what lies behind it, so no hidden line shows.

use serde::Serialize;

use super::drawing::{Anchor, Colour, Drawing};
use super::font;
use super::frame::{LABEL_EM, RING, TICK_EM, Words, ring, words};
use super::palette::heat;
use super::scale::{Axis, Kind, Unit, ends, fitting, so_many, with_room};
use super::{PlotError, at_most};

/// What was measured at a pair of settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Height {
    /// The median; `None` without samples, such as when all messages were lost.
    pub value: Option<f64>,
    /// The share that is shown as colour, 0 to 1.
    pub share: f64,
    /// Whether it is of a part of the samples only.
    pub incomplete: bool,
}

/// The figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Surface {
    /// The words.
    pub words: Words,
    /// The first setting: its name, and its values with their texts.
    pub x: (String, Vec<String>),
    /// The second.
    pub y: (String, Vec<String>),
    /// What the heights are.
    pub value: String,
    /// Their unit.
    pub unit: Unit,
    /// The range of heights; `None` for what is needed.
    pub range: Option<(f64, f64)>,
    /// The scale of heights; `None` for the one that fits.
    pub scale: Option<Kind>,
    /// What the share is.
    pub share: String,
    /// For each value of the first setting, one for each of the second; `None` where nothing was measured.
    pub heights: Vec<Vec<Option<Height>>>,
}

/// As many values of a setting as have room on their axis.
pub const MOST: usize = 40;

/// The view: from the front right, a little from above.
struct View {
    middle: (f64, f64),
    unit: f64,
    height: f64,
}

impl View {
    const TURN: f64 = 0.62;
    const TILT: f64 = 0.46;

    /// The place of a point of the box from -0.5 to 0.5 on the ground, and from 0 to 1 in height.
    fn at(&self, x: f64, y: f64, z: f64) -> (f64, f64) {
        let (sin, cos) = Self::TURN.sin_cos();
        let (across, away) = (x * cos - y * sin, x * sin + y * cos);
        (
            self.middle.0 + across * self.unit,
            self.middle.1 - away * Self::TILT * self.unit - z * self.height,
        )
    }

    /// How far away a point of the ground is.
    fn away(x: f64, y: f64) -> f64 {
        let (sin, cos) = Self::TURN.sin_cos();
        x * sin + y * cos
    }
}

impl Surface {
    /// Draws it.
    ///
    /// # Errors
    /// [`PlotError::Nothing`] without a height or with a single value of a setting, [`PlotError::Outside`],
    /// [`PlotError::TooMuch`].
    pub fn draw(&self, size: (u32, u32)) -> Result<Drawing, PlotError> {
        let (columns, rows) = (self.x.1.len(), self.y.1.len());
        if columns < 2 || rows < 2 {
            return Err(PlotError::Nothing(
                "a surface needs two values of either setting at least".to_owned(),
            ));
        }
        at_most(columns.max(rows), MOST, "values of a setting")?;
        let heights = || self.heights.iter().flatten().flatten();
        let values = || heights().filter_map(|it| it.value);
        let Some(ends) = ends(values()) else {
            return Err(PlotError::Nothing("no point has a median".to_owned()));
        };
        let worst = heights().map(|it| it.share).fold(0.0, f64::max);
        let kind = fitting(ends, self.scale);
        let range = self.range.unwrap_or(with_room(ends, kind));
        let z = Axis::new(&self.value, range, kind, self.unit);

        const AT_THE_END: &str =
            "outside of the range: drawn at its end, with a triangle that points there";
        let (one, more) = (format!("lies {AT_THE_END}"), format!("lie {AT_THE_END}"));
        let note = so_many(z.outside("medians", values())?, "point", &one, &more);

        let mut drawing = Drawing::new(size, &self.words.title);
        let top = words(&mut drawing, &self.words.warned(&note));
        let bottom = drawing.height - 24.0;
        let unit = ((drawing.width - 240.0) / 1.5).min((bottom - top - 60.0) / 1.02);
        // On the ground: a turned square, 1.4 wide and 0.64 deep; above it the height.
        let height = (bottom - top - 56.0 - 0.64 * unit).min(0.85 * unit);
        let free = bottom - top - 56.0 - 0.64 * unit - height;
        let view = View {
            middle: (
                drawing.width / 2.0 - 24.0,
                bottom - 46.0 - 0.32 * unit - free / 2.0,
            ),
            unit,
            height,
        };

        self.walls(&mut drawing, &view, &z);
        self.pieces(&mut drawing, &view, &z, worst);
        self.without_samples(&mut drawing, &view, worst);
        self.beyond(&mut drawing, &view, &z);
        self.rings(&mut drawing, &view, &z);
        self.bar(&mut drawing, worst, top);
        Ok(drawing)
    }

    /// Each height that was measured, with its place on the ground.
    fn each(&self) -> impl Iterator<Item = ((f64, f64), Height)> {
        let columns = self.heights.iter().enumerate();
        columns.flat_map(move |(column, heights)| {
            let rows = heights.iter().enumerate();
            rows.filter_map(move |(row, height)| {
                Some(((self.across(column), self.along(row)), (*height)?))
            })
        })
    }

    fn across(&self, column: usize) -> f64 {
        column as f64 / (self.x.1.len() - 1) as f64 - 0.5
    }

    /// The second setting grows away from the viewer.
    fn along(&self, row: usize) -> f64 {
        row as f64 / (self.y.1.len() - 1) as f64 - 0.5
    }

    /// The ground and the two walls behind, with their grids, ticks and titles.
    fn walls(&self, drawing: &mut Drawing, view: &View, z: &Axis) {
        let wall = Colour(0xf6, 0xf6, 0xf6, 1.0);
        let corners =
            |points: [(f64, f64, f64); 4]| points.map(|(x, y, z)| view.at(x, y, z)).to_vec();
        let (l, h) = (-0.5, 0.5);
        for face in [
            [(l, l, 0.0), (h, l, 0.0), (h, h, 0.0), (l, h, 0.0)],
            [(l, h, 0.0), (h, h, 0.0), (h, h, 1.0), (l, h, 1.0)],
            [(h, l, 0.0), (h, h, 0.0), (h, h, 1.0), (h, l, 1.0)],
        ] {
            drawing.area(corners(face), wall);
        }
        let grid = |drawing: &mut Drawing, points: [(f64, f64, f64); 3]| {
            drawing.path(
                points.map(|(x, y, z)| view.at(x, y, z)).to_vec(),
                0.8,
                Colour::GRID,
            );
        };
        for column in 0..self.x.1.len() {
            let x = self.across(column);
            grid(drawing, [(x, l, 0.0), (x, h, 0.0), (x, h, 1.0)]);
        }
        for row in 0..self.y.1.len() {
            let y = self.along(row);
            grid(drawing, [(l, y, 0.0), (h, y, 0.0), (h, y, 1.0)]);
        }
        let ticks = z.ticks((view.height / 34.0) as usize);
        for (value, _) in &ticks {
            let height = z.share(*value);
            grid(drawing, [(l, h, height), (h, h, height), (h, l, height)]);
        }
        let edge = |drawing: &mut Drawing, from: (f64, f64, f64), to: (f64, f64, f64)| {
            drawing.line(
                view.at(from.0, from.1, from.2),
                view.at(to.0, to.1, to.2),
                1.2,
                Colour::INK,
            );
        };
        edge(drawing, (l, l, 0.0), (h, l, 0.0));
        edge(drawing, (l, l, 0.0), (l, h, 0.0));
        edge(drawing, (l, h, 0.0), (l, h, 1.0));

        // Heights at the left end of the wall behind.
        let mut widest = 0.0_f64;
        for (value, label) in &ticks {
            let (x, y) = view.at(l, h, z.share(*value));
            drawing.line((x - 4.0, y), (x, y), 1.0, Colour::INK);
            drawing.ink((x - 7.0, y + 0.35 * TICK_EM), label, TICK_EM, Anchor::End);
            widest = widest.max(font::width(label, TICK_EM));
        }
        // The title may reach down to the words of the second setting.
        let widest = widest.max(font::width(
            self.y.1.last().map_or("", String::as_str),
            TICK_EM,
        ));
        let (x, y) = view.at(l, h, 0.5);
        let title = z.title();
        drawing.text_upwards((x - 18.0 - widest, y), &title, LABEL_EM, Anchor::Middle);

        // The first setting along the front edge, the second along the left one; words that would touch are left out.
        let mut free = f64::NEG_INFINITY;
        for (column, label) in self.x.1.iter().enumerate() {
            let (x, y) = view.at(self.across(column), l, 0.0);
            drawing.line((x, y), (x + 3.0, y + 4.0), 1.0, Colour::INK);
            let left = x + 3.0;
            // The edge rises to the right, so that words may begin below their neighbours' ends.
            if y < free - TICK_EM * 1.05 || free == f64::NEG_INFINITY {
                drawing.ink((left, y + 1.15 * TICK_EM), label, TICK_EM, Anchor::Start);
                free = y;
            }
        }
        let mut free = f64::INFINITY;
        for (row, label) in self.y.1.iter().enumerate() {
            let (x, y) = view.at(l, self.along(row), 0.0);
            drawing.line((x, y), (x - 3.0, y + 4.0), 1.0, Colour::INK);
            if y < free - TICK_EM * 1.05 {
                drawing.ink((x - 8.0, y + 1.4 * TICK_EM), label, TICK_EM, Anchor::End);
                free = y;
            }
        }
        let widest_of = |labels: &[String]| {
            labels
                .iter()
                .map(|label| font::width(label, TICK_EM))
                .fold(0.0, f64::max)
        };
        let (x, y) = view.at(0.12, l, 0.0);
        let away = widest_of(&self.x.1) + 18.0;
        drawing.ink(
            (x + away, y + 2.3 * TICK_EM),
            &self.x.0,
            LABEL_EM,
            Anchor::Start,
        );
        let (x, y) = view.at(l, -0.12, 0.0);
        let away = widest_of(&self.y.1) + 16.0;
        drawing.ink(
            (x - away, y + 2.2 * TICK_EM),
            &self.y.0,
            LABEL_EM,
            Anchor::End,
        );
    }

    /// The surface, from back to front: pieces between four measured points, lines between two, and the points.
    fn pieces(&self, drawing: &mut Drawing, view: &View, z: &Axis, worst: f64) {
        let place = |column: usize, row: usize| -> Option<((f64, f64), Height, f64)> {
            let height = self.heights[column][row]?;
            let (x, y) = (self.across(column), self.along(row));
            let up = z.share(height.value?).clamp(0.0, 1.0);
            Some((view.at(x, y, up), height, View::away(x, y)))
        };
        let colour = |share: f64| heat(if worst > 0.0 { share / worst } else { 0.0 });
        let line = Colour(0x44, 0x44, 0x44, 1.0);
        let mut pieces = Vec::new();
        for column in 0..self.x.1.len() - 1 {
            for row in 0..self.y.1.len() - 1 {
                let ring = [
                    (column, row),
                    (column + 1, row),
                    (column + 1, row + 1),
                    (column, row + 1),
                ];
                let found: Vec<_> = ring
                    .iter()
                    .filter_map(|&(column, row)| place(column, row))
                    .collect();
                if found.len() >= 3 {
                    let count = found.len() as f64;
                    let away = found.iter().map(|it| it.2).sum::<f64>() / count;
                    let share = found.iter().map(|it| it.1.share).sum::<f64>() / count;
                    let corners: Vec<(f64, f64)> = found.iter().map(|it| it.0).collect();
                    pieces.push((away, corners, share));
                }
            }
        }
        let mut points: Vec<(f64, (f64, f64), Height)> = Vec::new();
        for column in 0..self.x.1.len() {
            for row in 0..self.y.1.len() {
                points.extend(place(column, row).map(|(at, height, away)| (away, at, height)));
            }
        }
        pieces.sort_by(|a: &(f64, _, _), b| b.0.total_cmp(&a.0));
        points.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut points = points.into_iter().peekable();
        let point = |drawing: &mut Drawing, at: (f64, f64), height: Height| {
            drawing.dot(at, 3.0, line);
            drawing.dot(at, 2.2, colour(height.share));
        };
        for (away, corners, share) in pieces {
            // A point is covered by the pieces in front of it.
            while let Some((_, at, height)) = points.next_if(|it| it.0 > away) {
                point(drawing, at, height);
            }
            drawing.area(corners.clone(), colour(share));
            let mut outline = corners;
            outline.extend(outline.first().copied());
            drawing.path(outline, 1.0, line);
        }
        for (_, at, height) in points {
            point(drawing, at, height);
        }
    }

    /// Points without samples have no height: they are crossed squares on the ground, over all else, for they are the worst.
    fn without_samples(&self, drawing: &mut Drawing, view: &View, worst: f64) {
        const SIDE: f64 = 5.0;
        for ((x, y), height) in self.each().filter(|(_, height)| height.value.is_none()) {
            let (x, y) = view.at(x, y, 0.0);
            let [left, top, right, bottom] = [x - SIDE, y - SIDE, x + SIDE, y + SIDE];
            let share = if worst > 0.0 {
                height.share / worst
            } else {
                0.0
            };
            drawing.rectangle(left, top, right, bottom, heat(share));
            drawing.outline([left, top, right, bottom], 1.2, Colour::INK);
            let cross = if share > 0.5 {
                Colour::WHITE
            } else {
                Colour::INK
            };
            drawing.line((left, top), (right, bottom), 1.2, cross);
            drawing.line((left, bottom), (right, top), 1.2, cross);
        }
    }

    /// Triangles at points whose height is beyond the range, which stand at its end: over all else, as these heights are
    /// not the true ones.
    fn beyond(&self, drawing: &mut Drawing, view: &View, z: &Axis) {
        const SIDE: f64 = 6.0;
        for ((x, y), height) in self.each() {
            let Some(value) = height.value.filter(|&value| !z.holds(value)) else {
                continue;
            };
            let share = z.share(value).clamp(0.0, 1.0);
            let up = if share > 0.5 { -SIDE } else { SIDE };
            let (x, y) = view.at(x, y, share);
            let (left, right) = ((x - SIDE, y), (x + SIDE, y));
            let corners = vec![left, right, (x, y + 1.5 * up), left];
            drawing.area(corners.clone(), Colour::WHITE);
            drawing.path(corners, 1.2, Colour::INK);
        }
    }

    /// Rings around what is incomplete, also around points behind the surface.
    fn rings(&self, drawing: &mut Drawing, view: &View, z: &Axis) {
        for ((x, y), height) in self.each().filter(|(_, height)| height.incomplete) {
            let share = |value| z.share(value).clamp(0.0, 1.0);
            ring(drawing, view.at(x, y, height.value.map_or(0.0, share)));
        }
    }

    /// Under the bar, what the ring is.
    fn incomplete(&self, drawing: &mut Drawing, y: f64) {
        let mut heights = self.heights.iter().flatten().flatten();
        if heights.any(|height| height.incomplete) {
            let (text, right) = ("incomplete", drawing.width - 14.0);
            let left = right - font::width(text, TICK_EM);
            let at = (right, y + 0.35 * TICK_EM);
            drawing.ink(at, text, TICK_EM, Anchor::End);
            ring(drawing, (left - 6.0 - RING, y));
        }
    }

    /// The bar that tells what the colours are.
    fn bar(&self, drawing: &mut Drawing, worst: f64, top: f64) {
        const STEPS: usize = 48;
        let (left, right) = (drawing.width - 92.0, drawing.width - 76.0);
        let (upper, lower) = (top + 50.0, (top + 230.0).min(drawing.height - 60.0));
        let title = font::wrap(&self.share, TICK_EM, 120.0, 2);
        for (number, line) in title.iter().enumerate() {
            let y = upper - 10.0 - (title.len() - 1 - number) as f64 * 1.25 * TICK_EM;
            drawing.ink((drawing.width - 14.0, y), line, TICK_EM, Anchor::End);
        }
        if worst <= 0.0 {
            drawing.rectangle(left, upper, right, upper + 16.0, heat(0.0));
            drawing.outline([left, upper, right, upper + 16.0], 0.8, Colour::INK);
            drawing.ink(
                (right + 7.0, upper + 8.0 + 0.35 * TICK_EM),
                "0 %",
                TICK_EM,
                Anchor::Start,
            );
            self.incomplete(drawing, upper + 40.0);
            return;
        }
        let axis = Axis::new("", (0.0, 100.0 * worst), Kind::Linear, Unit::Percent);
        let at = |share: f64| lower - share * (lower - upper);
        for step in 0..STEPS {
            let (from, to) = (step as f64 / STEPS as f64, (step + 1) as f64 / STEPS as f64);
            drawing.rectangle(left, at(to), right, at(from) + 0.3, heat((from + to) / 2.0));
        }
        drawing.outline([left, upper, right, lower], 0.8, Colour::INK);
        for (value, text) in axis.ticks(5) {
            let y = at(axis.share(value));
            drawing.line((right, y), (right + 4.0, y), 1.0, Colour::INK);
            drawing.ink(
                (right + 7.0, y + 0.35 * TICK_EM),
                &format!("{text} %"),
                TICK_EM,
                Anchor::Start,
            );
        }
        self.incomplete(drawing, lower + 24.0);
    }
}
