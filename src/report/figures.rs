//! The figures of a run: those of `hcabench plot` that its benchmark has, and where there is too much for one, several.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::{Texts, in_all_words, varying};
use crate::bench::presentation::ReportFigure;
use crate::bench::presentation_of;
use crate::figures::embedded::{Asked, Embedded, Embedding, is_chosen};
use crate::page::Figure;
use crate::results::read::{Point, ReadError, Run};
use crate::sorting::{distinct, sort_by_key};

/// Of one kind, at most so many.
const MOST_OF_A_KIND: usize = 4;
/// A surface has fewer settings in it than the others, so more of them belong to a sweep: three services, with inline
/// and without.
const MOST_SURFACES: usize = 6;

/// Of these, a print has the first.
const PRINTED_OF_A_KIND: usize = 2;

/// Those that can be drawn, notes on them and on what cannot be drawn, and the files that are left out of them.
#[derive(Default)]
pub(crate) struct Figures {
    pub drawn: Vec<Figure>,
    pub notes: Vec<String>,
    pub without: Vec<Arc<ReadError>>,
}

pub(crate) fn of(run: &Run, folder: &Path) -> Figures {
    let parts = parts(run);
    let (mut figures, mut asked) = (Vec::new(), Vec::new());
    let mut without = Vec::new();
    let (mut notes, mut failed) = (Vec::new(), Vec::new());
    let is_number = |text: &&str| text.parse::<f64>().is_ok();
    let numbers = parts
        .iter()
        .filter(|(_, texts)| texts.iter().all(is_number));
    let numbers = numbers.count();
    let presentation = presentation_of(run.schema);
    for of in presentation.figures {
        let ReportFigure { title, caption, .. } = *of;
        let is_surface = of.figure == "surface";
        // A figure over a setting that does not vary is one point.
        let is_over = |name: &str| parts.iter().any(|(varying, _)| *varying == name);
        let has_axis = |setting: (&str, &str)| setting.0 != "x" || is_over(setting.1);
        if is_surface && numbers < 2 || !of.setting.is_none_or(has_axis) {
            continue;
        }
        // The metric that is drawn where none is named.
        let usual = &presentation.metrics[0];
        let has_log = |point: &Point| usual.interval_log_of(point).is_some();
        if of.is_by_interval() && !run.points.iter().any(has_log) {
            continue;
        }
        let figure = match Embedded::try_from(of) {
            Ok(figure) => figure,
            Err(unknown) => {
                failed.push(is_not_here(title, &unknown.to_string()));
                continue;
            }
        };
        let only = figure.chosen(folder);
        let points = run.points.iter().filter(|point| is_chosen(&only, point));
        let mut drawing = Drawing {
            folder,
            title,
            caption,
            points: points.collect(),
            most: match is_surface {
                true => MOST_SURFACES,
                false => MOST_OF_A_KIND,
            },
            figures: Vec::new(),
            left: Vec::new(),
            asked: &mut asked,
            without: &mut without,
            failed: &mut failed,
        };
        drawing.draw(&figure, &[], &parts);
        if let Some(left) = named(&drawing.left) {
            notes.push(format!(
                "{title}: not shown here are {left}. To draw them: hcabench plot {} --only SETTING=VALUE.",
                of.command()
            ));
        }
        figures.append(&mut drawing.figures);
    }
    notes.extend(strange(&asked));
    notes.extend(failed);
    Figures {
        drawn: figures,
        notes,
        without,
    }
}

/// What is said of names in a file of settings that no line of any figure has: one of them may be meant for one figure only.
fn strange(asked: &[Asked]) -> Vec<String> {
    let of = |key: &String| {
        let names = |found: bool| -> BTreeSet<&String> {
            let asked = asked
                .iter()
                .filter(|it| it.key == *key && it.found == found);
            distinct(asked.map(|it| &it.name))
        };
        let strange: Vec<String> = (names(false).difference(&names(true)))
            .map(|name| format!("{name:?}"))
            .collect();
        let names = strange.join(", ");
        (!names.is_empty()).then(|| format!("{key}: no line of these figures is called {names}."))
    };
    distinct(asked.iter().map(|it| &it.key))
        .into_iter()
        .filter_map(of)
        .collect()
}

/// By what a figure can be parted: settings that vary with their texts, those with the fewest first.
fn parts(run: &Run) -> Vec<Texts<'_>> {
    let mut parts = varying(run);
    parts.retain(|(_, texts)| !texts.contains(&""));
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

pub(super) fn is_not_here(title: &str, reason: &str) -> String {
    format!("The figure \"{title}\" is not here: {reason}")
}

struct Drawing<'a> {
    folder: &'a Path,
    title: &'a str,
    caption: &'a str,
    /// Those that a file of settings chooses.
    points: Vec<&'a Point>,
    /// As many figures as there may be.
    most: usize,
    figures: Vec<Figure>,
    /// What is in those that were not drawn, because there are enough.
    left: Vec<String>,
    /// The names that a file of settings has for lines of the figures.
    asked: &'a mut Vec<Asked>,
    /// Files that are left out, each once.
    without: &'a mut Vec<Arc<ReadError>>,
    /// Why some are not there.
    failed: &'a mut Vec<String>,
}

impl Drawing<'_> {
    fn leave_out(&mut self, files: Vec<Arc<ReadError>>) {
        for file in files {
            if self.without.iter().all(|known| known.path != file.path) {
                self.without.push(file);
            }
        }
    }

    /// Draws a figure, or one for each value of a setting where there is too much in it, and so on. What cannot be
    /// drawn is told with its reason, and the rest is drawn. `chosen` are the settings with the values that it is
    /// parted to, `parts` those by which it can still be parted.
    fn draw(&mut self, figure: &Embedded, chosen: &[(&str, &str)], parts: &[Texts<'_>]) {
        let only = in_all_words(chosen.iter().copied());
        if self.figures.len() >= self.most {
            return self.left.push(only);
        }
        let title = match only.as_str() {
            "" => self.title.to_owned(),
            only => format!("{}: {only}", self.title),
        };
        let failed = match figure.draw(self.folder, Some(&only)) {
            Ok(Embedding {
                svg,
                asked,
                without,
            }) => {
                self.asked.extend(asked);
                self.leave_out(without);
                // The drawing says of what it is, and the first of a kind how to read it.
                let caption = match self.figures.is_empty() {
                    true => format!("{}. {}", self.title, self.caption),
                    false => format!("{}.", self.title),
                };
                let is_more = self.figures.len() >= PRINTED_OF_A_KIND;
                let narrow = (!is_more).then(|| figure.narrow(self.folder, Some(&only)));
                return self.figures.push(Figure {
                    title,
                    svg,
                    narrow: narrow.flatten().unwrap_or_default(),
                    caption,
                    is_more,
                });
            }
            Err(failed) => failed,
        };
        self.leave_out(failed.without);
        let by = failed.by.as_ref();
        let may = |part: &Texts<'_>| {
            by.is_some_and(|by| by.is_empty() || by.iter().any(|it| it == part.0))
        };
        let Some(place) = parts.iter().position(may) else {
            return self.failed.push(is_not_here(&title, &failed.reason));
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
                self.draw(&figure.clone().only(name, text), &chosen, &others);
            }
        }
    }
}
