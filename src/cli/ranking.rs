//! What a ranking by rounds shows of the first place, in a sentence.

use crate::stats::ranking::{ERROR, Ranking};

/// The verdict on the first places of `things`, such as queues.
pub(super) fn verdict(ranking: &Ranking, things: &str, name: impl Fn(usize) -> String) -> String {
    let percent = ERROR * 100.0;
    let (count, pairs) = (ranking.order.len(), ranking.pairs());
    if count < 2 {
        return format!("rank: fewer than two {things} to compare.");
    }
    let basis = match pairs {
        1 => format!("1 pair by its rounds at an error of {percent} %"),
        pairs => format!("{pairs} pairs by their rounds at a shared error of {percent} %"),
    };
    if let Some(needed) = ranking.rounds_needed() {
        let rounds = match ranking.rounds {
            1 => "1 round is".to_owned(),
            rounds => format!("{rounds} rounds are"),
        };
        return format!("rank: not decided: {rounds} too few for {basis}; use --rounds {needed}.");
    }
    match ranking.alike(0).as_slice() {
        [] => format!(
            "rank: {} is first, and distinguished from all others ({basis}).",
            name(0)
        ),
        alike => {
            let names = alike.iter().map(|place| name(*place));
            format!(
                "rank: the first is not decided: {} is not distinguished from {} ({basis}).",
                name(0),
                Vec::from_iter(names).join(", ")
            )
        }
    }
}
