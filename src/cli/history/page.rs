//! The history as one HTML file.

use super::found::{History, JudgedSeries};
use super::present::{
    answer, causes_rows, certainty, change_in_words, interval, levels, shift, verdict,
};
use crate::cli::list::date;
use crate::page::{Answer, Figure, Page, Sheet, Verdict};
use crate::plot::history::{ChangeMark, History as Plot, RunValue};
use crate::plot::{Chart, FigureTexts, svg};
use crate::results::finding::Severity;
use crate::results::text::printable_path;
use crate::results::units::{fitting, quantity};

/// Two of these are beside each other on a page.
const SIZE: (u32, u32) = (620, 300);
/// The same on the screen of a telephone.
const NARROW: (u32, u32) = (360, 300);
/// Figures that are drawn: each is some 20 KB.
const MOST_FIGURES: usize = 100;
/// Figures without a change that are not folded up.
const MOST_SHOWN: usize = 12;

/// How to read the page: what is meant, and its explanation.
const READING: [(&str, &str); 6] = [
    (
        "Point of a figure",
        "A mark is the median over the rounds of a run, the line through it reaches from the least to the greatest round.",
    ),
    (
        "Level",
        "The line through the marks is the median of the runs between two changes.",
    ),
    (
        "Change",
        "The dashed line is before the first run of the new level. The band has the runs that the change may be at, with \
         a probability of 95 %.",
    ),
    (
        "Certainty",
        "p is the probability of a change as clear anywhere on this page if nothing changed. Changes are shown up to 0.05.",
    ),
    (
        "Interval",
        "The size of a change lies in it with a probability of 95 %, if it is at that run.",
    ),
    (
        "Changed in settings.json",
        "The differences between the runs before and after, for each run that the change may be at. That one of them is \
         the cause is not proved.",
    ),
];

/// The page.
pub(super) fn of(history: &History) -> Page {
    let lines = answer(history);
    let (first, rest) = lines
        .split_first()
        .map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    let notes = rest.iter().filter_map(|line| line.strip_prefix("note: "));
    let has_changed = history.changes().next().is_some();
    let (drawn, mut about) = figures(history);
    about.extend(notes.map(|note| note.split_whitespace().collect::<Vec<_>>().join(" ")));
    about.extend(
        history
            .left_out
            .iter()
            .map(|reason| format!("Left out: {reason}")),
    );
    about.extend(
        history
            .unreadable
            .iter()
            .map(|reason| format!("Not read: {reason}")),
    );
    about.extend(
        history
            .damaged
            .iter()
            .map(|error| format!("Damaged: {error}")),
    );
    Page {
        title: "History of hcabench".to_owned(),
        verdict: Verdict {
            text: first.to_owned(),
            also: String::new(),
            severity: has_changed.then_some(Severity::Reservation),
        },
        answer: Answer {
            title: "Changes".to_owned(),
            sheet: changes(history),
            note: String::new(),
        },
        figures: drawn,
        notes: about,
        tables: [
            ("Changed in settings.json then", causes(history)),
            ("All figures", all(history)),
        ]
        .map(|(title, sheet)| (title.to_owned(), sheet))
        .into(),
        reading: READING
            .map(|(what, text)| (what.to_owned(), text.to_owned()))
            .into(),
        more: vec![("Runs".to_owned(), runs(history))],
        ..Page::default()
    }
}

fn sheet<const COLUMNS: usize>(
    columns: [&str; COLUMNS],
    rows: impl Iterator<Item = [String; COLUMNS]>,
) -> Sheet {
    Sheet {
        columns: columns.map(|title| (title.to_owned(), "")).into(),
        rows: rows.map(Vec::from).collect(),
    }
}

fn changes(history: &History) -> Sheet {
    let row = |(judged, found): (&JudgedSeries, &super::found::FoundChange)| {
        let run = history.run_at(judged, found.change.at);
        [
            judged.series.figure_in_words().to_owned(),
            shift(found),
            printable_path(&run.folder),
            judged.series.in_words(),
            date(&run.started_at),
            interval(found),
            certainty(found),
        ]
    };
    let columns = [
        "figure",
        "change",
        "from run",
        "point",
        "date",
        "interval",
        "certainty",
    ];
    sheet(columns, history.changes_in_time().into_iter().map(row))
}

