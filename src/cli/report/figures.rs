//! The figures of a run: those of `hcabench plot` that its benchmark has, and where there is too much for one, several.

use std::collections::BTreeSet;
use std::path::Path;

use super::content::setting_in_words;
use super::settings_of;
use crate::cli::plot::embedded::{Asked, chosen, figure, is_chosen};
use crate::page::Figure;
use crate::results::read::{Benchmark, Point, Run};
use crate::results::schema::Schema;
use crate::sorting::{distinct, sort_by_key};

/// Of one kind, at most so many.
const MOST_OF_A_KIND: usize = 4;
/// A surface has fewer settings in it than the others, so more of them belong to a sweep: three services, with inline
/// and without.
const MOST_SURFACES: usize = 6;

/// Of these, a print has the first.
const PRINTED_OF_A_KIND: usize = 2;

/// A kind of figure: the command line, the title, and how to read it.
type Kind = (&'static str, &'static str, &'static str);

/// Takes two settings that are numbers.
const SURFACE: &str = "surface --percentile p50";

const HCA: [Kind; 5] = [
    (
        "median --percentile p50",
        "Median latency",
        "The median of each point; the bars hold the middle 80 % of its messages.",
    ),
    (
        SURFACE,
        "Median latency over two settings",
        "Height is the median; the colour tells the share of lost messages.",
    ),
    (
        "histogram --range auto",
        "Latencies",
        "How many messages took how long; the vertical line is the median, the box tells the share above the range and the \
         maximum.",
    ),
    (
        "percentiles",
        "The tail",
        "Which latency a share of the messages does not exceed; the scale spreads the highest shares.",
    ),
    (
        "percentiles --metric completion",
        "The tail of completions",
        "The same for the time until the sender found the completion.",
    ),
];
const BETWEEN: [Kind; 4] = [
    (
        "percentiles --metric half-round-trip",
        "Half a round trip",
        "Which half of a round trip a share of the probes does not exceed. One way only if both ways are equal.",
    ),
    (
        "percentiles",
        "Latency above the least",
        "Which excess over the least latency a share of the messages does not exceed. No clock offset is in it.",
    ),
    (
        "median --percentile p99",
        "The excess of the slow messages",
        "The 99th percentile of each point's excess over the least latency.",
    ),
    (
        "percentiles --metric completion",
        "The tail of completions",
        "The time until the sender found the completion, on one clock.",
    ),
];
const QUEUE: [Kind; 3] = [
    (
        "median --percentile p50",
        "What an operation takes",
        "The median of each point, the time stamp included; the bars hold the middle 80 %.",
    ),
    (
        "percentiles --metric latency",
        "The tail of the latency in the queue",
        "Which latency a share of the elements does not exceed; the scale spreads the highest shares.",
    ),
    (
        "percentiles --metric enqueue",
        "The tail of an enqueue",
        "The same for what an enqueue takes, the time stamp included.",
    ),
];
const NODE: [Kind; 4] = [
    (
        "median --percentile p50",
        "Median latency",
        "The median of each point; the bars hold the middle 80 % of its samples.",
    ),
    (
        SURFACE,
        "Median latency over two settings",
        "Height is the median; the colour tells the share of missed steps.",
    ),
    (
        "percentiles",
        "The tail",
        "Which latency a share of the samples does not exceed; the scale spreads the highest shares.",
    ),
    (
        "percentiles --metric intended",
        "The tail from the intended time",
        "The same from when a sample was meant to be sent.",
    ),
];
const MEMORY: [Kind; 3] = [
    (
        "curves",
        "Latency by bandwidth",
        "A curve for each share of reads, from no load to full load: a dot is a point as measured, the thick line is \
         smoothed. A curve that bends backwards tells of a memory that is over-saturated.",
    ),
    (
        "curves --metric loaded",
        "Latency under load",
        "The latency without load, and where a curve reaches these shares of its largest bandwidth.",
    ),
    (
        "time",
        "Windows over time",
        "Each mark is a window of a round: when it began, and the mean latency in it, also where it was left out.",
    ),
];
const CLOCK: [Kind; 3] = [
    (
        "time",
        "Jumps over time",
        "Each mark is a jump: when it began, and how long it was; the colour is its cause.",
    ),
    (
        "median --percentile p50",
        "Jumps by cause",
        "The median length of the jumps of each cause; the bars hold the middle 80 %.",
    ),
    (
        "percentiles",
        "Differences between two readings",
        "Which difference a share of all readings does not exceed: a loop that nothing disturbs is level.",
    ),
];

/// Those that can be drawn, and notes on them; what cannot be drawn is a warning.
pub fn of(run: &Run, folder: &Path, warnings: &mut Vec<String>) -> (Vec<Figure>, Vec<String>) {
    let kinds: &[Kind] = match run.benchmark {
        Benchmark::Hca => &HCA,
        Benchmark::Between => &BETWEEN,
        Benchmark::Queue => &QUEUE,
        Benchmark::Clock => &CLOCK,
        Benchmark::Node => &NODE,
        Benchmark::Memory => &MEMORY,
    };
    let parts = parts(run);
    let (mut figures, mut notes, mut asked) = (Vec::new(), Vec::new(), Vec::new());
    let is_number = |text: &&str| text.parse::<f64>().is_ok();
    let numbers = parts
        .iter()
        .filter(|(_, texts)| texts.iter().all(is_number));
    let numbers = numbers.count();
    for &(command, title, caption) in kinds {
        if command == SURFACE && numbers < 2 {
            continue;
        }
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let only = chosen(&words, folder);
        let points = run.points.iter().filter(|point| is_chosen(&only, point));
        let mut drawing = Drawing {
            schema: run.schema,
            folder,
            title,
            caption,
            points: points.collect(),
            most: match command {
                SURFACE => MOST_SURFACES,
                _ => MOST_OF_A_KIND,
            },
            figures: Vec::new(),
            left: Vec::new(),
            asked: &mut asked,
            warnings,
        };
        drawing.draw(&words, &[], &parts);
        if let Some(left) = named(&drawing.left) {
            notes.push(format!(
                "{title}: not shown here are {left}; hcabench plot {command} --only SETTING=VALUE draws them."
            ));
        }
        figures.append(&mut drawing.figures);
    }
    notes.extend(strange(&asked));
    (figures, notes)
}

/// What is said of names in `plot.json` that no line of any figure has: one of them may be meant for one figure only.
fn strange(asked: &[Asked]) -> Vec<String> {
    let of = |key: &str| {
        let names = |found: bool| -> BTreeSet<&String> {
            let asked = asked.iter().filter(|it| it.key == key && it.found == found);
            distinct(asked.map(|it| &it.name))
        };
        let strange: Vec<String> = (names(false).difference(&names(true)))
            .map(|name| format!("{name:?}"))
            .collect();
        let names = strange.join(", ");
        (!names.is_empty())
            .then(|| format!("plot.json: {key:?}: no line of these figures is called {names}."))
    };
    ["labels", "order"].into_iter().filter_map(of).collect()
}

/// By what a figure can be parted: settings that vary with their texts, those with the fewest first.
fn parts(run: &Run) -> Vec<Part<'_>> {
    let mut parts = settings_of(run);
    parts.retain(|(_, texts)| texts.len() > 1 && !texts.contains(&""));
    sort_by_key(&mut parts, |(_, texts)| texts.len());
    parts
}

