//! The ranking of queues by their rounds, with those that cannot be distinguished.

use super::finished::LOAD_MISSED;
use super::*;
use crate::cli::ranking::verdict;
use crate::stats::rank::MOST_ROUNDS;
use crate::stats::ranking::Ranking;

/// What queues are ranked by.
struct RankingFigure {
    title: &'static str,
    unit: (&'static str, f64),
    column: Column,
    higher_is_better: bool,
    /// Of rows that kept their load.
    under_load: bool,
}

/// By what a row is ranked: a rate where nothing limits it but the queue, else a time, or that of either operation
/// where elements have no latency. Not on a load curve, whose steps are other loads for each queue.
fn by(first: &FinishedPoint, per_s: (&'static str, f64)) -> Vec<RankingFigure> {
    let measure = first.text(&columns::MEASURE);
    let is_unpaced = [columns::LOAD, columns::RECEIVER_LOAD]
        .iter()
        .all(|load| first.text(load) == "none");
    let time = |title, column| RankingFigure {
        title,
        unit: ("ns", 1.0),
        column,
        higher_is_better: false,
        under_load: !is_unpaced,
    };
    if first.is_curve() {
        Vec::new()
    } else if measure == Measure::RoundTrip.name() {
        vec![time("median round trip", columns::round_trip::P50)]
    } else if is_unpaced {
        vec![RankingFigure {
            title: "throughput",
            unit: per_s,
            column: columns::THROUGHPUT,
            higher_is_better: true,
            under_load: false,
        }]
    } else if measure == Measure::Time.name() && first.is_unfenced() {
        vec![
            time("median enqueue", columns::enqueue::P50),
            time("median dequeue", columns::dequeue::P50),
        ]
    } else if measure == Measure::Time.name() {
        vec![time("median latency", columns::latency::P50)]
    } else {
        Vec::new()
    }
}

/// The settings of a row but for its queue, and what follows from that.
fn others(one: &FinishedPoint) -> Vec<String> {
    let cells = settings().into_iter().zip(setting_cells(one));
    let is_of_queue =
        |column: &Column| [columns::QUEUE.name, columns::ENDS.name].contains(&column.name);
    let cells = cells.filter(|((_, column, _), _)| !is_of_queue(column));
    cells.map(|(_, cell)| cell).collect()
}

/// A ranking of each group of rows that differ by their queue alone.
pub(super) fn ranks(finished: &[FinishedPoint], shown: &Shown<'_>) -> String {
    let mut groups: Vec<(Vec<String>, Vec<&FinishedPoint>)> = Vec::new();
    for one in finished {
        let key = others(one);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, rows)) => rows.push(one),
            None => groups.push((key, vec![one])),
        }
    }
    groups.retain(|(_, rows)| rows.len() > 1);
    // What differs from group to group.
    let varies = |at: &usize| groups.iter().any(|(key, _)| key[*at] != groups[0].0[*at]);
    let varying: Vec<usize> = (0..groups.first().map_or(0, |(key, _)| key.len()))
        .filter(varies)
        .collect();
    let titles: Vec<Heading> = settings()
        .into_iter()
        .skip(2)
        .map(|(heading, ..)| heading)
        .collect();
    let mut text = String::new();
    for (key, rows) in &groups {
        let named = varying
            .iter()
            .map(|&at| format!("{} {}", titles[at].title(), key[at]));
        let named = Vec::from_iter(named).join(", ");
        for by in by(rows[0], unit_of_throughput(finished)) {
            text += &format!("\n{}", of_group(&by, rows, &named, shown));
        }
    }
    text
}

fn of_group(
    by: &RankingFigure,
    rows: &[&FinishedPoint],
    settings: &str,
    shown: &Shown<'_>,
) -> String {
    let name = |one: &FinishedPoint| one.text(&columns::QUEUE);
    let excuse = |one: &FinishedPoint| {
        let unfair = one.is_unfair().then_some("UNFAIR");
        let missed = (by.under_load && one.misses_load()).then_some(LOAD_MISSED);
        one.mark.or(unfair).or(missed)
    };
    let (ranked, left_out): (Vec<&FinishedPoint>, Vec<&FinishedPoint>) = rows
        .iter()
        .partition(|one| excuse(one).is_none() && one.number(&by.column).is_some());
    let rounds = |one: &&FinishedPoint| {
        let found = one.runs.iter().filter_map(|run| run.number(by.column.name));
        found.collect::<Vec<f64>>()
    };
    let ranking = Ranking::of(
        &Vec::from_iter(ranked.iter().map(rounds)),
        by.higher_is_better,
    );
    let settings = match settings {
        "" => String::new(),
        some => format!(", {some}"),
    };
    let mut text = format!("ranks by {}{settings}\n", by.title);
    if !shown.brief && ranked.len() > 1 {
        let mut table = Table::new(vec![
            Heading::number("place", "").setting(),
            Heading::text("queue").setting(),
            Heading::number("median", by.unit.0),
            Heading::number("rounds needed", "against place 1"),
            Heading::text("not distinguished from places"),
        ]);
        for (place, &at) in ranking.order.iter().enumerate() {
            let value = ranked[at].number(&by.column).map(|value| value / by.unit.1);
            let alike = ranking.alike(place);
            // Those distinguished from it already have enough.
            let from_first = match ranking.rounds_from_first(place) {
                _ if !alike.contains(&0) => "-".to_owned(),
                Some(rounds) => rounds.to_string(),
                None => format!(">{MOST_ROUNDS}"),
            };
            table.row([
                (place + 1).to_string(),
                name(ranked[at]),
                number(value, if by.unit.1 > 1.0 { 2 } else { 0 }),
                from_first,
                places(&alike),
            ]);
        }
        text += &table.render(shown.width);
    }
    let others_missed_the_load = left_out.iter().all(|one| excuse(one) == Some(LOAD_MISSED));
    let verdict = match ranked.len() < 2 && others_missed_the_load {
        true => format!(
            "rank: {} of these {} rows kept the requested load: no queue can be chosen by them; use a lower --rate, or \
             a machine with a core for each end.",
            if ranked.is_empty() {
                "none"
            } else {
                "only one"
            },
            rows.len()
        ),
        false => verdict(&ranking, "queues", |place| {
            name(ranked[ranking.order[place]])
        }),
    };
    let without = left_out
        .iter()
        .map(|one| format!("{} ({})", name(one), excuse(one).unwrap_or("no figures")));
    let without = Vec::from_iter(without).join(", ");
    let without = match without.as_str() {
        "" => String::new(),
        some => format!(" Not ranked: {some}."),
    };
    let lines = wrap(
        &format!("{verdict}{without}"),
        text_width_of(shown.width) - 2,
    );
    text + &lines.join("\n  ") + "\n"
}

/// Places, counted from 1, with those that follow on one another as one.
fn places(places: &[usize]) -> String {
    if places.is_empty() {
        return "-".to_owned();
    }
    let mut spans: Vec<[usize; 2]> = Vec::new();
    for &place in places {
        match spans.last_mut() {
            Some([_, last]) if *last + 1 == place => *last = place,
            _ => spans.push([place, place]),
        }
    }
    let span = |[first, last]: &[usize; 2]| match last - first {
        0 => format!("{}", first + 1),
        1 => format!("{}, {}", first + 1, last + 1),
        _ => format!("{}..{}", first + 1, last + 1),
    };
    spans.iter().map(span).collect::<Vec<_>>().join(", ")
}
