//! A comparison as it is printed: the answer in sentences, the verdict on each run, and the tables.

use super::answer::{
    self, Amount, Direction, Outcome, Places, certainty, rounds_in_words, unit_of_difference,
    wrapped,
};
use crate::arguments::UsageError;
use crate::compare::figures::Limit;
use crate::compare::{By, Comparison, FigureComparison, LimitOutcome, PointComparison, Verdict};
use crate::figures::in_words;
use crate::results::schema::{Better, Schema};
use crate::results::text::printable;
use crate::results::units::{digits, quantity};
use crate::sorting::distinct;
use crate::terminal::output::{heading_of, labelled};
use crate::terminal::table::{Column, Table};
use crate::terminal::table_options::{Key, Order, TableOptions};

const PLACES: Places = Places {
    at: "at",
    noun: "points",
};

/// Points of two sides, which have names.
struct Section<'a> {
    names: [String; 2],
    points: Vec<&'a PointComparison>,
}

/// The parts of a comparison.
pub(super) struct Shown<'a> {
    comparison: &'a Comparison,
    sections: Vec<Section<'a>>,
    /// The settings that tell its points apart.
    varying: Vec<&'a str>,
    /// Settings that another one of those decides, and that one.
    following: Vec<(&'a str, &'a str)>,
}

/// A column of a figure, and what rows are sorted by in it.
type OfFigure = (&'static str, fn(&FigureComparison) -> Key);

/// What rows can be sorted by behind the settings, by the name that the sides had in earlier versions.
const OF_A_FIGURE: [OfFigure; 8] = [
    ("figure", |found| Key::Text(found.figure.to_string())),
    ("unit", |found| Key::Text(found.unit.to_owned())),
    ("BASE", |found| found.base.into()),
    ("NEW", |found| found.new.into()),
    ("shift", |found| found.shift.into()),
    ("from", |found| found.interval.map(|[low, _]| low).into()),
    ("to", |found| found.interval.map(|[_, high]| high).into()),
    ("verdict", |found| {
        Key::Text(found.verdict.words().to_owned())
    }),
];

/// What the rows are to be sorted by: a setting of the points, or a column of a figure.
pub(super) fn order<'a>(
    options: &TableOptions,
    settings: impl Iterator<Item = &'a str>,
    [base, new]: [&str; 2],
) -> Result<Option<Order>, UsageError> {
    let settings = settings.map(|name| (heading_of(name).0, name));
    let of_figure = OF_A_FIGURE.map(|(name, _)| match name {
        "BASE" => (name.to_owned(), base),
        "NEW" => (name.to_owned(), new),
        "shift" => (name.to_owned(), "difference"),
        _ => (name.to_owned(), name),
    });
    options.order(&settings.chain(of_figure).collect::<Vec<_>>())
}

/// The names of the settings that points may have.
pub(super) fn settings(comparison: &Comparison) -> Vec<&'static str> {
    let columns = Schema::of(comparison.benchmark).map_or(&[][..], |schema| schema.point);
    columns.iter().map(|column| column.name).collect()
}

fn setting<'a>(point: &'a PointComparison, name: &str) -> &'a str {
    let found = point.settings.iter().find(|(column, _)| *column == name);
    found.map_or("", |(_, text)| text)
}

/// The settings that tell points apart, and those that another one of these decides, with that one.
fn varying(comparison: &Comparison) -> (Vec<&str>, Vec<(&str, &str)>) {
    let texts = |names: &[&str]| {
        let points = comparison.points.iter();
        let texts = points.map(|point| {
            let names = names.iter();
            names.map(|name| setting(point, name)).collect::<Vec<_>>()
        });
        distinct(texts).len()
    };
    let names = settings(comparison).into_iter();
    let mut varying: Vec<&str> = names.filter(|name| texts(&[name]) > 1).collect();
    let mut following = Vec::new();
    // From the last to the first, so that of two that decide each other the first remains.
    for place in (0..varying.len()).rev() {
        let name = varying[place];
        let decides =
            |other: &&&str| **other != name && texts(&[**other, name]) == texts(&[**other]);
        if let Some(leader) = varying.iter().find(decides).copied() {
            following.insert(0, (name, leader));
            varying.remove(place);
        }
    }
    (varying, following)
}

/// A value of a setting in a unit that fits.
fn in_unit(name: &str, text: &str) -> String {
    match (text.parse(), heading_of(name).1) {
        (Ok(number), unit @ ("B" | "ns" | "1/s")) => quantity(number, unit),
        _ => text.to_owned(),
    }
}

