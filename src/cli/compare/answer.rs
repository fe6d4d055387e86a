//! What a comparison found, in sentences: which is lower, by how much, and how certain that is.

use crate::compare::ERROR;
use crate::results::text::printable;
use crate::results::units::digits;
use crate::stats::rank::Test;
use crate::terminal::{text_width, wrap};

/// In which direction a figure differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Lower,
    Higher,
    /// Chance could make a difference like this.
    NotShown,
    /// There are too few rounds to show any.
    NotJudged,
    /// One of both has no such figure.
    NotMeasured,
}

/// By how much a figure is higher: the difference, and its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Amount {
    pub(super) difference: f64,
    pub(super) interval: [f64; 2],
    pub(super) unit: &'static str,
}

/// What was found of a figure at a place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    /// The figure, in words.
    pub(super) figure: String,
    pub(super) place: String,
    pub(super) direction: Direction,
    pub(super) amount: Option<Amount>,
}

/// How places are named.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    /// The preposition.
    pub(super) at: &'static str,
    /// The noun, in the plural.
    pub(super) noun: &'static str,
}

/// The unit of a difference of figures in this unit: shares differ by percentage points.
pub(super) fn unit_of_difference(unit: &str) -> &'static str {
    if unit == "%" { "% points" } else { "%" }
}

/// A number with its sign.
pub(super) fn signed(value: f64) -> String {
    match digits(value) {
        text if value > 0.0 && text.chars().any(|digit| ('1'..='9').contains(&digit)) => {
            format!("+{text}")
        }
        text => text,
    }
}

/// A difference with its unit.
pub(super) fn difference(value: Option<f64>, unit: &str) -> String {
    let finite = value.filter(|value| value.is_finite());
    finite.map_or_else(|| "-".to_owned(), |it| format!("{} {unit}", signed(it)))
}

/// The interval of a difference with its unit.
pub(super) fn interval(bounds: Option<[f64; 2]>, unit: &str) -> String {
    match bounds {
        Some([low, high]) => format!("{} to {} {unit}", signed(low), signed(high)),
        None => "-".to_owned(),
    }
}

/// A sentence in lines that fit, the later ones indented.
pub(super) fn wrapped(text: &str) -> String {
    let lines = wrap(&printable(text), text_width() - 2);
    lines.join("\n  ") + "\n"
}

/// Sentences about the figures of the second of two names, against the first.
pub(super) fn sentences(names: [&str; 2], outcomes: &[Outcome], places: Places) -> Vec<String> {
    let mut figures: Vec<&str> = Vec::new();
    let mut at: Vec<&str> = Vec::new();
    for outcome in outcomes {
        if !figures.contains(&outcome.figure.as_str()) {
            figures.push(&outcome.figure);
        }
        if !at.contains(&outcome.place.as_str()) {
            at.push(&outcome.place);
        }
    }
    let of = |figure: &str| -> Vec<&Outcome> {
        let outcomes = outcomes.iter();
        outcomes.filter(|it| it.figure == figure).collect()
    };
    let mut texts = match at.as_slice() {
        [_] => of_one_place(names, outcomes),
        _ => {
            let figures = figures.iter();
            let texts = figures.filter_map(|figure| of_figure(names, figure, &of(figure), places));
            texts.collect()
        }
    };
    for (direction, begins) in [
        (Direction::NotShown, "No difference is shown in"),
        (
            Direction::NotJudged,
            "For too few rounds there is no verdict on",
        ),
        (Direction::NotMeasured, "Not measured in both:"),
    ] {
        let is_all = |figure: &&&str| of(figure).iter().all(|it| it.direction == direction);
        let all: Vec<&str> = figures.iter().filter(is_all).copied().collect();
        if !all.is_empty() {
            texts.push(format!("{begins} {}.", listed(&all)));
        }
    }
    let mixed = figures.iter().filter(|figure| {
        let of = of(figure);
        let is_shown = |it: &&Outcome| matches!(it.direction, Direction::Lower | Direction::Higher);
        !of.iter().any(is_shown) && of.iter().any(|it| it.direction != of[0].direction)
    });
    texts.extend(mixed.map(|figure| {
        let parts = [
            (Direction::NotShown, "no difference is shown"),
            (Direction::NotJudged, "too few rounds for a verdict"),
            (Direction::NotMeasured, "not measured in both"),
        ];
        let parts = parts.into_iter().filter_map(|(direction, words)| {
            let of = of(figure).into_iter();
            let count = of.filter(|it| it.direction == direction).count();
            (count > 0).then(|| format!("{words} {} {count}", places.at))
        });
        let parts = parts.collect::<Vec<_>>().join(", ");
        format!("{figure}, of {} {}: {parts}.", at.len(), places.noun)
    }));
    texts
}

