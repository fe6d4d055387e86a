//! The files of samples in a point's folder.

use std::path::Path;

use serde::Serialize;

use super::error::RunError;
use super::result::{Cause, REFUSED};
use super::run::Run;
use crate::host::interrupt;
use crate::results::SampleWriter;
use crate::results::schema::node as columns;
use crate::rig::error::RigError;
use crate::time::AnyClock;

/// Rows that are written between two looks for a signal.
const ROWS_PER_LOOK: usize = 4096;
/// An upper estimate of the rows of a sample in `in.csv` and `out.csv` together, in bytes.
pub(super) const BYTES_PER_SAMPLE: u64 = 160;
/// The same of a row in `lost.csv`.
pub(super) const BYTES_PER_LOST: u64 = 40;

#[derive(Debug, Serialize)]
struct InRow {
    round: u32,
    publisher: u32,
    step: u64,
    seq: Option<u64>,
    t_intended_ns: u64,
    t_sent_ns: u64,
}

#[derive(Debug, Serialize)]
struct OutRow {
    round: u32,
    subscriber: u32,
    publisher: u32,
    seq: i64,
    t_sent_ns: u64,
    t_received_ns: u64,
    latency_ns: i64,
    intact: bool,
}

#[derive(Debug, Serialize)]
struct LostRow {
    round: u32,
    publisher: u32,
    subscriber: Option<u32>,
    step: u64,
    cause: Cause,
}

fn write<T: Serialize>(
    folder: &Path,
    file: &crate::results::schema::SampleFile,
    round: u32,
    rows: impl Iterator<Item = T>,
) -> Result<(), RunError> {
    let mut writer = SampleWriter::open(folder, file, round)?;
    for (at, row) in rows.enumerate() {
        if at % ROWS_PER_LOOK == 0
            && let Some(signal) = interrupt::requested()
        {
            return Err(RigError::Interrupted(signal).into());
        }
        writer.append(&row)?;
    }
    Ok(writer.finish()?)
}

/// Adds what a round lost to `lost.csv`.
pub(super) fn add_lost(folder: &Path, round: u32, run: &Run) -> Result<(), RunError> {
    let rows = run.outcome.lost.iter().map(|lost| LostRow {
        round,
        publisher: lost.publisher,
        subscriber: lost.subscriber,
        step: lost.step,
        cause: lost.cause,
    });
    write(folder, &columns::LOST_FILE, round, rows)
}

/// Adds the samples of a round to `in.csv` and `out.csv`.
pub(super) fn add_samples(
    folder: &Path,
    round: u32,
    clock: &AnyClock,
    run: &Run,
) -> Result<(), RunError> {
    let at = |reading| run.epoch.at(clock, reading);
    let (publishers, subscribers) = (&run.reports.publishers, &run.reports.subscribers);
    let sent = (0..).zip(publishers).flat_map(|(publisher, report)| {
        report.sent().map(move |sent| InRow {
            round,
            publisher,
            step: sent.step,
            seq: (sent.number != REFUSED).then(|| sent.number - report.first),
            t_intended_ns: at(report.schedule.due(report.warmup_steps + sent.step)),
            t_sent_ns: at(sent.stamp),
        })
    });
    write(folder, &columns::IN, round, sent)?;
    let first = |publisher: u32| publishers.get(publisher as usize).map_or(0, |it| it.first);
    let received = (0..).zip(subscribers).flat_map(|(subscriber, report)| {
        report.received().map(move |sample| OutRow {
            round,
            subscriber,
            publisher: sample.header.publisher(),
            seq: sample
                .header
                .number()
                .wrapping_sub(first(sample.header.publisher())) as i64,
            t_sent_ns: sample.sent_ns,
            t_received_ns: at(sample.stamp),
            latency_ns: at(sample.stamp).wrapping_sub(sample.sent_ns) as i64,
            intact: sample.intact,
        })
    });
    write(folder, &columns::OUT, round, received)
}
