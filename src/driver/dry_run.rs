//! What would be measured, how long it takes and what it leaves on disk.

use std::time::Duration;

use serde_json::{Value, json};

use crate::results::schema::REASON;
use crate::results::units;
use crate::rig::benchmark::Plan;
use crate::rig::sweep::Rounds;
use crate::terminal::table::{Column, Table};

/// A length of time in two units at the most.
pub(crate) fn time_in_words(time: Duration) -> String {
    // To less than a twentieth.
    let step_ms = match time.as_secs() {
        0 => 1,
        1..10 => 100,
        10..60 => 1000,
        60..3600 => 5000,
        _ => 60_000,
    };
    let steps = (time.as_millis() as u64).saturating_add(step_ms / 2) / step_ms;
    let rounded = Duration::from_millis((steps * step_ms).max(1));
    humantime::format_duration(rounded).to_string()
}

/// For people. `most_bytes`: on disk, however many rounds there are.
pub(crate) fn text(
    plan: &Plan,
    rounds: &Rounds,
    budget: Option<Duration>,
    most_bytes: u64,
    width: Option<usize>,
    has_devices: bool,
) -> String {
    let mut table = Table::new(vec![
        Column::text("point").setting(),
        Column::number("time", "about"),
        Column::number("disk", "at most"),
    ]);
    for point in &plan.points {
        for (place, name) in point.names().enumerate() {
            // What is measured at once takes its time once.
            let (time, bytes) = match place {
                0 => (time_in_words(point.time), units::bytes(point.bytes)),
                _ => (String::new(), String::new()),
            };
            table.row([name.to_owned(), time, bytes]);
        }
    }
    let mut text = table.render(width);
    let round = plan.time();
    let bytes = plan.bytes();
    text += &format!(
        "\na round of {} points takes about {} and {} on disk at most\n",
        plan.points.len(),
        time_in_words(round),
        units::bytes(bytes)
    );
    let count = rounds_that_fit(plan, rounds, budget);
    let whole = format!(
        "about {} and {} on disk at most",
        time_in_words(round * count),
        units::bytes(bytes.saturating_mul(count.into()).min(most_bytes))
    );
    match budget {
        Some(budget) => {
            let budget = humantime::format_duration(budget);
            text += &format!("about {count} rounds fit into --budget {budget}: {whole}\n");
        }
        None if count > 1 => text += &format!("{count} rounds take {whole}\n"),
        None => {}
    }
    if !plan.left_out.is_empty() {
        text += &format!(
            "{} points are impossible; the first: {}\n",
            plan.left_out.len(),
            plan.left_out[0].text(&REASON)
        );
    }
    text += match has_devices {
        true => "no device was opened, so points that the devices refuse are not known\n",
        false => "nothing was started, so points that this machine refuses are not known\n",
    };
    text
}

/// How many rounds there will be, about: of a budget at least one.
pub(crate) fn rounds_that_fit(plan: &Plan, rounds: &Rounds, budget: Option<Duration>) -> u32 {
    let round = plan.time().as_secs_f64().max(1e-3);
    let fit = budget.map_or(rounds.count, |budget| (budget.as_secs_f64() / round) as u32);
    fit.clamp(1, rounds.count)
}

/// For programs.
pub(crate) fn document(
    plan: &Plan,
    rounds: &Rounds,
    budget: Option<Duration>,
    most_bytes: u64,
) -> Value {
    let count = rounds_that_fit(plan, rounds, budget);
    let points = plan.points.iter().map(|point| {
        json!({
            "rows": point.names().collect::<Vec<_>>(),
            "time_s": point.time.as_secs_f64(),
            "bytes": point.bytes,
        })
    });
    json!({
        "points": points.collect::<Vec<_>>(),
        "left_out": plan.left_out,
        "rounds": count,
        "time_s": plan.time().as_secs_f64() * f64::from(count),
        "bytes": plan.bytes().saturating_mul(count.into()).min(most_bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Record;
    use crate::rig::benchmark::{PlannedPoint, PlannedRow};
    use crate::testing::Has as _;

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
            time: Duration::from_millis(1460),
            bytes: 3 << 20,
            bytes_once: 0,
            bytes_of_losses: 0,
            may_abort: false,
        };
        Plan {
            points: vec![point(0, &["rc-8B"]), point(1, &["cpu0", "cpu1"])],
            left_out: Vec::new(),
        }
    }

    #[test]
    fn time_disk_and_the_rounds_that_fit_are_told() {
        let (four, eight) = (Rounds { count: 4, seed: 1 }, Rounds { count: 8, seed: 1 });
        let told = text(&plan(), &four, None, u64::MAX, None, true);
        told.has(&[
            "a round of 2 points takes about 3s",
            "4 rounds take about 12s",
        ]);
        text(
            &plan(),
            &eight,
            Some(Duration::from_secs(10)),
            u64::MAX,
            None,
            true,
        )
        .has(&["about 3 rounds fit"]);
        assert_eq!(
            document(&plan(), &four, None, u64::MAX)["bytes"],
            4 * (6 << 20)
        );
        let many = Rounds {
            count: 10_000,
            seed: 1,
        };
        let document = document(&plan(), &many, Some(Duration::from_secs(10)), u64::MAX);
        assert_eq!(document["rounds"], json!(3));
        assert_eq!(document["time_s"], json!(9.0));
    }

    #[test]
    fn times_have_two_units_at_the_most() {
        for (millis, words) in [
            (0, "1ms"),
            (20, "20ms"),
            (1_490, "1s 500ms"),
            (1_949, "1s 900ms"),
            (9_970, "10s"),
            (10_600, "11s"),
            (61_000, "1m"),
            (3_725_000, "1h 2m"),
        ] {
            assert_eq!(time_in_words(Duration::from_millis(millis)), words);
        }
    }
}