/// All that is lower in a sentence, all that is higher in another.
fn of_one_place(names: [&str; 2], outcomes: &[Outcome]) -> Vec<String> {
    let [base, new] = names;
    let directions = [(Direction::Lower, "lower"), (Direction::Higher, "higher")];
    let sentence = |(direction, word): (Direction, &str)| {
        let of = outcomes.iter().filter(|it| it.direction == direction);
        let parts = of.map(|it| format!("{}{}", it.figure, by(it)));
        let parts: Vec<String> = parts.collect();
        (!parts.is_empty()).then(|| format!("{new} is {word} than {base}: {}.", parts.join(", ")))
    };
    directions.into_iter().filter_map(sentence).collect()
}

/// Where a figure is lower and where higher; `None` where no difference of it is shown.
fn of_figure(names: [&str; 2], figure: &str, of: &[&Outcome], places: Places) -> Option<String> {
    let count = |direction| of.iter().filter(|it| it.direction == direction).count();
    let Places { at, noun } = places;
    let mut parts = Vec::new();
    for (direction, word) in [(Direction::Lower, "lower"), (Direction::Higher, "higher")] {
        let size = |it: &Outcome| it.amount.map_or(0.0, |amount| amount.difference.abs());
        let own = of.iter().filter(|it| it.direction == direction);
        let Some(largest) = own.max_by(|one, other| size(one).total_cmp(&size(other))) else {
            continue;
        };
        let who = match parts.is_empty() {
            true => format!("{} is {word} than {}", names[1], names[0]),
            false => word.to_owned(),
        };
        let (place, by) = (&largest.place, by(largest));
        let most = match count(direction) {
            1 => by,
            _ if by.is_empty() => by,
            _ => format!(", most{by}"),
        };
        let many = match count(direction) {
            all if all == of.len() => format!("all {all}"),
            some => format!("{some} of {}", of.len()),
        };
        parts.push(format!("{who} {at} {many} {noun}{most} {at} {place}"));
    }
    if parts.is_empty() {
        return None;
    }
    for (direction, words) in [
        (Direction::NotShown, "no difference shown"),
        (Direction::NotJudged, "no verdict for too few rounds"),
        (Direction::NotMeasured, "not measured in both"),
    ] {
        if count(direction) > 0 {
            parts.push(format!("{words} {at} {}", count(direction)));
        }
    }
    Some(format!("{figure}: {}.", parts.join("; ")))
}

/// ` by 12.0 % (5.00 % to 20.0 %)`.
fn by(outcome: &Outcome) -> String {
    let Some(amount) = outcome.amount else {
        return String::new();
    };
    let mut bounds = amount.interval.map(f64::abs);
    bounds.sort_by(f64::total_cmp);
    let [low, high] = bounds.map(digits);
    let difference = digits(amount.difference.abs());
    match amount.unit {
        "%" => format!(" by {difference} % ({low} % to {high} %)"),
        unit => format!(" by {difference} {unit} ({low} to {high})"),
    }
}

fn listed(all: &[&str]) -> String {
    match all {
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
        [] => String::new(),
    }
}

/// How certain intervals of so many figures are.
pub(super) fn certainty(intervals: usize, rounds: &str, test: Test) -> String {
    let test = match test {
        Test::MannWhitney => "Mann and Whitney's test",
        Test::SignedRank => "Wilcoxon's signed ranks of the rounds' differences",
    };
    let certain = (1.0 - ERROR) * 100.0;
    match intervals {
        1 => format!("The interval holds in {certain:.0} of 100 comparisons ({test}, {rounds})."),
        _ => format!(
            "All {intervals} intervals hold together in {certain:.0} of 100 comparisons ({test}, {rounds})."
        ),
    }
}

