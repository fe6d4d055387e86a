//! The parts around the data in a figure: title, subtitle, axes with ticks and grid, and the legend below.

use serde::Serialize;

use super::drawing::{Anchor, Colour, Drawing, around};
use super::font;
use super::palette::{CurveStyle, StyleNumber, look};
use super::scale::{Axis, ScaleKind, Unit, fitting, with_room};
use super::{PlotError, SIDES};

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FigureTexts {
    pub title: String,
    /// What does not vary, and what must be known.
    pub subtitle: String,
    /// That something is incomplete, and why; empty otherwise.
    pub warning: String,
}

impl FigureTexts {
    /// These, with one more thing that must be known.
    pub fn warned(&self, note: &str) -> FigureTexts {
        let mut words = self.clone();
        words.warning = both(note, &self.warning);
        words
    }
}

/// The ends of sentences about one and several values without a place on an axis.
pub(super) const NOT_DRAWN: (&str, &str) = (
    "lies outside of the axis and is not drawn",
    "lie outside of the axis and are not drawn",
);
/// The same of what has a place in part.
pub(super) const GOES_ON: (&str, &str) =
    ("goes on outside of the axis", "go on outside of the axis");

/// Two notes, of which either may be empty.
pub fn both(one: &str, two: &str) -> String {
    let notes = [one, two].into_iter().filter(|note| !note.is_empty());
    notes.collect::<Vec<_>>().join("; ")
}

/// What figures have in common.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Chart {
    pub words: FigureTexts,
    /// What the horizontal axis shows, without unit; of a surface, the first setting.
    pub x: String,
    /// What the vertical axis shows; of a surface, the second setting.
    pub y: String,
    /// The range of values; `None` for what is needed.
    pub range: Option<(f64, f64)>,
    /// The scale of values; `None` for the one that fits.
    pub scale: Option<ScaleKind>,
    /// Which look each series has, so that what is the same in several figures looks the same; without a number here,
    /// its own.
    #[serde(skip)]
    pub looks: Vec<StyleNumber>,
}

impl Chart {
    /// The look of the series of this number.
    pub(super) fn look(&self, number: usize) -> CurveStyle {
        look(self.looks.get(number).copied().unwrap_or((number, 0)))
    }

    /// The axis for values between these ends, with room around them.
    pub(super) fn axis_of_values(&self, label: &str, ends: (f64, f64)) -> Axis {
        let kind = fitting(ends, self.scale);
        let range = self.range.unwrap_or(with_room(ends, kind));
        Axis::new(label, range, kind, Unit::Nanoseconds)
    }

    /// The legend: an entry for each series; a single one without a name needs none.
    pub(super) fn legend(
        &self,
        labels: impl Iterator<Item = String>,
        sign: LegendSymbol,
    ) -> Vec<Entry> {
        let entry = |(number, label)| Entry {
            label,
            look: self.look(number),
            sign,
        };
        let entries: Vec<Entry> = labels.enumerate().map(entry).collect();
        match &entries[..] {
            [one] if one.label.is_empty() => Vec::new(),
            _ => entries,
        }
    }

