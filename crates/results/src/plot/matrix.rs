//! A figure of each ordered pair of nodes, or of CPUs, as a coloured square: rows send, columns receive.
//!
//! A pair without a figure is hatched, so that it is never taken for a good one. Where there are more nodes than can be
//! distinguished, each square shows the worst of several pairs, is hatched if one of them has no figure, and names of
//! groups replace those of nodes.

use serde::Serialize;

use super::drawing::{Anchor, Colour, Drawing};
use super::font;
use super::frame::{Chart, LABEL_EM, SUBTITLE_EM, TICK_EM, words};
use super::palette::heat;
use super::scale::{Axis, ScaleKind, Unit, counted, ends, fitting};
use super::{PlotError, at_most, both};

/// The figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Matrix {
    #[serde(flatten)]
    pub chart: Chart,
    /// What the colours are.
    pub value: String,
    /// What a cell holds.
    pub kind: CellKind,
    /// The nodes, those of a group side by side.
    pub nodes: Vec<Node>,
    /// By rows; `None` where nothing was measured.
    pub cells: Vec<Vec<Option<f64>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CellKind {
    /// A time in ns.
    Time,
    /// A number of something that should not be.
    Count,
    /// 10^9 bytes a second, of which less is worse.
    Rate,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Node {
    pub name: String,
    /// What it is in, the highest first.
    pub groups: Vec<String>,
    /// Whether it is named as slow.
    pub slow: bool,
}

/// As many nodes as there is room to look at.
pub const MOST: usize = 2048;

/// The least side of a square that is drawn.
const LEAST_SIDE: f64 = 1.5;
/// From this many units on, a side can be distinguished from its neighbours.
const LEAST_GROUP: f64 = 4.0;
/// Steps of the colours: squares side by side of one step are drawn as one.
const STEPS: usize = 64;
/// How far lines of hatched squares are apart.
const WIDE: f64 = 5.0;
const HATCH: Colour = Colour(0x90, 0x90, 0x90, 1.0);
const DIAGONAL: Colour = Colour(0xe8, 0xe8, 0xe8, 1.0);
const SLOW: Colour = Colour(0xa0, 0x20, 0x10, 1.0);

/// What a square shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Square {
    /// The step of its colour: of the worst of its pairs.
    Coloured(usize),
    /// A pair without a figure is in it, whatever else is.
    Hatched,
    /// A node and itself.
    Empty,
}

/// Where the squares are.
struct Ground {
    left: f64,
    top: f64,
    side: f64,
    /// Nodes in a row of a square.
    nodes: usize,
    of: usize,
}

impl Ground {
    /// Where a node begins, or the last one ends.
    fn at(&self, node: usize) -> f64 {
        self.side * node.min(self.nodes) as f64 / self.nodes as f64
    }

    /// The number of squares side by side.
    fn squares(&self) -> usize {
        self.nodes.div_ceil(self.of)
    }

    /// The sides of the squares from one to before another in a row.
    fn sides(&self, row: usize, columns: std::ops::Range<usize>) -> [f64; 4] {
        let [left, right] =
            [columns.start, columns.end].map(|it| self.left + self.at(it * self.of));
        let [top, bottom] = [row, row + 1].map(|it| self.top + self.at(it * self.of));
        [left, top, right, bottom]
    }
}

/// Words beside a row and under a column.
#[derive(Debug, Clone, PartialEq)]
struct Label {
    /// The middle, in nodes.
    at: f64,
    text: String,
    slow: bool,
}

impl CellKind {
    /// How dark a place on the axis is: what is worse is darker.
    fn dark(self, share: f64) -> f64 {
        match self {
            CellKind::Rate => 1.0 - share,
            CellKind::Time | CellKind::Count => share,
        }
    }

    /// The same of a value.
    fn darkness(self, axis: &Axis, value: f64) -> f64 {
        self.dark(axis.share(value).clamp(0.0, 1.0))
    }
}

