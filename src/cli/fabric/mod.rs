//! `hcabench fabric`: every rank of a job measures to every other.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`ranks`] | what each process of the job does |
//! | [`conducting`] | what rank 0 does besides |
//! | [`course`] | rank 0's files: what comes is on disk before the next pairs are measured |
//! | [`recorded`] | what `fabric.json` has from the beginning |
//! | [`earlier`] | what an earlier run left for `--resume` |
//! | [`kept`] | what rank 0 keeps of all rows in memory |
//! | [`distances`] | where the tiers come from |
//! | [`names`] | what nodes are called |
//! | [`overview`] | what all pairs together show |
//! | [`judgement`] | the verdicts on pairs, nodes and tiers |
//! | [`texts`] | what is printed of them |
//! | [`dry_run`] | prints what would be measured |

mod conducting;
mod course;
mod distances;
mod dry_run;
mod earlier;
mod folders;
mod judgement;
mod kept;
mod names;
mod overview;
#[cfg(feature = "rdma")]
mod ranks;
mod recorded;
mod texts;

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use self::folders::PairFolders;
use crate::arguments::UsageError;
use crate::arguments::values::{count, duration, limits};
use crate::bench::hca::plan::Point;
use crate::bench::hca::settings::config::Config;
use crate::cli::hca::HcaArguments;
use crate::cli::health::OverTimeArguments;
use crate::launch::conductor::Limits;
use crate::launch::identity::{Identity, IdentityError, Options, environment};
use crate::launch::message::Terms;
use crate::launch::schedule::{Concurrency, Partners, Schedule};
use crate::rig::limit::Limit;

/// How many pairs are measured at once, of which the number may have a unit.
fn concurrency(text: &str) -> Result<Concurrency, String> {
    let number = count::<u32>(text, 1..=u64::from(u32::MAX)).ok();
    match number.and_then(NonZeroU32::new) {
        Some(number) => Ok(Concurrency::AtMost(number)),
        None => text.parse(),
    }
}

/// With how many others each rank is measured.
fn partners(text: &str) -> Result<Partners, String> {
    if text == "all" {
        return Ok(Partners::All);
    }
    let number = count::<u32>(text, LEAST_PARTNERS..=u64::from(u32::MAX));
    let number = number.map_err(|error| format!("{error}, or 'all'; fewer judge no node"))?;
    let number = NonZeroU32::new(number).expect("it is not below the least");
    Ok(Partners::AtMost(number))
}

/// With fewer others a node is hardly judged.
const LEAST_PARTNERS: u64 = 4;
/// Up to this many ranks all pairs are measured, if not asked for otherwise.
const ALL_PAIRS_UP_TO: u32 = 1024;
/// Beyond, each rank with this many others.
const USUAL_PARTNERS: NonZeroU32 = NonZeroU32::new(64).unwrap();

