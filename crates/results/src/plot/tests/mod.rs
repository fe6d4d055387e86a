//! What is drawn: the data, the places of texts, and that what leaves the program can be read by others.

mod data;
mod files;
mod matrix;
mod odd;

use super::curves::{Curves, DistributionCurve, shares_of_sorted, tail_of_sorted};
use super::drawing::{Anchor, Shape, Text};
use super::family::{self, Dot, Family, Published};
use super::histogram::{Distribution, Histogram};
use super::intervals::{ByInterval, IntervalLine};
use super::load::{self, Loads, Step};
use super::median::{MedianLine, MedianMark, Medians};
use super::surface::{Height, Surface};
use super::time::{Cloud, OverTime};
use super::*;

const SIZE: (u32, u32) = DEFAULT_SIZE;

fn chart(title: &str, x: &str, y: &str) -> Chart {
    Chart {
        words: FigureTexts {
            title: title.to_owned(),
            subtitle: "RC, 8 B, burst 512, inline off".to_owned(),
            warning: String::new(),
        },
        x: x.to_owned(),
        y: y.to_owned(),
        ..Chart::default()
    }
}

/// Samples that are about 30 us, with a tail, in ascending order.
fn samples(set: u32, count: u32) -> Vec<i64> {
    let least = 30_000.0 + 900.0 * f64::from(set);
    let shares = (0..count).map(|number| f64::from(number) / f64::from(count));
    shares
        .map(|share| (least + 800.0 / (1.001 - share)) as i64)
        .collect()
}

fn histogram(sets: &[Vec<i64>], range: (f64, f64)) -> Histogram {
    let series = sets.iter().enumerate().map(|(number, sorted)| {
        Distribution::of_sorted(&format!("set {number}"), sorted, 0, range, 50)
    });
    let mut chart = chart("One-way latency", "one-way latency", "share of messages");
    chart.range = Some(range);
    Histogram {
        chart,
        series: series.collect(),
    }
}

fn medians(lines: usize, named: bool) -> Medians {
    let long = "a queue with a long name";
    let names = ["lamport", long, "rtrb", "flume", "kanal"];
    let sizes = (0..13).map(|power| (8.0 * f64::from(1 << power), format!("{} B", 8 << power)));
    let names = names.iter().enumerate();
    let names = names.map(|(place, name)| (place as f64, (*name).to_owned()));
    let ticks: Vec<(f64, String)> = match named {
        true => names.collect(),
        false => sizes.collect(),
    };
    let middle = |line: usize, x: f64| {
        let median = 2000.0 + 500.0 * line as f64 + x / 10.0;
        MedianMark {
            x,
            value: median,
            most: Some((median * 0.9, median * 1.3)),
            interval: None,
            incomplete: false,
        }
    };
    let line = |line| MedianLine {
        label: format!("service {line}, inline on"),
        middles: ticks.iter().map(|tick| middle(line, tick.0)).collect(),
    };
    Medians {
        chart: chart("One-way latency by size", "message size", "median latency"),
        named,
        setting_scale: None,
        lines: (0..lines).map(line).collect(),
        ticks,
        found: Vec::new(),
    }
}

/// Latencies under load; the last step is offered more than it takes.
fn loads(lines: usize) -> Loads {
    let step = |line: usize, place: usize, offered: f64| Step {
        delivered: offered.min(9e6),
        offered,
        value: 2000.0 + 900.0 * (line + place * place) as f64,
        interval: None,
        incomplete: false,
    };
    let line = |line| load::LoadLine {
        label: format!("service {line}, p50"),
        steps: [0.0, 8e5, 4e6, 1.2e7]
            .into_iter()
            .enumerate()
            .map(|(place, offered)| step(line, place, offered))
            .collect(),
        unsent: vec![step(line, 0, 4e6)],
    };
    Loads {
        chart: chart(
            "One-way latency under load",
            "delivered in the background",
            "latency",
        ),
        lines: (0..lines).map(line).collect(),
    }
}