/// A value of the setting that points are compared by: alone if it is a word, else with the setting.
fn value(by: &By, text: &str) -> String {
    const SAYS_LITTLE: [&str; 6] = ["on", "off", "true", "false", "none", "any"];
    let is_word = text.contains(char::is_alphabetic) && !SAYS_LITTLE.contains(&text);
    match text {
        "" => format!("no {}", heading_of(by.setting).0),
        text if is_word => text.to_owned(),
        text => in_words(by.setting, text),
    }
}

fn sections(comparison: &Comparison) -> Vec<Section<'_>> {
    let points = || comparison.points.iter();
    let Some(by) = &comparison.by else {
        return vec![Section {
            names: comparison.names.clone(),
            points: points().collect(),
        }];
    };
    let mut levels: Vec<&str> = Vec::new();
    for level in points().filter_map(|point| point.level.as_deref()) {
        if !levels.contains(&level) {
            levels.push(level);
        }
    }
    let section = |level: &str| Section {
        names: [value(by, &by.first), value(by, level)],
        points: points()
            .filter(|point| point.level.as_deref() == Some(level))
            .collect(),
    };
    levels.into_iter().map(section).collect()
}

impl<'a> Shown<'a> {
    pub(super) fn of(comparison: &'a Comparison) -> Self {
        let (varying, following) = varying(comparison);
        Shown {
            comparison,
            sections: sections(comparison),
            varying,
            following,
        }
    }

    /// The two sides; the second one, if there are several, in a general word.
    pub(super) fn names(&self) -> [&str; 2] {
        match self.sections.as_slice() {
            [one] => one.names.each_ref().map(String::as_str),
            [first, ..] => [&first.names[0], "the others"],
            [] => ["A", "B"],
        }
    }

    fn is_judged(&self) -> bool {
        let mut figures = self.comparison.figures();
        figures.any(|found| found.verdict != Verdict::NotJudged)
    }

    /// The answer, a sentence each. `record` says how a run of so many rounds is made.
    pub(super) fn answer(&self, record: &dyn Fn(usize) -> String) -> Vec<String> {
        let figures = || self.comparison.figures();
        let rounds = |found: &dyn Fn(&&FigureComparison) -> bool| {
            rounds_in_words(figures().filter(|it| found(it)).flat_map(|it| it.rounds))
        };
        let needed = self.comparison.rounds_needed;
        let is_short = |it: &&FigureComparison| direction(it) == Direction::NotJudged;
        let mut texts = Vec::new();
        if self.is_judged() {
            for section in &self.sections {
                texts.extend(self.of_section(section));
            }
            texts.extend(self.faults());
            let is_judged = |it: &&FigureComparison| it.verdict != Verdict::NotJudged;
            let count = figures().filter(is_judged).count();
            texts.push(certainty(count, &rounds(&is_judged), self.comparison.test));
            if figures().any(|it| is_short(&it)) {
                texts.push(format!(
                    "A verdict on the rest takes {needed} rounds. {}",
                    record(needed)
                ));
            }
        } else if figures().any(|it| is_short(&it)) {
            let [base, new] = self.names();
            texts.push(format!(
                "With {} no difference between {base} and {new} can be judged, and those below may be chance: it takes \
                 {needed} rounds. {}",
                rounds(&is_short),
                record(needed)
            ));
        } else {
            texts.push("No figure was measured in both.".to_owned());
        }
        texts
    }

    fn of_section(&self, section: &Section<'_>) -> Vec<String> {
        let outcome = |point: &PointComparison, found: &FigureComparison| Outcome {
            figure: found.figure.words.clone(),
            place: self.place(point),
            direction: direction(found),
            amount: found
                .shift
                .zip(found.interval)
                .map(|(difference, interval)| Amount {
                    difference,
                    interval,
                    unit: unit_of_difference(found.unit),
                }),
        };
        let points = section.points.iter();
        let outcomes = points.flat_map(|point| point.figures.iter().map(|it| outcome(point, it)));
        let names = section.names.each_ref().map(String::as_str);
        answer::sentences(names, &outcomes.collect::<Vec<_>>(), PLACES)
    }

    fn place(&self, point: &PointComparison) -> String {
        let settings = self.varying.iter();
        let texts = settings.map(|name| match setting(point, name) {
            "" => format!("no {}", heading_of(name).0),
            text if self.are_apart(name, in_words) => in_words(name, text),
            text => format!("{} {text}", heading_of(name).0),
        });
        texts.collect::<Vec<_>>().join(", ")
    }

