//! A results folder of the HCA benchmark, made by the program's own writers without a device. Shared by tests of the
//! library and of the command.

use std::path::{Path, PathBuf};

use hcabench::results::folder::{HISTOGRAM, MESSAGES, SETTINGS, SUMMARY};
use hcabench::results::{CsvFile, Record, ResultsFolder, SummaryFile, hgrm, json};
use hcabench::stats::{LatencyHistogram, Summary};
use serde::Serialize;
use serde_json::json;

/// A row as the HCA benchmark writes it.
#[derive(Debug, Default, Serialize)]
struct MessageRow {
    repeat: u32,
    seq: u32,
    t_subm_ns: u64,
    t_send_ns: Option<u64>,
    t_recv_ns: Option<u64>,
    t_comp_ns: Option<u64>,
    latency_ns: Option<i64>,
    completion_latency_ns: Option<i64>,
}

/// The samples of a message; `None` for a lost one.
pub type Made = Option<i64>;

/// A point for [`hca_run`]: service, size, burst, and its latencies.
pub type MadePoint<'a> = (&'a str, u32, u32, &'a [Made]);

/// Writes a run as the HCA benchmark does; returns its folder. What is `unfinished` has no row in the summary.
pub fn hca_run(path: &Path, points: &[MadePoint<'_>], unfinished: bool) -> PathBuf {
    let folder = ResultsFolder::create(path, false, 0).unwrap();
    let mut summary = SummaryFile::create(&folder.file(SUMMARY).unwrap()).unwrap();
    for (number, &(service, size, burst, latencies)) in points.iter().enumerate() {
        let place = folder
            .point(&format!("{service}-send-{size}B-burst{burst}"))
            .unwrap();
        let mut messages = CsvFile::create(&place.file(MESSAGES).unwrap()).unwrap();
        for (seq, latency) in latencies.iter().enumerate() {
            let submitted = 1_000_000 + 50_000 * seq as u64;
            messages
                .append(&MessageRow {
                    seq: seq as u32,
                    t_subm_ns: submitted,
                    t_recv_ns: latency.map(|ns| submitted.wrapping_add_signed(ns)),
                    t_comp_ns: Some(submitted + 700),
                    latency_ns: *latency,
                    completion_latency_ns: Some(700),
                    ..MessageRow::default()
                })
                .unwrap();
        }
        messages.finish().unwrap();
        let received: Vec<i64> = latencies.iter().flatten().copied().collect();
        let histogram = LatencyHistogram::of(&received);
        hgrm::write(&place.file(HISTOGRAM).unwrap(), &histogram).unwrap();
        let last = unfinished && number + 1 == points.len();
        let status = if last { "incomplete" } else { "complete" };
        json::write(
            &place.file(SETTINGS).unwrap(),
            &json!({
                "hcabench": { "version": "0.1.0" },
                "started_at": "2026-01-02T03:04:05Z",
                "status": status,
                "failure": null,
                "point": { "service": service, "operation": "send", "size": size, "burst": burst, "pause_ns": 50000 },
                "machine": { "hostname": "made-up" },
            }),
        )
        .unwrap();
        if last {
            place.fail("interrupted by SIGINT").unwrap();
            break;
        }
        place.complete().unwrap();
        let (sent, arrived) = (latencies.len() as u64, received.len() as u64);
        let mut record = Record::new();
        record
            .text("service", service)
            .text("operation", "send")
            .count("size_bytes", u64::from(size))
            .count("burst", u64::from(burst))
            .count("pause_ns", 50_000)
            .count("warmup", 100)
            .text("status", "complete")
            .count("messages_sent", sent)
            .count("messages_received", arrived)
            .count("messages_lost", sent - arrived)
            .summary("latency", 10_000, Summary::of(&received).as_ref())
            .summary("completion_latency", 10_000, Summary::of(&[700]).as_ref());
        summary.append(&record).unwrap();
    }
    if unfinished {
        folder.fail("interrupted by SIGINT").unwrap();
    } else {
        folder.complete().unwrap();
    }
    path.to_path_buf()
}
