//! A run between two hosts: each has its clock, so that the latency of messages is bounded.

use serde_json::json;

use super::figures::{figures, message_rows, prove};
use super::remote::{FarEnd, Remote};
use crate::bench::hca::error::RunError;
use crate::bench::hca::plan::{Plan, Point};
use crate::bench::hca::result::PointResult;
use crate::bench::hca::result::rows::write_rows;
use crate::bench::hca::run::PointRunner;
use crate::bench::hca::run::mode::RunMode;
use crate::bench::hca::settings::config::Config;
use crate::between::peer::PeerConfig;
use crate::between::probe::probe_rows;
use crate::results::finding::{Finding, kinds};
use crate::results::schema::Schema;
use crate::results::schema::between::{self as columns, MESSAGES, PROBES_FILE, SCHEMA};
use crate::results::{Record, ReportError};
use crate::rig::benchmark::{Outcome, Progress, Ready, SampleFolders};
use crate::time::ClockKind;

impl RunMode for PeerConfig {
    type Peer = Remote;

    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn peer(&self, config: &Config) -> Result<Remote, RunError> {
        Remote::connect(config, self)
    }

    fn set_of_point(&self, record: &mut Record) {
        record
            .set(&columns::RATE_LIMIT, self.drift)
            .set(&columns::UNCERTAINTY, self.uncertainty.map(|most| most.0));
    }

    fn describe(&self, peer: &Remote, _config: &Config, plan: &Plan, ready: &mut Ready) {
        let (here, there) = (&peer.here, &peer.there);
        ready.obtained["hosts"] = json!({
            "sender": { "name": here.host, "boot_id": here.boot_id },
            "receiver": { "name": there.host, "boot_id": there.boot_id },
        });
        let mut points = plan.points.iter();
        let disciplined = points.any(|point| point.clock == ClockKind::Monotonic);
        if here.boot_id == there.boot_id {
            ready.findings.push(Finding::of(&kinds::ONE_HOST));
        } else if disciplined && self.uncertainty.is_none() {
            ready.findings.push(Finding::of(&kinds::STEERED_CLOCK));
        }
        if peer.is_exposed() {
            ready.findings.push(Finding::of(&kinds::WITHOUT_SECRET));
        }
    }

    fn measure(
        runner: &mut PointRunner<Remote>,
        point: &Point,
        round: u32,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(PointResult, FarEnd), RunError> {
        runner.measure(point, round, progress)
    }

    fn conclude(
        &self,
        result: &PointResult,
        far: &FarEnd,
        place: &SampleFolders,
        outcome: &mut Outcome,
    ) -> Result<(), ReportError> {
        let proved = prove(result, far, self);
        let contradiction = proved
            .as_ref()
            .err()
            .map(|error| match error.is_contradiction() {
                true => format!("contradiction: {error}"),
                false => error.to_string(),
            });
        let proved = proved.ok();
        let (figures, [excess, halves]) = figures(result, far, proved.as_ref());
        let row = &mut outcome.rows[0];
        row.figures = figures;
        let of_far = far.made.findings.iter().chain(&far.throttled);
        row.findings.extend(of_far.cloned());
        row.findings.push(Finding::of(&kinds::HALF_ROUND_TRIP));
        // Clocks that contradict each other now need not in the next point: that ends no sweep.
        row.failure = row.failure.take().or(contradiction);
        row.obtained["placement"]["receiver"] = json!(far.made.cpu);
        // Of the clocks: no two runs have the same, and what was obtained must agree where runs are compared.
        row.instrument["time_of_day_ahead_ns"] =
            json!({ "sender": far.time_of_day, "receiver": far.made.time_of_day });
        row.histograms = vec![
            ("excess.hgrm".to_owned(), excess),
            ("half_round_trip.hgrm".to_owned(), halves),
        ];
        write_rows(place, &MESSAGES, || {
            message_rows(place.round, result, proved.as_ref())
        })?;
        write_rows(place, &PROBES_FILE, || probe_rows(place.round, &far.probes))
    }
}
