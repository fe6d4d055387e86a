//! Which setting is on an axis, and where its values stand.

use super::{MEDIAN, Source, Sources, UsageError, apart, refused, tick};
use crate::plot::median::MedianMark;
use crate::results::read::Point;
use crate::results::schema::memory;
use crate::sorting::sort_by;

/// The mark of a source at `x`, by what is asked for, 10th and 90th percentile in nanoseconds, and the interval of the
/// first. Bars from one to the other are those of a median.
pub(super) fn mark(
    source: &Source,
    x: f64,
    percent: f64,
    [value, low, high]: [Option<f64>; 3],
    interval: Option<(f64, f64)>,
) -> Option<MedianMark> {
    Some(MedianMark {
        x,
        value: value?,
        most: low.zip(high).filter(|_| percent == MEDIAN),
        interval,
        incomplete: source.point.incomplete.is_some(),
    })
}

/// The setting on an axis, `x` or `y`: the one that was asked for, or the usual one, or the first that varies.
pub(super) fn choose(
    sources: &Sources,
    axis: &'static str,
    asked: Option<&str>,
    usual: Option<&str>,
) -> Result<Option<String>, UsageError> {
    let Some(name) = asked else {
        let usual = usual.map(str::to_owned);
        return Ok(usual.or_else(|| sources.varying().into_iter().next()));
    };
    let mut schemas = sources.rows().map(|point| point.schema);
    let known = schemas
        .find_map(|schema| schema.setting(name))
        .unwrap_or(name);
    if sources.rows().any(|point| point.setting(known).is_some()) {
        return Ok(Some(known.to_owned()));
    }
    let first = sources.rows().next();
    let names: Vec<&str> = (first.iter().flat_map(|point| &point.settings))
        .map(|(name, _)| name.as_str())
        .collect();
    let names = names.join(", ");
    let why = format!("these points have no such setting, only {names}");
    Err(refused(axis, name, &why))
}

/// Whether a text of a setting is one of its values: without generators there is no pause.
fn has_place(name: &str, text: &str) -> bool {
    name != memory::PAUSE.name || !text.is_empty()
}

pub(super) fn are_numbers(sources: &Sources, name: &str) -> bool {
    sources.rows().all(|point| {
        let text = point.setting(name);
        text.is_some_and(|text| text.parse::<f64>().is_ok() || !has_place(name, text))
    })
}

/// The values that a setting has, ascending, with their words; words alone stand at 0, 1, 2 and so on.
pub(super) struct Places {
    pub named: bool,
    pub values: Vec<(f64, String)>,
    /// As they stand in the summary.
    pub texts: Vec<String>,
}

impl Places {
    pub(crate) fn of(name: &str, sources: &Sources) -> Self {
        let mut texts: Vec<&str> = Vec::new();
        for text in sources.texts(name).filter(|text| has_place(name, text)) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let number = |text: &&str| text.parse().ok().filter(|it: &f64| it.is_finite());
        let numbers: Option<Vec<f64>> = texts.iter().map(number).collect();
        let named = numbers.is_none();
        let places = || (0..).map(f64::from).take(texts.len()).collect();
        let numbers: Vec<f64> = numbers.unwrap_or_else(places);
        let mut both: Vec<(f64, &str)> = numbers.into_iter().zip(texts).collect();
        sort_by(&mut both, |a, b| a.0.total_cmp(&b.0));
        let words = |text: &str| {
            let others = both.iter().map(|(_, text)| *text);
            let words = apart(tick, name, text, others);
            words.unwrap_or_else(|| text.to_owned())
        };
        Places {
            named,
            values: both.iter().map(|(x, text)| (*x, words(text))).collect(),
            texts: both.iter().map(|(_, text)| (*text).to_owned()).collect(),
        }
    }

    pub(crate) fn of_point(&self, name: &str, point: &Point) -> Option<usize> {
        let text = point.setting(name)?;
        self.texts.iter().position(|other| other == text)
    }
}
