//! What inline saves: each point with t_send against the one with t_subm that is equal otherwise.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::bench::hca::settings::config::Timestamp;
use crate::driver::Shown;
use crate::results::Record;
use crate::results::schema::hca as columns;
use crate::results::schema::{Column, POINT};
use crate::results::units;
use crate::terminal::table::{Column as Heading, Table};

/// The largest share of messages that may have left the figure of t_send: those without a stamp of their own are the
/// fastest, and the median of the others is too high.
const LARGEST_SHARE_LEFT_OUT: f64 = 0.05;
/// How old a stamp can be, as a share of what inline saves: t_send is too early by up to that.
const LARGEST_AGE: f64 = 0.5;

/// How much earlier a message is with its data in the work request: the median from t_subm less that from t_send.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct InlineSaving {
    /// The settings that both points share.
    pub settings: String,
    /// Median latency from t_subm.
    pub submit_p50_ns: Option<f64>,
    /// Median latency from t_send.
    pub send_p50_ns: Option<f64>,
    /// How old a stamp can be.
    pub stamp_refresh_ns: Option<f64>,
    /// The time between posting and the HCA's reading of the memory.
    pub saving_ns: Option<f64>,
    /// Why there is no saving.
    pub reason: Option<&'static str>,
}

/// Why t_send says nothing about the time when the HCA read the memory, or not closely enough.
fn reason(send: &Record, saving: Option<f64>, shares_cpu: bool) -> Option<&'static str> {
    if shares_cpu {
        return Some(
            "the stamp thread shared a CPU with another measuring thread; give it a separate one (--stamp-cpu, or \
             HCABENCH_VM_CPUS=4 with ci/hcabench)",
        );
    }
    let number = |column: &Column| send.number(column.name);
    let left_out = number(&columns::NOT_RESTAMPED).unwrap_or(0.0);
    let (Some(saving), true) = (
        saving,
        left_out <= LARGEST_SHARE_LEFT_OUT * number(&columns::RECEIVED).unwrap_or(0.0),
    ) else {
        return Some(
            "more than 5 % of the messages were received before their stamp was rewritten; give the stamp thread a \
             separate core (--stamp-cpu)",
        );
    };
    match number(&columns::STAMP_REFRESH) {
        None => Some("messages were lost, so the age of the stamps is unknown"),
        Some(age) if age > LARGEST_AGE * saving => Some(
            "stamps could be older than half of the difference: with a longer --pause fewer messages are in flight, and \
             their stamps are rewritten more often",
        ),
        Some(_) => None,
    }
}

/// Compares each point with t_send to the one with t_subm that is equal otherwise.
pub(crate) fn all(shown: &Shown<'_>) -> Vec<InlineSaving> {
    let stamp = |record: &Record| record.text(&columns::TIMESTAMP);
    let others = || {
        columns::POINT
            .into_iter()
            .filter(|column| *column != columns::TIMESTAMP)
    };
    let median = |record: &Record| record.number(columns::latency::P50.name);
    let sent = shown
        .summary
        .iter()
        .filter(|record| stamp(record) == Timestamp::Send.name());
    sent.filter_map(|send| {
        let twin = shown.summary.iter().find(|submit| {
            stamp(submit) == Timestamp::Submit.name()
                && others().all(|column| submit.text(&column) == send.text(&column))
        })?;
        let name = send.text(&POINT);
        let shares_cpu = (shown.details.iter())
            .any(|(of, details)| *of == name && details["stamp_shares_cpu"] == true);
        let (submit_p50_ns, send_p50_ns) = (median(twin), median(send));
        let saving = submit_p50_ns.zip(send_p50_ns).map(|(from, to)| from - to);
        let reason = reason(send, saving, shares_cpu);
        Some(InlineSaving {
            settings: twin.text(&POINT).replace("-submit-", "-"),
            submit_p50_ns,
            send_p50_ns,
            stamp_refresh_ns: send.number(columns::STAMP_REFRESH.name),
            saving_ns: saving.filter(|_| reason.is_none()),
            reason,
        })
    })
    .collect()
}

/// The savings as a table, with the reasons for those that are not told.
pub(crate) fn text(shown: &Shown<'_>) -> String {
    let savings = all(shown);
    if savings.is_empty() {
        return String::new();
    }
    let mut table = Table::new(vec![
        Heading::text("point").setting(),
        Heading::number("p50 from t_subm", "us"),
        Heading::number("p50 from t_send", "us"),
        Heading::number("stamps every", "us"),
        Heading::number("inline saves", "us"),
    ]);
    let mut reasons = BTreeMap::new();
    for saving in &savings {
        let figures = [
            saving.submit_p50_ns,
            saving.send_p50_ns,
            saving.stamp_refresh_ns,
            saving.saving_ns,
        ];
        let cells = figures.map(|ns| ns.map_or("-".to_owned(), |ns| units::significant(ns / 1e3)));
        table.row([saving.settings.clone()].into_iter().chain(cells));
        if let Some(reason) = saving.reason {
            *reasons.entry(reason).or_insert(0) += 1;
        }
    }
    let mut text = format!("\n{}", table.render(shown.width));
    for (reason, points) in reasons {
        text += &format!("note: inline savings are unknown for {points} point(s): {reason}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A point with t_subm and one with t_send, by the figures of the latter.
    fn saving(send: &[(Column, f64)], shares_cpu: bool) -> (InlineSaving, String) {
        let mut summary = Vec::new();
        for (stamp, p50) in [("submit", 2000.0), ("send", 1600.0)] {
            let mut record = Record::new();
            record
                .set(&POINT, format!("rc-{stamp}-8B"))
                .set(&columns::TIMESTAMP, stamp)
                .set(&columns::RECEIVED, 100_u32)
                .set(&columns::latency::P50, p50);
            summary.push(record);
        }
        for (column, value) in send {
            summary[1].set(column, *value);
        }
        let details = [(
            "rc-send-8B".to_owned(),
            json!({ "stamp_shares_cpu": shares_cpu }),
        )];
        let shown = Shown {
            summary: &summary,
            runs: &[],
            details: &details,
            width: None,
            brief: false,
            sorted: false,
        };
        (all(&shown).remove(0), text(&shown))
    }

    #[test]
    fn a_saving_is_told_where_stamps_were_fresh() {
        let fresh = [
            (columns::STAMP_REFRESH, 200.0),
            (columns::NOT_RESTAMPED, 5.0),
        ];
        let (found, text) = saving(&fresh, false);
        assert_eq!((found.saving_ns, found.reason), (Some(400.0), None));
        assert!(text.contains("0.400") && !text.contains("note"), "{text}");
    }

    #[test]
    fn and_else_the_reason() {
        let (age, count) = (columns::STAMP_REFRESH, columns::NOT_RESTAMPED);
        for (send, shares_cpu, words) in [
            (&[(age, 201.0)][..], false, "older than half"),
            (&[(age, 10.0), (count, 6.0)], false, "more than 5 %"),
            (&[], false, "messages were lost"),
            (&[(age, 10.0)], true, "shared a CPU"),
        ] {
            let (found, text) = saving(send, shares_cpu);
            assert_eq!(found.saving_ns, None);
            assert!(found.reason.unwrap().contains(words), "{found:?}");
            let told = format!("unknown for 1 point(s): {}", found.reason.unwrap());
            assert!(text.contains(&told) && !text.contains("0.400"), "{text}");
        }
    }
}
