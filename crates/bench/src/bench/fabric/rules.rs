//! Rules by which runs of a fabric are judged over time, as a file has them in TOML.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::metrics::Metric;
use crate::rig::named::{Named, named};

/// The rules without a file, as `hcabench health --print-rules` prints them.
pub const DEFAULT: &str = include_str!("rules.toml");
/// The version of the file.
const VERSION: u32 = 1;
/// More runs are not looked back on.
const MOST_RUNS: usize = 1000;

named! {
    /// What a rule judges each of.
    Scope {
        /// A node, by all its pairs.
        Node = "node",
        /// An ordered pair, beyond what its tier and nodes lead to expect.
        Pair = "pair",
        /// A tier, by the median of its pairs.
        Tier = "tier",
    }
}

/// From where on something is out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// Above the baseline by this share; of losses and missing pairs, this share.
    Share(f64),
    /// Above the baseline by this many of its spreads between runs.
    Spreads(f64),
}

/// In how many of the last runs something must be out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runs {
    /// At least in this many.
    pub least: usize,
    /// Of the last this many in which it took part.
    pub of: usize,
}

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Rule {
    /// The figure.
    pub metric: Metric,
    /// What it is judged of.
    pub scope: Scope,
    /// From where on it is out; `None` for the run's own verdict.
    pub limit: Option<Bound>,
    /// In how many runs.
    pub runs: Runs,
}

/// All rules.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    version: u32,
    /// The probability that a healthy run is out by any rule on times of nodes and tiers, at most.
    pub error: f64,
    /// In the order of the file.
    #[serde(rename = "rule")]
    pub rules: Vec<Rule>,
}

/// A rule as it is written.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Written {
    metric: String,
    scope: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limit: Option<String>,
    runs: String,
}

/// What is wrong with a rule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct RuleError(String);

fn wrong<T>(text: impl Into<String>) -> Result<T, RuleError> {
    Err(RuleError(text.into()))
}

fn named<T: Named>(key: &str, text: &str) -> Result<T, RuleError> {
    let found = T::ALL.iter().find(|it| it.name() == text);
    found.copied().map_or_else(
        || {
            let all: Vec<&str> = T::ALL.iter().map(|it| it.name()).collect();
            wrong(format!("{key} = {text:?}: allowed are {}", all.join(", ")))
        },
        Ok,
    )
}

impl FromStr for Bound {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let number = |text: &str| {
            let number = text.trim().parse::<f64>().ok();
            number.filter(|it| it.is_finite() && *it >= 0.0)
        };
        let bound = match text.strip_suffix('%') {
            Some(percent) => number(percent).map(|percent| Bound::Share(percent / 100.0)),
            None => {
                let spreads = text.strip_suffix("spreads").or(text.strip_suffix("spread"));
                spreads.and_then(number).map(Bound::Spreads)
            }
        };
        let allowed = "allowed are a share such as \"10%\" and spreads such as \"6 spreads\"";
        bound.map_or_else(|| wrong(format!("limit = {text:?}: {allowed}")), Ok)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // What was read as a share of 100 is not to end in ...0001.
            Bound::Share(share) => write!(formatter, "{}%", (share * 1e8).round() / 1e6),
            Bound::Spreads(spreads) => write!(formatter, "{spreads} spreads"),
        }
    }
}

impl FromStr for Runs {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let both = text
            .split_once(" of ")
            .and_then(|(least, of)| Some([least.trim().parse().ok()?, of.trim().parse().ok()?]));
        match both {
            Some([least, of]) if 1 <= least && least <= of && of <= MOST_RUNS => {
                Ok(Runs { least, of })
            }
            _ => wrong(format!(
                "runs = {text:?}: allowed is the number of the last runs, such as \"2 of 3\", up to {MOST_RUNS}"
            )),
        }
    }
}

impl fmt::Display for Runs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} of {}", self.least, self.of)
    }
}

impl TryFrom<Written> for Rule {
    type Error = RuleError;

    fn try_from(written: Written) -> Result<Self, RuleError> {
        let metric: Metric = named("metric", &written.metric)?;
        let scope: Scope = named("scope", &written.scope)?;
        let limit = written.limit.as_deref().map(Bound::from_str).transpose()?;
        let name = metric.name();
        match (metric, limit) {
            (Metric::Verdict, Some(_)) => {
                return wrong(format!("limit: the metric {name} has none: leave it out"));
            }
            (Metric::Loss | Metric::Missing, Some(Bound::Spreads(_))) => {
                return wrong(format!(
                    "limit: the metric {name} takes a share, such as \"1%\""
                ));
            }
            (Metric::Verdict, None) => {}
            (_, None) => {
                return wrong(format!(
                    "limit: the metric {name} needs one, such as \"10%\""
                ));
            }
            _ => {}
        }
        if matches!(metric, Metric::Missing | Metric::Verdict) && scope != Scope::Node {
            return wrong(format!(
                "scope = {:?}: the metric {name} is of nodes",
                written.scope
            ));
        }
        Ok(Rule {
            metric,
            scope,
            limit,
            runs: written.runs.parse()?,
        })
    }
}

impl From<Rule> for Written {
    fn from(rule: Rule) -> Self {
        Written {
            metric: rule.metric.name().to_owned(),
            scope: rule.scope.name().to_owned(),
            limit: rule.limit.map(|limit| limit.to_string()),
            runs: rule.runs.to_string(),
        }
    }
}

impl Rule {
    /// Whether its bound by chance is part of what `error` covers.
    pub fn is_tested(&self) -> bool {
        self.metric.is_time() && self.scope != Scope::Pair
    }

