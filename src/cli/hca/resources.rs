//! The options of what the ends of a point are made with.

use clap::Args;

use crate::arguments::values::{List, named};
use crate::bench::hca::settings::config::Switch;
use crate::bench::hca::settings::resources::ResourceSettings;

/// What the two ends are made with.
#[derive(Debug, Clone, Args)]
pub(crate) struct ResourceArguments {
    /// Let all queue pairs of the receiver take receive requests from one shared receive queue: off, on; without a
    /// value: on; RC and UD, send and write [default: off]
    #[arg(long, value_name = "LIST", num_args = 0..=1, default_value = "off", default_missing_value = "on",
          hide_default_value = true, help_heading = "Sweep", value_parser = named::<Switch>)]
    pub srq: List<Switch>,

    /// Register the memory of the messages for relaxed ordering of PCI Express: off, on; without a value: on; not with
    /// write-polled [default: off]
    #[arg(long, value_name = "LIST", num_args = 0..=1, default_value = "off", default_missing_value = "on",
          hide_default_value = true, help_heading = "Sweep", value_parser = named::<Switch>)]
    pub relaxed_ordering: List<Switch>,

    /// Page the memory of the messages on demand, without pinning by the driver, if both devices can: off, on;
    /// without a value: on [default: off]
    #[arg(long, value_name = "LIST", num_args = 0..=1, default_value = "off", default_missing_value = "on",
          hide_default_value = true, help_heading = "Sweep", value_parser = named::<Switch>)]
    pub odp: List<Switch>,

    /// Give the queue pairs of each end a thread domain, so that the driver posts without a lock, and have the sender
    /// take the completions: off, on; without a value: on; not with --poll-comp event [default: off]
    #[arg(long, value_name = "LIST", num_args = 0..=1, default_value = "off", default_missing_value = "on",
          hide_default_value = true, help_heading = "Sweep", value_parser = named::<Switch>)]
    pub thread_domain: List<Switch>,
}

impl ResourceArguments {
    /// All combinations; the last list changes fastest.
    pub(crate) fn resources(&self) -> Vec<ResourceSettings> {
        let mut all = Vec::new();
        for &srq in &self.srq.0 {
            for &relaxed_ordering in &self.relaxed_ordering.0 {
                for &odp in &self.odp.0 {
                    for &thread_domain in &self.thread_domain.0 {
                        all.push(ResourceSettings {
                            srq,
                            relaxed_ordering,
                            odp,
                            thread_domain,
                        });
                    }
                }
            }
        }
        all
    }
}
