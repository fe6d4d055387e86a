//! What a watch leaves in the folder of a CPU: its jumps, and how often each difference occurred.

use std::path::Path;

use serde::Serialize;

use crate::host::counters::Risen;
use crate::results::schema::clock::{HISTOGRAM_FILE, JUMPS_FILE};
use crate::results::{ReportError, SampleWriter};

use super::cause::Cause;
use super::jump::Jump;
use super::result::{ClockResult, CpuResult};

/// The file of their distribution in nanoseconds.
pub const DISTRIBUTION: &str = "histogram.hgrm";

/// An upper estimate of a row of the jumps, in bytes.
pub(super) const BYTES_PER_JUMP: u64 = 160;
/// The same of all other files of a CPU.
pub(super) const BYTES_PER_CPU: u64 = 512 << 10;

/// A row of `jumps.csv`. What was not measured is empty.
#[derive(Debug, Default, Serialize)]
struct JumpRow {
    round: u32,
    t_ns: u64,
    jump_cycles: Option<i64>,
    jump_ns: i64,
    cause: String,
    other_cpus: u32,
    window_ns: Option<u64>,
    window_other_jumps: Option<u64>,
    smis: Option<u32>,
    involuntary_switches: Option<u32>,
    voluntary_switches: Option<u32>,
    major_faults: Option<u32>,
    minor_faults: Option<u32>,
    steal_ns: Option<u64>,
    interrupts: Option<String>,
    softirqs: Option<String>,
}

impl JumpRow {
    /// The row of a jump. A step of the clock backwards has negative lengths.
    fn new(round: u32, result: &ClockResult, cpu: &CpuResult, jump: &Jump, others: u32) -> Self {
        let sign = if jump.cause == Cause::Backward { -1 } else { 1 };
        let available = &cpu.available;
        let sample = cpu.watched.jumps.sample(jump);
        let deltas = sample.map(|sample| &sample.deltas);
        JumpRow {
            round,
            t_ns: result.nanos(jump.begin).0,
            jump_cycles: result.clock.is_tsc().then_some(sign * jump.length as i64),
            jump_ns: sign * result.nanos(jump.length).0 as i64,
            cause: jump.cause.describe(&cpu.names),
            other_cpus: others,
            window_ns: sample.map(|sample| result.nanos(sample.window).0),
            window_other_jumps: sample.map(|sample| sample.others),
            smis: deltas
                .filter(|_| available.smis.is_none())
                .map(|it| it.smis),
            involuntary_switches: deltas.map(|it| it.involuntary_switches),
            voluntary_switches: deltas.map(|it| it.voluntary_switches),
            major_faults: deltas.map(|it| it.major_faults),
            minor_faults: deltas.map(|it| it.minor_faults),
            steal_ns: deltas
                .filter(|_| available.steal.is_none())
                .map(|it| u64::from(it.steal_ticks) * 10_000_000),
            interrupts: deltas
                .filter(|_| available.interrupts.is_none())
                .map(|it| list(&it.interrupts, &cpu.names.interrupts)),
            softirqs: deltas
                .filter(|_| available.softirqs.is_none())
                .map(|it| list(&it.softirqs, &cpu.names.softirqs)),
        }
    }
}

/// `LOC:2;RES:1`.
fn list(risen: &Risen, names: &[String]) -> String {
    let rows = risen.rows().iter();
    let mut parts: Vec<String> = rows
        .map(|&(row, by)| {
            let name = names.get(usize::from(row)).map_or("?", String::as_str);
            format!("{}:{by}", name.split(' ').next().unwrap_or(name))
        })
        .collect();
    if risen.left_out > 0 {
        parts.push(format!("and {} more", risen.left_out));
    }
    parts.join(";")
}

/// Adds the jumps of a round to `jumps.csv` in the folder.
pub(super) fn add_jumps(
    folder: &Path,
    round: u32,
    result: &ClockResult,
    cpu: &CpuResult,
) -> Result<(), ReportError> {
    let mut file = SampleWriter::open(folder, &JUMPS_FILE, round)?;
    let jumps = cpu.watched.jumps.jumps().iter();
    for (jump, &others) in jumps.zip(&cpu.coincident) {
        file.append(&JumpRow::new(round, result, cpu, jump, others))?;
    }
    file.finish()
}

/// A row of `histogram.csv`.
#[derive(Debug, Default, Serialize)]
struct HistogramRow {
    round: u32,
    difference_ticks: u64,
    difference_ns: f64,
    differences: u64,
}

/// Adds the differences of a round to `histogram.csv` in the folder, if they were counted.
pub(super) fn add_histogram(
    folder: &Path,
    round: u32,
    result: &ClockResult,
    cpu: &CpuResult,
) -> Result<(), ReportError> {
    let Some(distribution) = &cpu.stored.distribution else {
        return Ok(());
    };
    let mut file = SampleWriter::open(folder, &HISTOGRAM_FILE, round)?;
    for (ticks, differences) in distribution.counts() {
        file.append(&HistogramRow {
            round,
            difference_ticks: ticks,
            difference_ns: (result.nanos_f64(ticks as f64) * 1e3).round() / 1e3,
            differences,
        })?;
    }
    file.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::schema::SampleFile;

    #[test]
    fn the_fields_of_a_row_are_the_columns_of_its_file() {
        let header = |row: &dyn Fn(&mut csv::Writer<Vec<u8>>)| {
            let mut writer = csv::Writer::from_writer(Vec::new());
            row(&mut writer);
            let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
            text.lines().next().unwrap().to_owned()
        };
        let of = |file: SampleFile| {
            let names = file.columns.iter().map(|column| column.name);
            names.collect::<Vec<_>>().join(",")
        };
        let jumps = header(&|writer| writer.serialize(JumpRow::default()).unwrap());
        assert_eq!(jumps, of(JUMPS_FILE));
        let counts = header(&|writer| writer.serialize(HistogramRow::default()).unwrap());
        assert_eq!(counts, of(HISTOGRAM_FILE));
    }
}