/// Arguments of `hcabench fabric`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FabricArguments {
    /// Measure this many pairs at once: together (all of a round of the schedule), alone (one), or a number
    #[arg(long, value_name = "HOW", default_value = "together", value_parser = concurrency, help_heading = "Fabric")]
    pub concurrency: Concurrency,

    /// Measure each rank with this many others, 4 at least, drawn at random by --seed, or with all [default: all up to 1024 ranks, else
    /// 64]
    #[arg(long, value_name = "N", value_parser = partners, help_heading = "Fabric")]
    pub partners: Option<Partners>,

    /// Measure this many suspect pairs again alone, beside the same number drawn at random; 0: none
    #[arg(long, value_name = "N", default_value_t = 16,
          value_parser = |text: &str| count::<u32>(text, 0..=u64::from(u32::MAX)), help_heading = "Fabric")]
    pub again: u32,

    /// Give up a pair that takes longer than this
    #[arg(long, value_name = "TIME", default_value = "60s", help_heading = "Fabric", value_parser = duration)]
    pub pair_timeout: Duration,

    /// Read from a file at which switch each node is: Slurm's topology.conf or the output of ibnetdiscover; only pairs of
    /// one distance are compared [default: SLURM_TOPOLOGY_ADDR of each node]
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "group",
        help_heading = "Fabric"
    )]
    pub topology: Option<PathBuf>,

    /// Read the groups of nodes from a file, with a node or nodes as in n[1-4] and a group in each line, in place of
    /// --topology
    #[arg(long, value_name = "FILE", help_heading = "Fabric")]
    pub group: Option<PathBuf>,

    /// Set the number of this process among all, from 0 [default: from the launcher]
    #[arg(long, value_name = "N",
          value_parser = |text: &str| count::<u32>(text, 0..=u64::from(u32::MAX)), help_heading = "Fabric")]
    pub rank: Option<u32>,

    /// Set the number of processes [default: from the launcher]
    #[arg(long, value_name = "N",
          value_parser = |text: &str| count::<u32>(text, 0..=u64::from(u32::MAX)), help_heading = "Fabric")]
    pub ranks: Option<u32>,

    /// Set the host of rank 0, with a TCP port if the launcher provides none
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "Fabric")]
    pub rendezvous: Option<String>,

    /// Serve the other ranks at this address of this host, which may differ from rank to rank [default: all addresses,
    /// IPv6 included]
    #[arg(long, value_name = "ADDRESS", help_heading = "Fabric")]
    pub bind: Option<IpAddr>,

    /// Exit with code 3 if half a round trip of any pair exceeds this, as in 5us@p99 or 1ms
    #[arg(long, value_name = "LIST", help_heading = "Fabric", value_parser = limits)]
    pub fail_above: Option<crate::arguments::values::List<Limit>>,

    /// Exit with code 3 if more nodes and pairs than this stand out
    #[arg(long, value_name = "N",
          value_parser = |text: &str| count::<usize>(text, 0..=u64::from(u32::MAX)), help_heading = "Fabric")]
    pub max_outliers: Option<usize>,

    /// Write folders with messages and probes for these pairs: all, again (those that are measured again alone) or none
    /// [default: all up to 64 ranks, else again]
    #[arg(long, value_name = "WHICH", help_heading = "Fabric")]
    pub pair_folders: Option<PairFolders>,

    /// What it is judged by beside its own verdicts.
    #[command(flatten)]
    pub over_time: OverTimeArguments,

    /// What is measured between two ranks.
    #[command(flatten)]
    pub hca: HcaArguments,
}

impl FabricArguments {
    fn identity(&self, host: &str) -> Result<Identity, IdentityError> {
        let options = Options {
            rank: self.rank,
            ranks: self.ranks,
            rendezvous: self.rendezvous.clone(),
        };
        Identity::find(&options, &environment, host)
    }

    /// Whether ranks meet and serve where no other host can connect.
    fn is_of_one_host(&self, identity: &Identity) -> bool {
        let mut hosts = identity.rendezvous.hosts.iter();
        let meets = hosts.all(|host| host.parse::<IpAddr>().is_ok_and(|host| host.is_loopback()));
        meets && self.bind.is_none_or(|bind| bind.is_loopback())
    }

    /// Which pairs of this many ranks are measured, and when.
    fn schedule(&self, ranks: u32) -> Schedule {
        let usual = match ranks {
            ..=ALL_PAIRS_UP_TO => Partners::All,
            _ => Partners::AtMost(USUAL_PARTNERS),
        };
        let partners = self.partners.unwrap_or(usual);
        Schedule::new(ranks, self.concurrency).with(partners, self.hca.seed)
    }

    fn rounds(&self) -> u32 {
        self.hca.sweep.rounds.unwrap_or(1)
    }
}

