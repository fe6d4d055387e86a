//! The peer of the sending end: in this process, or on another host. A run is the same with either.

use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;

use crate::bench::hca::ends::endpoints::{EndpointSettings, Receives};
use crate::bench::hca::ends::facts::Facts;
use crate::bench::hca::ends::sending_end::Sender;
use crate::bench::hca::error::RunError;
use crate::bench::hca::plan::placement::Placement;
use crate::bench::hca::plan::{Plan, Point};
use crate::bench::hca::result::Tally;
use crate::bench::hca::session::bursts::Bursts;
use crate::bench::hca::settings::config::Config;
use crate::buffer::PageKind;
use crate::host::{HostError, Topology, Wakeable};
use crate::rdma::cm::{CmError, UcRoute};
use crate::rdma::verbs::EndPlan;
use crate::results::finding::Finding;
use crate::time::Clock;

/// Where messages arrive.
pub trait Peer {
    /// Whether that is this process: one clock, and CPUs of one machine.
    const IS_LOCAL: bool;

    /// What is known of the peer's end of a point beside the messages.
    type FarEnd;

    type Ends<C: Clock>: ConnectedEnds<C, FarEnd = Self::FarEnd>;

    /// The port that sends, and that of the peer.
    fn facts(&self) -> [&Facts; 2];

    /// Why a point cannot be measured with a peer of this kind.
    fn unsupported(&self, point: &Point) -> Option<String>;

    /// Tries a sending and a receiving end, before [`Peer::prepare`]; returns why they are refused.
    ///
    /// # Errors
    /// When the peer does not answer.
    fn refuses(&self, ends: &[EndPlan; 2]) -> Result<Option<String>, RunError>;

    /// Tries a route to UC at both ends, before [`Peer::prepare`]; returns why it is refused.
    ///
    /// # Errors
    /// When the peer does not answer.
    fn probe(&self, route: UcRoute) -> Result<Result<(), CmError>, RunError>;

    /// Why there is no connection manager at all, where points may be connected without it, before [`Peer::prepare`].
    ///
    /// # Errors
    /// When memory or files do not suffice to ask.
    fn lacks_manager(&self) -> Result<Option<String>, RunError>;

    /// Connects, on trial, a queue pair of the service type of a point by the connection manager, before
    /// [`Peer::prepare`] and within a deadline; returns why that fails.
    ///
    /// # Errors
    /// When a signal comes meanwhile, or an end refuses the queue pair itself.
    fn try_manager(
        &self,
        point: &Point,
        uc_route: UcRoute,
        until: Instant,
    ) -> Result<Option<String>, RunError>;

    /// Where the threads of a point run that are of this process.
    fn placement(
        &self,
        topology: &Topology,
        config: &Config,
        point: &Point,
    ) -> Result<Placement, HostError>;

    /// Receive requests of each queue of a point.
    fn receives(&self, point: &Point) -> Receives;

    /// Makes the peer ready for a plan, the largest point of which takes so many bytes; returns what is known of it.
    fn prepare(
        &mut self,
        config: &Config,
        plan: &Plan,
        bytes: u64,
    ) -> Result<Vec<Finding>, RunError>;

    /// Connects both ends of a point.
    fn connect<C: Clock>(
        &self,
        clock: C,
        settings: &EndpointSettings,
        site: &RunContext<'_>,
    ) -> Result<Self::Ends<C>, RunError>;
}

/// What the ends of a point have in common with the run.
#[derive(Debug, Clone, Copy)]
pub struct RunContext<'a> {
    pub(crate) config: &'a Config,
    pub(crate) placement: &'a Placement,
    pub(crate) wakeable: &'a Wakeable,
}

/// Both ends of a point, connected.
pub trait ConnectedEnds<C: Clock> {
    /// [`Peer::FarEnd`].
    type FarEnd;

    fn sender(&self) -> &Arc<Sender>;

    /// What the kernel has of the peer's end of the path.
    fn path_of_peer(&self) -> Value;

    /// Measures the bursts; returns the pages of the buffers, too.
    ///
    /// # Errors
    /// When there is nothing to show.
    fn measure(&mut self, bursts: Bursts<'_, C>) -> Result<(Tally, [PageKind; 3]), RunError>;

    /// Ends the point.
    fn finish(self) -> Self::FarEnd;
}
