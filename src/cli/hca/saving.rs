//! Differences between two points that are equal otherwise: with t_subm and with t_send, without and with inline data.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::bench::hca::settings::config::Timestamp;
use crate::driver::Shown;
use crate::results::Record;
use crate::results::schema::hca as columns;
use crate::results::schema::{Column, Data, POINT};
use crate::results::units;
use crate::terminal::table::{Column as Heading, Table};

/// The largest share of messages that may have left the figure of t_send: those without a stamp of their own are the
/// fastest, and the median of the others is too high.
const LARGEST_SHARE_LEFT_OUT: f64 = 0.05;
/// How old a stamp can be, as a share of the time from submission to read: t_send is too early by up to that.
const LARGEST_AGE: f64 = 0.5;

/// How long the HCA takes from posting until it reads the message: the median from t_subm less that from t_send. It
/// holds the time of the post, of the doorbell and of the fetch of the request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct SubmitToRead {
    /// The settings that both points share.
    pub settings: String,
    /// Median latency from t_subm.
    pub submit_p50_ns: Option<f64>,
    /// Median latency from t_send.
    pub send_p50_ns: Option<f64>,
    /// How old a stamp can be.
    pub stamp_refresh_ns: Option<f64>,
    /// The time between posting and the HCA's reading of the memory.
    pub submit_to_read_ns: Option<f64>,
    /// Why it is not known.
    pub reason: Option<&'static str>,
}

/// What it saves that the request carries the data: the median without `--inline` less that with it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct InlineSaving {
    /// The settings that both points share.
    pub settings: String,
    /// Median latency without inline data.
    pub off_p50_ns: Option<f64>,
    /// Median latency with it.
    pub on_p50_ns: Option<f64>,
    /// Their difference; negative where inline data takes longer.
    pub saving_ns: Option<f64>,
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

/// The points of which that column has the first of two values, each with the one that has the second and is equal
/// otherwise.
fn pairs<'a>(
    shown: &Shown<'a>,
    column: Column,
    values: [&'static str; 2],
) -> impl Iterator<Item = [&'a Record; 2]> {
    let summary = shown.summary;
    let having = move |value: &'static str| {
        summary
            .iter()
            .filter(move |record| record.text(&column) == value)
    };
    let [first, second] = values;
    having(first).filter_map(move |one| {
        let mut twins = having(second);
        let others = || columns::POINT.into_iter().filter(|other| *other != column);
        let twin = twins.find(|twin| others().all(|of| twin.text(&of) == one.text(&of)))?;
        Some([one, twin])
    })
}

fn median(record: &Record) -> Option<f64> {
    record.number(columns::latency::P50.name)
}

/// The name of a point without one of its parts.
fn name_without(record: &Record, part: &str) -> String {
    let name = record.text(&POINT);
    let parts = name.split('-').filter(|one| *one != part);
    parts.collect::<Vec<_>>().join("-")
}

/// Compares each point with t_send to the one with t_subm that is equal otherwise.
fn submit_to_read<'a>(shown: &Shown<'a>) -> impl Iterator<Item = (&'a Record, SubmitToRead)> {
    let details = shown.details;
    let stamps = [Timestamp::Submit.name(), Timestamp::Send.name()];
    pairs(shown, columns::TIMESTAMP, stamps).map(move |[submit, send]| {
        let name = send.text(&POINT);
        let shares_cpu = details
            .iter()
            .any(|(of, details)| *of == name && details["stamp_shares_cpu"] == true);
        let (submit_p50_ns, send_p50_ns) = (median(submit), median(send));
        let time = submit_p50_ns.zip(send_p50_ns).map(|(from, to)| from - to);
        let reason = reason(send, time, shares_cpu);
        let read = SubmitToRead {
            settings: name_without(submit, "submit"),
            submit_p50_ns,
            send_p50_ns,
            stamp_refresh_ns: send.number(columns::STAMP_REFRESH.name),
            submit_to_read_ns: time.filter(|_| reason.is_none()),
            reason,
        };
        (submit, read)
    })
}

/// Compares each point without inline data to the one with it that is equal otherwise.
fn inline_savings<'a>(shown: &Shown<'a>) -> impl Iterator<Item = (&'a Record, InlineSaving)> {
    pairs(shown, columns::INLINE, ["off", "on"]).map(|[off, on]| {
        let (off_p50_ns, on_p50_ns) = (median(off), median(on));
        let saving = InlineSaving {
            settings: name_without(on, "inline"),
            off_p50_ns,
            on_p50_ns,
            saving_ns: off_p50_ns.zip(on_p50_ns).map(|(off, on)| off - on),
        };
        (off, saving)
    })
}

