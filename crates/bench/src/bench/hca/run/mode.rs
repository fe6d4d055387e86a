//! What differs between a run on one host and one between two, as the rig sees it.

use super::PointRunner;
use super::peer::Peer;
use crate::bench::hca::error::RunError;
use crate::bench::hca::plan::{Plan, Point};
use crate::bench::hca::result::PointResult;
use crate::bench::hca::settings::config::Config;
use crate::results::schema::Schema;
use crate::results::{Record, ReportError};
use crate::rig::benchmark::{Outcome, Progress, Ready, SampleFolders};

/// A kind of run.
pub trait RunMode {
    type Peer: Peer;

    fn schema(&self) -> &'static Schema;

    /// Finds the peer.
    fn peer(&self, config: &Config) -> Result<Self::Peer, RunError>;

    /// Sets what points of this kind have beside others.
    fn set_of_point(&self, _record: &mut Record) {}

    /// Adds what is known of the peer, once it is prepared for a plan.
    fn describe(&self, peer: &Self::Peer, config: &Config, plan: &Plan, ready: &mut Ready);

    /// Measures a point. Not generic, so that the loops are compiled in this crate: those of a generic function would be
    /// compiled again in the crate that calls it.
    ///
    /// # Errors
    /// When there is nothing to show.
    fn measure(
        runner: &mut PointRunner<Self::Peer>,
        point: &Point,
        round: u32,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(PointResult, <Self::Peer as Peer>::FarEnd), RunError>;

    /// Adds the figures of a point to the row of its outcome, and the samples to its folders.
    fn conclude(
        &self,
        result: &PointResult,
        far: &<Self::Peer as Peer>::FarEnd,
        place: &SampleFolders,
        outcome: &mut Outcome,
    ) -> Result<(), ReportError>;
}
