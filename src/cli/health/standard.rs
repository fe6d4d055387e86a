//! What runs are judged by: a baseline and rules, as options name them.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use crate::arguments::UsageError;
use crate::bench::fabric::against::{Judged, judge};
use crate::bench::fabric::baseline::{Baseline, FORMAT, VERSION};
use crate::bench::fabric::history::JudgedRun;
use crate::bench::fabric::rules::{DEFAULT, Rules};
use crate::bench::fabric::tiers::Tiers;
use crate::cli::stored_fabric::{StoredFabric, differs};
use crate::results::durable;
use crate::results::text::printable;

/// By what runs are judged.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StandardArguments {
    /// Judge against this file, which hcabench baseline has written
    #[arg(long, value_name = "FILE", help_heading = "Baseline and rules")]
    pub baseline: Option<PathBuf>,

    /// Judge by the rules in this TOML file [default: those that hcabench health --print-rules prints]
    #[arg(long, value_name = "FILE", help_heading = "Baseline and rules")]
    pub rules: Option<PathBuf>,
}

/// A baseline, if there is one, and rules.
#[derive(Debug)]
pub(crate) struct Standard {
    pub(super) baseline: Option<Baseline>,
    pub(super) rules: Rules,
}

impl StandardArguments {
    /// Reads the files.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn read(&self) -> Result<Standard, UsageError> {
        let refused = |option: &str, file: &Path, reason: &str| {
            UsageError(format!("{option} {}: {reason}", file.display()))
        };
        let read = |option: &str, file: &PathBuf| {
            durable::read_text(file).map_err(|error| refused(option, file, &error.to_string()))
        };
        let baseline = self.baseline.as_ref().map(|file| {
            let text = read("--baseline", file)?;
            parsed(&text).map_err(|reason| refused("--baseline", file, &reason))
        });
        let rules = self.rules.as_ref().map(|file| {
            let text = read("--rules", file)?;
            Rules::read(&text).map_err(|error| refused("--rules", file, &error.to_string()))
        });
        let default = || Rules::read(DEFAULT).map_err(|error| UsageError(error.to_string()));
        Ok(Standard {
            baseline: baseline.transpose()?,
            rules: rules.unwrap_or_else(default)?,
        })
    }
}

fn parsed(text: &str) -> Result<Baseline, String> {
    let fix = "fix: write it again with hcabench baseline";
    let document: Value =
        serde_json::from_str(text).map_err(|error| format!("not JSON: {error}; {fix}"))?;
    if document["format"] != FORMAT {
        return Err(format!(
            "not a baseline (format {}); {fix}",
            document["format"]
        ));
    }
    if document["version"] != VERSION {
        return Err(format!(
            "version {}, and this hcabench reads version {VERSION}; {fix}",
            document["version"]
        ));
    }
    serde_json::from_value(document).map_err(|error| format!("{error}; {fix}"))
}

impl Standard {
    /// Why a run with these settings cannot be compared with the baseline.
    fn of_other_settings(&self, settings: &Value) -> Option<String> {
        let baseline = self.baseline.as_ref()?;
        let base = json!({ "schedule": baseline.schedule, "settings": baseline.settings });
        let differs = differs([&base, settings]);
        let differs: Vec<String> = differs.iter().map(ToString::to_string).collect();
        let text = || {
            format!(
                "its settings differ from the baseline's in {}",
                differs.join("; ")
            )
        };
        (!differs.is_empty()).then(text)
    }

    /// Why a run of these nodes cannot be: none of them is in it, or the tiers are others. `source`: where these come
    /// from, if that is known.
    pub(super) fn of_another_cluster(
        &self,
        nodes: &[&str],
        tiers: &Tiers,
        source: Option<&str>,
    ) -> Option<String> {
        let baseline = self.baseline.as_ref()?;
        if !nodes.iter().any(|name| baseline.nodes.contains_key(*name)) {
            return Some(
                "none of its nodes is in the baseline: it is of another cluster".to_owned(),
            );
        }
        if let Some((own, base)) = source.zip(baseline.tier_source.as_str())
            && own != base
        {
            return Some(format!(
                "its tiers are by {own}, and those of the baseline by {base}: make a baseline with the same --topology \
                 or --group"
            ));
        }
        let tiers: Vec<&str> = (0..tiers.count()).map(|tier| tiers.name(tier)).collect();
        if !tiers.iter().any(|tier| baseline.tiers.contains_key(*tier)) {
            let known: Vec<&str> = baseline.tiers.keys().map(String::as_str).collect();
            return Some(format!(
                "its tiers ({}) are not those of the baseline ({}): the topology was given otherwise",
                tiers.join(", "),
                known.join(", ")
            ));
        }
        None
    }

    /// Refuses settings that differ from the baseline's, before anything is measured.
    pub(crate) fn check(&self, settings: &Value) -> Result<(), UsageError> {
        let refusal = self.of_other_settings(settings);
        let fix = "fix: measure with its settings, or make another baseline";
        refusal.map_or(Ok(()), |reason| {
            let reason = reason.replace("its settings differ", "these settings differ");
            Err(UsageError(format!(
                "--baseline: {}; {fix}",
                printable(&reason)
            )))
        })
    }

    /// Judges a run.
    ///
    /// # Errors
    /// Why it cannot be compared with the baseline.
    pub(super) fn judge(&self, run: &StoredFabric) -> Result<JudgedRun, String> {
        let names: Vec<&str> = run
            .figures
            .nodes
            .iter()
            .map(|it| it.name.as_str())
            .collect();
        let document = run.fabric.document();
        let of_cluster = || {
            let source = document["tiers"]["source"].as_str();
            self.of_another_cluster(&names, &run.figures.tiers, source)
        };
        if let Some(reason) = self.of_other_settings(document).or_else(of_cluster) {
            return Err(reason);
        }
        let judged: Vec<Judged> = judge(&run.figures, self.baseline.as_ref(), &self.rules);
        Ok(JudgedRun::new(
            &run.figures,
            judged,
            run.started_at.clone(),
            run.folder(),
        ))
    }

    /// Rules that no run can be judged by, as there is no baseline.
    pub(super) fn idle_rules(&self) -> usize {
        let takes_one = self.rules.rules.iter().filter(|rule| rule.metric.is_time());
        if self.baseline.is_some() {
            0
        } else {
            takes_one.count()
        }
    }
}
