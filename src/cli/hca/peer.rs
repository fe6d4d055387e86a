//! The options of a run between two hosts.

#[cfg(feature = "rdma")]
mod running;

use std::time::Duration;

#[cfg(feature = "rdma")]
pub(crate) use self::running::{VIEW, run};
use crate::arguments::UsageError;
use crate::arguments::values::{count, uncertainty};
use crate::between::peer::PeerConfig;
use crate::cli::secret::SecretArguments;
use crate::time::{ClockKind, Nanos};

/// Probes of a phase where none are asked for.
const PROBES: u32 = 500;
/// More than NTP and crystals usually make of it.
const DRIFT: u32 = 1_000;

/// The other host.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PeerArguments {
    /// Send to this host, on which hcabench serve runs: a name or an address, with its TCP port if that is not 18599;
    /// options of the receiving end then apply to it
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "Two hosts")]
    pub peer: Option<String>,

    /// Exchange this many messages before and after the measurement, and between bursts, to bound the offset of the two
    /// clocks; 10 to 100000 [default: 500]
    #[arg(long, value_name = "N", help_heading = "Two hosts",
          value_parser = |text: &str| count::<u32>(text, 10..=100_000))]
    pub probes: Option<u32>,

    /// Set the largest difference of the two hosts' times of day, as PTP or NTP keeps them, with unit, to narrow the
    /// bounds unless the exchanges contradict it; for --clock monotonic (node: --timer timerfd)
    #[arg(long, value_name = "TIME", help_heading = "Two hosts", value_parser = uncertainty)]
    pub clock_uncertainty: Option<Duration>,

    /// Set the largest difference of the rates of the two clocks in parts per million, 0 to 1000000 [default: 1000]
    #[arg(long, value_name = "PPM", help_heading = "Two hosts",
          value_parser = |text: &str| count::<u32>(text, 0..=1_000_000))]
    pub clock_drift: Option<u32>,

    /// What shows that both hosts belong together.
    #[command(flatten)]
    pub secret: SecretArguments,
}

impl PeerArguments {
    /// Probes of a phase.
    pub(crate) fn probes(&self) -> u32 {
        self.probes.unwrap_or(PROBES)
    }

    /// How far the rates of two clocks lie apart at the most, in parts per million.
    pub(crate) fn drift(&self) -> u32 {
        self.clock_drift.unwrap_or(DRIFT)
    }

    /// The other host, and how its clock is compared, for a benchmark.
    pub(crate) fn config(&self) -> PeerConfig {
        PeerConfig {
            run: None,
            secret: self.secret.source(),
            limit: None,
            peer: self.peer.clone().unwrap_or_default(),
            probes: self.probes(),
            uncertainty: self.clock_uncertainty.map(Nanos::from),
            drift: self.drift(),
        }
    }

    /// Refuses a declaration for clocks that are not synchronised.
    pub(crate) fn check_clocks(&self, clocks: &[ClockKind]) -> Result<(), UsageError> {
        self.check_clock_of(
            clocks,
            "no other clock of --clock: use --clock monotonic alone",
        )
    }

    /// The same where these words say which other clocks there are, and what to use.
    pub(crate) fn check_clock_of(
        &self,
        clocks: &[ClockKind],
        others: &str,
    ) -> Result<(), UsageError> {
        if let Some(uncertainty) = self.clock_uncertainty
            && clocks != [ClockKind::Monotonic]
        {
            return Err(UsageError(format!(
                "--clock-uncertainty {}: PTP and NTP keep CLOCK_MONOTONIC as they keep the time of day, and {others}",
                humantime::format_duration(uncertainty)
            )));
        }
        Ok(())
    }

    /// Refuses options of two hosts where there is one, and a secret that is none.
    pub(crate) fn check_peer(&self) -> Result<(), UsageError> {
        if self.peer.is_some() {
            return self.secret.load().map(drop);
        }
        let set = [
            ("--secret-file", self.secret.secret_file.is_some()),
            ("--without-secret", self.secret.without_secret),
            ("--probes", self.probes.is_some()),
            ("--clock-drift", self.clock_drift.is_some()),
            ("--clock-uncertainty", self.clock_uncertainty.is_some()),
        ];
        let mut alone = set.into_iter().filter(|(_, set)| *set);
        alone.next().map_or(Ok(()), |(option, _)| {
            Err(UsageError(format!(
                "{option}: there is one host and one clock: name the other host by --peer, or leave it out"
            )))
        })
    }
}