/// Curves that bend backwards over their last two points, and as many of others.
fn family(curves: usize) -> Family {
    let points = |curve: usize| -> Vec<(f64, f64)> {
        let across = [0.2, 3.0, 6.0, 8.0, 7.0, 6.5].into_iter().enumerate();
        let most = 1.0 + 0.4 * curve as f64;
        across
            .map(|(place, x)| (most * x, 90.0 + 12.0 * (place * place * (curve + 1)) as f64))
            .collect()
    };
    let curve = |curve: usize| family::FamilyCurve {
        label: format!("{} % reads", 50 * curve),
        shade: 0.5 * curve as f64,
        kind: curve % 2,
        dots: points(curve)
            .into_iter()
            .map(|(bandwidth_gb_s, latency_ns)| Dot {
                bandwidth_gb_s,
                latency_ns,
                interval: (curve == 0).then_some((latency_ns - 5.0, latency_ns + 7.0)),
                marks: if latency_ns < 91.0 { "in-cache" } else { "" }.to_owned(),
            })
            .collect(),
        smoothed: if curve == 1 {
            Vec::new()
        } else {
            points(curve)
        },
    };
    let of_others = |curve: usize| Published {
        label: format!("{} %", 50 * curve),
        points: points(curve)
            .into_iter()
            .map(|(x, y)| (0.5 * x, 1.1 * y))
            .collect(),
    };
    Family {
        chart: chart(
            "Latency by memory bandwidth",
            "estimated bandwidth",
            "latency of a load",
        ),
        curves: (0..curves).map(curve).collect(),
        published_as: "published: curves.csv".to_owned(),
        published: (0..curves).map(of_others).collect(),
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
    let column = |x: usize| (0..4).map(|y| height(x, y)).collect();
    Surface {
        chart: chart("Median of latency", "message size", "messages in a burst"),
        texts: [
            (0..7).map(|x| format!("{} B", 8 << x)).collect(),
            (0..4).map(|y| (1 << (2 * y)).to_string()).collect(),
        ],
        value: "median one-way latency".into(),
        share: "lost messages".into(),
        heights: (0..7).map(column).collect(),
    }
}

fn curves(sets: &[Vec<i64>], points: fn(&[i64]) -> Vec<(f64, f64)>) -> Curves {
    let curve = |(number, sorted): (usize, &Vec<i64>)| DistributionCurve {
        label: format!("set {number}"),
        lost: 0,
        absent: Vec::new(),
        points: points(sorted),
    };
    Curves {
        chart: chart("One-way latency", "horizontal", "vertical"),
        curves: sets.iter().enumerate().map(curve).collect(),
    }
}

fn ecdf(sets: &[Vec<i64>]) -> Curves {
    curves(sets, shares_of_sorted)
}

fn percentiles(sets: &[Vec<i64>]) -> Curves {
    curves(sets, tail_of_sorted)
}

fn over_time(sets: &[Vec<i64>]) -> OverTime {
    let cloud = |(number, values): (usize, &Vec<i64>)| Cloud {
        label: format!("cause {number}"),
        points: (0..).step_by(977_777).zip(values.iter().copied()).collect(),
        ..Cloud::default()
    };
    OverTime {
        chart: chart("Jumps over time", "time", "length"),
        clouds: sets.iter().enumerate().map(cloud).collect(),
    }
}

/// Percentiles of 60 intervals of a second; the third has none, and the last is alone behind another without.
fn by_interval(lines: usize) -> ByInterval {
    let value = |line: usize, second: usize| {
        let is_empty = second == 2 || second == 58;
        (!is_empty).then(|| 4e4 * (line + 1) as f64 + 300.0 * (second % 7) as f64)
    };
    let line = |line: usize| IntervalLine {
        label: format!("set 0, p{line}"),
        values: (0..60)
            .map(|second| (1e9 * (second as f64 + 0.5), value(line, second)))
            .collect(),
    };
    ByInterval {
        chart: chart(
            "Latency by interval",
            "time since the round began",
            "latency",
        ),
        lines: (0..lines).map(line).collect(),
        end_ns: 6e10,
    }
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

fn bounds(text: &Text) -> [f64; 4] {
    let width = font::width(&text.text, text.em);
    let (before, behind) = match text.anchor {
        Anchor::Start => (0.0, width),
        Anchor::Middle => (width / 2.0, width / 2.0),
        Anchor::End => (width, 0.0),
    };
    let (x, y, above, below) = (text.x, text.y, 0.76 * text.em, 0.22 * text.em);
    match text.upwards {
        true => [x - above, y - behind, x + below, y + before],
        false => [x - before, y - above, x + behind, y + below],
    }
}

/// Nothing is outside, no text covers another, and all numbers are numbers.
#[track_caller]
fn assert_sound(drawing: &Drawing) {
    let finite = |points: &[(f64, f64)]| points.iter().all(|(x, y)| x.is_finite() && y.is_finite());
    for shape in &drawing.shapes {
        let is_finite = match shape {
            Shape::Path { points, .. } | Shape::Area { points, .. } => finite(points),
            Shape::Dot { at, radius, .. } => finite(&[*at]) && radius.is_finite(),
            Shape::Text(text) => finite(&[(text.x, text.y)]),
        };
        assert!(is_finite, "{shape:?}");
    }
    let mut seen: Vec<(&Text, [f64; 4])> = Vec::new();
    for text in drawing.texts() {
        let [left, top, right, bottom] = bounds(text);
        let is_whole =
            left >= 0.0 && top >= 0.0 && right <= drawing.width && bottom <= drawing.height;
        assert!(is_whole, "{text:?} of {:?} is cut off", drawing.title);
        let number = !text.text.contains("NaN") && !text.text.contains("inf");
        assert!(number, "{text:?}");
        for (other, [l, t, r, b]) in &seen {
            let beside =
                right <= l + 0.5 || *r <= left + 0.5 || bottom <= t + 0.5 || *b <= top + 0.5;
            assert!(beside, "{text:?} covers {other:?} in {:?}", drawing.title);
        }
        seen.push((text, [left, top, right, bottom]));
    }
}

#[test]
fn no_text_is_cut_off_or_covered() {
    let sets: Vec<Vec<i64>> = (1..=3).map(|set| samples(set, 3000)).collect();
    let (mut lines, mut ground) = (medians(3, false), [surface(0.3), surface(0.0)]);
    lines.lines[1].middles[4].incomplete = true;
    for surface in &mut ground {
        surface.heights[0][0].as_mut().unwrap().incomplete = true;
    }
    for size in [SIZE, (640, 480), (1600, 900), ONE_COLUMN, TWO_COLUMNS] {
        let sets = if size == ONE_COLUMN {
            &sets[..2]
        } else {
            &sets
        };
        let few = if size == ONE_COLUMN { 2 } else { 3 };
        for drawn in [
            histogram(sets, (20_000.0, 60_000.0)).draw(size),
            histogram(sets, (0.0, 10_000.0)).draw(size),
            medians(few, false).draw(size),
            lines.draw(size.max((600, 400))),
            medians(2, true).draw(size.max((600, 400))),
            loads(few).draw(size.max((336, 400))),
            family(few).draw(size.max((336, 400))),
            surface(0.3).draw(size),
            ground[0].draw(size),
            ground[1].draw(size),
            ecdf(sets).ecdf(size),
            percentiles(sets).percentiles(size),
            over_time(sets).draw(size),
            by_interval(4).draw(size),
        ] {
            assert_sound(&drawn.unwrap());
        }
    }
}
