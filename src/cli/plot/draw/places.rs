//! Which setting is on an axis, and where its values stand.

use crate::cli::UsageError;
use crate::cli::plot::config::Checked;
use crate::cli::plot::settings::{apart, tick};
use crate::cli::plot::sources::Sources;
use crate::results::read::Point;

/// Points with a row in the summary: only those have all settings under the same names.
fn rows(sources: &Sources) -> impl Iterator<Item = &Point> {
    let points = sources.all.iter().map(|source| &source.point);
    points.filter(|point| point.row.is_some())
}

/// The setting on an axis, `x` or `y`: the one that was asked for, or the usual one, or the first that varies.
pub(super) fn choose(
    sources: &Sources,
    axis: &str,
    settings: &Checked,
    usual: Option<&str>,
) -> Result<Option<String>, UsageError> {
    let asked = if axis == "x" {
        &settings.x
    } else {
        &settings.y
    };
    let Some(name) = asked else {
        let usual = usual.map(str::to_owned);
        return Ok(usual.or_else(|| sources.varying().into_iter().next()));
    };
    if rows(sources).any(|point| point.setting(name).is_some()) {
        return Ok(Some(name.clone()));
    }
    let first = rows(sources).next();
    let names: Vec<&str> = (first.iter().flat_map(|point| &point.settings))
        .map(|(name, _)| name.as_str())
        .collect();
    Err(UsageError(format!(
        "{} {name:?}: it is no setting of these points, only {}",
        settings.named(axis),
        names.join(", ")
    )))
}

/// Whether all values of a setting are numbers.
pub(super) fn are_numbers(sources: &Sources, name: &str) -> bool {
    rows(sources).all(|point| {
        let text = point.setting(name);
        text.is_some_and(|text| text.parse::<f64>().is_ok())
    })
}

/// The values that a setting has, ascending, with their texts; words stand at 0, 1, 2 and so on.
pub(super) struct Places {
    pub named: bool,
    pub values: Vec<(f64, String)>,
    pub texts: Vec<String>,
}

impl Places {
    pub fn of(name: &str, sources: &Sources) -> Self {
        let mut texts: Vec<String> = Vec::new();
        for text in sources
            .all
            .iter()
            .filter_map(|source| source.point.setting(name))
        {
            if !texts.iter().any(|other| other == text) {
                texts.push(text.to_owned());
            }
        }
        let numbers: Option<Vec<f64>> = texts
            .iter()
            .map(|text| text.parse().ok().filter(|it: &f64| it.is_finite()))
            .collect();
        if let Some(numbers) = numbers {
            let mut both: Vec<(f64, String)> = numbers.into_iter().zip(texts).collect();
            both.sort_by(|a, b| a.0.total_cmp(&b.0));
            let values = both
                .iter()
                .map(|(number, text)| {
                    let others = both.iter().map(|(_, text)| text.as_str());
                    let words = apart(tick, name, text, others);
                    (*number, words.unwrap_or_else(|| text.clone()))
                })
                .collect();
            return Places {
                named: false,
                values,
                texts: both.into_iter().map(|(_, text)| text).collect(),
            };
        }
        let values = texts
            .iter()
            .enumerate()
            .map(|(place, text)| (place as f64, tick(name, text)))
            .collect();
        Places {
            named: true,
            values,
            texts,
        }
    }

    pub fn place(&self, text: &str) -> Option<usize> {
        self.texts.iter().position(|other| other == text)
    }
}

pub(super) fn texts_of(places: &Places) -> Vec<String> {
    places.values.iter().map(|(_, text)| text.clone()).collect()
}
