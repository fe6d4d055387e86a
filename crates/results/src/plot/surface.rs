//! Medians or another percentile over two settings as a surface in space, coloured by a share of what went wrong.
//!
//! The surface is drawn from back to front, each piece covering what lies behind it, so no hidden line shows.

use serde::Serialize;

use super::drawing::{Anchor, Colour, Drawing};
use super::font;
use super::frame::{Chart, LABEL_EM, RING, TICK_EM, ring, words};
use super::palette::heat;
use super::scale::{Axis, ScaleKind, Unit, counted, ends};
use super::{PlotError, at_most};
use crate::sorting::sort_by;

/// What was measured at a pair of settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Height {
    /// How high it is; `None` without samples, such as when all messages were lost.
    pub value: Option<f64>,
    /// The share that is shown as colour, 0 to 1.
    pub share: f64,
    /// Whether it is of a part of the samples only.
    pub incomplete: bool,
}

/// The figure; the settings are on the axes of its ground.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Surface {
    #[serde(flatten)]
    pub chart: Chart,
    /// The texts of the values of both settings.
    pub texts: [Vec<String>; 2],
    /// What the heights are.
    pub value: String,
    /// What the share is.
    pub share: String,
    /// For each value of the first setting, one for each of the second; `None` where nothing was measured.
    pub heights: Vec<Vec<Option<Height>>>,
}

/// As many values of a setting as have room on their axis.
pub const MOST: usize = 40;

/// In a figure narrower than this the titles of the settings are below the ground, not beside it.
const NARROW: f64 = 480.0;

/// The view: from the front right, a little from above; and the axis of heights.
struct View {
    middle: (f64, f64),
    unit: f64,
    height: f64,
    z: Axis,
    /// The largest share, which has the darkest colour.
    worst: f64,
}

impl View {
    const TURN: f64 = 0.62;
    const TILT: f64 = 0.46;

    /// The place of a point of the box from -0.5 to 0.5 on the ground, and from 0 to 1 in height.
    fn at(&self, (x, y, z): (f64, f64, f64)) -> (f64, f64) {
        let (sin, cos) = Self::TURN.sin_cos();
        let across = x * cos - y * sin;
        let away = Self::away((x, y));
        (
            self.middle.0 + across * self.unit,
            self.middle.1 - away * Self::TILT * self.unit - z * self.height,
        )
    }

    /// How far away a point of the ground is.
    fn away((x, y): (f64, f64)) -> f64 {
        let (sin, cos) = Self::TURN.sin_cos();
        x * sin + y * cos
    }

    /// The height of a value: at the end of the axis, if it is beyond; what has none lies on the ground.
    fn up(&self, value: Option<f64>) -> f64 {
        value.map_or(0.0, |value| self.z.share(value).clamp(0.0, 1.0))
    }

    fn of_worst(&self, share: f64) -> f64 {
        if self.worst > 0.0 {
            share / self.worst
        } else {
            0.0
        }
    }
}

/// Where the baseline of a tick's text is, whose middle has this height.
fn beside((x, y): (f64, f64)) -> (f64, f64) {
    (x, y + 0.35 * TICK_EM)
}

impl Surface {
    pub fn draw(&self, size: (u32, u32)) -> Result<Drawing, PlotError> {
        let [columns, rows] = [0, 1].map(|axis| self.texts[axis].len());
        if columns < 2 || rows < 2 {
            return Err(PlotError::Nothing(
                "a surface needs two values of either setting at least".to_owned(),
            ));
        }
        at_most(columns.max(rows), MOST, "values of a setting")?;
        let heights = || self.heights.iter().flatten().flatten();
        let values = || heights().filter_map(|it| it.value);
        let ends = ends(values()).ok_or_else(PlotError::no_median)?;
        let z = self.chart.axis_of_values(&self.value, ends);

        const AT_THE_END: &str =
            "outside of the range: drawn at its end, with a triangle that points there";
        let (one, more) = (format!("lies {AT_THE_END}"), format!("lie {AT_THE_END}"));
        let note = counted(z.outside("heights", values())?, "point", &one, &more);

        let mut drawing = Drawing::new(size, &self.chart.words.title);
        let top = words(&mut drawing, &self.chart.words.warned(&note));
        let is_narrow = drawing.width < NARROW;
        let bottom = drawing.height - if is_narrow { 36.0 } else { 24.0 };
        let room = match is_narrow {
            true => (drawing.width - 160.0) / 1.4,
            false => (drawing.width - 240.0) / 1.5,
        };
        let unit = room.min((bottom - top - 60.0) / 1.02);
        // On the ground: a turned square, 1.4 wide and 0.64 deep; above it the height.
        let height = (bottom - top - 56.0 - 0.64 * unit).min(0.85 * unit);
        let free = bottom - top - 56.0 - 0.64 * unit - height;
        let view = View {
            middle: (
                match is_narrow {
                    true => 66.0 + 0.7 * unit,
                    false => drawing.width / 2.0 - 24.0,
                },
                bottom - 46.0 - 0.32 * unit - free / 2.0,
            ),
            unit,
            height,
            z,
            worst: heights().map(|it| it.share).fold(0.0, f64::max),
        };

        self.walls(&mut drawing, &view);
        self.words_around(&mut drawing, &view);
        self.pieces(&mut drawing, &view);
        self.without_samples(&mut drawing, &view);
        self.beyond(&mut drawing, &view);
        // Rings around what is incomplete, also around points behind the surface.
        for ((x, y), height) in self.each().filter(|(_, height)| height.incomplete) {
            ring(&mut drawing, view.at((x, y, view.up(height.value))));
        }
        self.bar(&mut drawing, view.worst, top);
        Ok(drawing)
    }

