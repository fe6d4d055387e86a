//! What searches for the highest rate came to: an answer each with its reason, and a table of all.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::{Family, Searches};
use crate::arguments::conditions::{SearchedFigure, conditions};
use crate::driver::row::{Row, is_complete};
use crate::results::finding::Finding;
use crate::results::finding::kinds::RATE_NOT_FOUND;
use crate::results::schema::FAILURE;
use crate::results::text::printable_path;
use crate::results::units;
use crate::stats::rate_search::{Answer, RateSearch, Step};
use crate::terminal::table::{Column, Table};

impl Searches {
    pub(super) fn found_of(&self, family: &Family, rows: &[Vec<Row>]) -> FoundRate {
        let search = self.observed(family, rows);
        let (holds, fails) = search.bracket();
        let rate = |place: usize| units::rate(family.rates[place]);
        let last = family.rates.len() - 1;
        let has_failed = family
            .points
            .iter()
            .flat_map(|point| &rows[*point])
            .any(|row| row.failure.is_some());
        let undecided = "rounds differ too much: raise --rounds, or measure longer rounds";
        let why = match search.next() {
            Step::End(Answer::Found { .. }) => "",
            Step::End(Answer::AllHold(_)) => "the greatest rate holds: raise the greatest --rate",
            Step::End(Answer::NoneHolds) => {
                "no rate that was measured holds: lower the least --rate, or ask for less"
            }
            Step::End(Answer::Undecided { .. }) => undecided,
            Step::Measure(_) if has_failed => "a rate could not be measured",
            Step::Measure(_) => "the search was not measured to its end",
        };
        let is_found = why.is_empty();
        let name = match family.name.as_str() {
            "" => String::new(),
            name => format!(" of {name}"),
        };
        let mut text = format!("highest rate{name} with {}: ", self.conditions);
        match (holds.filter(|_| is_found), holds, fails) {
            (Some(found), ..) => text += &rate(found),
            (None, Some(holds), Some(fails)) => {
                let _ = write!(
                    text,
                    "not found between {} and {}: {why}",
                    rate(holds),
                    rate(fails)
                );
            }
            (None, Some(holds), None) if holds == last => {
                let _ = write!(text, "not found up to {}: {why}", rate(last));
            }
            (None, Some(holds), None) => {
                let _ = write!(
                    text,
                    "not found between {} and {}: {why}",
                    rate(holds),
                    rate(last)
                );
            }
            (None, None, _) => {
                let _ = write!(
                    text,
                    "not found between {} and {}: {why}",
                    rate(0),
                    rate(last)
                );
            }
        }
        let ends = [("holds", holds), ("fails", fails)];
        let mut probes = Vec::new();
        for (what, place) in ends
            .iter()
            .filter_map(|(what, place)| Some((*what, (*place)?)))
        {
            let _ = write!(
                text,
                "\n  {what} at {}: {}",
                rate(place),
                self.deciding(&search, place)
            );
            let runs = rows[family.points[place]].iter().flat_map(|row| &row.runs);
            let failures: Vec<String> = (runs.filter(|run| !is_complete(run)))
                .map(|run| run.text(&FAILURE))
                .collect();
            if let Some(last) = failures.last() {
                let _ = write!(text, ", {} rounds failed: {last}", failures.len());
            }
            probes.push(json!({
                "is": what,
                "rate_per_s": family.rates[place],
                "point": rows[family.points[place]][0].planned.name,
            }));
        }
        text += "\n";
        let at = holds
            .or(fails)
            .map(|place| rows[family.points[place]][0].planned.name.clone());
        FoundRate {
            is_found,
            at,
            document: json!({
                "conditions": self.conditions.to_string(),
                "of": family.name,
                "setting": self.by.rate.name,
                "found": is_found,
                "rate_per_s": holds.filter(|_| is_found).map(|it| family.rates[it]),
                "probes": probes,
                "text": text,
            }),
            summary: text.lines().next().unwrap_or_default().to_owned(),
        }
    }

