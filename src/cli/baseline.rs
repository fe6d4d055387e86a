//! `hcabench baseline`: what several healthy runs of a fabric have in common.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;

use super::stored_fabric::{PARTS, StoredFabric, differs};
use crate::arguments::UsageError;
use crate::bench::fabric::against::{State, Unit, judge};
use crate::bench::fabric::baseline::{
    Baseline, BaselineRun, FORMAT, LEAST_RUNS, Parts, VERSION, of_runs,
};
use crate::bench::fabric::metrics::{Metric, RunFigures};
use crate::bench::fabric::rules::{DEFAULT, Rules};
use crate::findings::print_damaged;
use crate::results::document::Program;
use crate::results::json;
use crate::results::read::Fabric;
use crate::results::text::{printable, printable_path};
use crate::results::units::{digits, duration};
use crate::terminal::output::{print_text, say, terminal_width, warning};
use crate::terminal::table::{Column, Table};

/// Arguments of `hcabench baseline`.
#[derive(Debug, Clone, Args)]
pub(crate) struct BaselineArguments {
    /// Take together these results folders of healthy runs of hcabench fabric, three at least
    #[arg(value_name = "RESULTS", required = true)]
    pub folders: Vec<PathBuf>,

    /// Write or replace this file
    #[arg(long, value_name = "FILE", required = true)]
    pub out: PathBuf,

    /// Do not print the tables
    #[arg(long)]
    pub quiet: bool,
}

/// Writes the file. Returns the exit code.
///
/// # Errors
/// When the runs cannot be read, or be taken together.
pub(crate) fn run(arguments: &BaselineArguments) -> anyhow::Result<u8> {
    let mut runs = Vec::new();
    for folder in &arguments.folders {
        if folder.symlink_metadata().is_err() {
            let folder = printable_path(folder);
            return Err(UsageError(format!(
                "RESULTS {folder}: there is no such folder; fix: name folders with results of hcabench fabric"
            ))
            .into());
        }
        let run = StoredFabric::read(folder)?;
        let damaged = run.fabric.damaged();
        if print_damaged(damaged.iter().map(AsRef::as_ref)) > 0 {
            let folder = printable_path(folder);
            anyhow::bail!("{folder}: files are damaged; fix: leave this run out, or restore them");
        }
        runs.push(run);
    }
    runs.sort_by_key(|run| run.began);
    check(&runs)?;
    for text in warnings(&runs) {
        say(warning(&printable(&text)));
    }
    let (figures, stored): (Vec<RunFigures>, Vec<_>) = runs
        .into_iter()
        .map(|run| {
            let folder = run.folder();
            (run.figures, (folder, run.started_at, run.fabric))
        })
        .unzip();
    for text in standing_out(&figures, &stored) {
        say(warning(&printable(&text)));
    }
    let run = |(folder, started_at, fabric): &Stored| {
        let document = fabric.document();
        BaselineRun {
            folder: folder.clone(),
            started_at: started_at.clone(),
            hcabench: document["hcabench"].clone(),
            nodes: fabric.nodes.len(),
            rounds: document["schedule"]["rounds"].clone(),
        }
    };
    let [schedule, settings] = PARTS.map(|part| stored[0].2.document()[part].clone());
    let runs = stored.iter().map(run).collect();
    let parts = of_runs(&Vec::from_iter(&figures));
    let mut baseline = document(parts, runs, [schedule, settings]);
    baseline.tier_source = stored[0].2.document()["tiers"]["source"].clone();
    let out = &arguments.out;
    json::write(out, &baseline).with_context(|| format!("--out {}", out.display()))?;
    if !arguments.quiet {
        print_text(&text(&baseline))?;
        say(format_args!("baseline: {}", printable_path(out)));
    }
    Ok(0)
}

/// Refuses runs that are too few, there twice, or no runs of the same.
fn check(runs: &[StoredFabric]) -> Result<(), UsageError> {
    if runs.len() < LEAST_RUNS {
        return Err(UsageError(format!(
            "RESULTS: {} given; the spread between runs takes {LEAST_RUNS} at least; fix: add runs, five to ten of \
             several days",
            runs.len()
        )));
    }
    let [first, others @ ..] = runs else {
        return Ok(());
    };
    for (place, run) in others.iter().enumerate() {
        let (folder, base) = (run.folder(), first.folder());
        let before = &runs[..=place];
        let path = |run: &StoredFabric| run.fabric.path.canonicalize().ok();
        if let Some(same) = before.iter().find(|it| path(it) == path(run)) {
            return Err(UsageError(format!(
                "{folder}: it is given twice, also as {}; fix: name each run once",
                same.folder()
            )));
        }
        if let Some(same) = before.iter().find(|it| it.is_same_as(run)) {
            return Err(UsageError(format!(
                "{folder}: it is a copy of {}; fix: name each run once",
                same.folder()
            )));
        }
        let differs = differs([first.fabric.document(), run.fabric.document()]);
        if !differs.is_empty() {
            let differs: Vec<String> = differs.iter().map(ToString::to_string).collect();
            return Err(UsageError(printable(&format!(
                "{folder}: its settings differ from those of {base} in {}; fix: make a baseline of each",
                differs.join("; ")
            )).into_owned()));
        }
        let is_in_it = |name: &String| first.figures.place(name).is_some();
        if !run.figures.nodes.iter().any(|node| is_in_it(&node.name)) {
            return Err(UsageError(format!(
                "{folder}: it has no node in common with {base}: they are of two clusters; fix: make a baseline of each"
            )));
        }
    }
    Ok(())
}

