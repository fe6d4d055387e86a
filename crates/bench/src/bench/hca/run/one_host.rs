//! A run on one host: one clock stamps both ends, so that each message has a latency.

use super::PointRunner;
use super::local::Local;
use super::mode::RunMode;
use super::peer::Peer as _;
use crate::bench::hca::error::RunError;
use crate::bench::hca::plan::{Plan, Point};
use crate::bench::hca::result::PointResult;
use crate::bench::hca::result::findings::{instrument_line, of_latency};
use crate::bench::hca::result::rows::{MessageRow, figures, write_rows};
use crate::bench::hca::settings::comp_vector::CompletionVectors;
use crate::bench::hca::settings::config::Config;
use crate::results::ReportError;
use crate::results::folder::HISTOGRAM;
use crate::results::schema::Schema;
use crate::results::schema::hca::{MESSAGES, SCHEMA};
use crate::rig::benchmark::{Outcome, Progress, Ready, SampleFolders};

/// Both ends are on this host.
pub struct OneHost;

impl RunMode for OneHost {
    type Peer = Local;

    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn peer(&self, config: &Config) -> Result<Local, RunError> {
        Local::choose(config)
    }

    fn describe(&self, peer: &Local, config: &Config, _plan: &Plan, ready: &mut Ready) {
        let pair = peer.pair();
        let vectors = CompletionVectors::of_run(config.comp_vectors, peer.facts());
        ready.obtained["completion_vectors"] = vectors.describe(pair);
        ready.findings.extend(pair.doubts());
    }

    fn measure(
        runner: &mut PointRunner<Local>,
        point: &Point,
        round: u32,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(PointResult, ()), RunError> {
        runner.measure(point, round, progress)
    }

    fn conclude(
        &self,
        result: &PointResult,
        (): &(),
        place: &SampleFolders,
        outcome: &mut Outcome,
    ) -> Result<(), ReportError> {
        outcome.notes.push(instrument_line(result));
        for row in &mut outcome.rows {
            row.figures = figures(result);
            row.findings.extend(of_latency(result));
            row.histograms = vec![(HISTOGRAM.to_owned(), result.histogram.clone())];
        }
        let rows = || {
            let messages = result.messages.iter().enumerate();
            messages.map(|(at, message)| {
                let hardware = result.hardware.as_ref();
                let times = hardware.and_then(|stamps| stamps.messages.get(at).copied());
                MessageRow::new(place.round, message, times.unwrap_or_default())
            })
        };
        write_rows(place, &MESSAGES, rows)
    }
}