    /// Each height that was measured, with its place on the ground.
    fn each(&self) -> impl Iterator<Item = ((f64, f64), Height)> {
        let columns = self.heights.iter().enumerate();
        columns.flat_map(move |(column, heights)| {
            let rows = heights.iter().enumerate();
            rows.filter_map(move |(row, height)| Some((self.ground(column, row), (*height)?)))
        })
    }

    /// The place of the value of this number of a setting, the first or the second.
    fn along(&self, axis: usize, number: usize) -> f64 {
        number as f64 / (self.texts[axis].len() - 1) as f64 - 0.5
    }

    /// The second setting grows away from the viewer.
    fn ground(&self, column: usize, row: usize) -> (f64, f64) {
        (self.along(0, column), self.along(1, row))
    }

    fn ticks(&self, view: &View) -> Vec<(f64, String)> {
        let ticks = view
            .z
            .ticks((view.height / 34.0).max(2.0) as usize)
            .into_iter();
        ticks
            .map(|(value, text)| (view.z.share(value), text))
            .collect()
    }

    /// The ground and the two walls behind, with their grids and edges.
    fn walls(&self, drawing: &mut Drawing, view: &View) {
        let wall = Colour(0xf6, 0xf6, 0xf6, 1.0);
        let (l, h) = (-0.5, 0.5);
        for face in [
            [(l, l, 0.0), (h, l, 0.0), (h, h, 0.0), (l, h, 0.0)],
            [(l, h, 0.0), (h, h, 0.0), (h, h, 1.0), (l, h, 1.0)],
            [(h, l, 0.0), (h, h, 0.0), (h, h, 1.0), (h, l, 1.0)],
        ] {
            drawing.area(face.map(|corner| view.at(corner)).to_vec(), wall);
        }
        let mut path = |points: &[(f64, f64, f64)], width: f64, colour: Colour| {
            let points = points.iter().map(|&point| view.at(point));
            drawing.path(points.collect(), width, colour);
        };
        let places = |axis: usize| (0..self.texts[axis].len()).map(move |n| self.along(axis, n));
        let across = places(0).map(|x| [(x, l, 0.0), (x, h, 0.0), (x, h, 1.0)]);
        let along = places(1).map(|y| [(l, y, 0.0), (h, y, 0.0), (h, y, 1.0)]);
        let ticks = self.ticks(view).into_iter();
        let above = ticks.map(|(up, _)| [(l, h, up), (h, h, up), (h, l, up)]);
        for line in across.chain(along).chain(above) {
            path(&line, 0.8, Colour::GRID);
        }
        path(&[(l, l, 0.0), (h, l, 0.0)], 1.2, Colour::INK);
        path(&[(l, l, 0.0), (l, h, 0.0)], 1.2, Colour::INK);
        path(&[(l, h, 0.0), (l, h, 1.0)], 1.2, Colour::INK);
    }