impl Matrix {
    pub fn draw(&self, size: (u32, u32)) -> Result<Drawing, PlotError> {
        let nodes = self.nodes.len();
        at_most(nodes, MOST, "nodes")?;
        let values = || self.cells.iter().flatten().flatten().copied();
        let ends = ends(values())
            .ok_or_else(|| PlotError::Nothing("no pair has this figure".to_owned()))?;
        let axis = self.axis(ends);
        const AT_THE_END: &str = "outside of the range, coloured as its end";
        let [one, more] = ["lies", "lie"].map(|lies| format!("{lies} {AT_THE_END}"));
        let outside = counted(axis.outside("pairs", values())?, "pair", &one, &more);
        let missing = (self.cells.iter().enumerate())
            .flat_map(|(row, cells)| cells.iter().enumerate().map(move |cell| (row, cell)))
            .filter(|(row, (column, value))| value.is_none() && self.is_pair(*row, *column));
        let missing = missing.count();
        let missing = counted(
            missing,
            "pair",
            "without this figure is hatched",
            "without this figure are hatched",
        );

        let mut drawing = Drawing::new(size, &self.chart.words.title);
        let ground = |top: f64, room: f64, of: usize| self.ground(size, top, room, of);
        // Text above takes room of the squares, one of which describes it.
        let most = 0.2 * drawing.width.min(drawing.height);
        let side = ground(0.2 * drawing.height, most, 1).side;
        let of = ((nodes as f64 * LEAST_SIDE / side).ceil() as usize).max(1);
        let worst = match of {
            1 => String::new(),
            of => format!("each square shows the worst of {of} x {of} pairs"),
        };
        let note = both(&both(&missing, &worst), &outside);
        let top = words(&mut drawing, &self.chart.words.warned(&note));
        let labels = self.chosen_labels(&ground(top, most, of));
        let widest = font::widest(labels.iter().map(|label| &label.text), TICK_EM);
        let room = (widest + 10.0).min(most);
        let ground = ground(top, room, of);
        self.squares(&mut drawing, &ground, &axis);
        self.numbers(&mut drawing, &ground, &axis);
        self.boundaries(&mut drawing, &ground);
        self.labels(&mut drawing, &ground, &labels, room);
        bar(&mut drawing, &ground, &axis, !missing.is_empty(), self.kind);
        Ok(drawing)
    }

    /// Where the squares are below `top`, with so much room for names.
    fn ground(&self, size: (u32, u32), top: f64, room: f64, of: usize) -> Ground {
        let (width, height) = (f64::from(size.0), f64::from(size.1));
        let beside = 16.0 + 2.0 * LABEL_EM + room;
        let under = 3.0 * LABEL_EM + room;
        let side = (height - top - under)
            .min(width - beside - BAR_ROOM)
            .max(40.0);
        Ground {
            left: beside + (width - beside - BAR_ROOM - side) / 2.0,
            top,
            side,
            nodes: self.nodes.len(),
            of,
        }
    }

    /// The axis of the colours. Only what takes more than twice the least is dark: noise and tiers are
    /// no faults.
    fn axis(&self, (least, greatest): (f64, f64)) -> Axis {
        let scale = self.chart.scale;
        let kind = match self.kind {
            CellKind::Time => fitting((least, greatest), scale),
            CellKind::Count | CellKind::Rate => scale.unwrap_or(ScaleKind::Linear),
        };
        let high = greatest.max(least + least.abs());
        let (low, high, unit) = match self.kind {
            CellKind::Time => (least, high, Unit::Nanoseconds),
            CellKind::Count => (0.0, high.max(1.0), Unit::Number),
            CellKind::Rate => (0.0, greatest, Unit::GigabytesPerSecond),
        };
        Axis::new(
            &self.value,
            self.chart.range.unwrap_or((low, high)),
            kind,
            unit,
        )
    }

    /// Whether a figure is due: of a node and itself only where any other has one.
    fn is_pair(&self, from: usize, to: usize) -> bool {
        from != to || (0..self.cells.len()).any(|node| self.cells[node][node].is_some())
    }