    /// A drawing with words, a note, axes and legend, and where its data goes.
    pub(super) fn framed(
        &self,
        size: (u32, u32),
        note: &str,
        (x, y): (Axis, Axis),
        entries: &[Entry],
    ) -> Result<(Drawing, Plot), PlotError> {
        let mut drawing = Drawing::new(size, &self.words.title);
        let top = words(&mut drawing, &self.words.warned(note));
        let legend = Legend::of(entries, drawing.width);
        let names = Names::of(&x, drawing.width - 120.0, 0.22 * drawing.height);
        let tick_height = names.height();
        let bottom = drawing.height - legend.height() - 2.0 * LABEL_EM - tick_height;
        if bottom - top < LEAST_PLOT * drawing.height {
            let lines = (drawing.height * (1.0 - LEAST_PLOT) - top - 70.0) / LINE;
            // All but the data, and the lines that a higher figure may have more below its title.
            let taken = drawing.height - (bottom - top) + 3.0 * 1.3 * SUBTITLE_EM;
            let height = (taken / (1.0 - LEAST_PLOT) / 10.0).ceil() * 10.0;
            let room = (drawing.width as u32, height as u32);
            return Err(PlotError::TooMuch {
                found: entries.len(),
                most: lines.max(0.0) as usize * legend.columns,
                what: "lines in the legend",
                room: SIDES.contains(&room.1).then_some(room),
            });
        }
        let y_ticks = y.ticks(((bottom - top) / 42.0) as usize);
        let widest = font::widest(y_ticks.iter().map(|(_, text)| text), TICK_EM);
        let plot = Plot {
            left: MARGIN + 1.6 * LABEL_EM + widest + 8.0,
            top,
            right: drawing.width - MARGIN - 14.0,
            bottom,
            x,
            y,
        };
        let (left, right) = (plot.left, plot.right);

        for (value, label) in &y_ticks {
            let (_, height) = plot.at(plot.x.low, *value);
            drawing.line((left, height), (right, height), 0.8, Colour::GRID);
            drawing.line((left - 4.0, height), (left, height), 1.0, Colour::INK);
            let at = (left - 7.0, height + 0.35 * TICK_EM);
            drawing.ink(at, label, TICK_EM, Anchor::End);
        }
        let x_ticks = plot.x.ticks(((right - left) / 75.0) as usize);
        for (value, _) in &x_ticks {
            let (place, _) = plot.at(*value, plot.y.low);
            drawing.line((place, top), (place, bottom), 0.8, Colour::GRID);
            drawing.line((place, bottom), (place, bottom + 4.0), 1.0, Colour::INK);
        }
        names.draw(&mut drawing, &plot, &x_ticks);
        drawing.line((left, bottom), (right, bottom), 1.2, Colour::INK);
        drawing.line((left, top), (left, bottom), 1.2, Colour::INK);
        let under = bottom + tick_height + 1.1 * LABEL_EM;
        let (x_title, em) = font::shrunk(&plot.x.title(), LABEL_EM, right - left);
        let middle = ((left + right) / 2.0, under);
        drawing.ink(middle, &x_title, em, Anchor::Middle);
        let (y_title, em) = font::shrunk(&plot.y.title(), LABEL_EM, bottom - top);
        let middle = (MARGIN + 0.8 * LABEL_EM, (top + bottom) / 2.0);
        drawing.text_upwards(middle, &y_title, em, Anchor::Middle);
        legend.draw(&mut drawing, under + 0.9 * LABEL_EM);
        Ok((drawing, plot))
    }
}

/// A label, and how many messages were lost, if any.
pub(super) fn with_lost(label: &str, lost: u64) -> String {
    match (label, lost) {
        (_, 0) => label.to_owned(),
        ("", _) => format!("{lost} lost"),
        _ => format!("{label}, {lost} lost"),
    }
}