    /// Ticks and titles of the three axes.
    fn words_around(&self, drawing: &mut Drawing, view: &View) {
        let (l, h) = (-0.5, 0.5);
        let [first, second] = &self.texts;
        // Heights at the left end of the wall behind.
        let ticks = self.ticks(view);
        for (up, label) in &ticks {
            let (x, y) = view.at((l, h, *up));
            drawing.line((x - 4.0, y), (x, y), 1.0, Colour::INK);
            drawing.ink(beside((x - 7.0, y)), label, TICK_EM, Anchor::End);
        }
        // The title may reach down to the words of the second setting.
        let labels = ticks.iter().map(|(_, text)| text).chain(second.last());
        let widest = font::widest(labels, TICK_EM);
        let (x, y) = view.at((l, h, 0.5));
        let is_narrow = drawing.width < NARROW;
        let (title, em) = font::shrunk(&view.z.title(), LABEL_EM, 0.55 * drawing.height);
        let at = (
            x - 18.0 - widest,
            if is_narrow { 0.56 * drawing.height } else { y },
        );
        drawing.text_upwards(at, &title, em, Anchor::Middle);

        // The first setting along the front edge, the second along the left one; words that would touch are left out.
        for (axis, out, right, down, anchor) in [
            (0, 3.0, 3.0, 1.15, Anchor::Start),
            (1, -3.0, -8.0, 1.4, Anchor::End),
        ] {
            let mut free = f64::INFINITY;
            for (number, label) in self.texts[axis].iter().enumerate() {
                let mut ground = [l, l];
                ground[axis] = self.along(axis, number);
                let (x, y) = view.at((ground[0], ground[1], 0.0));
                drawing.line((x, y), (x + out, y + 4.0), 1.0, Colour::INK);
                // The edge rises, so that words may begin below their neighbours' ends.
                if y < free - TICK_EM * 1.05 {
                    let at = (x + right, y + down * TICK_EM);
                    drawing.ink(at, label, TICK_EM, anchor);
                    free = y;
                }
            }
        }
        if is_narrow {
            let (y, half) = (drawing.height - 14.0, drawing.width / 2.0 - 18.0);
            let [first, second] = [&self.chart.x, &self.chart.y];
            for (text, x, anchor) in [
                (second, 14.0, Anchor::Start),
                (first, drawing.width - 14.0, Anchor::End),
            ] {
                let (text, em) = font::shrunk(text, LABEL_EM, half);
                drawing.ink((x, y), &text, em, anchor);
            }
            return;
        }
        let (x, y) = view.at((0.12, l, 0.0));
        let at = (x + font::widest(first, TICK_EM) + 18.0, y + 2.3 * TICK_EM);
        drawing.ink(at, &self.chart.x, LABEL_EM, Anchor::Start);
        let (x, y) = view.at((l, -0.12, 0.0));
        let at = (x - font::widest(second, TICK_EM) - 16.0, y + 2.2 * TICK_EM);
        drawing.ink(at, &self.chart.y, LABEL_EM, Anchor::End);
    }

    /// The surface, from back to front: pieces between four measured points, lines between two, and the points.
    fn pieces(&self, drawing: &mut Drawing, view: &View) {
        let place = |column: usize, row: usize| -> Option<(f64, (f64, f64), f64)> {
            let height = self.heights[column][row]?;
            let (x, y) = self.ground(column, row);
            let at = view.at((x, y, view.up(Some(height.value?))));
            Some((View::away((x, y)), at, height.share))
        };
        let colour = |share: f64| heat(view.of_worst(share));
        let line = Colour(0x44, 0x44, 0x44, 1.0);
        let (columns, rows) = (self.texts[0].len(), self.texts[1].len());
        let (mut pieces, mut points) = (Vec::new(), Vec::new());
        for (column, row) in (0..columns).flat_map(|x| (0..rows).map(move |y| (x, y))) {
            points.extend(place(column, row));
            if column + 1 == columns || row + 1 == rows {
                continue;
            }
            let around = [(0, 0), (1, 0), (1, 1), (0, 1)];
            let found: Vec<_> = around
                .iter()
                .filter_map(|(x, y)| place(column + x, row + y))
                .collect();
            if found.len() >= 3 {
                let count = found.len() as f64;
                let away = found.iter().map(|it| it.0).sum::<f64>() / count;
                let share = found.iter().map(|it| it.2).sum::<f64>() / count;
                let corners: Vec<(f64, f64)> = found.iter().map(|it| it.1).collect();
                pieces.push((away, corners, share));
            }
        }
        sort_by(&mut pieces, |a, b| b.0.total_cmp(&a.0));
        sort_by(&mut points, |a, b| b.0.total_cmp(&a.0));
        let mut points = points.into_iter().peekable();
        let point = |drawing: &mut Drawing, at: (f64, f64), share: f64| {
            drawing.dot(at, 3.0, line);
            drawing.dot(at, 2.2, colour(share));
        };
        for (away, corners, share) in pieces {
            // A point is covered by the pieces in front of it.
            while let Some((_, at, share)) = points.next_if(|it| it.0 > away) {
                point(drawing, at, share);
            }
            drawing.area(corners.clone(), colour(share));
            let mut outline = corners;
            outline.extend(outline.first().copied());
            drawing.path(outline, 1.0, line);
        }
        for (_, at, share) in points {
            point(drawing, at, share);
        }
    }

