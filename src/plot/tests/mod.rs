//! What is drawn: the data, the places of texts, and that what leaves the program can be read by others.
mod data;
mod files;
mod odd;

use super::drawing::{Shape, Text};
use super::ecdf::{Curve, Ecdf, shares_of_sorted};
use super::histogram::{Distribution, Histogram};
use super::median::{Line, Medians, Middle};
use super::percentiles::{Percentiles, tail_of_sorted};
use super::scale::Unit;
use super::surface::{Height, Surface};
use super::time::{Cloud, OverTime};
use super::*;

fn words(title: &str) -> Words {
    Words {
        title: title.to_owned(),
        subtitle: "RC, 8 B, burst 512, inline off".to_owned(),
        warning: String::new(),
    }
}

/// Samples that are about 30 us, with a tail.
fn samples(seed: u64, count: usize) -> Vec<i64> {
    let mut state = seed;
    let mut samples: Vec<i64> = (0..count)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let share = (state >> 11) as f64 / (1_u64 << 53) as f64;
            (30_000.0 + seed as f64 * 900.0 + 800.0 / (1.001 - share)) as i64
        })
        .collect();
    samples.sort_unstable();
    samples
}

fn histogram(sets: &[Vec<i64>], range: (f64, f64)) -> Histogram {
    let series = sets.iter().enumerate().map(|(number, sorted)| {
        Distribution::of_sorted(&format!("set {number}"), sorted, 0, range, 50)
    });
    Histogram {
        words: words("One-way latency"),
        value: "one-way latency".into(),
        share: "share of messages".into(),
        range,
        series: series.collect(),
        looks: Looks::default(),
    }
}

fn medians(lines: usize, named: bool) -> Medians {
    let ticks: Vec<(f64, String)> = if named {
        [
            "lamport",
            "a queue with a long name",
            "rtrb",
            "flume",
            "kanal",
        ]
        .iter()
        .enumerate()
        .map(|(at, name)| (at as f64, (*name).to_owned()))
        .collect()
    } else {
        (0..13)
            .map(|power| (8.0 * f64::from(1 << power), format!("{} B", 8 << power)))
            .collect()
    };
    let middle = |line: usize, x: f64| {
        let median = 2000.0 + 500.0 * line as f64 + x / 10.0;
        Middle {
            x,
            median,
            most: Some((median * 0.9, median * 1.3)),
            interval: None,
            incomplete: false,
        }
    };
    Medians {
        words: words("One-way latency by message size"),
        setting: "message size".into(),
        named,
        setting_scale: None,
        value: "median one-way latency".into(),
        unit: Unit::Nanoseconds,
        range: None,
        scale: None,
        lines: (0..lines)
            .map(|line| Line {
                label: format!("service {line}, inline on"),
                middles: ticks.iter().map(|tick| middle(line, tick.0)).collect(),
            })
            .collect(),
        ticks,
        looks: Looks::default(),
    }
}

fn surface(worst: f64) -> Surface {
    let height = |x: usize, y: usize| {
        let hole = x == 3 && y == 2;
        (!hole).then_some(Height {
            value: Some(20_000.0 + 4000.0 * (x * y) as f64),
            share: worst * (x + y) as f64 / 10.0,
            incomplete: false,
        })
    };
    Surface {
        words: words("Median of one-way latency"),
        x: (
            "message size".into(),
            (0..7).map(|x| format!("{} B", 8 << x)).collect(),
        ),
        y: (
            "messages in a burst".into(),
            (0..4).map(|y| (1 << (2 * y)).to_string()).collect(),
        ),
        value: "median one-way latency".into(),
        unit: Unit::Nanoseconds,
        range: None,
        scale: None,
        share: "lost messages".into(),
        heights: (0..7)
            .map(|x| (0..4).map(|y| height(x, y)).collect())
            .collect(),
    }
}

fn curves(sets: &[Vec<i64>], points: fn(&[i64]) -> Vec<(f64, f64)>) -> Vec<Curve> {
    let curve = |(number, sorted): (usize, &Vec<i64>)| Curve {
        label: format!("set {number}"),
        lost: 0,
        points: points(sorted),
    };
    sets.iter().enumerate().map(curve).collect()
}

fn ecdf(sets: &[Vec<i64>]) -> Ecdf {
    Ecdf {
        words: words("One-way latency"),
        value: "one-way latency".into(),
        share: "share of messages up to it".into(),
        unit: Unit::Nanoseconds,
        range: None,
        scale: None,
        curves: curves(sets, shares_of_sorted),
        looks: Looks::default(),
    }
}