/// A label, and what else is not among the samples: why, and how often.
pub(super) fn with_absent(label: String, absent: &[(&str, u64)]) -> String {
    let told = absent.iter().filter(|(_, count)| *count > 0);
    told.fold(label, |label, (cause, count)| match label.as_str() {
        "" => format!("{count} {cause}"),
        _ => format!("{label}, {count} {cause}"),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LegendSymbol {
    Line,
    Mark,
    LineAndMark,
    /// A filled square with a line around.
    Patch,
    /// The ring around marks of what is incomplete.
    Ring,
    /// A mark that is not filled.
    Hollow,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub label: String,
    pub look: CurveStyle,
    pub sign: LegendSymbol,
}

pub(super) const TITLE_EM: f64 = 17.0;
pub(super) const SUBTITLE_EM: f64 = 11.5;
pub(super) const LABEL_EM: f64 = 13.0;
pub(super) const TICK_EM: f64 = 12.0;
pub(super) const LEGEND_EM: f64 = 12.0;
const MARGIN: f64 = 16.0;
const SIGN_WIDTH: f64 = 34.0;
/// The least that the data must have of the height.
const LEAST_PLOT: f64 = 0.4;

/// Where the data goes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plot {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
    /// From left to right.
    pub x: Axis,
    /// From bottom to top.
    pub y: Axis,
}

impl Plot {
    pub(super) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (
            self.left + self.x.share(x) * (self.right - self.left),
            self.bottom - self.y.share(y) * (self.bottom - self.top),
        )
    }

    /// Draws a line through places, as far as they are inside.
    pub(super) fn curve(
        &self,
        drawing: &mut Drawing,
        places: &[(f64, f64)],
        look: &CurveStyle,
        width: f64,
    ) {
        for run in self.inside(places) {
            drawing.dashed(&run, look.dashes, width, look.colour);
        }
    }

    /// The parts of a line that are inside.
    pub(super) fn inside(&self, places: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
        let mut runs: Vec<Vec<(f64, f64)>> = Vec::new();
        for pair in places.windows(2) {
            let Some((from, to)) = self.cut(pair[0], pair[1]) else {
                continue;
            };
            match runs.last_mut() {
                Some(run) if run.last() == Some(&from) => run.push(to),
                _ => runs.push(vec![from, to]),
            }
        }
        runs
    }

    /// The part of a straight line that is inside.
    fn cut(&self, from: (f64, f64), to: (f64, f64)) -> Option<((f64, f64), (f64, f64))> {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let (mut first, mut last) = (0.0_f64, 1.0_f64);
        let sides = [
            (-dx, from.0 - self.left),
            (dx, self.right - from.0),
            (-dy, from.1 - self.top),
            (dy, self.bottom - from.1),
        ];
        for (towards, distance) in sides {
            if towards == 0.0 {
                if distance < -1e-9 {
                    return None;
                }
            } else if towards < 0.0 {
                first = first.max(distance / towards);
            } else {
                last = last.min(distance / towards);
            }
        }
        let at = |share: f64| {
            // The ends stay what they are, so that runs join.
            if share <= 0.0 {
                from
            } else if share >= 1.0 {
                to
            } else {
                (from.0 + dx * share, from.1 + dy * share)
            }
        };
        (first <= last).then(|| (at(first), at(last)))
    }

    pub(super) fn holds(&self, (x, y): (f64, f64)) -> bool {
        (self.left - 1e-6..=self.right + 1e-6).contains(&x)
            && (self.top - 1e-6..=self.bottom + 1e-6).contains(&y)
    }
}

/// Draws title, subtitle and warning; returns where they end.
pub(super) fn words(drawing: &mut Drawing, words: &FigureTexts) -> f64 {
    let middle = drawing.width / 2.0;
    let room = drawing.width - 2.0 * MARGIN;
    let mut y = MARGIN;
    let em = TITLE_EM.min(drawing.width / 26.0);
    for line in font::wrap(&words.title, em, room, 2) {
        y += em;
        drawing.ink((middle, y), &line, em, Anchor::Middle);
        y += 0.25 * em;
    }
    let warn = Colour(0xa0, 0x20, 0x10, 1.0);
    // Of a small figure the data needs most.
    let lines = ((drawing.height - 240.0) / 60.0).clamp(1.0, 3.0) as usize;
    for (text, lines, colour) in [
        (&words.warning, lines.min(2), warn),
        (&words.subtitle, lines, Colour::FAINT_INK),
    ] {
        for line in font::wrap(text, SUBTITLE_EM, room, lines) {
            y += 1.3 * SUBTITLE_EM;
            drawing.text((middle, y), &line, SUBTITLE_EM, Anchor::Middle, colour);
        }
    }
    y + 14.0
}

/// Draws an entry's sign, its middle `SIGN_WIDTH / 2` right of `x`.
fn sign(drawing: &mut Drawing, entry: &Entry, x: f64, y: f64) {
    let (left, right) = (x + 2.0, x + SIGN_WIDTH - 8.0);
    let middle = (left + right) / 2.0;
    let CurveStyle { colour, dashes, .. } = entry.look;
    match entry.sign {
        LegendSymbol::Patch => {
            let sides = [left, y - 5.0, right, y + 5.0];
            drawing.rectangle(sides, colour.covering(0.3));
            drawing.dashed(&around(sides), dashes, 1.5, colour);
        }
        LegendSymbol::Ring => ring(drawing, (middle, y)),
        LegendSymbol::Hollow => hollow(drawing, &entry.look, (middle, y)),
        LegendSymbol::Mark => entry.look.mark_at(drawing, (middle, y), 4.0),
        LegendSymbol::Line | LegendSymbol::LineAndMark => {
            drawing.dashed(&[(left, y), (right, y)], dashes, 2.0, colour);
            if entry.sign == LegendSymbol::LineAndMark {
                entry.look.mark_at(drawing, (middle, y), 4.0);
            }
        }
    }
}

/// The radius of the ring around what is incomplete.
pub(super) const RING: f64 = 7.5;
/// As many corners look round.
pub(super) const RING_CORNERS: usize = 32;

/// The ring around the mark of what is incomplete. It covers nothing: others may have their marks there.
pub(super) fn ring(drawing: &mut Drawing, (x, y): (f64, f64)) {
    let corner = |number: usize| {
        let (sin, cos) = (number as f64 / RING_CORNERS as f64 * std::f64::consts::TAU).sin_cos();
        (x + RING * cos, y + RING * sin)
    };
    drawing.path((0..=RING_CORNERS).map(corner).collect(), 1.4, Colour::INK);
}

/// A mark that is not filled.
pub(super) fn hollow(drawing: &mut Drawing, look: &CurveStyle, place: (f64, f64)) {
    let inner = CurveStyle {
        colour: Colour::WHITE,
        ..*look
    };
    look.mark_at(drawing, place, 5.0);
    inner.mark_at(drawing, place, 3.2);
}

pub(super) fn incomplete_entry() -> Entry {
    Entry {
        label: "incomplete".to_owned(),
        look: look((0, 0)),
        sign: LegendSymbol::Ring,
    }
}

struct Legend<'a> {
    entries: &'a [Entry],
    columns: usize,
    column: f64,
    lines: usize,
}