    /// Where something looks better and more is lost.
    fn faults(&self) -> Vec<String> {
        let mut reasons: Vec<(&str, usize)> = Vec::new();
        let is_marked = |it: &&FigureComparison| it.verdict == Verdict::BetterButMoreFaults;
        let marked = self.comparison.figures().filter(is_marked);
        for reason in marked.filter_map(|it| it.reason.as_deref()) {
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, count)) => *count += 1,
                None => reasons.push((reason, 1)),
            }
        }
        let sentence = |(reason, count): (&str, usize)| {
            let figures = if count == 1 {
                "figure is"
            } else {
                "figures are"
            };
            format!("{count} {figures} better, but {reason}.")
        };
        reasons.into_iter().map(sentence).collect()
    }

    /// All that is printed; `verdicts` are those on the runs.
    pub(super) fn text(
        &self,
        answer: &[String],
        verdicts: &[String],
        order: Option<Order>,
        brief: bool,
        width: Option<usize>,
    ) -> String {
        let mut text = String::new();
        for sentence in answer {
            text += &wrapped(sentence);
        }
        for verdict in verdicts {
            text += &wrapped(verdict);
        }
        for section in &self.sections {
            text.push('\n');
            if self.sections.len() > 1 {
                let [base, new] = &section.names;
                text += &wrapped(&format!("{new} against {base}:"));
            }
            text += &self.table(section, order).brief(brief).render(width);
        }
        text.push('\n');
        for line in self.notes() {
            text += &line;
            text.push('\n');
        }
        text
    }

    fn table(&self, section: &Section<'_>, order: Option<Order>) -> Table {
        let in_units: Vec<bool> = (self.varying.iter())
            .map(|name| in_unit(name, "0") != "0" && self.are_apart(name, in_unit))
            .collect();
        let column_of = |(name, in_units): (&&str, &bool)| {
            let (title, unit) = heading_of(name);
            let mut points = self.comparison.points.iter();
            let column = match points.all(|point| setting(point, name).parse::<f64>().is_ok()) {
                true => Column::number(title, if *in_units { "" } else { unit }),
                false => Column::text(title),
            };
            column.setting()
        };
        let [base, new] = section.names.each_ref().map(|name| printable(name));
        let varying = self.varying.iter().zip(&in_units);
        let mut columns: Vec<Column> = varying.map(column_of).collect();
        columns.extend([
            Column::text("figure").setting(),
            Column::number(base, ""),
            Column::number(new, ""),
            Column::number("difference", "").first(),
        ]);
        let is_judged = self.is_judged();
        if is_judged {
            columns.extend([
                Column::number("interval", ""),
                Column::text("verdict").first(),
            ]);
        }
        let mut table = Table::new(columns);
        let in_groups = order.is_none() && section.points.iter().any(|it| it.figures.len() > 1);
        let mut before: Option<&PointComparison> = None;
        for (point, figure) in self.rows(section, order) {
            if in_groups && before.is_some_and(|before| before.names != point.names) {
                table.separator();
            }
            before = Some(point);
            let settings = self.varying.iter().zip(&in_units);
            let settings = settings.map(|(name, in_units)| match *in_units {
                true => in_unit(name, setting(point, name)),
                false => setting(point, name).to_owned(),
            });
            let [cells @ .., interval, verdict] = cells(figure);
            let judged = is_judged.then_some([interval, verdict]);
            table.row(settings.chain(cells).chain(judged.into_iter().flatten()));
        }
        table
    }

    /// Whether the values of a setting can be told apart in such words.
    fn are_apart(&self, name: &str, words: fn(&str, &str) -> String) -> bool {
        let points = self.comparison.points.iter();
        let texts = distinct(points.map(|point| setting(point, name)));
        distinct(texts.iter().map(|text| words(name, text))).len() == texts.len()
    }

    fn rows<'s>(
        &self,
        section: &Section<'s>,
        order: Option<Order>,
    ) -> Vec<(&'s PointComparison, &'s FigureComparison)> {
        let points = section.points.iter();
        let rows =
            points.flat_map(|&point| point.figures.iter().map(move |figure| (point, figure)));
        let mut rows: Vec<_> = rows.collect();
        if let Some(order) = order {
            let names = settings(self.comparison);
            order.sort(&mut rows, |(point, figure)| {
                let Some(name) = names.get(order.column) else {
                    return OF_A_FIGURE[order.column - names.len()].1(figure);
                };
                let text = setting(point, name).to_owned();
                text.parse().map_or(Key::Text(text), Key::Number)
            });
        }
        rows
    }

    /// What the columns mean, and what became of the limits.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let mut followed = Vec::new();
        if let Some(by) = self
            .comparison
            .by
            .as_ref()
            .filter(|by| !by.along.is_empty())
        {
            followed.push(format!(
                "{} follows from {}",
                by.along.join(", "),
                by.setting
            ));
        }
        let following = self.following.iter();
        followed.extend(following.map(|(name, leader)| format!("{name} follows {leader}")));
        if !followed.is_empty() {
            notes.push(labelled("settings", &followed.join("; ")));
        }
        if self.is_judged() {
            let count = |verdict| {
                let verdicts = self.comparison.figures().map(|figure| figure.verdict);
                verdicts.filter(|found| *found == verdict).count()
            };
            notes.push(labelled(
                "verdicts",
                &format!(
                    "{} better, {} worse, {} without a difference shown, {} not judged",
                    count(Verdict::Better) + count(Verdict::BetterButMoreFaults),
                    count(Verdict::Worse),
                    count(Verdict::NoDifferenceShown),
                    count(Verdict::NotJudged)
                ),
            ));
        }
        let [base, _] = self.names();
        let has_shares = self.comparison.figures().any(|it| it.unit == "%");
        let shares = if has_shares {
            "; of shares in % points"
        } else {
            ""
        };
        notes.push(labelled(
            "difference",
            &format!("of the median round, by Hodges and Lehmann, in percent of {base}{shares}"),
        ));
        notes.extend(limit_lines(self.comparison, self.names()[1]));
        notes
    }
}