fn causes(history: &History) -> Sheet {
    let rows = causes_rows(history).into_iter();
    let rows = rows.map(|[run, date, what, before, after]| [date, run, what, before, after]);
    sheet(["date", "run", "what", "before", "after"], rows)
}

fn all(history: &History) -> Sheet {
    let row = |judged: &JudgedSeries| {
        let [first, last] = levels(judged).map(|level| quantity(level, judged.series.figure.unit));
        [
            judged.series.in_words(),
            judged.series.figure.to_string(),
            judged.series.runs.len().to_string(),
            first,
            last,
            verdict(judged),
        ]
    };
    let columns = ["point", "figure", "runs", "first", "last", "verdict"];
    sheet(columns, history.series.iter().map(row))
}

fn runs(history: &History) -> Sheet {
    let row = |run: &super::runs::StoredRun| {
        [
            date(&run.started_at),
            printable_path(&run.folder),
            run.schema.benchmark.to_owned(),
            run.machine.clone(),
            run.label.clone().unwrap_or_default(),
        ]
    };
    let columns = ["date", "folder", "benchmark", "machine", "label"];
    sheet(columns, history.runs.iter().map(row))
}

/// The figures that changed, then the others, and notes on those that are not drawn.
fn figures(history: &History) -> (Vec<Figure>, Vec<String>) {
    let (changed, others): (Vec<_>, Vec<_>) =
        history.series.iter().partition(|it| !it.changes.is_empty());
    let (mut drawn, mut notes) = (Vec::new(), Vec::new());
    let all: Vec<&JudgedSeries> = changed.into_iter().chain(others).collect();
    for (number, judged) in all.iter().take(MOST_FIGURES).enumerate() {
        let is_more = judged.changes.is_empty() && number >= MOST_SHOWN;
        match figure(history, judged, is_more) {
            Ok(figure) => drawn.push(figure),
            Err(error) => notes.push(format!("{}: {error}", judged.series.in_words())),
        }
    }
    let more = all.len().saturating_sub(MOST_FIGURES);
    if more > 0 {
        notes.push(format!(
            "{more} more figures are in the table and are not drawn."
        ));
    }
    (drawn, notes)
}

fn figure(
    history: &History,
    judged: &JudgedSeries,
    is_more: bool,
) -> Result<Figure, crate::plot::PlotError> {
    let series = &judged.series;
    let medians: Vec<f64> = series.runs.iter().map(|(_, value)| value.median).collect();
    let are_times = series.figure.unit == "ns";
    let (unit, size) = match are_times {
        true => ("", 1.0),
        false => fitting(series.figure.unit, &medians),
    };
    let mut label = series.figure_in_words().to_owned();
    if !unit.is_empty() {
        label += &format!(" ({unit})");
    }
    let run = |(number, value): &(usize, super::runs::RunValue)| RunValue {
        date: history.runs[*number]
            .started_at
            .get(5..10)
            .unwrap_or_default()
            .to_owned(),
        value: value.median / size,
        rounds: (value.least / size, value.greatest / size),
    };
    let title = format!("{} of {}", series.figure_in_words(), series.in_words());
    let plot = Plot {
        chart: Chart {
            words: FigureTexts {
                title: title.clone(),
                ..FigureTexts::default()
            },
            x: "runs, by their date".to_owned(),
            y: label,
            ..Chart::default()
        },
        are_times,
        runs: series.runs.iter().map(run).collect(),
        changes: judged
            .changes
            .iter()
            .map(|found| ChangeMark {
                at: found.change.at,
                from: found.change.from,
                to: found.change.to,
            })
            .collect(),
    };
    let changes: Vec<String> = judged
        .changes
        .iter()
        .map(|found| change_in_words(history, judged, found))
        .collect();
    Ok(Figure {
        title,
        svg: svg(&plot.draw(SIZE)?)?,
        narrow: svg(&plot.draw(NARROW)?)?,
        caption: match changes.is_empty() {
            true => format!("{}.", verdict(judged)),
            false => format!("{}.", changes.join(". ")),
        },
        is_more,
    })
}