    fn square(&self, ground: &Ground, axis: &Axis, row: usize, column: usize) -> Square {
        let nodes = |place: usize| place * ground.of..((place + 1) * ground.of).min(ground.nodes);
        let mut worst = None::<f64>;
        for (from, to) in nodes(row).flat_map(|from| nodes(column).map(move |to| (from, to))) {
            match self.cells[from][to] {
                Some(value) => {
                    worst = Some(worst.map_or(value, |worst| match self.kind {
                        CellKind::Rate => worst.min(value),
                        _ => worst.max(value),
                    }));
                }
                None if self.is_pair(from, to) => return Square::Hatched,
                None => {}
            }
        }
        worst.map_or(Square::Empty, |value| {
            let share = self.kind.darkness(axis, value);
            Square::Coloured((share * (STEPS - 1) as f64).round() as usize)
        })
    }

    /// All squares; those in a row that look the same are one.
    fn squares(&self, drawing: &mut Drawing, ground: &Ground, axis: &Axis) {
        let squares = ground.squares();
        let (mut hatched, mut empty) = (Vec::new(), Vec::new());
        for row in 0..squares {
            let all = (0..squares).map(|column| self.square(ground, axis, row, column));
            let all: Vec<Square> = all.collect();
            let mut begin = 0;
            for run in all.chunk_by(|one, other| one == other) {
                let sides = ground.sides(row, begin..begin + run.len());
                begin += run.len();
                match run[0] {
                    Square::Coloured(step) => {
                        let [left, top, right, bottom] = sides;
                        // A little under its neighbours, so that no seam shows.
                        let over = [right + 0.3, bottom + 0.3];
                        let colour = heat(step as f64 / (STEPS - 1) as f64);
                        drawing.rectangle([left, top, over[0], over[1]], colour);
                    }
                    Square::Hatched => hatched.push(sides),
                    Square::Empty => empty.push(sides),
                }
            }
        }
        for sides in empty {
            drawing.rectangle(sides, DIAGONAL);
        }
        let apart = if ground.at(ground.of) < WIDE {
            WIDE / 2.0
        } else {
            WIDE
        };
        for sides in hatched {
            drawing.rectangle(sides, Colour::WHITE);
            hatch(drawing, sides, apart);
        }
    }

    /// The figures in their squares, where there is room for them.
    fn numbers(&self, drawing: &mut Drawing, ground: &Ground, axis: &Axis) {
        let texts: Vec<Vec<Option<String>>> = match ground.nodes {
            0..=16 => self
                .cells
                .iter()
                .map(|row| {
                    row.iter()
                        .map(|it| it.map(|it| axis.in_words(it)))
                        .collect()
                })
                .collect(),
            _ => return,
        };
        let width = font::widest(texts.iter().flatten().flatten(), TICK_EM);
        let side = ground.at(1);
        let em = TICK_EM.min(TICK_EM * (side - 8.0) / width);
        if em < 0.8 * TICK_EM {
            return;
        }
        for (row, texts) in texts.iter().enumerate() {
            for (column, text) in texts.iter().enumerate() {
                let (Some(text), Some(value)) = (text, self.cells[row][column]) else {
                    continue;
                };
                let ink = match heat(self.kind.darkness(axis, value)).lightness() > 55.0 {
                    true => Colour::INK,
                    false => Colour::WHITE,
                };
                let (x, y) = (
                    ground.left + (column as f64 + 0.5) * side,
                    ground.top + (row as f64 + 0.5) * side,
                );
                drawing.text((x, y + 0.35 * em), text, em, Anchor::Middle, ink);
            }
        }
    }

    /// Where groups begin, with how many of the highest groups are the same on both sides.
    fn begins(&self) -> Vec<(usize, usize)> {
        let pairs = self
            .nodes
            .windows(2)
            .enumerate()
            .filter(|(_, pair)| pair[0].groups != pair[1].groups);
        let same = |pair: &[Node]| {
            let both = pair[0].groups.iter().zip(&pair[1].groups);
            both.take_while(|(one, other)| one == other).count()
        };
        pairs.map(|(place, pair)| (place + 1, same(pair))).collect()
    }