/// What a baseline of healthy runs should not have.
fn warnings(runs: &[StoredFabric]) -> Vec<String> {
    let mut all = Vec::new();
    for run in runs {
        let folder = run.folder();
        if let Some(reason) = &run.fabric.incomplete {
            all.push(format!(
                "{folder} is incomplete ({reason}); what it has counts"
            ));
        }
        let nodes = run.figures.nodes.iter();
        let named: Vec<&str> = nodes
            .filter(|it| it.is_named == Some(true))
            .map(|it| it.name.as_str())
            .collect();
        if !named.is_empty() {
            all.push(format!(
                "{folder} names {} as slow: judged by this baseline that is usual",
                named.join(", ")
            ));
        }
        if run.fabric.document().is_null() {
            all.push(format!(
                "{folder} has no fabric.json: whether its settings are the same is unknown"
            ));
        }
    }
    let version = |run: &StoredFabric| run.fabric.document()["hcabench"]["version"].clone();
    let mut versions: Vec<Value> = runs.iter().map(version).collect();
    versions.dedup();
    if versions.len() > 1 {
        all.push("the runs are of several versions of hcabench".to_owned());
    }
    all
}

/// Nodes that stand out in one of the runs when it is judged by the others: a baseline would have them as usual.
fn standing_out(figures: &[RunFigures], stored: &[Stored]) -> Vec<String> {
    let mut all = Vec::new();
    if figures.len() <= LEAST_RUNS {
        return all;
    }
    let Ok(rules) = Rules::read(DEFAULT).map(Rules::for_one_run) else {
        return all;
    };
    for (place, run) in figures.iter().enumerate() {
        let others = figures
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != place);
        let others: Vec<&RunFigures> = others.map(|(_, run)| run).collect();
        let baseline = document(of_runs(&others), Vec::new(), [Value::Null, Value::Null]);
        let judged = judge(run, Some(&baseline), &rules).into_iter();
        let names = judged.filter_map(|it| match it.unit {
            Unit::Node(node)
                if it.state == State::Out && run.nodes[node].is_named != Some(true) =>
            {
                Some(run.nodes[node].name.clone())
            }
            _ => None,
        });
        let names: BTreeSet<String> = names.collect();
        if !names.is_empty() {
            let names: Vec<String> = names.into_iter().collect();
            all.push(format!(
                "{}: {} is out, judged by the other runs; fix: leave this run out",
                stored[place].0,
                names.join(", ")
            ));
        }
    }
    all
}

/// A run without its figures: folder, date and the rest.
type Stored = (String, String, Fabric);

fn document(
    (tiers, nodes, of_all_nodes): Parts,
    runs: Vec<BaselineRun>,
    [schedule, settings]: [Value; 2],
) -> Baseline {
    Baseline {
        format: FORMAT.to_owned(),
        version: VERSION,
        hcabench: Program::this(),
        runs,
        settings,
        schedule,
        tiers,
        tier_source: Value::Null,
        nodes,
        of_all_nodes,
    }
}

/// What was found, as tables.
fn text(baseline: &Baseline) -> String {
    let mut tiers = Table::new(vec![
        Column::text("tier").setting(),
        Column::text("figure").setting(),
        Column::number("pairs", ""),
        Column::number("runs", ""),
        Column::number("centre", ""),
        Column::number("spread of runs", "%"),
        Column::number("spread of pairs", "%"),
    ]);
    for (name, tier) in &baseline.tiers {
        for metric in Metric::TIMES {
            let Some(figure) = tier.figures.get(metric.name()) else {
                continue;
            };
            tiers.row([
                name.clone(),
                metric.name().to_owned(),
                tier.pairs.to_string(),
                figure.runs.to_string(),
                duration(figure.centre_ns),
                digits(100.0 * figure.spread),
                digits(100.0 * figure.spread_of_pairs),
            ]);
        }
    }
    let mut nodes = Table::new(vec![
        Column::text("figure").setting(),
        Column::number("nodes", ""),
        Column::number("spread of runs", "%"),
        Column::number("spread of nodes", "%"),
    ]);
    for (metric, common) in &baseline.of_all_nodes {
        nodes.row([
            metric.clone(),
            common.nodes.to_string(),
            digits(100.0 * common.spread),
            digits(100.0 * common.between_nodes),
        ]);
    }
    let days: Vec<&str> = [baseline.runs.first(), baseline.runs.last()]
        .into_iter()
        .flatten()
        .filter_map(|run| run.started_at.get(..10))
        .collect();
    let width = terminal_width();
    let nodes = match baseline.of_all_nodes.is_empty() {
        true => "nodes cannot be judged: it takes four at least\n".to_owned(),
        false => format!("effects of nodes:\n{}", nodes.render(width)),
    };
    format!(
        "{} runs, {}, {} nodes\n\n{}\n{nodes}",
        baseline.runs.len(),
        days.join(" to "),
        baseline.nodes.len(),
        tiers.render(width)
    )
}