    /// In words: `rtt/2.p50 of a node, 10%`.
    pub fn in_words(&self) -> String {
        let limit = self
            .limit
            .map_or(String::new(), |limit| format!(", limit {limit}"));
        format!("{} of a {}{limit}", self.metric.name(), self.scope.name())
    }
}

impl Rules {
    /// These, with the usual error.
    #[cfg(test)]
    pub(super) fn of(rules: Vec<Rule>) -> Self {
        Rules {
            version: VERSION,
            error: 0.01,
            rules,
        }
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// What is wrong, with its line where it has one.
    pub fn read(text: &str) -> Result<Self, RuleError> {
        let rules: Result<Self, toml::de::Error> = toml::from_str(text);
        match rules {
            Ok(rules) => rules.checked(),
            Err(error) => wrong(error.to_string().trim_end().replace('\n', "\n  ")),
        }
    }

    fn checked(self) -> Result<Self, RuleError> {
        if self.version != VERSION {
            return wrong(format!(
                "version = {}: this hcabench reads {VERSION}",
                self.version
            ));
        }
        if !(self.error > 0.0 && self.error <= 1.0) {
            return wrong(format!(
                "error = {}: allowed is a probability above 0, such as 0.01, up to 1, which takes no chance into account",
                self.error
            ));
        }
        if self.rules.is_empty() {
            return wrong("it has no [[rule]]");
        }
        Ok(self)
    }

    /// The error of each test of a rule that makes this many: evenly over rules, then over what each judges, so that all
    /// together err no more often (Bonferroni), however they depend on each other.
    pub fn error_of_a_test(&self, tests: usize) -> f64 {
        if self.error >= 1.0 {
            return 0.5;
        }
        let rules = self.rules.iter().filter(|rule| rule.is_tested()).count();
        self.error / (rules.max(1) * tests.max(1)) as f64
    }

    /// The same for a run that is judged alone: each is broken by that run.
    #[must_use]
    pub fn for_one_run(mut self) -> Self {
        for rule in &mut self.rules {
            rule.runs = Runs { least: 1, of: 1 };
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Refused as _;

    #[test]
    fn limits_and_runs_are_read_as_they_are_written() {
        for (text, bound) in [
            ("10%", Bound::Share(0.1)),
            ("0.1%", Bound::Share(0.001)),
            ("6 spreads", Bound::Spreads(6.0)),
        ] {
            assert_eq!(text.parse(), Ok(bound));
            assert_eq!(bound.to_string(), text);
        }
        for text in ["", "10", "%", "-1%", "NaN spreads", "inf%", "6 sigma"] {
            text.parse::<Bound>().refused(&[text, "\"10%\""]);
        }
        assert_eq!("2 of 3".parse(), Ok(Runs { least: 2, of: 3 }));
        for text in ["", "2", "0 of 3", "4 of 3", "1 of 1001", "a of b"] {
            text.parse::<Runs>().refused(&[text, "\"2 of 3\""]);
        }
    }

    fn written(metric: &str, scope: &str, limit: Option<&str>) -> Result<Rule, RuleError> {
        Written {
            metric: metric.to_owned(),
            scope: scope.to_owned(),
            limit: limit.map(str::to_owned),
            runs: "1 of 1".to_owned(),
        }
        .try_into()
    }

    #[test]
    fn what_means_nothing_is_refused() {
        assert!(written("rtt/2.p50", "pair", Some("4 spreads")).is_ok());
        written("rtt/2.p5", "node", Some("1%")).refused(&["metric = \"rtt/2.p5\"", "rtt/2.p50"]);
        written("loss", "rack", Some("1%")).refused(&["scope = \"rack\"", "node, pair, tier"]);
        written("loss", "node", Some("1 spread")).refused(&["limit", "share"]);
        written("rtt/2.p50", "node", None).refused(&["limit", "needs one"]);
        written("verdict", "node", Some("1%")).refused(&["limit", "leave it out"]);
        written("missing", "tier", Some("1%")).refused(&["scope = \"tier\"", "of nodes"]);
    }

    #[test]
    fn the_default_is_read_and_a_wrong_file_is_refused_with_its_line() {
        let rules = Rules::read(DEFAULT).unwrap();
        assert!(
            rules
                .rules
                .iter()
                .any(|rule| rule.metric == Metric::Verdict)
        );
        let again = Rules::read(&toml::to_string(&rules).unwrap()).unwrap();
        assert_eq!(again, rules);
        Rules::read(&DEFAULT.replace("10%", "ten")).refused(&["line ", "limit = \"ten\"", "10%"]);
        Rules::read(&DEFAULT.replace("scope", "scpoe")).refused(&["line ", "scpoe"]);
        Rules::read(&DEFAULT.replace("version = 1", "version = 2")).refused(&["version = 2"]);
        Rules::read("").refused(&["version"]);
    }

    #[test]
    fn errors_are_shared_by_all_tests() {
        let time = written("rtt/2.p50", "node", Some("10%")).unwrap();
        let two = Rules::of(vec![
            time,
            written("loss", "node", Some("1%")).unwrap(),
            time,
        ]);
        assert!((two.error_of_a_test(128) - 0.01 / 256.0).abs() < 1e-12);
        assert!(Rules::of(Vec::new()).checked().is_err());
        let mut never = two.clone();
        never.error = 0.0;
        never.checked().refused(&["error = 0"]);
        let alone = two.for_one_run();
        assert!(
            alone
                .rules
                .iter()
                .all(|it| it.runs == Runs { least: 1, of: 1 })
        );
    }
}
