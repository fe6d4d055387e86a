//! The files of samples in a point's folder.

mod villas;

use std::path::Path;

use serde::Serialize;

use super::between::bounds::bounded_rows;
use super::between::remote::FarEnd;
use super::config::Format;
use super::error::RunError;
use super::log::LogError;
use super::point::Point;
use super::result::{LossCause, LostSample, OutRow, REFUSED, ReceivedSample, SentSample};
use super::run::Run;
use super::sample::{self, Header};
use crate::between::probe::probe_rows;
use crate::between::proof::ProvedBounds;
use crate::results::SampleWriter;
use crate::results::schema::between::PROBES_FILE;
use crate::results::schema::{node as columns, node_between};
use crate::rig::error::unless_interrupted;
use crate::time::{AnyClock, Nanos};

/// Rows that are written between two looks for a signal.
const ROWS_PER_LOOK: usize = 4096;
/// An upper estimate of the rows of a sample in `in.csv` and `out.csv` together without its values, in bytes.
pub(super) const BYTES_PER_SAMPLE: u64 = 160;
/// The same of a value.
pub(super) const BYTES_PER_VALUE: u64 = 21;
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
    values: String,
}

#[derive(Debug, Serialize)]
struct LostRow {
    round: u32,
    publisher: u32,
    subscriber: Option<u32>,
    step: u64,
    cause: LossCause,
}

fn write<T: Serialize>(
    folder: &Path,
    file: &crate::results::schema::SampleFile,
    round: u32,
    rows: impl Iterator<Item = Result<T, LogError>>,
) -> Result<(), RunError> {
    let mut writer = SampleWriter::open(folder, file, round)?;
    for (at, row) in rows.enumerate() {
        if at % ROWS_PER_LOOK == 0 {
            unless_interrupted()?;
        }
        writer.append(&row?)?;
    }
    Ok(writer.finish()?)
}

/// Adds what a round lost to `lost.csv`.
pub(super) fn add_lost(folder: &Path, round: u32, run: &Run) -> Result<(), RunError> {
    let row = |lost: &LostSample| LostRow {
        round,
        publisher: lost.publisher,
        subscriber: lost.subscriber,
        step: lost.step,
        cause: lost.cause,
    };
    let rows = run.outcome.lost.iter().map(|lost| Ok(row(lost)));
    write(folder, &columns::LOST_FILE, round, rows)
}

/// Adds the probes of a round to `probes.csv`, where there are two hosts.
pub(super) fn add_probes(folder: &Path, round: u32, far: &FarEnd) -> Result<(), RunError> {
    let rows = probe_rows(round, &far.probes).map(Ok);
    write(folder, &PROBES_FILE, round, rows)
}

/// Whose samples are written.
pub(super) struct SampleSource<'a> {
    pub(super) point: &'a Point,
    /// What values follow from.
    pub(super) seed: u64,
    pub(super) clock: &'a AnyClock,
    pub(super) run: &'a Run,
    /// Of two clocks.
    pub(super) proved: Option<&'a ProvedBounds>,
}

/// Adds the samples of a round to the files of that format.
pub(super) fn add_samples(
    folder: &Path,
    round: u32,
    format: Format,
    source: &SampleSource<'_>,
) -> Result<(), RunError> {
    let &SampleSource {
        point,
        seed,
        clock,
        run,
        proved,
    } = source;
    let between = match format {
        Format::Hcabench => ' ',
        Format::Villas => villas::BETWEEN,
    };
    let values = |header| {
        let values = sample::values(header, seed, point.values);
        values.fold(String::new(), |text, value| match text.as_str() {
            "" => value.to_string(),
            _ => text + &format!("{between}{value}"),
        })
    };
    let at = |reading| run.epoch.at(clock, reading);
    let (publishers, subscribers) = (&run.reports.publishers, &run.reports.subscribers);
    let sent = (0..).zip(publishers).flat_map(|(publisher, report)| {
        // The number that a sample has before it is taken, and that the next one gets if it is refused.
        let mut next = report.first;
        let mut row = move |sent: SentSample| {
            let number = (sent.number != REFUSED).then_some(sent.number);
            let offered = number.unwrap_or(next);
            next = offered + u64::from(number.is_some());
            InRow {
                round,
                publisher,
                step: sent.step,
                seq: number.map(|number| number - report.first),
                t_intended_ns: at(report.schedule.due(report.warmup_steps + sent.step)),
                t_sent_ns: at(sent.stamp),
                values: values(Header::new(publisher, offered)),
            }
        };
        report.sent().map(move |sent| sent.map(&mut row))
    });
    let first = |publisher: u32| publishers.get(publisher as usize).map_or(0, |it| it.first);
    let received = (0..).zip(subscribers).flat_map(|(subscriber, report)| {
        let row = move |sample: ReceivedSample| {
            let publisher = sample.header.publisher();
            let t_received_ns = match run.far {
                None => at(sample.stamp),
                Some(_) => run.epoch.of_nanos(Nanos(sample.stamp.0)),
            };
            OutRow {
                round,
                subscriber,
                publisher,
                seq: sample.header.number().wrapping_sub(first(publisher)) as i64,
                t_sent_ns: sample.sent_ns,
                t_received_ns,
                latency_ns: t_received_ns.wrapping_sub(sample.sent_ns) as i64,
                intact: sample.intact,
            }
        };
        report.received().map(move |sample| sample.map(row))
    });
    match format {
        Format::Hcabench => {
            write(folder, &columns::IN, round, sent)?;
            match run.far {
                None => write(folder, &columns::OUT, round, received),
                Some(_) => {
                    let rows = bounded_rows(received, proved);
                    write(folder, &node_between::OUT, round, rows)
                }
            }
        }
        Format::Villas => {
            let sent = sent.map(|row| row.map(villas::InLine::from));
            write(folder, &columns::IN_VILLAS, round, sent)?;
            let received = received.map(|row| row.map(villas::OutLine::from));
            write(folder, &columns::OUT_VILLAS, round, received)
        }
    }
}
