//! What `fabric.json` has when a run begins: the ranks, how they were started, what is measured, and when.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::Deserialize as _;
use serde_json::json;

use super::FabricArguments;
use super::earlier::{EarlierFabric, FabricDocument, Member};
use super::names::distinct_names;
use crate::bench::hca::plan::Plan;
use crate::driver::recorded_command_line;
use crate::launch::conductor::Conductor;
use crate::launch::identity::Identity;
use crate::launch::message::Hello;
use crate::results::document::Program;
use crate::results::finding::kinds::{MACHINE_NOT_READY, WITHOUT_SECRET};
use crate::results::finding::{Finding, Findings};

/// `fabric.json`: it also contains the ranks that took part in the earlier run only.
pub(super) fn document(
    identity: &Identity,
    arguments: &FabricArguments,
    conductor: &Conductor,
    earlier: Option<&EarlierFabric>,
) -> FabricDocument {
    let mut there: BTreeMap<u32, Member> = BTreeMap::new();
    for member in earlier.iter().flat_map(|earlier| &earlier.document.there) {
        there.insert(member.rank, member.clone());
    }
    for (hello, prepared) in conductor.came() {
        let member = Member {
            rank: hello.rank,
            node: hello.node.clone(),
            boot_id: hello.boot_id.clone(),
            topology: hello.topology.clone(),
            serves: hello.serves.to_string(),
            port: prepared.clone(),
        };
        there.insert(hello.rank, member);
    }
    let mut names: Vec<String> = (0..identity.ranks)
        .map(|rank| format!("rank{rank}"))
        .collect();
    for member in there.values() {
        if let Some(name) = names.get_mut(member.rank as usize) {
            name.clone_from(&member.node);
        }
    }
    let mut findings = of_ranks(conductor, earlier);
    let has_secret = arguments.hca.between.secret.source().is_some();
    let is_open = |(hello, _): (&Hello, _)| !hello.serves.ip().to_canonical().is_loopback();
    if !has_secret && (!arguments.is_of_one_host(identity) || conductor.members().any(is_open)) {
        findings.add(Finding::of(&WITHOUT_SECRET), None, None);
    }
    FabricDocument {
        hcabench: Program::this(),
        started_at: match earlier {
            None => humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
            Some(earlier) => earlier.document.started_at.clone(),
        },
        command_line: match earlier {
            None => recorded_command_line(),
            Some(earlier) => earlier.document.command_line.clone(),
        },
        engine: json!(identity.job.engine),
        job: json!(identity.job),
        ranks: identity.ranks,
        nodes: distinct_names(&names),
        there: there.into_values().collect(),
        schedule: described(arguments, identity.ranks),
        settings: settings(arguments),
        tiers: serde_json::Value::Null,
        contradictions: Vec::new(),
        contradicted_rounds: Vec::new(),
        resumed_at: earlier.map_or_else(Vec::new, |it| it.document.resumed_at.clone()),
        slow_ways: Vec::new(),
        findings,
    }
}

/// Which pairs are measured, and when.
fn described(arguments: &FabricArguments, ranks: u32) -> serde_json::Value {
    let of_ranks = arguments.schedule(ranks);
    let sampled = of_ranks.sampled();
    let mut schedule = schedule(arguments);
    schedule["pairs"] = json!(of_ranks.pairs());
    schedule["partners"] = sampled.map_or(json!("all"), |count| json!(count));
    schedule["seed"] = json!(sampled.map(|_| arguments.hca.seed));
    schedule
}

/// What ranks report before anything is measured, CPU quotas that are too small, beside what an earlier run found.
fn of_ranks(conductor: &Conductor, earlier: Option<&EarlierFabric>) -> Findings {
    let mut all = earlier.map_or_else(Findings::default, |it| it.document.findings.clone());
    for (hello, prepared) in conductor.members() {
        let found = Vec::<Finding>::deserialize(&prepared["findings"]).unwrap_or_default();
        let found = found.into_iter();
        for found in found.filter(|found| found.kind == MACHINE_NOT_READY.id) {
            all.add(found.on(&*hello.node), None, None);
        }
    }
    all
}

/// What must be the same of runs that are compared, as `fabric.json` has it.
pub(super) fn compared(arguments: &FabricArguments) -> serde_json::Value {
    json!({ "schedule": schedule(arguments), "settings": settings(arguments) })
}

/// How pairs are scheduled, with any number of ranks.
fn schedule(arguments: &FabricArguments) -> serde_json::Value {
    json!({ "method": "circle", "concurrency": arguments.concurrency.to_string(),
            "rounds": arguments.rounds() })
}

/// What is measured between two ranks, by the names of the options.
fn settings(arguments: &FabricArguments) -> serde_json::Value {
    let config = arguments.hca.config();
    let mut settings = json!(Plan::new(&config.sweep).points.first());
    settings["probes"] = json!(arguments.hca.between.probes());
    settings["clock_drift"] = json!(arguments.hca.between.drift());
    settings
}