const LINE: f64 = 1.55 * LEGEND_EM;

impl<'a> Legend<'a> {
    /// Lays the entries out in as many columns as fit.
    fn of(entries: &'a [Entry], width: f64) -> Self {
        let room = width - 2.0 * MARGIN;
        let widest = font::widest(entries.iter().map(|entry| &entry.label), LEGEND_EM);
        let column = (widest + SIGN_WIDTH + 18.0).min(room);
        let columns = ((room / column) as usize).clamp(1, entries.len().max(1));
        Legend {
            entries,
            columns,
            column,
            lines: entries.len().div_ceil(columns),
        }
    }

    /// What it takes below the axis, with the margin.
    fn height(&self) -> f64 {
        match self.lines {
            0 => MARGIN,
            lines => lines as f64 * LINE + MARGIN + 6.0,
        }
    }

    fn draw(&self, drawing: &mut Drawing, top: f64) {
        let left = (drawing.width - self.columns as f64 * self.column) / 2.0;
        for (number, entry) in self.entries.iter().enumerate() {
            // From above to below, then to the right, as one reads a list.
            let x = left + (number / self.lines) as f64 * self.column;
            let y = top + ((number % self.lines) as f64 + 0.5) * LINE;
            sign(drawing, entry, x, y);
            let label = font::fit(&entry.label, LEGEND_EM, self.column - SIGN_WIDTH - 4.0);
            let at = (x + SIGN_WIDTH, y + 0.35 * LEGEND_EM);
            drawing.ink(at, &label, LEGEND_EM, Anchor::Start);
        }
    }
}

/// The words below an axis of names.
struct Names {
    /// Those of each place in lines; none on an axis of numbers, whose ticks are a line each.
    lines: Vec<Vec<String>>,
    upright: bool,
}

impl Names {
    /// Names of places side by side: in lines between words, if those fit, else upright and not longer than `longest`.
    fn of(axis: &Axis, width: f64, longest: f64) -> Self {
        const LINES: usize = 3;
        let ticks = axis.given.as_deref().filter(|_| axis.named).unwrap_or(&[]);
        let room = width / ticks.len().max(1) as f64 - 6.0;
        let broken = |most: f64, lines: usize| -> Vec<Vec<String>> {
            let wrap = |(_, name): &(f64, String)| font::wrap(name, TICK_EM, most, lines);
            ticks.iter().map(wrap).collect()
        };
        let whole = |lines: &[String], name: &str| {
            let text = lines.join(" ");
            text.split_whitespace().eq(name.split_whitespace())
        };
        let lines = broken(room, LINES);
        let mut both = lines.iter().zip(ticks);
        if both.all(|(lines, (_, name))| whole(lines, name)) {
            return Names {
                lines,
                upright: false,
            };
        }
        let side_by_side = ((room / (1.15 * TICK_EM)) as usize).clamp(1, LINES);
        Names {
            lines: broken(longest, side_by_side),
            upright: true,
        }
    }

    fn height(&self) -> f64 {
        if self.upright {
            return font::widest(self.lines.iter().flatten(), TICK_EM) + 8.0;
        }
        let most = self.lines.iter().map(Vec::len).max().unwrap_or(1);
        (0.35 + 1.25 * most as f64) * TICK_EM
    }

    fn draw(&self, drawing: &mut Drawing, plot: &Plot, ticks: &[(f64, String)]) {
        let mut free_from = f64::NEG_INFINITY;
        for (number, (value, label)) in ticks.iter().enumerate() {
            let (place, bottom) = plot.at(*value, plot.y.low);
            let one = std::slice::from_ref(label);
            let lines = self.lines.get(number).map_or(one, Vec::as_slice);
            if self.upright {
                for (line, text) in lines.iter().enumerate() {
                    let beside = line as f64 - (lines.len() - 1) as f64 / 2.0;
                    let at = (place + (0.35 + 1.15 * beside) * TICK_EM, bottom + 7.0);
                    drawing.text_upwards(at, text, TICK_EM, Anchor::End);
                }
                continue;
            }
            let half = font::widest(lines, TICK_EM) / 2.0;
            let place = place.min(drawing.width - 4.0 - half);
            // Of ticks that were given, those that would cover their neighbours stay without words.
            if place - half >= free_from {
                for (line, text) in lines.iter().enumerate() {
                    let y = bottom + (1.4 + 1.25 * line as f64) * TICK_EM;
                    drawing.ink((place, y), text, TICK_EM, Anchor::Middle);
                }
                free_from = place + half + 5.0;
            }
        }
    }
}
