//! The options of a run between two hosts, and its table.

use std::time::Duration;

use crate::cli::UsageError;
use crate::cli::values::uncertainty;
use crate::time::ClockKind;

#[cfg(feature = "rdma")]
use super::{HcaArguments, present, settings_of_run};
#[cfg(feature = "rdma")]
use crate::bench::hca::between::benchmark::{PeerBenchmark, PeerConfig};
#[cfg(feature = "rdma")]
use crate::bench::hca::config::Config;
#[cfg(feature = "rdma")]
use crate::cli::driver::{self, Request, Shown, View};
#[cfg(feature = "rdma")]
use crate::host::readiness::Needs;
#[cfg(feature = "rdma")]
use crate::results::schema::{Column, between as columns, hca};
#[cfg(feature = "rdma")]
use crate::time::Nanos;

/// Probes of a phase where none are asked for.
#[cfg(feature = "rdma")]
const PROBES: u32 = 500;
/// More than NTP and crystals usually make of it.
#[cfg(feature = "rdma")]
const DRIFT: u32 = 1_000;

/// The other host.
#[derive(Debug, Clone, clap::Args)]
pub struct PeerArguments {
    /// The host where messages arrive, on which hcabench serve runs: a name or an address, with its TCP port if that is not
    /// 18599; --receiver and --receiver-cpu are then its own
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "Two hosts")]
    pub peer: Option<String>,

    /// Messages to and fro before, between and after the bursts, each time, which bound the offset of the two clocks; 10 to
    /// 100000 [default: 500]
    #[arg(long, value_name = "N", help_heading = "Two hosts",
          value_parser = clap::value_parser!(u32).range(10..=100_000))]
    pub probes: Option<u32>,

    /// How far the times of day of the two hosts lie apart at the most, as PTP or NTP keeps them, with unit: narrows the bounds
    /// if the exchanges do not contradict it; for --clock monotonic
    #[arg(long, value_name = "TIME", help_heading = "Two hosts", value_parser = uncertainty)]
    pub clock_uncertainty: Option<Duration>,

    /// How far the rates of the two clocks lie apart at the most, in parts per million, 0 to 1000000; 0: they are the same
    /// [default: 1000]
    #[arg(long, value_name = "PPM", help_heading = "Two hosts",
          value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub clock_drift: Option<u32>,
}

impl PeerArguments {
    /// Refuses a declaration of clocks that nobody keeps.
    pub fn check_clocks(&self, clocks: &[ClockKind]) -> Result<(), UsageError> {
        if let Some(uncertainty) = self.clock_uncertainty
            && clocks != [ClockKind::Monotonic]
        {
            return Err(UsageError(format!(
                "--clock-uncertainty {}: PTP and NTP keep CLOCK_MONOTONIC as they keep the time of day, and no other \
                 clock of --clock: use --clock monotonic alone",
                humantime::format_duration(uncertainty)
            )));
        }
        Ok(())
    }

    /// Refuses options of two hosts where there is one.
    pub fn check_peer(&self) -> Result<(), UsageError> {
        let set = [
            ("--probes", self.probes.is_some()),
            ("--clock-drift", self.clock_drift.is_some()),
            ("--clock-uncertainty", self.clock_uncertainty.is_some()),
        ];
        let mut alone = set
            .into_iter()
            .filter(|(_, set)| *set && self.peer.is_none());
        alone.next().map_or(Ok(()), |(option, _)| {
            Err(UsageError(format!(
                "{option}: there is one host and one clock: name the other host by --peer, or leave it out"
            )))
        })
    }

    /// What the benchmark is told of it.
    #[cfg(feature = "rdma")]
    pub fn config(&self) -> PeerConfig {
        PeerConfig {
            run: None,
            limit: None,
            peer: self.peer.clone().unwrap_or_default(),
            probes: self.probes.unwrap_or(PROBES),
            uncertainty: self.clock_uncertainty.map(Nanos::from),
            drift: self.clock_drift.unwrap_or(DRIFT),
        }
    }
}

/// The figures of the table.
#[cfg(feature = "rdma")]
const FIGURES: [Column; 15] = [
    hca::SENT,
    hca::LOST,
    hca::CORRUPTED,
    columns::half::MIN,
    columns::half::P50,
    columns::half::P99,
    columns::P50_LOW,
    columns::P50_HIGH,
    columns::P99_LOW,
    columns::P99_HIGH,
    columns::excess::P50,
    columns::excess::P99,
    hca::completion::P50,
    hca::completion::P99,
    hca::POST_RATE,
];

/// Those that people ask for first.
#[cfg(feature = "rdma")]
const FIRST: [Column; 4] = [
    hca::LOST,
    columns::half::P50,
    columns::P50_HIGH,
    columns::excess::P99,
];

/// Runs the benchmark to another host. Returns the exit code.
#[cfg(feature = "rdma")]
pub fn run(arguments: &HcaArguments, config: Config) -> anyhow::Result<u8> {
    let asked = arguments.between.config();
    let mut settings = settings_of_run(&config);
    settings
        .set(&columns::PEER, asked.peer.as_str())
        .set(&columns::PROBES_ASKED, asked.probes);
    driver::run(Request {
        sweep: &arguments.sweep,
        output: &arguments.output,
        run: settings,
        benchmark: Box::new(PeerBenchmark::new(config, asked)),
        default_rounds: 1,
        needs: Needs::between_devices(),
        view: View {
            tables,
            columns: sortable,
            json: |_| serde_json::json!({}),
        },
    })
}

#[cfg(feature = "rdma")]
fn tables(shown: &Shown<'_>) -> String {
    match shown.summary {
        [] => String::new(),
        _ => present::table(shown, &FIGURES, |column| FIRST.contains(column)),
    }
}

/// The columns that rows can be sorted by, with their headings.
#[cfg(feature = "rdma")]
fn sortable() -> Vec<(String, Column)> {
    let columns = present::settings().chain(FIGURES);
    columns
        .map(|column| (column.title.to_owned(), column))
        .collect()
}