/// How many rounds there are, in words.
pub(super) fn rounds_in_words(rounds: impl Iterator<Item = usize>) -> String {
    let mut least = usize::MAX;
    let mut most = 0;
    for count in rounds {
        (least, most) = (least.min(count), most.max(count));
    }
    match (least.min(most), most) {
        (1, 1) => "1 round".to_owned(),
        (least, most) if least == most => format!("{most} rounds"),
        (least, most) => format!("{least} to {most} rounds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_POINTS: Places = Places {
        at: "at",
        noun: "points",
    };

    fn outcome(figure: &str, place: &str, difference: f64, half: f64) -> Outcome {
        let interval = [difference - half, difference + half];
        Outcome {
            figure: figure.to_owned(),
            place: place.to_owned(),
            direction: match interval {
                [_, high] if high < 0.0 => Direction::Lower,
                [low, _] if low > 0.0 => Direction::Higher,
                _ => Direction::NotShown,
            },
            amount: Some(Amount {
                difference,
                interval,
                unit: "%",
            }),
        }
    }

    #[test]
    fn at_one_place_all_lower_figures_are_in_one_sentence() {
        let outcomes = [
            outcome("median latency", "", -12.0, 7.0),
            outcome("throughput", "", 30.0, 5.0),
            outcome("p99 latency", "", -4.0, 0.5),
            outcome("median completion latency", "", 1.0, 2.0),
        ];
        assert_eq!(
            sentences(["rc", "uc"], &outcomes, AT_POINTS),
            [
                "uc is lower than rc: median latency by 12.0 % (5.00 % to 19.0 %), \
                 p99 latency by 4.00 % (3.50 % to 4.50 %).",
                "uc is higher than rc: throughput by 30.0 % (25.0 % to 35.0 %).",
                "No difference is shown in median completion latency.",
            ]
        );
    }

    #[test]
    fn at_several_places_each_figure_that_differs_has_a_sentence() {
        let mut outcomes = vec![
            outcome("median latency", "8 B", -12.0, 7.0),
            outcome("median latency", "1 KiB", -30.0, 7.0),
            outcome("median latency", "4 KiB", 1.0, 7.0),
            outcome("median latency", "8 KiB", 100.0, 7.0),
        ];
        for place in ["8 B", "1 KiB"] {
            outcomes.push(outcome("p99 latency", place, 1.0, 7.0));
            outcomes.push(outcome("lost", place, 1.0, 7.0));
        }
        assert_eq!(
            sentences(["rc", "uc"], &outcomes, AT_POINTS),
            [
                "median latency: uc is lower than rc at 2 of 4 points, most by 30.0 % (23.0 % to 37.0 %) at 1 KiB; \
                 higher at 1 of 4 points by 100 % (93.0 % to 107 %) at 8 KiB; no difference shown at 1.",
                "No difference is shown in p99 latency and lost.",
            ]
        );
        // A figure that is judged at some points and not at others has a sentence, too.
        let mut mixed = vec![outcomes[4].clone(), outcomes[6].clone()];
        mixed[1].direction = Direction::NotJudged;
        assert_eq!(
            sentences(["rc", "uc"], &mixed, AT_POINTS),
            [
                "p99 latency, of 2 points: no difference is shown at 1, too few rounds for a verdict at 1."
            ]
        );
        outcomes.truncate(2);
        assert_eq!(
            sentences(["rc", "uc"], &outcomes, AT_POINTS),
            [
                "median latency: uc is lower than rc at all 2 points, most by 30.0 % (23.0 % to 37.0 %) at 1 KiB."
            ]
        );
    }

    #[test]
    fn a_sentence_says_how_certain_all_of_it_is() {
        let rounds = rounds_in_words([8, 8].into_iter());
        assert_eq!(
            certainty(14, &rounds, Test::MannWhitney),
            "All 14 intervals hold together in 95 of 100 comparisons (Mann and Whitney's test, 8 rounds)."
        );
        assert_eq!(rounds_in_words([1, 1].into_iter()), "1 round");
        assert_eq!(rounds_in_words([3, 8].into_iter()), "3 to 8 rounds");
    }

    #[test]
    fn differences_have_a_sign_and_three_digits() {
        for (value, text) in [
            (0.0, "0 %"),
            (0.0001, "0.000 %"),
            (-1.4483, "-1.45 %"),
            (12_613.8, "+12600 %"),
        ] {
            assert_eq!(difference(Some(value), "%"), text);
        }
        assert_eq!(difference(None, "%"), "-");
        assert_eq!(interval(Some([-1.8, 1302.3]), "%"), "-1.80 to +1300 %");
    }
}
