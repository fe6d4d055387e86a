//! What rank 0 does beside measuring: it conducts, keeps what comes, and judges it.

use std::time::SystemTime;

use super::FabricArguments;
use super::course::FabricRun;
use super::distances;
use super::earlier::EarlierFabric;
use super::judgement::FabricJudgement;
use super::overview::known;
use super::recorded::{compared, document};
use crate::arguments::UsageError;
use crate::bench::fabric::tiers::TierFile;
use crate::cli::health::OverTime;
use crate::driver::ending::{Ending, close};
use crate::driver::recorded_command_line;
use crate::launch::conductor::{Conductor, Limits};
use crate::launch::entrance::Door;
use crate::launch::error::LaunchError;
use crate::launch::identity::Identity;
use crate::launch::message::Terms;
use crate::launch::schedule::{Concurrency, Pair};
use crate::results::ResultsFolder;
use crate::results::text::printable;
use crate::terminal::output::{cannot_resume, print_text, say};

/// What a run goes on in.
const WITHIN: &str = "in the same srun or mpirun";

/// Where the results go.
#[derive(Debug)]
pub(crate) struct FabricOutput {
    /// What was there, if it is to go on.
    earlier: Option<EarlierFabric>,
    /// The file with the places of nodes in the network.
    distances: Option<TierFile>,
    /// What the run is judged by beside its own verdicts.
    over_time: Option<OverTime>,
}

impl FabricOutput {
    /// As the command line sets it; it is known to be good before anybody measures.
    pub(crate) fn find(arguments: &FabricArguments, identity: &Identity) -> anyhow::Result<Self> {
        let output = &arguments.hca.output;
        let distances = distances::read(arguments)?;
        let over_time = arguments.over_time.read(&compared(arguments))?;
        if let Some(folder) = &arguments.hca.sweep.resume {
            let earlier = EarlierFabric::read(folder, identity, &recorded_command_line());
            return Ok(FabricOutput {
                earlier: Some(earlier.map_err(|reason| cannot_resume(folder, &reason))?),
                distances,
                over_time,
            });
        }
        output.check_folder(0)?;
        Ok(FabricOutput {
            earlier: None,
            distances,
            over_time,
        })
    }

    fn open(&self, arguments: &FabricArguments) -> anyhow::Result<ResultsFolder> {
        match &self.earlier {
            Some(earlier) => Ok(earlier.folder.resume()?),
            None => arguments.hca.output.create_folder(SystemTime::now(), 0),
        }
    }
}

/// As the program ends with it.
pub(super) fn exit_error(error: LaunchError) -> anyhow::Error {
    match error.is_misuse() {
        true => UsageError(error.to_string()).into(),
        false => error.into(),
    }
}

/// Waits for the ranks, has all pairs measured, and judges what comes. Returns the exit code.
pub(crate) fn conduct(
    arguments: &FabricArguments,
    identity: &Identity,
    place: &FabricOutput,
    (door, terms, limits): (Door, Terms, Limits),
) -> anyhow::Result<u8> {
    let output = &arguments.hca.output;
    let mut conductor = Conductor::gather(door, terms, limits).map_err(exit_error)?;
    let begun = begin(arguments, identity, place, &conductor);
    let mut course = match begun {
        Ok(course) => course,
        Err(error) => {
            conductor.end(Some(&error.to_string()));
            return Err(error);
        }
    };
    if !output.quiet {
        let ranks = identity.ranks;
        let schedule = arguments.schedule(ranks);
        let partners = schedule
            .sampled()
            .map(|count| format!(", each with {count} others"));
        say(format_args!(
            "fabric:   {} of {ranks} ranks{}, {} pairs in {} batches, {} rounds",
            conductor.members().count(),
            partners.unwrap_or_default(),
            schedule.pairs(),
            schedule.batch_count(),
            arguments.rounds()
        ));
    }
    let measured = measure(arguments, identity, &mut conductor, &mut course);
    course.end_progress();
    for remark in conductor.remarks() {
        say(format_args!("hcabench: {}", printable(remark)));
    }
    let dropped = conductor.dropped().clone();
    let reason = measured.as_ref().err().map(ToString::to_string);
    conductor.end(reason.as_deref());
    let found = course.judge(arguments, &dropped, measured.is_ok())?;
    for remark in course.remarks() {
        say(format_args!("hcabench: {}", printable(&remark)));
    }
    let outcome = match (measured, dropped.iter().next()) {
        (Err(error), _) => Err(Ending::Failed(error.to_string())),
        (Ok(()), Some((rank, reason))) => Err(Ending::Failed(format!(
            "{} of {} ranks did not take part to the end, the first: {}: {reason}",
            dropped.len(),
            identity.ranks,
            course.node(*rank)
        ))),
        (Ok(()), None) => course.outcome(),
    };
    let over_time = place.over_time.as_ref().map(|it| it.judge(course.path()));
    let outcome = outcome.and(course.describe().map_err(Ending::NotWritten));
    let folder = course.into_folder();
    let FabricJudgement {
        mut text,
        mut broken,
        mut not_written,
        ..
    } = found;
    match over_time {
        Some(Ok(judged)) => {
            text += &judged.text;
            broken.extend(judged.broken);
        }
        Some(Err(error)) => not_written = not_written.or(Some(error)),
        None => {}
    }
    let print = || match output.quiet {
        true => Ok(()),
        false => print_text(&text),
    };
    let code = close(folder, outcome, output.quiet, Some(WITHIN), &broken, print)?;
    if let Some(reason) = not_written {
        return Err(reason);
    }
    Ok(code)
}