/// A table of pairs that differ in this column: the other settings that are not the same in all rows, and figures in ns.
fn table<const N: usize>(
    (shown, settings): (&Shown<'_>, &[Column]),
    column: Column,
    titles: [&'static str; N],
    rows: &[(&Record, [Option<f64>; N])],
) -> String {
    let others = || settings.iter().filter(|other| **other != column);
    let of_settings = others().map(|other| match other.data {
        Data::Text | Data::Flag => Heading::text(other.title).setting(),
        _ => Heading::number(other.title, other.unit()).setting(),
    });
    let of_figures = titles.map(|title| Heading::number(title, "us").first());
    let mut table = Table::new(of_settings.chain(of_figures).collect());
    let cell = |ns: Option<f64>| ns.map_or("-".to_owned(), |ns| units::significant(ns / 1e3));
    for (record, figures) in rows {
        let of_settings = others().map(|other| record.text(other));
        table.row(of_settings.chain(figures.map(cell)));
    }
    match table.brief(true).render(shown.width) {
        text if text.is_empty() => text,
        text => format!("\n{text}"),
    }
}

/// Both as tables, with the settings that are not the same in all rows, and the reasons for what is unknown.
pub(crate) fn text(shown: &Shown<'_>, settings: &[Column]) -> String {
    let reads: Vec<_> = submit_to_read(shown).collect();
    let rows = reads.iter().map(|(record, read)| {
        let figures = [
            read.submit_p50_ns,
            read.send_p50_ns,
            read.stamp_refresh_ns,
            read.submit_to_read_ns,
        ];
        (*record, figures)
    });
    let titles = [
        "p50 from t_subm",
        "p50 from t_send",
        "stamps every",
        "submit to read",
    ];
    let mut text = table(
        (shown, settings),
        columns::TIMESTAMP,
        titles,
        &rows.collect::<Vec<_>>(),
    );
    let mut reasons = BTreeMap::new();
    for reason in reads.iter().filter_map(|(_, read)| read.reason) {
        *reasons.entry(reason).or_insert(0) += 1;
    }
    for (reason, points) in reasons {
        text += &format!(
            "note: the time from submission to read is unknown for {points} point(s): {reason}\n"
        );
    }
    let savings = inline_savings(shown).map(|(record, saving)| {
        let figures = [saving.off_p50_ns, saving.on_p50_ns, saving.saving_ns];
        (record, figures)
    });
    let titles = ["p50 inline off", "p50 inline on", "inline saves"];
    text + &table(
        (shown, settings),
        columns::INLINE,
        titles,
        &savings.collect::<Vec<_>>(),
    )
}

/// Both for `--json`.
pub(crate) fn json(shown: &Shown<'_>) -> serde_json::Value {
    let reads = submit_to_read(shown).map(|(_, read)| read);
    let savings = inline_savings(shown).map(|(_, saving)| saving);
    serde_json::json!({
        "submit_to_read": reads.collect::<Vec<_>>(),
        "inline_savings": savings.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A point with t_subm and one with t_send, by the figures of the latter.
    fn read(send: &[(Column, f64)], shares_cpu: bool) -> (SubmitToRead, String) {
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
            folder: std::path::Path::new(""),
            summary: &summary,
            runs: &[],
            details: &details,
            width: None,
            brief: false,
            sorted: false,
        };
        let (_, read) = submit_to_read(&shown).next().unwrap();
        (read, text(&shown, &columns::POINT))
    }

    #[test]
    fn the_time_until_the_read_is_told_where_stamps_were_fresh() {
        let fresh = [
            (columns::STAMP_REFRESH, 200.0),
            (columns::NOT_RESTAMPED, 5.0),
        ];
        let (found, text) = read(&fresh, false);
        assert_eq!((found.submit_to_read_ns, found.reason), (Some(400.0), None));
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
            let (found, text) = read(send, shares_cpu);
            assert_eq!(found.submit_to_read_ns, None);
            assert!(found.reason.unwrap().contains(words), "{found:?}");
            let told = format!("unknown for 1 point(s): {}", found.reason.unwrap());
            assert!(text.contains(&told) && !text.contains("0.400"), "{text}");
        }
    }

    #[test]
    fn inline_saves_the_difference_of_points_without_and_with_it() {
        let point = |inline: &str, size: u32, p50: f64| {
            let mut record = Record::new();
            let name = if inline == "on" { "-inline" } else { "" };
            record
                .set(&POINT, format!("rc-submit{name}-{size}B"))
                .set(&columns::INLINE, inline)
                .set(&columns::SIZE, size)
                .set(&columns::latency::P50, p50);
            record
        };
        let summary = [
            point("off", 8, 2100.0),
            point("on", 8, 1900.0),
            point("off", 64, 2200.0),
            point("off", 128, 2200.0),
            point("on", 128, 2300.0),
        ];
        let shown = Shown {
            folder: std::path::Path::new(""),
            summary: &summary,
            runs: &[],
            details: &[],
            width: None,
            brief: false,
            sorted: false,
        };
        let found = inline_savings(&shown);
        let found: Vec<_> = found
            .map(|(_, one)| (one.settings, one.saving_ns))
            .collect();
        let (small, large) = ("rc-submit-8B", "rc-submit-128B");
        let expected = [
            (small.to_owned(), Some(200.0)),
            (large.to_owned(), Some(-100.0)),
        ];
        assert_eq!(found, expected);
        let text = text(&shown, &columns::POINT);
        assert!(
            text.contains("inline saves") && text.contains("0.200"),
            "{text}"
        );
        assert!(!text.contains("submit to read"), "{text}");
    }
}
