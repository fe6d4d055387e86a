//! The conditions of `--find-rate`: `p99<50us,loss<0.1%`.

use std::fmt;
use std::time::Duration;

use super::values::{DAY, time};
use crate::results::schema::Column;
use crate::results::schema::node::intended;

/// What a condition is about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SearchedFigure {
    /// A percentile of the latency from the intended time, which is to be below nanoseconds.
    Percentile(f64),
    /// The share of what did not arrive, which is to be below a share of 1.
    Loss,
}

/// That a figure is below a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Condition {
    pub figure: SearchedFigure,
    pub below: f64,
    text: String,
}

/// All of them are to hold.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Conditions(pub Vec<Condition>);

const LOSS: &str = "loss";

impl fmt::Display for Condition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl fmt::Display for Conditions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<&str> = self.0.iter().map(|it| it.text.as_str()).collect();
        formatter.write_str(&texts.join(","))
    }
}

impl SearchedFigure {
    /// As it is written in a condition.
    pub(crate) fn name(self) -> String {
        match self {
            SearchedFigure::Percentile(percent) => format!("p{percent}"),
            SearchedFigure::Loss => LOSS.to_owned(),
        }
    }
}

impl Conditions {
    /// The share lost that is to be undercut, if that is a condition.
    pub(crate) fn loss(&self) -> Option<f64> {
        let mut all = self.0.iter();
        let found = all.find(|it| it.figure == SearchedFigure::Loss);
        found.map(|it| it.below)
    }
}

/// All conditions of a text.
pub(crate) fn conditions(text: &str) -> Result<Conditions, String> {
    let mut all = Vec::<Condition>::new();
    for part in text.split(',') {
        let found = condition(part.trim())?;
        if all.iter().any(|other| other.figure == found.figure) {
            let name = found.figure.name();
            return Err(format!("{text:?} has two conditions for {name}: give one"));
        }
        all.push(found);
    }
    Ok(Conditions(all))
}

fn condition(text: &str) -> Result<Condition, String> {
    let (name, value) = text.split_once('<').ok_or_else(|| {
        format!(
            "{text:?} is not a condition: a percentile of the latency below a time, as in p99<50us, or loss<0.1%; \
             several with commas between them"
        )
    })?;
    let (name, value) = (name.trim(), value.trim());
    let percents = intended::ALL.iter().filter_map(Column::percentile);
    let percents: Vec<f64> = percents.map(|(_, percent)| percent).collect();
    let percent = name.strip_prefix('p').and_then(|it| it.parse().ok());
    let (figure, below) = match percent.filter(|it| percents.contains(it)) {
        Some(percent) => {
            let most = time(value, Duration::from_nanos(1)..=DAY);
            let most = most.map_err(|error| format!("{text:?}: {error}"))?;
            (SearchedFigure::Percentile(percent), most.as_nanos() as f64)
        }
        None if name == LOSS => (SearchedFigure::Loss, share(text, value)?),
        None => {
            let known = percents.iter().map(|it| format!("p{it}"));
            let known: Vec<String> = known.chain([LOSS.to_owned()]).collect();
            let known = known.join(", ");
            return Err(format!("{text:?}: {name:?} is not one of {known}"));
        }
    };
    Ok(Condition {
        figure,
        below,
        text: format!("{}<{value}", figure.name()),
    })
}

fn share(text: &str, value: &str) -> Result<f64, String> {
    let percent = value.strip_suffix('%').map(str::trim_end);
    let percent = percent.and_then(|it| it.parse::<f64>().ok());
    let share = percent.filter(|it| *it > 0.0 && *it <= 100.0);
    share.map(|it| it / 100.0).ok_or_else(|| {
        format!("{text:?}: {value:?} is not a share above 0% and up to 100%, such as 0.1%")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Refused as _;

    #[test]
    fn conditions_are_a_figure_below_a_value() {
        let found = conditions("p99<50us, loss < 0.1% ,p99.9<1ms").unwrap();
        let all: Vec<_> = found.0.iter().map(|it| (it.figure, it.below)).collect();
        assert_eq!(
            all,
            [
                (SearchedFigure::Percentile(99.0), 50_000.0),
                (SearchedFigure::Loss, 0.001),
                (SearchedFigure::Percentile(99.9), 1e6),
            ]
        );
        assert_eq!(found.to_string(), "p99<50us,loss<0.1%,p99.9<1ms");
        assert_eq!(conditions(&found.to_string()).unwrap(), found);
    }

    #[test]
    fn what_is_no_condition_is_refused_with_what_is_allowed() {
        for (text, parts) in [
            ("", ["\"\" is not a condition", "p99<50us", "loss<0.1%"]),
            (
                "p99",
                ["\"p99\" is not a condition", "below a time", "commas"],
            ),
            ("p99>5us", ["\"p99>5us\" is not a condition", "", ""]),
            (
                "p98<5us",
                ["\"p98<5us\": \"p98\"", "p10, p50", "p99.99, loss"],
            ),
            ("max<5us", ["\"max\" is not one of", "", ""]),
            (
                "p99<50",
                ["\"p99<50\": \"50\"", "is not a time from 1ns to 1day", "us"],
            ),
            ("p99<0ns", ["\"0ns\"", "from 1ns", ""]),
            (
                "loss<1",
                ["\"loss<1\": \"1\"", "above 0% and up to 100%", "0.1%"],
            ),
            ("loss<0%", ["\"0%\"", "above 0%", ""]),
            ("loss<101%", ["\"101%\"", "up to 100%", ""]),
            ("loss<nan%", ["\"nan%\"", "", ""]),
            ("p99<1us,p99<2us", ["two conditions for p99", "", ""]),
            ("p99<1us,", ["\"\" is not a condition", "", ""]),
        ] {
            conditions(text).refused(&parts);
        }
    }
}
