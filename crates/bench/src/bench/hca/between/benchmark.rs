//! The benchmark between two hosts as the rig sees it.

use std::path::Path;

use serde_json::json;

use super::super::benchmark::planned;
use super::super::config::Config;
use super::super::plan;
use super::super::rows::{CounterRow, settings};
pub use super::client::PeerConfig;
use super::client::{Client, PeerResult};
use super::figures::{Proved, figures, message_rows, probe_rows, prove};
use crate::buffer::PageKind;
use crate::host::idle_hold::IdleHold;
use crate::rdma::cm::UcRoute;
use crate::results::schema::between::{self as columns, MESSAGES, PROBES_FILE, SCHEMA};
use crate::results::schema::hca::COUNTERS;
use crate::results::schema::{REASON, Schema};
use crate::results::{Record, ReportError, SampleWriter};
use crate::rig::benchmark::{
    Benchmark, Failure, Outcome, Place, Plan, Progress, Ready, RowOutcome,
};
use crate::time::ClockKind;

/// The asking end of a run between two hosts.
pub struct PeerBenchmark {
    config: Config,
    asked: PeerConfig,
    plan: plan::Plan,
    client: Option<Client>,
    /// Held as long as it is measured.
    idle_hold: Option<IdleHold>,
}

impl PeerBenchmark {
    /// Measures what `config` says, to the host that `asked` names.
    pub fn new(config: Config, asked: PeerConfig) -> Self {
        PeerBenchmark {
            config,
            asked,
            plan: plan::Plan::default(),
            client: None,
            idle_hold: None,
        }
    }

    fn outline(&self) -> Plan {
        let points = self.plan.points.iter().enumerate();
        let with_clocks = |record: &mut Record| {
            record.set(&columns::RATE_LIMIT, self.asked.drift).set(
                &columns::UNCERTAINTY,
                self.asked.uncertainty.map(|most| most.0),
            );
        };
        let left_out = self.plan.left_out.iter().map(|left_out| {
            let mut record = settings(&left_out.point, &self.config);
            with_clocks(&mut record);
            record.set(&REASON, left_out.reason.as_str());
            record
        });
        Plan {
            points: points
                .map(|(index, point)| {
                    let mut planned = planned(index, point, &self.config, None);
                    let rows = planned.rows.iter_mut();
                    rows.for_each(|row| with_clocks(&mut row.settings));
                    planned
                })
                .collect(),
            left_out: left_out.collect(),
        }
    }

    fn keep(&mut self, plan: plan::Plan) -> Result<(), Failure> {
        plan.check().map_err(Failure::Usage)?;
        self.plan = plan;
        Ok(())
    }
}

impl Benchmark for PeerBenchmark {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn plan(&mut self) -> Result<Plan, Failure> {
        self.keep(plan::Plan::new(&self.config.sweep))?;
        Ok(self.outline())
    }

    fn prepare(&mut self, _plan: Plan) -> Result<Ready, Failure> {
        let mut client = Client::connect(self.config.clone(), self.asked.clone())?;
        let plan = client.within_devices(std::mem::take(&mut self.plan))?;
        plan.check().map_err(Failure::Usage)?;
        let there = client.prepare(&plan)?;
        let mut warnings: Vec<String> = there
            .into_iter()
            .map(|text| format!("{}: {text}", client.there.host))
            .collect();
        let disciplined = plan
            .points
            .iter()
            .any(|point| point.clock == ClockKind::Monotonic);
        self.keep(plan)?;
        let (hold, _, warning) = IdleHold::unless(self.config.allow_idle_states);
        self.idle_hold = hold;
        warnings.extend(warning);
        let (here, there) = (&client.here, &client.there);
        if here.software || there.software {
            let software = "this device is software (SoftRoCE): its figures test the tool and say nothing about an HCA";
            warnings.push(software.to_owned());
        }
        if here.boot_id != there.boot_id && disciplined && self.asked.uncertainty.is_none() {
            warnings.push(
                "the bounds assume that both clocks run at constant rates, and NTP or PTP change that of CLOCK_MONOTONIC: \
                 use --clock monotonic-raw or tsc"
                    .to_owned(),
            );
        }
        if here.boot_id == there.boot_id {
            warnings.push(
                "both ends are on one host: its clock is one, and without --peer the latency is measured, not bounded"
                    .to_owned(),
            );
        }
        let ready = Ready {
            plan: self.outline(),
            obtained: json!({
                "devices": { "sender": here.details, "receiver": there.details },
                "hosts": {
                    "sender": { "name": here.host, "boot_id": here.boot_id },
                    "receiver": { "name": there.host, "boot_id": there.boot_id },
                },
                "libraries": crate::rdma::verbs::library_versions(),
                "environment": crate::rdma::environment::variables(),
                "uc_route": client.uc_route().map(UcRoute::name),
            }),
            instrument: serde_json::Value::Null,
            announcements: vec![
                format!("sender:   {}: {}", here.host, here.description),
                format!("receiver: {}: {}", there.host, there.description),
            ],
            warnings,
        };
        self.client = Some(client);
        Ok(ready)
    }