    /// Lines between groups, the higher the thicker; of a level whose groups are too small to see there are none.
    fn boundaries(&self, drawing: &mut Drawing, ground: &Ground) {
        let begins = self.begins();
        let deepest = begins.iter().map(|(_, same)| *same).max().unwrap_or(0);
        for level in (0..=deepest).rev() {
            let places: Vec<usize> = begins
                .iter()
                .filter(|(_, same)| *same <= level)
                .map(|it| it.0)
                .collect();
            let room = ground.side / (places.len() + 1) as f64;
            if room < LEAST_GROUP {
                continue;
            }
            let width = if level == 0 || deepest == 0 { 1.6 } else { 0.8 };
            for (place, _) in begins.iter().filter(|(_, same)| *same == level) {
                let at = ground.at(*place);
                let (x, y) = (ground.left + at, ground.top + at);
                drawing.line(
                    (x, ground.top),
                    (x, ground.top + ground.side),
                    width,
                    Colour::INK,
                );
                drawing.line(
                    (ground.left, y),
                    (ground.left + ground.side, y),
                    width,
                    Colour::INK,
                );
            }
        }
        let end = (ground.left + ground.side, ground.top + ground.side);
        drawing.outline([ground.left, ground.top, end.0, end.1], 1.2, Colour::INK);
    }

    /// Names of nodes if all have room; else of groups, or of some nodes, and of those that are slow.
    fn chosen_labels(&self, ground: &Ground) -> Vec<Label> {
        let of_node = |(place, node): (usize, &Node)| Label {
            at: place as f64 + 0.5,
            text: node.name.clone(),
            slow: node.slow,
        };
        let line = 1.15 * LEAST_EM / ground.at(1).max(1e-9);
        let all: Vec<Label> = self.nodes.iter().enumerate().map(of_node).collect();
        if line <= 1.0 {
            return all;
        }
        let groups = self.groups(line);
        let others = match groups.is_empty() {
            true => all.iter().cloned().step_by(line.ceil() as usize).collect(),
            false => groups,
        };
        let mut kept: Vec<Label> = Vec::new();
        for label in all.into_iter().filter(|label| label.slow).chain(others) {
            if kept.iter().all(|other| (other.at - label.at).abs() >= line) {
                kept.push(label);
            }
        }
        kept
    }

    /// Names of groups of the deepest level at which all have room; none if there is no such level, or one group only.
    fn groups(&self, line: f64) -> Vec<Label> {
        let begins = self.begins();
        let deepest = begins.iter().map(|(_, same)| *same).max().unwrap_or(0);
        let at_level = |level: usize| -> Vec<Label> {
            let begins = begins
                .iter()
                .filter(|(_, same)| *same <= level)
                .map(|(place, _)| *place);
            let begins: Vec<usize> = [0]
                .into_iter()
                .chain(begins)
                .chain([self.nodes.len()])
                .collect();
            let label = |pair: &[usize]| Label {
                at: (pair[0] + pair[1]) as f64 / 2.0,
                text: self.nodes[pair[0]]
                    .groups
                    .get(level)
                    .cloned()
                    .unwrap_or_default(),
                slow: false,
            };
            begins.windows(2).map(label).collect()
        };
        let apart = |labels: &Vec<Label>| {
            labels
                .windows(2)
                .all(|pair| pair[1].at - pair[0].at >= line)
        };
        let mut levels = (0..=deepest).rev().map(at_level);
        levels
            .find(|labels| labels.len() > 1 && apart(labels))
            .unwrap_or_default()
    }

