//! What is drawn: the data, the places of texts, and that what leaves the program can be read by others.

use std::collections::HashSet;

use super::drawing::{Colour, Shape, Text};
use super::ecdf::{Curve, Ecdf};
use super::histogram::{Distribution, Histogram};
use super::median::{Line, Medians, Middle};
use super::palette::heat;
use super::percentiles::{Percentiles, Tail};
use super::scale::{Kind, Unit};
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
    }
}

fn surface(worst: f64) -> Surface {
    let height = |x: usize, y: usize| {
        let hole = x == 3 && y == 2;
        (!hole).then_some(Height {
            value: Some(20_000.0 + 4000.0 * (x * y) as f64),
            share: worst * (x + y) as f64 / 10.0,
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

fn ecdf(sets: &[Vec<i64>]) -> Ecdf {
    Ecdf {
        words: words("One-way latency"),
        value: "one-way latency".into(),
        share: "share of messages up to it".into(),
        unit: Unit::Nanoseconds,
        range: None,
        scale: None,
        curves: sets
            .iter()
            .enumerate()
            .map(|(number, sorted)| Curve::of_sorted(&format!("set {number}"), sorted))
            .collect(),
    }
}

fn percentiles(sets: &[Vec<i64>]) -> Percentiles {
    Percentiles {
        words: words("One-way latency"),
        value: "one-way latency".into(),
        unit: Unit::Nanoseconds,
        range: None,
        scale: None,
        curves: sets
            .iter()
            .enumerate()
            .map(|(number, sorted)| Tail::of_sorted(&format!("set {number}"), sorted))
            .collect(),
    }
}

fn over_time(sets: &[Vec<i64>]) -> OverTime {
    let cloud = |(number, values): (usize, &Vec<i64>)| Cloud {
        label: format!("cause {number}"),
        lost: 0,
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
    }
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

fn parse(svg: &str) -> roxmltree::Document<'_> {
    roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error}\n{svg}"))
}

#[test]
fn svg_is_xml_that_needs_nothing_from_elsewhere() {
    for drawing in all_figures(DEFAULT_SIZE) {
        let text = svg(&drawing).unwrap();
        let document = parse(&text);
        let root = document.root_element();
        assert_eq!(
            (root.attribute("width"), root.attribute("height")),
            (Some("900"), Some("560"))
        );
        let found: Vec<String> = root
            .descendants()
            .filter(|node| node.has_tag_name("text"))
            .map(|node| node.text().unwrap().trim().to_owned())
            .collect();
        let drawn: Vec<String> = drawing.texts().map(|text| text.text.clone()).collect();
        assert_eq!(found, drawn);
        assert!(!text.contains("href") && !text.contains("<script") && !text.contains("<image"));
        assert!(!text.contains("NaN"));
    }
}

#[test]
fn names_cannot_break_the_document() {
    let nasty = "</text><script>alert(\"x\")</script> & 'q' \u{1}\u{0}\u{fffe} \t\n Größe 日本";
    let mut figure = ecdf(&[samples(1, 100), samples(2, 100)]);
    figure.curves[0].label = nasty.to_owned();
    figure.words.title = nasty.to_owned();
    let text = svg(&figure.draw(DEFAULT_SIZE).unwrap()).unwrap();
    let document = parse(&text);
    assert!(
        document
            .descendants()
            .all(|node| !node.has_tag_name("script"))
    );
    let title = document
        .descendants()
        .find(|node| node.has_tag_name("title"))
        .unwrap();
    assert!(title.text().unwrap().contains("alert(\"x\")"));
    png(&figure.draw(DEFAULT_SIZE).unwrap()).unwrap();
}

#[test]
fn a_png_has_its_size_and_text_in_it() {
    let drawing = medians(3, false).draw((600, 400)).unwrap();
    let bytes = png(&drawing).unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(&bytes))
        .read_info()
        .unwrap();
    assert_eq!((reader.info().width, reader.info().height), (1200, 800));
    // 192 pixels to the inch.
    assert_eq!(reader.info().pixel_dims.unwrap().xppu, 7559);
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    let dark_within = |bounds: [f64; 4]| {
        let [left, top, right, bottom] = bounds.map(|side| (side * 2.0) as usize);
        let places = (top..bottom).flat_map(|y| (left..right).map(move |x| (y * 1200 + x) * 3));
        places.filter(|&place| pixels[place] < 140).count()
    };
    for text in drawing.texts() {
        assert!(
            dark_within(text.bounds()) > 5,
            "{:?} is not to be seen",
            text.text
        );
    }
    // Nothing is between title and subtitle: letters stand where they are said to stand.
    let title = drawing.texts().next().unwrap();
    let [left, top, right, bottom] = title.bounds();
    assert_eq!(dark_within([left, bottom + 0.5, right, bottom + 4.0]), 0);
    assert_eq!(dark_within([left, top - 8.0, right, top - 1.0]), 0);
    assert!(dark_within([left, title.y - 2.0, right, title.y]) > 5);
    assert!(dark_within([left, top, right, top + 3.5]) > 5);
}

#[test]
fn bins_hold_what_lies_in_them() {
    let sorted = [-5, 0, 9, 10, 10, 19, 95, 99, 100, 101, 5000];
    let found = Distribution::of_sorted("x", &sorted, 2, (0.0, 100.0), 10);
    assert_eq!(found.counts, [2, 3, 0, 0, 0, 0, 0, 0, 0, 3]);
    assert_eq!(
        (found.below, found.above, found.total, found.lost),
        (1, 2, 11, 2)
    );
    assert_eq!((found.median, found.max), (Some(19.0), Some(5000)));
    assert_eq!(found.share_above(), 2.0 / 11.0);
    let sum = |found: &Distribution| found.counts.iter().sum::<u64>() + found.below + found.above;
    assert_eq!(sum(&found), found.total);
    for bins in [1, 3, 7, 100] {
        assert_eq!(
            sum(&Distribution::of_sorted(
                "x",
                &sorted,
                0,
                (-2.5, 99.9),
                bins
            )),
            11
        );
    }
}

#[test]
fn the_box_tells_the_share_above_and_the_maximum_and_a_line_stands_at_the_median() {
    let mut sorted = vec![4000; 990];
    sorted.extend([12_000; 10]);
    let figure = histogram(&[sorted], (0.0, 10_000.0));
    let drawing = figure.draw(DEFAULT_SIZE).unwrap();
    let texts: Vec<&str> = drawing.texts().map(|text| text.text.as_str()).collect();
    for wanted in [
        "above 10 µs",
        "1.0 %",
        "12 µs",
        "max",
        "set 0: median 4 µs",
        "one-way latency (ns)",
        "share of messages (%)",
        "10000",
    ] {
        assert!(texts.contains(&wanted), "{wanted}: {texts:?}");
    }
    let place = |text: &str| drawing.texts().find(|it| it.text == text).unwrap().x;
    let median = drawing.shapes.iter().find_map(|shape| match shape {
        Shape::Path { points, width, .. } if *width == 1.8 => Some(points[0].0),
        _ => None,
    });
    assert!((median.unwrap() - place("4000")).abs() < 0.01);
    // One bin holds something: one outline of four corners.
    let outlines = |drawing: &Drawing| -> Vec<usize> {
        let of = |shape: &Shape| match shape {
            Shape::Area { points, colour } if colour.3 == 0.28 => Some(points.len()),
            _ => None,
        };
        drawing.shapes.iter().filter_map(of).collect()
    };
    assert_eq!(outlines(&drawing), [4]);
    let apart = histogram(&[vec![100, 300, 5000, 5200, 5400, 9999]], (0.0, 10_000.0))
        .draw(DEFAULT_SIZE)
        .unwrap();
    // 100 and 300 in neighbouring bins, three more, and one alone.
    assert_eq!(outlines(&apart), [6, 8, 4]);
}

#[test]
fn bars_reach_from_the_10th_to_the_90th_percentile() {
    let mut figure = medians(1, false);
    figure.range = Some((0.0, 10_000.0));
    figure.scale = Some(Kind::Linear);
    figure.lines[0].middles = vec![Middle {
        x: 64.0,
        median: 4000.0,
        most: Some((2000.0, 8000.0)),
    }];
    let drawing = figure.draw(DEFAULT_SIZE).unwrap();
    let height = |text: &str| drawing.texts().find(|it| it.text == text).unwrap().bounds();
    let bar = drawing.shapes.iter().find_map(|shape| match shape {
        Shape::Path {
            points,
            width,
            colour,
        } if *width == 1.2 && *colour == palette::look(0).colour => Some(points.clone()),
        _ => None,
    });
    let bar = bar.unwrap();
    let middle = |text: &str| height(text)[1] + 0.41 * frame::TICK_EM;
    assert!(
        (bar[0].1 - middle("2000")).abs() < 1.0 && (bar[1].1 - middle("8000")).abs() < 1.0,
        "{bar:?}"
    );
}

#[test]
fn curves_are_those_of_the_samples() {
    let sorted: Vec<i64> = (1..=10_000).collect();
    let curve = Curve::of_sorted("x", &sorted);
    assert!(curve.points.len() <= 2001);
    assert_eq!(
        (curve.points[0], *curve.points.last().unwrap()),
        ((1.0, 0.0001), (10_000.0, 1.0))
    );
    assert!(
        curve
            .points
            .iter()
            .all(|&(value, share)| (share - value / 10_000.0).abs() < 1e-12)
    );
    let same = Curve::of_sorted("x", &[7; 50]);
    assert_eq!(same.points, [(7.0, 1.0)]);
    let tail = Tail::of_sorted("x", &sorted);
    assert_eq!(tail.points[0], (0.0, 1.0));
    let last = tail.points.last().unwrap();
    assert!(
        (last.0 - 0.9999).abs() < 1e-12 && (last.1 - 9999.0).abs() < 1.1,
        "{last:?}"
    );
}

#[test]
fn the_surface_is_darker_where_more_was_lost_and_hides_what_is_behind() {
    let drawing = surface(0.3).draw(DEFAULT_SIZE).unwrap();
    let pieces: Vec<(f64, f64)> = drawing
        .shapes
        .iter()
        .filter_map(|shape| match shape {
            Shape::Area { points, colour }
                if points.len() >= 3
                    && *colour != Colour(0xf6, 0xf6, 0xf6, 1.0)
                    && points[0].0 > 30.0 =>
            {
                let lowest = points.iter().map(|point| point.1).fold(0.0, f64::max);
                Some((lowest, colour.lightness()))
            }
            _ => None,
        })
        .collect();
    // Six by three pieces, of which the one hole takes four, three of them as triangles; then the bar of 48 steps.
    assert_eq!(pieces.len(), 18 + 48);
    let light = pieces[..18].iter().map(|piece| piece.1).fold(0.0, f64::max);
    let dark = pieces[..18]
        .iter()
        .map(|piece| piece.1)
        .fold(100.0, f64::min);
    assert!(light - dark > 30.0);
    let texts: Vec<&str> = drawing.texts().map(|text| text.text.as_str()).collect();
    assert!(
        texts.contains(&"lost messages")
            && texts.contains(&"message size")
            && texts.contains(&"messages in a burst"),
        "{texts:?}"
    );
}

/// The lightness of the shapes that are squares of this side.
fn squares(drawing: &Drawing, side: f64) -> Vec<f64> {
    let of = |shape: &Shape| match shape {
        Shape::Area { points, colour } if points.len() == 4 => {
            let wide = points[2].0 - points[0].0;
            let high = points[2].1 - points[0].1;
            ((wide - side).abs() < 1e-6 && (high - side).abs() < 1e-6).then(|| colour.lightness())
        }
        _ => None,
    };
    drawing.shapes.iter().filter_map(of).collect()
}

#[test]
fn what_lost_everything_is_on_the_surface_and_in_its_scale() {
    let mut figure = surface(0.1);
    assert!(squares(&figure.draw(DEFAULT_SIZE).unwrap(), 10.0).is_empty());
    figure.heights[1][1] = Some(Height {
        value: None,
        share: 1.0,
    });
    let drawing = figure.draw(DEFAULT_SIZE).unwrap();
    assert_eq!(squares(&drawing, 10.0), [heat(1.0).lightness()]);
    // The scale reaches to what was worst.
    assert!(drawing.texts().any(|text| text.text == "100 %"));
    for height in figure.heights.iter_mut().flatten().flatten() {
        height.value = None;
    }
    assert!(matches!(
        figure.draw(DEFAULT_SIZE),
        Err(PlotError::Nothing(_))
    ));
}

#[test]
fn lost_messages_stand_in_the_legend_of_curves_and_clouds() {
    let sets = [vec![1, 2, 3]];
    let mut figures = (ecdf(&sets), percentiles(&sets), over_time(&sets));
    figures.0.curves[0].lost = 19;
    figures.1.curves[0].lost = 19;
    figures.2.clouds[0].lost = 19;
    for (drawing, entry) in [
        (figures.0.draw(DEFAULT_SIZE), "set 0, 19 lost"),
        (figures.1.draw(DEFAULT_SIZE), "set 0, 19 lost"),
        (figures.2.draw(DEFAULT_SIZE), "cause 0, 19 lost"),
    ] {
        let drawing = drawing.unwrap();
        assert!(drawing.texts().any(|text| text.text == entry), "{entry}");
    }
}

#[test]
fn samples_below_the_range_are_told() {
    let texts = |range| {
        let figure = histogram(&[vec![100, 5000, 6000, 20_000]], range);
        let drawing = figure.draw(DEFAULT_SIZE).unwrap();
        drawing
            .texts()
            .map(|text| text.text.clone())
            .collect::<Vec<String>>()
    };
    let told = texts((1000.0, 6000.0));
    for wanted in ["below 1 µs", "above 6 µs", "25.0 %"] {
        assert!(told.iter().any(|text| text == wanted), "{wanted}: {told:?}");
    }
    let told = texts((0.0, 6000.0));
    assert!(
        !told.iter().any(|text| text.starts_with("below")),
        "{told:?}"
    );
}

#[test]
fn medians_on_an_axis_of_numbers_stand_at_their_number() {
    let mut figure = medians(3, false);
    for line in &mut figure.lines {
        line.middles.retain(|middle| middle.x == figure.ticks[0].0);
    }
    let drawing = figure.draw(DEFAULT_SIZE).unwrap();
    let under_marks: Vec<f64> = drawing
        .shapes
        .iter()
        .filter_map(|shape| match shape {
            Shape::Dot { at, radius, .. } if *radius == 5.4 => Some(at.0),
            _ => None,
        })
        .collect();
    assert_eq!(under_marks.len(), 3);
    assert!(
        under_marks
            .iter()
            .all(|x| (x - under_marks[0]).abs() < 1e-9),
        "{under_marks:?}"
    );
}

#[test]
fn points_are_thinned_to_what_can_be_seen_and_keep_their_extremes() {
    let mut thinned = time::Thinned::new(DEFAULT_SIZE, None);
    let count = 3 * time::Thinned::KEPT as i64;
    let value = |at: i64| match at {
        700_000 => 90_000_000,
        900_000 => -5,
        _ => 1000 + at * 7919 % 5000,
    };
    for at in 0..count {
        thinned.push((at, value(at)));
    }
    let points = thinned.into_points();
    assert!(points.len() < 2 * time::Thinned::KEPT, "{}", points.len());
    assert!(points.iter().all(|&(at, found)| found == value(at)));
    for at in [0, 700_000, 900_000] {
        assert!(points.contains(&(at, value(at))), "{at}");
    }
    assert!(points.last().unwrap().0 > count - 1000);
    // All of the time has points, in steps of two units of the drawing.
    let columns: HashSet<i64> = points.iter().map(|point| point.0 * 450 / count).collect();
    assert_eq!(columns.len(), 450);
}

#[test]
fn odd_data_is_drawn_or_told_and_never_breaks() {
    let odd: Vec<Vec<Vec<i64>>> = vec![
        vec![vec![1234]],
        vec![vec![0]],
        vec![vec![5000; 100]],
        vec![vec![-40, -20, 0, 30]],
        vec![vec![i64::MIN, i64::MAX]],
        vec![vec![], vec![1, 2, 3]],
        vec![vec![0, 1, 1_000_000_000]],
    ];
    for sets in &odd {
        for range in [(0.0, 10_000.0), (0.0, 1e-3), (-1e18, 1e18)] {
            assert_sound(&histogram(sets, range).draw(DEFAULT_SIZE).unwrap());
        }
        for kind in [None, Some(Kind::Linear), Some(Kind::Log)] {
            let drawn = [
                Ecdf {
                    scale: kind,
                    ..ecdf(sets)
                }
                .draw(DEFAULT_SIZE),
                Percentiles {
                    scale: kind,
                    ..percentiles(sets)
                }
                .draw(DEFAULT_SIZE),
                OverTime {
                    scale: kind,
                    ..over_time(sets)
                }
                .draw(DEFAULT_SIZE),
            ];
            for drawing in drawn {
                let drawing = drawing.unwrap();
                assert_sound(&drawing);
                assert!(!drawing.shapes.is_empty());
            }
        }
    }
    for nothing in [vec![], vec![vec![]]] {
        assert!(matches!(
            histogram(&nothing, (0.0, 1.0)).draw(DEFAULT_SIZE),
            Err(PlotError::Nothing(_))
        ));
        assert!(matches!(
            ecdf(&nothing).draw(DEFAULT_SIZE),
            Err(PlotError::Nothing(_))
        ));
        assert!(matches!(
            percentiles(&nothing).draw(DEFAULT_SIZE),
            Err(PlotError::Nothing(_))
        ));
        assert!(matches!(
            over_time(&nothing).draw(DEFAULT_SIZE),
            Err(PlotError::Nothing(_))
        ));
    }
    let mut lost = histogram(&[vec![]], (0.0, 1.0));
    lost.series[0].lost = 7;
    assert!(
        lost.draw(DEFAULT_SIZE)
            .unwrap_err()
            .to_string()
            .contains("all of 7 messages were lost")
    );
    assert!(matches!(
        medians(0, false).draw(DEFAULT_SIZE),
        Err(PlotError::Nothing(_))
    ));
    let many: Vec<Vec<i64>> = (0..15).map(|seed| samples(seed, 10)).collect();
    assert!(matches!(
        ecdf(&many).draw(DEFAULT_SIZE),
        Err(PlotError::TooMuch { found: 15, .. })
    ));
    assert!(matches!(
        histogram(&many, (0.0, 1.0)).draw(DEFAULT_SIZE),
        Err(PlotError::TooMuch { .. })
    ));
    assert!(matches!(
        ecdf(&many[..14]).draw((300, 300)),
        Err(PlotError::TooMuch { .. })
    ));
    let mut long = ecdf(&many[..2]);
    long.words.title = "long ".repeat(200);
    long.words.subtitle = "unbroken".repeat(100);
    long.words.warning = "incomplete ".repeat(100);
    long.curves[0].label = "name ".repeat(100);
    long.value = "value ".repeat(100);
    assert_sound(&long.draw(DEFAULT_SIZE).unwrap());
}

#[test]
fn files_are_written_in_either_format_or_an_error_says_why_not() {
    let folder = tempfile::tempdir().unwrap();
    let drawing = surface(0.2).draw((400, 300)).unwrap();
    for (name, begins) in [("f.svg", &b"<?xml"[..]), ("f.PNG", &b"\x89PNG"[..])] {
        let path = folder.path().join(name);
        write(&path, Format::of(&path).unwrap(), &drawing).unwrap();
        assert!(std::fs::read(&path).unwrap().starts_with(begins));
    }
    assert_eq!(Format::of("figure.pdf".as_ref()), None);
    let nowhere = folder.path().join("missing/f.svg");
    let error = write(&nowhere, Format::Svg, &drawing).unwrap_err();
    assert!(
        matches!(&error, PlotError::Report(_)) && error.to_string().contains("missing/f.svg"),
        "{error}"
    );
}