    fn measure(
        &mut self,
        point: usize,
        place: &Place,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, Failure> {
        let point = self.plan.points[point];
        let client = self.client.as_mut().expect("prepared before");
        let result = client.measure(&point, place.round, progress)?;
        let proved = prove(&result, &self.asked);
        let contradiction = proved
            .as_ref()
            .err()
            .map(|error| match error.is_contradiction() {
                true => format!("contradiction: {error}"),
                false => error.to_string(),
            });
        let proved = proved.ok();
        for folder in &place.folders {
            write_samples(folder, place.round, &result, proved.as_ref())
                .map_err(|error| Failure::Run(error.to_string()))?;
        }
        let (figures, [excess, halves]) = figures(&result, proved.as_ref());
        let failure = result.tally.failure.clone().or(contradiction);
        let mut placement = json!(result.placement);
        // Of the other host.
        placement["receiver"] = json!(result.made.cpu);
        Ok(Outcome {
            warnings: warnings_of(&result),
            notes: vec![
                "half a round trip is one way only if both ways take the same, which is assumed; the bounds are proved"
                    .to_owned(),
            ],
            rows: vec![RowOutcome {
                figures,
                // Clocks that contradict each other now need not in the next point.
                ends_sweep: result.tally.failure.is_some(),
                failure,
                obtained: json!({
                    "placement": placement,
                    "time_of_day_ahead_ns": { "sender": result.time_of_day, "receiver": result.made.time_of_day },
                    "completion_by": result.placement.completion_by,
                    "pages": result.pages,
                    "priority": self.config.priority,
                    "granted_inline": result.granted_inline,
                    "loop_faults": result.tally.faults,
                    "warmup_messages": result.tally.warmed_up,
                    "connection": result.connection,
                    "path": { "sender": result.path, "receiver": result.made.path },
                }),
                instrument: json!({ "stamp": result.stamp, "tsc": result.tsc }),
                details: json!({ "port_changes": result.tally.ports.changes }),
                histograms: vec![
                    ("excess.hgrm".to_owned(), excess),
                    ("half_round_trip.hgrm".to_owned(), halves),
                ],
            }],
            ..Outcome::default()
        })
    }
}

fn warnings_of(result: &PeerResult) -> Vec<String> {
    let point = &result.point;
    let mut texts = result.tally.ports.warnings(point, &result.tally.counts);
    let counts = &result.tally.counts;
    if counts.lost > 0 {
        texts.push(format!(
            "{point}: {} messages of {} were lost",
            counts.lost, counts.sent
        ));
    }
    if counts.corrupted + counts.duplicated > 0 {
        let (bad, twice) = (counts.corrupted, counts.duplicated);
        texts.push(format!(
            "{point}: {bad} messages arrived with other bytes, {twice} twice"
        ));
    }
    let faults = result.tally.faults.total();
    if faults > 0 {
        texts.push(format!("{point}: {faults} page faults in the loops"));
    }
    let mut pages = result.made.pages.iter().chain(&result.pages);
    if pages.any(|pages| *pages < PageKind::TransparentHuge) {
        texts.push(
            "not all buffers lie in huge pages: --hugepages required insists on them".to_owned(),
        );
    }
    let here = result
        .placement
        .warnings
        .iter()
        .map(|warning| warning.message.clone());
    let there = result
        .made
        .warnings
        .iter()
        .map(|text| format!("receiver: {text}"));
    texts.extend(here.chain(there));
    texts
}

fn write_samples(
    folder: &Path,
    round: u32,
    result: &PeerResult,
    proved: Option<&Proved>,
) -> Result<(), ReportError> {
    let mut file = SampleWriter::open(folder, &MESSAGES, round)?;
    message_rows(round, result, proved).try_for_each(|row| file.append(&row))?;
    file.finish()?;
    let mut file = SampleWriter::open(folder, &PROBES_FILE, round)?;
    probe_rows(round, &result.probes).try_for_each(|row| file.append(&row))?;
    file.finish()?;
    let mut file = SampleWriter::open(folder, &COUNTERS, round)?;
    CounterRow::of(round, &result.tally.ports).try_for_each(|row| file.append(&row))?;
    file.finish()
}