fn begin(
    arguments: &FabricArguments,
    identity: &Identity,
    place: &FabricOutput,
    conductor: &Conductor,
) -> anyhow::Result<FabricRun> {
    let earlier = place.earlier.as_ref();
    if let Some(earlier) = earlier {
        let members = conductor.members();
        let differs = earlier.other_nodes(members.map(|(hello, _)| (hello.rank, &*hello.node)));
        if let Some(reason) = differs {
            return Err(cannot_resume(earlier.folder.path(), &reason));
        }
    }
    let known = known(arguments, place.distances.as_ref(), conductor, earlier)?;
    let moved = earlier.and_then(|earlier| distances::moved(&earlier.document, &known.tiers));
    if let (Some(earlier), Some(reason)) = (earlier, moved) {
        return Err(cannot_resume(earlier.folder.path(), &reason));
    }
    let document = document(identity, arguments, conductor, earlier);
    if let Some(over_time) = &place.over_time {
        // Others have names of their ranks only.
        let came = document.there.iter();
        let came = came.filter_map(|it| document.nodes.get(it.rank as usize).cloned());
        over_time.check_cluster(&came.collect::<Vec<_>>(), &known.tiers)?;
    }
    let folder = place.open(arguments)?;
    FabricRun::begin(folder, identity, arguments, document, (known, earlier))
}

/// All pairs in each round, as far as they are missing; then suspects and a control set alone.
fn measure(
    arguments: &FabricArguments,
    identity: &Identity,
    conductor: &mut Conductor,
    course: &mut FabricRun,
) -> Result<(), LaunchError> {
    let schedule = arguments.schedule(identity.ranks);
    let rounds = arguments.rounds();
    if !arguments.hca.output.quiet {
        let pairs = (0..rounds).map(|round| course.pairs_to_measure(schedule, round));
        course.show_progress(pairs.sum());
    }
    for round in 0..rounds {
        let batches = course.batches(schedule, round);
        course.show(&format!("round {} of {rounds}", round + 1));
        conductor.measure(round, batches, course)?;
    }
    course.end_progress();
    if arguments.again == 0 || arguments.concurrency == Concurrency::Alone {
        return Ok(());
    }
    let again = course.suspects(arguments.again as usize);
    if again.is_empty() {
        return Ok(());
    }
    // One after the other, suspects and controls in turn: a fabric that changes meanwhile changes for both.
    let pairs = again
        .iter()
        .map(|(one, other)| vec![Pair::of(*one as u32, *other as u32)]);
    let batches: Vec<Vec<Pair>> = pairs.collect();
    course.measuring_again();
    if !arguments.hca.output.quiet {
        course.show_progress(batches.len() as u64);
        course.show("suspects again, alone");
    }
    conductor.measure(rounds, batches, course)
}
