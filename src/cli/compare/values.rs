//! Values of the options, from text.

use crate::arguments::values::{List, list};
use crate::compare::figures::{Kind, Limit};

/// `5%@latency.p50,10%@p99`.
pub(crate) fn limits(text: &str) -> Result<List<Limit>, String> {
    let limits = list(text, |part| {
        let form =
            || format!("{part:?} is not a limit such as 5%@p50, 5%@latency.p50 or 0.1%@lost");
        let (percent, of) = part.split_once("%@").ok_or_else(form)?;
        let percent: f64 = percent.parse().map_err(|_| form())?;
        if !(0.0..=1e6).contains(&percent) {
            return Err(format!("{part:?} is not between 0% and 1000000%"));
        }
        Ok(Limit {
            percent,
            of: of.parse()?,
        })
    })?;
    for (place, limit) in limits.0.iter().enumerate() {
        if limits.0[..place].iter().any(|other| other.of == limit.of) {
            return Err(format!("{text:?} has two limits of {}", limit.of));
        }
    }
    Ok(limits)
}

/// `p50,p99.9`.
pub(crate) fn percentiles(text: &str) -> Result<List<f64>, String> {
    list(text, |part| match part.parse() {
        Ok(Kind::Percentile(percent)) => Ok(percent),
        _ => Err(format!(
            "{part:?} is not a percentile above p0 and below p100, such as p50 or p99.9"
        )),
    })
}

/// Names of settings, as the files have them.
pub(crate) fn settings(text: &str) -> Result<List<String>, String> {
    list(text, |part| {
        Ok(crate::results::schema::column_of_option(part))
    })
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Words(pub Vec<String>);

impl Words {
    /// As it was given.
    pub(crate) fn text(&self) -> String {
        let words = self.0.iter().map(String::as_str);
        shlex::try_join(words).unwrap_or_default()
    }

    /// The command that it begins with; none is the HCA benchmark.
    pub(crate) fn command(&self) -> Option<&str> {
        let first = self.0.first().map(String::as_str);
        first.filter(|word| !word.starts_with('-'))
    }
}

/// A command line in words, as a shell would take it, without what the comparison itself gives.
pub(crate) fn command_line(text: &str) -> Result<Words, String> {
    let words =
        shlex::split(text).ok_or_else(|| format!("{text:?} has a quote that is not closed"))?;
    for word in &words {
        let option = word.split('=').next().unwrap_or_default();
        if GIVEN.contains(&option) {
            return Err(format!(
                "{text:?} has {option}, which has no place here: compare measures both, into --out, for --rounds"
            ));
        }
    }
    let commands = ["clock", "queue"];
    let words = Words(words);
    match words.command().filter(|word| !commands.contains(word)) {
        Some(word) => Err(format!(
            "{text:?} begins with {word:?}, which measures nothing; give options, or {} with options",
            commands.join(" or ")
        )),
        None => Ok(words),
    }
}

/// Options of a run that are not the user's in `compare --run`.
const GIVEN: [&str; 10] = [
    "--budget",
    "--dry-run",
    "--find-rate",
    "--save-config",
    "--out",
    "--rounds",
    "--resume",
    "--until-round",
    "--json",
    "--force",
];