fn direction(found: &FigureComparison) -> Direction {
    let is_better = match found.verdict {
        Verdict::NoDifferenceShown => return Direction::NotShown,
        Verdict::NotJudged if found.p.is_none() => return Direction::NotMeasured,
        Verdict::NotJudged => return Direction::NotJudged,
        Verdict::Better | Verdict::BetterButMoreFaults => true,
        Verdict::Worse => false,
    };
    match is_better == (found.figure.better == Better::Higher) {
        true => Direction::Higher,
        false => Direction::Lower,
    }
}

fn cells(found: &FigureComparison) -> [String; 6] {
    let value = |value: Option<f64>| {
        value.map_or_else(|| "-".to_owned(), |value| quantity(value, found.unit))
    };
    let unit = unit_of_difference(found.unit);
    // The sentences have it in full.
    let verdict = match found.verdict {
        Verdict::NoDifferenceShown => "not shown",
        verdict => verdict.words(),
    };
    let mut verdict = verdict.to_owned();
    if found.limit.as_ref().is_some_and(|limit| limit.broken) {
        verdict += ", BROKEN";
    }
    [
        found.figure.to_string(),
        value(found.base),
        value(found.new),
        answer::difference(found.shift, unit),
        answer::interval(found.interval, unit),
        verdict,
    ]
}

fn limit_lines(comparison: &Comparison, new: &str) -> Vec<String> {
    let limited: Vec<(&FigureComparison, &LimitOutcome)> = comparison
        .figures()
        .filter_map(|figure| Some((figure, figure.limit.as_ref()?)))
        .collect();
    let mut limits: Vec<&Limit> = Vec::new();
    for (_, outcome) in &limited {
        if !limits.contains(&&outcome.limit) {
            limits.push(&outcome.limit);
        }
    }
    let line = |limit: &Limit| {
        let of = limited
            .iter()
            .filter(|(_, outcome)| outcome.limit == *limit);
        let of: Vec<_> = of.collect();
        let broken = of.iter().filter(|(_, outcome)| outcome.broken).count();
        let without = of.iter().filter(|(figure, _)| figure.leaves_limit_open());
        let unjudged = without.count();
        let open = of.iter().filter(|(_, outcome)| outcome.is_open());
        let worst = open.clone().filter_map(|(_, outcome)| outcome.worst);
        let (open, worst) = (open.count(), digits(worst.fold(0.0, f64::max)));
        let kept = of.len() - broken - open - unjudged;
        let mut outcome = match broken {
            0 => format!("kept by {kept} of {} figures", of.len()),
            count => format!("BROKEN by {count} of {} figures", of.len()),
        };
        if open > 0 {
            outcome += &format!(
                ", left open by {open}: {new} may be worse by up to {worst} %; measure more rounds"
            );
        }
        if unjudged > 0 {
            outcome += &format!(", {unjudged} could not be judged");
        }
        labelled(&format!("limit {}%@{}", limit.percent, limit.of), &outcome)
    };
    limits.into_iter().map(line).collect()
}