    /// Points without samples have no height: they are crossed squares on the ground, over all else, for they are the
    /// worst.
    fn without_samples(&self, drawing: &mut Drawing, view: &View) {
        const SIDE: f64 = 5.0;
        for ((x, y), height) in self.each().filter(|(_, height)| height.value.is_none()) {
            let (x, y) = view.at((x, y, 0.0));
            let [left, top, right, bottom] = [x - SIDE, y - SIDE, x + SIDE, y + SIDE];
            let share = view.of_worst(height.share);
            drawing.rectangle([left, top, right, bottom], heat(share));
            drawing.outline([left, top, right, bottom], 1.2, Colour::INK);
            let cross = match share > 0.5 {
                true => Colour::WHITE,
                false => Colour::INK,
            };
            drawing.line((left, top), (right, bottom), 1.2, cross);
            drawing.line((left, bottom), (right, top), 1.2, cross);
        }
    }

    /// Triangles at points whose height is beyond the range, which are at its end: over all else, as these heights are
    /// not the true ones.
    fn beyond(&self, drawing: &mut Drawing, view: &View) {
        const SIDE: f64 = 6.0;
        let is_beyond = |height: &Height| height.value.is_some_and(|value| !view.z.holds(value));
        for ((x, y), height) in self.each().filter(|(_, height)| is_beyond(height)) {
            let share = view.up(height.value);
            let up = if share > 0.5 { -SIDE } else { SIDE };
            let (x, y) = view.at((x, y, share));
            let (left, right) = ((x - SIDE, y), (x + SIDE, y));
            let corners = vec![left, right, (x, y + 1.5 * up), left];
            drawing.area(corners.clone(), Colour::WHITE);
            drawing.path(corners, 1.2, Colour::INK);
        }
    }

    /// The bar that explains the colours; under it, what the ring is.
    fn bar(&self, drawing: &mut Drawing, worst: f64, top: f64) {
        const STEPS: usize = 48;
        let is_narrow = drawing.width < NARROW;
        let (side, wide, high) = if is_narrow {
            (76.0, 76.0, 110.0)
        } else {
            (92.0, 120.0, 230.0)
        };
        let (left, right) = (drawing.width - side, drawing.width - side + 16.0);
        let upper = top + 50.0;
        let end = drawing.width - 14.0;
        let title = font::wrap(&self.share, TICK_EM, wide, 2);
        for (number, line) in title.iter().enumerate() {
            let y = upper - 10.0 - (title.len() - 1 - number) as f64 * 1.25 * TICK_EM;
            drawing.ink((end, y), line, TICK_EM, Anchor::End);
        }
        // Where nothing went wrong one colour is enough.
        let (lower, steps, ticks) = if worst > 0.0 {
            let axis = Axis::new("", (0.0, 100.0 * worst), ScaleKind::Linear, Unit::Percent);
            let ticks = axis.ticks(5).into_iter();
            let ticks = ticks.map(|(value, text)| (axis.share(value), text));
            let lower = (top + high).min(drawing.height - 60.0);
            (lower, STEPS, ticks.collect())
        } else {
            (upper + 16.0, 1, vec![(0.5, "0".to_owned())])
        };
        let at = |share: f64| lower - share * (lower - upper);
        for step in 0..steps {
            let (from, to) = (step as f64 / steps as f64, (step + 1) as f64 / steps as f64);
            let colour = heat(if steps > 1 { (from + to) / 2.0 } else { 0.0 });
            drawing.rectangle([left, at(to), right, at(from) + 0.3], colour);
        }
        drawing.outline([left, upper, right, lower], 0.8, Colour::INK);
        for (share, text) in ticks {
            let y = at(share);
            if steps > 1 {
                drawing.line((right, y), (right + 4.0, y), 1.0, Colour::INK);
            }
            let text = format!("{text} %");
            drawing.ink(beside((right + 7.0, y)), &text, TICK_EM, Anchor::Start);
        }
        if self.each().any(|(_, height)| height.incomplete) {
            let below = if is_narrow {
                drawing.height - 40.0
            } else {
                lower + 24.0
            };
            let (text, y) = ("incomplete", below);
            drawing.ink(beside((end, y)), text, TICK_EM, Anchor::End);
            let left = end - font::width(text, TICK_EM);
            ring(drawing, (left - 6.0 - RING, y));
        }
    }
}