    fn labels(&self, drawing: &mut Drawing, ground: &Ground, labels: &[Label], room: f64) {
        let side = ground.at(1);
        let em = (side / 1.15).clamp(LEAST_EM, TICK_EM);
        let bottom = ground.top + ground.side;
        for label in labels {
            let at = ground.side * label.at / ground.nodes as f64;
            let text = font::fit(&label.text, em, room - 8.0);
            let colour = if label.slow { SLOW } else { Colour::INK };
            let (x, y) = (ground.left + at, ground.top + at);
            drawing.line((ground.left - 4.0, y), (ground.left, y), 1.0, colour);
            drawing.line((x, bottom), (x, bottom + 4.0), 1.0, colour);
            drawing.text(
                (ground.left - 7.0, y + 0.35 * em),
                &text,
                em,
                Anchor::End,
                colour,
            );
            let under = (x + 0.35 * em, bottom + 7.0);
            drawing.coloured_upwards(under, &text, em, Anchor::End, colour);
        }
        let (middle, below) = (ground.side / 2.0, bottom + room + 1.6 * LABEL_EM);
        let (text, em) = font::shrunk(&self.chart.x, LABEL_EM, ground.side);
        drawing.ink((ground.left + middle, below), &text, em, Anchor::Middle);
        let (text, em) = font::shrunk(&self.chart.y, LABEL_EM, ground.side);
        let at = (ground.left - room - 0.9 * LABEL_EM, ground.top + middle);
        drawing.text_upwards(at, &text, em, Anchor::Middle);
    }
}

/// Eight points.
const LEAST_EM: f64 = 8.0 * 96.0 / 72.0;
/// The colour bar with its words.
const BAR_ROOM: f64 = 130.0;

/// Lines from below to above, in one pattern over all of a figure.
fn hatch(drawing: &mut Drawing, [left, top, right, bottom]: [f64; 4], apart: f64) {
    let (width, height) = (right - left, bottom - top);
    let mut along = apart - (left + top).rem_euclid(apart);
    while along < width + height {
        let (across, down) = (along.min(width), along.min(height));
        let from = (left + across, top + along - across);
        drawing.line(from, (left + along - down, top + down), 0.8, HATCH);
        along += apart;
    }
}

/// The bar that explains the colours; under it, what is hatched.
fn bar(drawing: &mut Drawing, ground: &Ground, axis: &Axis, is_hatched: bool, kind: CellKind) {
    let (left, wide) = (ground.left + ground.side + 24.0, 16.0);
    let title = font::wrap(&axis.title(), SUBTITLE_EM, BAR_ROOM - 30.0, 4);
    let mut y = ground.top;
    for line in &title {
        y += 1.25 * SUBTITLE_EM;
        drawing.ink((left, y), line, SUBTITLE_EM, Anchor::Start);
    }
    let upper = y + 14.0;
    let under = if is_hatched { 34.0 } else { 6.0 };
    let lower = (ground.top + ground.side - under).max(upper + 40.0);
    let at = |share: f64| lower - share * (lower - upper);
    for step in 0..STEPS {
        let [from, to] = [step, step + 1].map(|step| step as f64 / STEPS as f64);
        let colour = heat(kind.dark(step as f64 / (STEPS - 1) as f64));
        drawing.rectangle([left, at(to), left + wide, at(from) + 0.3], colour);
    }
    drawing.outline([left, upper, left + wide, lower], 0.8, Colour::INK);
    let most = ((lower - upper) / 34.0).clamp(2.0, 8.0) as usize;
    for (value, text) in axis.ticks(most) {
        // There is no half of a message.
        let text = match kind {
            CellKind::Count if value.fract() != 0.0 => continue,
            CellKind::Count => axis.in_words(value),
            CellKind::Time | CellKind::Rate => text,
        };
        let y = at(axis.share(value));
        drawing.line((left + wide, y), (left + wide + 4.0, y), 1.0, Colour::INK);
        drawing.ink(
            (left + wide + 7.0, y + 0.35 * TICK_EM),
            &text,
            TICK_EM,
            Anchor::Start,
        );
    }
    if is_hatched {
        let y = lower + 14.0;
        let sides = [left, y, left + wide, y + 14.0];
        hatch(drawing, sides, WIDE);
        drawing.outline(sides, 0.8, Colour::INK);
        let (text, em) = font::shrunk("not measured", TICK_EM, BAR_ROOM - wide - 37.0);
        drawing.ink(
            (left + wide + 7.0, y + 7.0 + 0.35 * em),
            &text,
            em,
            Anchor::Start,
        );
    }
}
