//! What would be measured, how long it takes and what it leaves on disk.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::table::{Column, Table};
use crate::results::{Record, units};
use crate::rig::benchmark::{Plan, PlannedPoint};
use crate::rig::sweep::Rounds;

/// How long a round takes, about.
pub fn time_of_round(plan: &Plan) -> Duration {
    plan.points.iter().map(|point| point.time).sum()
}

/// A length of time in two units at the most.
pub fn time_in_words(time: Duration) -> String {
    let seconds = time.as_secs();
    let rounded = match seconds {
        0 => Duration::from_millis(time.as_millis().max(1) as u64),
        1..60 => Duration::from_secs(seconds + u64::from(time.subsec_millis() >= 500)),
        60..3600 => Duration::from_secs(seconds / 5 * 5),
        _ => Duration::from_secs(seconds / 60 * 60),
    };
    humantime::format_duration(rounded).to_string()
}

fn rows_of(point: &PlannedPoint) -> impl Iterator<Item = &str> {
    point.rows.iter().map(|row| row.name.as_str())
}

/// For people.
pub fn text(
    plan: &Plan,
    rounds: &Rounds,
    budget: Option<Duration>,
    width: Option<usize>,
) -> String {
    let mut table = Table::new(vec![
        Column::text("point"),
        Column::number("time", "about"),
        Column::number("disk", "at most"),
    ]);
    for point in &plan.points {
        for (place, name) in rows_of(point).enumerate() {
            // What is measured at once takes its time once.
            let (time, bytes) = match place {
                0 => (time_in_words(point.time), units::bytes(point.bytes)),
                _ => (String::new(), String::new()),
            };
            table.row([name.to_owned(), time, bytes]);
        }
    }
    let mut text = table.render(width);
    let round = time_of_round(plan);
    let bytes: u64 = plan.points.iter().map(|point| point.bytes).sum();
    text += &format!(
        "\na round of {} points takes about {} and {} on disk at most\n",
        plan.points.len(),
        time_in_words(round),
        units::bytes(bytes)
    );
    match budget {
        Some(budget) => {
            let fit = (budget.as_secs_f64() / round.as_secs_f64().max(1e-3)) as u32;
            text += &format!(
                "about {} rounds fit into --budget {}\n",
                fit.clamp(1, rounds.count),
                humantime::format_duration(budget)
            );
        }
        None if rounds.count > 1 => {
            text += &format!(
                "{} rounds take about {} and {} on disk at most\n",
                rounds.count,
                time_in_words(round * rounds.count),
                units::bytes(bytes.saturating_mul(u64::from(rounds.count)))
            );
        }
        None => {}
    }
    if !plan.left_out.is_empty() {
        text += &format!(
            "{} points are impossible; the first: {}\n",
            plan.left_out.len(),
            reason(&plan.left_out[0])
        );
    }
    text += "what the devices refuse is known only when they are asked: nothing was opened\n";
    text
}

fn reason(left_out: &Record) -> String {
    let cell = left_out.get(crate::results::schema::REASON.name);
    cell.map(|cell| cell.text()).unwrap_or_default()
}

/// For programs.
pub fn document(plan: &Plan, rounds: &Rounds) -> Value {
    let points = plan.points.iter().map(|point| {
        json!({
            "rows": rows_of(point).collect::<Vec<_>>(),
            "time_s": point.time.as_secs_f64(),
            "bytes": point.bytes,
        })
    });
    json!({
        "points": points.collect::<Vec<_>>(),
        "left_out": plan.left_out,
        "rounds": rounds.count,
        "time_s": time_of_round(plan).as_secs_f64() * f64::from(rounds.count),
        "bytes": plan.points.iter().map(|point| point.bytes).sum::<u64>().saturating_mul(rounds.count.into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig::benchmark::PlannedRow;

    fn plan() -> Plan {
        let point = |index, names: &[&str]| PlannedPoint {
            index,
            rows: names
                .iter()
                .map(|name| PlannedRow {
                    name: (*name).to_owned(),
                    settings: Record::new(),
                })
                .collect(),
            time: Duration::from_millis(1500),
            bytes: 3 << 20,
        };
        Plan {
            points: vec![point(0, &["rc-8B"]), point(1, &["cpu0", "cpu1"])],
            left_out: Vec::new(),
        }
    }

    #[test]
    fn points_time_and_disk_are_told() {
        let text = text(&plan(), &Rounds { count: 4, seed: 1 }, None, None);
        for part in [
            "rc-8B",
            "cpu1",
            "a round of 2 points takes about 3s",
            "4 rounds take about 12s",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let document = document(&plan(), &Rounds { count: 4, seed: 1 });
        assert_eq!(document["time_s"], 12.0);
        assert_eq!(document["bytes"], 4 * (6 << 20));
    }

    #[test]
    fn a_budget_tells_how_many_rounds_fit() {
        let budget = Some(Duration::from_secs(10));
        let text = text(&plan(), &Rounds { count: 8, seed: 1 }, budget, None);
        assert!(text.contains("about 3 rounds fit"), "{text}");
    }

    #[test]
    fn times_have_two_units_at_the_most() {
        for (millis, words) in [
            (0, "1ms"),
            (20, "20ms"),
            (1_600, "2s"),
            (61_000, "1m"),
            (3_725_000, "1h 2m"),
        ] {
            assert_eq!(time_in_words(Duration::from_millis(millis)), words);
        }
    }
}