/// What was left, in words; a long list is cut.
fn named(left: &[String]) -> Option<String> {
    const MOST_NAMED: usize = 12;
    let shown = &left[..left.len().min(MOST_NAMED)];
    let more = match left.len() - shown.len() {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    (!left.is_empty()).then(|| format!("{}{more}", shown.join("; ")))
}

/// A setting with its texts.
type Part<'a> = (&'a str, Vec<&'a str>);

struct Drawing<'a> {
    schema: &'static Schema,
    folder: &'a Path,
    title: &'a str,
    caption: &'a str,
    /// Those that `plot.json` chooses.
    points: Vec<&'a Point>,
    /// As many figures as there may be.
    most: usize,
    figures: Vec<Figure>,
    /// What is in those that were not drawn, because there are enough.
    left: Vec<String>,
    /// The names that `plot.json` has for lines of the figures.
    asked: &'a mut Vec<Asked>,
    /// Why some are not there.
    warnings: &'a mut Vec<String>,
}

impl Drawing<'_> {
    /// Draws a figure, or one for each value of a setting where there is too much in it, and so on. What cannot be
    /// drawn is told with its reason, and the rest is drawn. `chosen` are the settings with the values that it is
    /// parted to, `parts` those by which it can still be parted.
    fn draw(&mut self, words: &[String], chosen: &[(&str, &str)], parts: &[Part<'_>]) {
        let only = chosen.iter();
        let only = only.map(|(name, text)| setting_in_words(self.schema, name, text));
        let only = only.collect::<Vec<_>>().join(", ");
        if self.figures.len() >= self.most {
            return self.left.push(only);
        }
        let title = match only.as_str() {
            "" => self.title.to_owned(),
            only => format!("{}: {only}", self.title),
        };
        let failed = match figure(words, self.folder) {
            Ok((svg, asked)) => {
                self.asked.extend(asked);
                let caption = format!("{title}. {}", self.caption);
                return self.figures.push(Figure {
                    title,
                    svg,
                    caption,
                    is_more: self.figures.len() >= PRINTED_OF_A_KIND,
                });
            }
            Err(failed) => failed,
        };
        let by = failed.by.as_ref();
        let may = |part: &Part<'_>| {
            by.is_some_and(|by| by.is_empty() || by.iter().any(|it| it == part.0))
        };
        let Some(place) = parts.iter().position(may) else {
            let reason = failed.reason;
            let warning = format!("The figure \"{title}\" is not here: {reason}");
            return self.warnings.push(warning);
        };
        let (name, texts) = &parts[place];
        let others = [&parts[..place], &parts[place + 1..]].concat();
        for text in texts {
            let chosen = [chosen, &[(*name, *text)]].concat();
            // Not each combination need have been measured, nor be chosen.
            let has_all = |point: &&Point| {
                let mut all = chosen.iter();
                all.all(|&(name, text)| point.setting(name) == Some(text))
            };
            if self.points.iter().any(has_all) {
                let only = ["--only".to_owned(), format!("{name}={text}")];
                self.draw(&[words, &only].concat(), &chosen, &others);
            }
        }
    }
}
