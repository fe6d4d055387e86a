//! A fabric that was just measured, judged against a baseline and beside earlier runs.

use std::path::{Path, PathBuf};

use clap::Args;

use super::present::{answer, table};
use super::runs::JudgedRuns;
use super::standard::{Standard, StandardArguments};
use crate::arguments::UsageError;
use crate::bench::fabric::against::{Judged, State};
use crate::bench::fabric::history::{Course, Health, Subject, courses};
use crate::bench::fabric::tiers::Tiers;
use crate::cli::stored_fabric::StoredFabric;
use crate::results::Record;
use crate::results::runs;
use crate::results::schema::fabric::{RULES, rule, rules};
use crate::results::text::printable;
use crate::terminal::output::terminal_width;

/// By what a fabric is judged beside its own verdicts.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OverTimeArguments {
    /// The baseline and the rules.
    #[command(flatten)]
    pub standard: StandardArguments,

    /// Count the runs in and below this folder as the earlier ones; without it each rule is broken by this run alone
    #[arg(long, value_name = "DIR", help_heading = "Baseline and rules")]
    pub history: Option<PathBuf>,
}

/// A baseline, rules and where earlier runs are.
#[derive(Debug)]
pub(crate) struct OverTime {
    standard: Standard,
    history: Option<PathBuf>,
}

/// What was found.
pub(crate) struct OverTimeJudgement {
    /// For people.
    pub(crate) text: String,
    /// Rules that are broken.
    pub(crate) broken: Vec<String>,
}

impl OverTimeArguments {
    /// Reads the files; `None` where none of the options is given.
    ///
    /// # Errors
    /// What is wrong with them, or with these settings beside the baseline's.
    pub(crate) fn read(
        &self,
        settings: &serde_json::Value,
    ) -> Result<Option<OverTime>, UsageError> {
        let StandardArguments { baseline, rules } = &self.standard;
        if baseline.is_none() && rules.is_none() && self.history.is_none() {
            return Ok(None);
        }
        let mut standard = self.standard.read()?;
        standard.check(settings)?;
        if let Some(folder) = &self.history {
            std::fs::read_dir(folder).map_err(|error| {
                let folder = folder.display();
                UsageError(format!(
                    "--history {folder}: {error}; fix: name the folder of earlier runs"
                ))
            })?;
        } else {
            standard.rules = standard.rules.for_one_run();
        }
        Ok(Some(OverTime {
            standard,
            history: self.history.clone(),
        }))
    }
}

impl OverTime {
    /// Refuses nodes and tiers that are not those of the baseline, before anything is measured.
    ///
    /// # Errors
    /// Why the run could not be compared.
    pub(crate) fn check_cluster(&self, nodes: &[String], tiers: &Tiers) -> Result<(), UsageError> {
        let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
        let refusal = self
            .standard
            .of_another_cluster(&nodes, tiers, Some(tiers.source()));
        refusal.map_or(Ok(()), |reason| {
            let fix = "fix: name the baseline of this cluster, or leave --baseline out";
            Err(UsageError(format!(
                "--baseline: {}; {fix}",
                printable(&reason)
            )))
        })
    }

    /// Judges the run in a folder, whose tables are written, and adds one.
    ///
    /// # Errors
    /// When it cannot be read, compared or written.
    pub(crate) fn judge(&self, folder: &Path) -> anyhow::Result<OverTimeJudgement> {
        let stored = StoredFabric::read(folder)?;
        let refused = |reason| anyhow::anyhow!("--baseline: {reason}");
        let newest = self.standard.judge(&stored).map_err(refused)?;
        let mut found = match &self.history {
            Some(history) => {
                JudgedRuns::below(history, &self.standard, "--history ", Some(&stored))?
            }
            None => JudgedRuns::default(),
        };
        let last = newest
            .judged()
            .map(|(subject, judged)| (subject.clone(), *judged));
        let last: Vec<(Subject, Judged)> = last.collect();
        found.runs.retain(|run| run.begun < newest.begun);
        found.runs.push(newest);
        let rules = &self.standard.rules;
        let all = courses(&found.runs, rules, SHOWN);
        write(folder, &last, &all, self)?;
        let broken = all
            .iter()
            .filter(|it| it.health == Health::Failing && it.is_in_last);
        let broken = broken.map(|it| {
            super::present::reason(it, &rules.rules).replacen("hcabench", &it.subject.in_words(), 1)
        });
        let mut lines = vec![String::new()];
        lines.extend(answer(&found, &all, &self.standard));
        lines.extend(found.remarks());
        let table = table(&all, &rules.rules, false).render(terminal_width());
        Ok(OverTimeJudgement {
            broken: broken.collect(),
            text: format!("{}\n{table}", lines.join("\n")),
        })
    }
}

/// Of this many of the last runs it is counted in how many a node was out.
pub(super) const SHOWN: usize = 10;

/// Writes what was judged of the run.
fn write(
    folder: &Path,
    last: &[(Subject, Judged)],
    all: &[Course],
    over_time: &OverTime,
) -> anyhow::Result<()> {
    let row = |(subject, judged): &(Subject, Judged)| {
        let rule_of_it = &over_time.standard.rules.rules[judged.rule];
        let course = all.iter().find(|it| it.subject == *subject);
        let count = course.and_then(|it| it.counts.iter().find(|it| it.rule == judged.rule));
        let percent = |share: Option<f64>| share.map(|share| 100.0 * share);
        let mut row = Record::new();
        row.set(&rule::METRIC, rule_of_it.metric.name())
            .set(&rule::SCOPE, rule_of_it.scope.name())
            .set(
                &rule::NAME,
                match subject {
                    Subject::Tier(name) => name.clone(),
                    subject => subject.in_words(),
                },
            )
            .set(&rule::ABOVE, percent(judged.above))
            .set(&rule::BOUND, percent(judged.bound))
            .set(&rule::STATE, judged.state.name())
            .set(&rule::DIRECTION, judged.direction.map(|it| it.name()))
            .set(
                &rule::OUT_RUNS,
                count
                    .map(|it| it.out)
                    .filter(|_| judged.state == State::Out),
            )
            .set(&rule::RUNS, rule_of_it.runs.to_string())
            .set(
                &rule::BROKEN,
                if count.is_some_and(|it| it.is_broken) {
                    "yes"
                } else {
                    "no"
                },
            );
        row.arranged(&rules())
    };
    let rows: Vec<Record> = last.iter().map(row).collect();
    runs::write(&folder.join(RULES), &rules(), &rows)?;
    Ok(())
}

impl std::fmt::Debug for OverTimeJudgement {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("OverTimeJudgement")
            .field("broken", &self.broken)
            .finish()
    }
}