fn percentiles(sets: &[Vec<i64>]) -> Percentiles {
    Percentiles {
        words: words("One-way latency"),
        percentile: "percentile".into(),
        value: "one-way latency".into(),
        unit: Unit::Nanoseconds,
        range: None,
        scale: None,
        curves: curves(sets, tail_of_sorted),
        looks: Looks::default(),
    }
}

fn over_time(sets: &[Vec<i64>]) -> OverTime {
    let cloud = |(number, values): (usize, &Vec<i64>)| Cloud {
        label: format!("cause {number}"),
        lost: 0,
        outside: 0,
        points: values
            .iter()
            .enumerate()
            .map(|(at, &value)| (at as i64 * 977_777, value))
            .collect(),
    };
    OverTime {
        words: words("Jumps over time"),
        time: "time".into(),
        value: "length".into(),
        range: None,
        scale: None,
        clouds: sets.iter().enumerate().map(cloud).collect(),
        looks: Looks::default(),
    }
}

type Drawn = Result<Drawing, PlotError>;

/// A figure that was drawn has this in one of its texts.
#[track_caller]
fn told(drawn: Drawn, wanted: &str) -> Drawing {
    let drawing = drawn.unwrap();
    assert!(says(&drawing, wanted), "{wanted:?} is not in it");
    drawing
}

fn says(drawing: &Drawing, wanted: &str) -> bool {
    drawing.texts().any(|text| text.text.contains(wanted))
}

/// Each of these is a whole text.
#[track_caller]
fn has(drawing: &Drawing, wanted: &[&str]) {
    let texts: Vec<&str> = drawing.texts().map(|text| text.text.as_str()).collect();
    for wanted in wanted {
        assert!(texts.contains(wanted), "{wanted:?} is not in {texts:?}");
    }
}

/// A figure that was refused has this in its reason.
#[track_caller]
fn refused(drawn: Drawn, reason: &str) {
    let error = drawn.unwrap_err().to_string();
    assert!(error.contains(reason), "{reason:?} is not in {error}");
}

/// Nothing is outside, no text covers another, and all numbers are numbers.
fn assert_sound(drawing: &Drawing) {
    let finite = |points: &[(f64, f64)]| points.iter().all(|(x, y)| x.is_finite() && y.is_finite());
    for shape in &drawing.shapes {
        assert!(
            match shape {
                Shape::Path { points, .. } | Shape::Area { points, .. } => finite(points),
                Shape::Dot { at, radius, .. } => finite(&[*at]) && radius.is_finite(),
                Shape::Text(text) => finite(&[(text.x, text.y)]),
            },
            "{shape:?}"
        );
    }
    let texts: Vec<(&Text, [f64; 4])> = drawing.texts().map(|text| (text, text.bounds())).collect();
    for (number, (text, bounds)) in texts.iter().enumerate() {
        let [left, top, right, bottom] = *bounds;
        assert!(
            left >= 0.0 && top >= 0.0 && right <= drawing.width && bottom <= drawing.height,
            "{:?} of {:?} is cut off: {bounds:?}",
            text.text,
            drawing.title
        );
        assert!(
            !text.text.contains("NaN") && !text.text.contains("inf"),
            "{}",
            text.text
        );
        for (other, [l, t, r, b]) in &texts[..number] {
            let beside =
                right <= l + 0.5 || *r <= left + 0.5 || bottom <= t + 0.5 || *b <= top + 0.5;
            assert!(
                beside,
                "{:?} covers {:?} in {:?}",
                text.text, other.text, drawing.title
            );
        }
    }
}

fn all_figures(size: (u32, u32)) -> Vec<Drawing> {
    let sets: Vec<Vec<i64>> = (1..=3).map(|seed| samples(seed, 3000)).collect();
    vec![
        histogram(&sets, (20_000.0, 60_000.0)).draw(size).unwrap(),
        histogram(&sets, (0.0, 10_000.0)).draw(size).unwrap(),
        medians(3, false).draw(size).unwrap(),
        medians(2, true).draw(size).unwrap(),
        surface(0.3).draw(size).unwrap(),
        surface(0.0).draw(size).unwrap(),
        ecdf(&sets).draw(size).unwrap(),
        percentiles(&sets).draw(size).unwrap(),
        over_time(&sets).draw(size).unwrap(),
    ]
}

#[test]
fn no_text_is_cut_off_or_covered() {
    for size in [DEFAULT_SIZE, (640, 480), (1600, 900)] {
        all_figures(size).iter().for_each(assert_sound);
    }
}