/// Refuses options of one host, or of two.
fn check(arguments: &FabricArguments, config: &Config, point: &Point) -> anyhow::Result<()> {
    let (sweep, output) = (&arguments.hca.sweep, &arguments.hca.output);
    let not_here = "there is one point and no table of points";
    let whom = "rank 0 assigns the pairs, and each rank is both ends in turn";
    let one = "it is measured on one host only";
    let given = [
        ("--peer", arguments.hca.between.peer.is_some(), whom),
        ("--receiver", config.receiver.is_some(), whom),
        ("--receiver-cpu", config.cpus.receiver.is_some(), whom),
        ("--background", point.background.is_some(), one),
        ("--memory-load", point.memory_load.is_on(), one),
        ("--hw-timestamps", config.hw_timestamps, one),
        ("--until-round", sweep.until_round.is_some(), not_here),
        ("--budget", sweep.budget.is_some(), not_here),
        ("--order-seed", sweep.order_seed.is_some(), not_here),
        ("--label", sweep.label.is_some(), "it is not recorded"),
        ("--json-lines", sweep.exports.json_lines.is_some(), not_here),
        (
            "--json",
            output.json && !sweep.dry_run,
            "the results are in the tables of its folder",
        ),
    ];
    let refused = given.into_iter().find(|(_, given, _)| *given);
    if let Some((option, _, reason)) = refused {
        return Err(UsageError(format!("{option}: in a fabric {reason}: leave it out")).into());
    }
    let (pair, limit) = (dry_run::of_a_pair(arguments, point), arguments.pair_timeout);
    if pair.saturating_add(config.timeout) > limit {
        return Err(UsageError(format!(
            "--pair-timeout {}: a pair takes about {}, and --timeout {} beyond where messages are lost: a rank that \
             takes longer is given up",
            humantime::format_duration(limit),
            humantime::format_duration(pair),
            humantime::format_duration(config.timeout)
        ))
        .into());
    }
    judgement::limited(arguments).map(drop)
}

/// Rank 0 of a fabric whose ranks are scripted, for the benchmark of what rank 0 takes: all of it but its own measuring.
/// `words`: a command line, the program's name first.
#[doc(hidden)]
pub fn rank_zero(
    words: &[&str],
    identity: &Identity,
    (listener, terms, limits): (std::net::TcpListener, Terms, Limits),
) -> anyhow::Result<u8> {
    use clap::{Args as _, FromArgMatches as _};
    let command = clap::Command::new("fabric").args_override_self(true);
    let command = FabricArguments::augment_args(command);
    let matches = command.try_get_matches_from(words)?;
    let arguments = FabricArguments::from_arg_matches(&matches)?;
    let place = conducting::FabricOutput::find(&arguments, identity)?;
    conducting::conduct(
        &arguments,
        identity,
        &place,
        (listener.into(), terms, limits),
    )
}

/// Runs a rank, or prints what all would do. Returns the exit code.
pub(crate) fn run(arguments: &FabricArguments) -> anyhow::Result<u8> {
    if let Some(conditions) = &arguments.hca.search.find_rate {
        return Err(UsageError(format!(
            "--find-rate {conditions}: in a fabric all pairs are measured at one rate: leave it out, and search it with \
             hcabench on one host"
        ))
        .into());
    }
    let (config, plan) = crate::cli::hca::checked(&arguments.hca)?;
    if plan.points.len() != 1 {
        return Err(UsageError(format!(
            "hcabench fabric measures one point between all pairs, and these options make {}: give one value each",
            plan.points.len()
        ))
        .into());
    }
    check(arguments, &config, &plan.points[0])?;
    let secret = arguments.hca.between.secret.load()?;
    if arguments.hca.sweep.dry_run {
        arguments.over_time.read(&recorded::compared(arguments))?;
        return dry_run::run(arguments, &plan.points[0]);
    }
    crate::host::resources::require_memory(crate::host::resources::LEAST_TO_MEASURE)?;
    #[cfg(feature = "rdma")]
    {
        ranks::run(arguments, config, secret)
    }
    #[cfg(not(feature = "rdma"))]
    {
        let _ = (config, secret);
        Err(UsageError(super::WITHOUT_RDMA.to_owned()).into())
    }
}

#[cfg(test)]
mod tests;