    /// The figures that decided about a rate, with their bounds.
    fn deciding(&self, search: &RateSearch<'_>, place: usize) -> String {
        let names = self.conditions.0.iter().map(|it| Some(it.figure));
        let texts = names.chain([None]).enumerate().map(|(limit, figure)| {
            let in_words = |value: f64| match figure {
                _ if value.is_infinite() => "without end".to_owned(),
                Some(SearchedFigure::Percentile(_)) => units::duration(value),
                _ => format!("{} %", units::digits(value.max(0.0) * 100.0)),
            };
            let name = figure.map_or("rate missed by".to_owned(), SearchedFigure::name);
            let (median, bounds) = match figure {
                Some(SearchedFigure::Loss) => (search.mean(place, limit), None),
                _ => search.median(place, limit),
            };
            let median = median.map_or("unknown".to_owned(), in_words);
            match bounds {
                Some([low, high]) if low < high => {
                    format!(
                        "{name} {median} (95 %: {} to {})",
                        in_words(low),
                        in_words(high)
                    )
                }
                _ => format!("{name} {median}"),
            }
        });
        texts.collect::<Vec<_>>().join(", ")
    }
}

/// What a search came to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FoundRate {
    is_found: bool,
    /// The point that it is about, if any was measured.
    pub at: Option<String>,
    /// For `settings.json` and `--json`; its `text` is what is shown.
    pub document: Value,
    summary: String,
}

impl FoundRate {
    /// That there is no answer.
    pub(crate) fn finding(&self) -> Option<Finding> {
        let found = Finding::of(&RATE_NOT_FOUND).name("search", self.summary.as_str());
        (!self.is_found).then_some(found)
    }
}

/// The table of recorded searches, if there are several, and the lines of each. The table has the highest rate first,
/// and what holds at no rate last.
pub(crate) fn text_of(recorded: &Value, width: Option<usize>) -> String {
    let searches = recorded.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut text = String::new();
    if searches.len() > 1 {
        text = table_of(searches).render(width) + "\n";
    }
    text.extend(searches.iter().filter_map(|it| it["text"].as_str()));
    text
}

fn table_of(searches: &[Value]) -> Table {
    let rate = |search: &Value, what: &str| {
        let mut probes = search["probes"].as_array().into_iter().flatten();
        probes.find(|it| it["is"] == what)?["rate_per_s"].as_f64()
    };
    let mut sorted: Vec<&Value> = searches.iter().collect();
    let holds = |search: &Value| rate(search, "holds").unwrap_or(0.0);
    crate::sorting::sort_by(&mut sorted, |one, other| {
        holds(other).total_cmp(&holds(one))
    });
    let mut table = Table::new(vec![
        Column::text("search"),
        Column::text("highest rate that holds"),
        Column::text("lowest that fails"),
        Column::text("found"),
    ]);
    for search in sorted {
        let of = search["of"].as_str().unwrap_or_default();
        let [holds, fails] =
            ["holds", "fails"].map(|what| rate(search, what).map_or("-".to_owned(), units::rate));
        let is_found = search["found"] == true;
        let found = if is_found { "yes" } else { "no" };
        table.row([of.to_owned(), holds, fails, found.to_owned()]);
    }
    table
}

/// The command of the figure of recorded searches, whose run is in this folder: the latency of the first condition, or
/// of its 99th percentile, over the rate.
pub(crate) fn figure_of(recorded: &Value, folder: &Path) -> Option<String> {
    let asked = conditions(recorded[0]["conditions"].as_str()?).ok()?;
    let rate = recorded[0]["setting"].as_str()?;
    let mut percents = asked.0.iter().filter_map(|it| match it.figure {
        SearchedFigure::Percentile(percent) => Some(percent),
        SearchedFigure::Loss => None,
    });
    let percent = percents.next().unwrap_or(99.0);
    // A command stays in one line.
    let folder = printable_path(folder);
    let folder = shlex::try_quote(&folder).ok()?;
    Some(format!(
        "figure: hcabench plot median {folder} --x {rate} --metric intended --percentile p{percent} --out rates.svg\n"
    ))
}
