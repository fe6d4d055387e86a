//! The data that is drawn, and where.

use crate::testing::Refused as _;
use std::collections::HashSet;

use super::drawing::Colour;
use super::palette::{graded, heat};
use super::scale::ScaleKind;
use super::*;

fn place<'a>(drawing: &'a Drawing, text: &str) -> &'a Text {
    drawing.texts().find(|it| it.text == text).expect(text)
}

#[test]
fn bins_hold_what_lies_in_them() {
    let sorted = [-5, 0, 9, 10, 10, 19, 95, 99, 100, 101, 5000];
    let counted = |range, bins| Distribution::of_sorted("x", &sorted, 2, range, bins);
    let found = counted((0.0, 100.0), 10);
    assert_eq!(found.counts, [2, 3, 0, 0, 0, 0, 0, 0, 0, 3]);
    let counts = (found.below, found.above, found.total, found.lost);
    assert_eq!(counts, (1, 2, 11, 2));
    assert_eq!((found.median, found.max), (Some(19.0), Some(5000)));
    for bins in [1, 3, 7, 100] {
        let found = counted((-2.5, 99.9), bins);
        let inside: u64 = found.counts.iter().sum();
        assert_eq!(inside + found.below + found.above, 11);
    }
}

#[test]
fn the_box_tells_the_share_outside_and_a_line_stands_at_the_median() {
    let mut sorted = vec![4000; 990];
    sorted.extend([12_000; 10]);
    let drawing = histogram(&[sorted], (0.0, 10_000.0)).draw(SIZE).unwrap();
    let median = "set 0: median 4 µs";
    has(&drawing, &["above 10 µs", "1.0 %", "12 µs", "max", median]);
    let axes = ["one-way latency (ns)", "share of messages (%)", "10000"];
    has(&drawing, &axes);
    let (median, ..) = paths(&drawing).find(|(_, width, _)| *width == 1.8).unwrap();
    assert!((median[0].0 - place(&drawing, "4000").x).abs() < 0.01);
    // One bin holds something: one outline of four corners.
    let outlines = |drawing: &Drawing| -> Vec<usize> {
        let outlines = areas(drawing).filter(|(_, colour)| colour.3 == 0.28);
        outlines.map(|(points, _)| points.len()).collect()
    };
    assert_eq!(outlines(&drawing), [4]);
    let apart = histogram(&[vec![100, 300, 5000, 5200, 5400, 9999]], (0.0, 10_000.0));
    // 100 and 300 in neighbouring bins, three more, and one alone.
    assert_eq!(outlines(&apart.draw(SIZE).unwrap()), [6, 8, 4]);

    let drawn = |range| histogram(&[vec![100, 5000, 6000, 20_000]], range).draw(SIZE);
    let both = drawn((1000.0, 6000.0)).unwrap();
    has(&both, &["below 1 µs", "above 6 µs", "25.0 %"]);
    assert!(!says(&drawn((0.0, 6000.0)).unwrap(), "below"));
}

#[test]
fn bars_reach_from_the_10th_to_the_90th_percentile_and_marks_stand_on_them_around_their_number() {
    let mut figure = medians(3, false);
    figure.chart.range = Some((0.0, 10_000.0));
    figure.chart.scale = Some(ScaleKind::Linear);
    for line in &mut figure.lines {
        line.middles = vec![MedianMark {
            x: 64.0,
            value: 4000.0,
            most: Some((2000.0, 8000.0)),
            interval: None,
            incomplete: false,
        }];
    }
    let drawing = figure.draw(SIZE).unwrap();
    let first = palette::look((0, 0)).colour;
    let (bar, ..) = paths(&drawing)
        .find(|(_, width, colour)| *width == 1.2 && *colour == first)
        .unwrap();
    let middle = |text: &str| bounds(place(&drawing, text))[1] + 0.41 * frame::TICK_EM;
    let ends = (bar[0].1 - middle("2000"), bar[1].1 - middle("8000"));
    assert!(ends.0.abs() < 1.0 && ends.1.abs() < 1.0, "{bar:?}");
    // The bars and marks of three lines stand beside each other, around their number.
    let under_marks = drawing.shapes.iter().filter_map(|shape| match shape {
        Shape::Dot { at, radius, .. } if *radius == 5.4 => Some(at.0),
        _ => None,
    });
    let under_marks: Vec<f64> = under_marks.collect();
    let beside = |x: &f64| x - place(&drawing, "64 B").x;
    let beside: Vec<f64> = under_marks.iter().map(beside).collect();
    assert!(beside.len() == 3 && beside[1].abs() < 1e-9, "{beside:?}");
    assert!((beside[0] + beside[2]).abs() < 1e-9, "{beside:?}");
    assert!(beside[2] > 3.0, "{beside:?}");
    assert!((bar[0].0 - under_marks[0]).abs() < 1e-9, "{bar:?}");
}

#[test]
fn curves_are_those_of_the_samples() {
    let sorted: Vec<i64> = (1..=10_000).collect();
    let points = shares_of_sorted(&sorted);
    assert!(points.len() <= 2001);
    assert_eq!(points[0], (1.0, 0.0001));
    assert_eq!(points.last(), Some(&(10_000.0, 1.0)));
    let is_exact = |&(value, share): &(f64, f64)| (share - value / 10_000.0).abs() < 1e-12;
    assert!(points.iter().all(is_exact));
    assert_eq!(shares_of_sorted(&[7; 50]), [(7.0, 1.0)]);
    let points = tail_of_sorted(&sorted);
    assert_eq!(points[0], (0.0, 1.0));
    let (share, value) = *points.last().unwrap();
    assert!((share - 0.9999).abs() < 1e-12 && (value - 9999.0).abs() < 1.1);
}

#[test]
fn a_line_has_a_gap_where_an_interval_has_no_percentile() {
    let drawing = by_interval(2).draw(SIZE).unwrap();
    has(
        &drawing,
        &[
            "time since the round began (s)",
            "60",
            "set 0, p0",
            "set 0, p1",
        ],
    );
    let first = palette::look((0, 0)).colour;
    let lines = paths(&drawing).filter(|(_, width, colour)| *width == 1.5 && *colour == first);
    let lengths: Vec<usize> = lines.map(|(points, ..)| points.len()).collect();
    assert_eq!(lengths, [2, 55]);
    // What is alone between two gaps is a mark.
    let marks = drawing
        .shapes
        .iter()
        .filter(|shape| matches!(shape, Shape::Dot { radius, .. } if *radius == 2.4));
    assert_eq!(marks.count(), 1);
    let mut none = by_interval(1);
    none.lines[0].values.iter_mut().for_each(|it| it.1 = None);
    none.draw(SIZE).refused(&["no samples"]);
    by_interval(15)
        .draw(SIZE)
        .refused(&["15 percentiles of points"]);
}

fn paths(drawing: &Drawing) -> impl Iterator<Item = (&[(f64, f64)], f64, Colour)> {
    drawing.shapes.iter().filter_map(|shape| match shape {
        Shape::Path {
            points,
            width,
            colour,
        } => Some((&points[..], *width, *colour)),
        _ => None,
    })
}

fn areas(drawing: &Drawing) -> impl Iterator<Item = (&[(f64, f64)], Colour)> {
    drawing.shapes.iter().filter_map(|shape| match shape {
        Shape::Area { points, colour } => Some((&points[..], *colour)),
        _ => None,
    })
}

#[test]
fn under_load_marks_stand_at_what_was_delivered_and_lines_lead_to_what_was_offered() {
    let drawing = loads(1).draw(SIZE).unwrap();
    has(&drawing, &["delivered in the background (MB/s)", "12"]);
    let at = |text| place(&drawing, text).x;
    // The last step delivers 9 MB/s of 12.
    let levels =
        paths(&drawing).filter(|(points, width, _)| *width == 1.0 && points[0].1 == points[1].1);
    let longest = levels.map(|(points, ..)| (points[0].0, points[1].0));
    let longest = longest.max_by(|one, other| (one.1 - one.0).total_cmp(&(other.1 - other.0)));
    let (from, to) = longest.unwrap();
    let per_unit = (at("12") - at("10")) / 2.0;
    assert!((from - (at("10") - per_unit)).abs() < 0.1 && (to - at("12")).abs() < 0.1);
    let curve = paths(&drawing)
        .find(|(_, width, _)| *width == 1.8)
        .unwrap()
        .0;
    let zero = at("10") - 10.0 * per_unit;
    assert!((curve[0].0 - zero).abs() < 0.1 && (curve[3].0 - from).abs() < 0.1);
    // Far more than the path takes is not drawn to its end, and that is told.
    let mut figure = loads(2);
    figure.lines[0].steps[3].offered = 9e9;
    let told = "1 thin line goes on outside of the axis: up to 9000 MB/s was offered";
    assert!(says(&figure.draw(SIZE).unwrap(), told));
}

#[test]
fn the_surface_is_darker_where_more_was_lost() {
    let mut figure = surface(0.3);
    let drawing = figure.draw(SIZE).unwrap();
    let wall = Colour(0xf6, 0xf6, 0xf6, 1.0);
    let pieces = areas(&drawing).filter(|(points, colour)| points[0].0 > 30.0 && *colour != wall);
    let pieces: Vec<Colour> = pieces.map(|(_, colour)| colour).collect();
    // Six by three pieces, of which the one hole takes four, three of them as triangles; then the bar of 48 steps.
    assert_eq!(pieces.len(), 18 + 48);
    let light = pieces[..18].iter().map(|piece| piece.lightness());
    let dark = light.clone().fold(100.0, f64::min);
    assert!(light.fold(0.0, f64::max) - dark > 30.0);

    // What lost everything is a square on the ground, and the scale reaches to it.
    let is_square = |points: &[(f64, f64)]| {
        let side = |end: f64| (end - 10.0).abs() < 1e-6;
        let corner = points.get(2).filter(|_| points.len() == 4);
        corner.is_some_and(|it| side(it.0 - points[0].0) && side(it.1 - points[0].1))
    };
    assert!(!areas(&drawing).any(|(points, _)| is_square(points)));
    figure.heights[1][1] = Some(Height {
        value: None,
        share: 1.0,
        incomplete: false,
    });
    let drawing = figure.draw(SIZE).unwrap();
    let squares = areas(&drawing).filter(|(points, _)| is_square(points));
    assert!(squares.map(|(_, colour)| colour).eq([heat(1.0)]));
    has(&drawing, &["100 %"]);
}

#[test]
fn points_are_thinned_to_what_can_be_seen_and_keep_their_extremes() {
    let mut thinned = time::ThinnedCloud::new(String::new(), SIZE, Some((0.0, 10.0)));
    (0..100).for_each(|at| thinned.push((at, at)));
    assert_eq!(thinned.cloud.outside, 89);

    let mut thinned = time::ThinnedCloud::new(String::new(), SIZE, None);
    let count = 3 * time::ThinnedCloud::KEPT as i64;
    let value = |at: i64| match at {
        700_000 => 90_000_000,
        900_000 => -5,
        _ => 1000 + at * 7919 % 5000,
    };
    for at in 0..count {
        thinned.push((at, value(at)));
    }
    let points = thinned.cloud.points;
    assert!(
        points.len() < 2 * time::ThinnedCloud::KEPT,
        "{}",
        points.len()
    );
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
fn what_a_range_leaves_out_is_told() {
    let on_surface = |range| {
        let mut figure = surface(0.3);
        figure.chart.range = Some(range);
        figure.draw(SIZE)
    };
    // Only triangles have their first point twice among four.
    let triangles = |drawing: &Drawing| {
        let is_one = |points: &[(f64, f64)]| points.len() == 4 && points[0] == points[3];
        areas(drawing).filter(|(points, _)| is_one(points)).count()
    };
    let highest = 20_000.0 + 4000.0 * 18.0;
    let drawing = on_surface((20_000.0, highest)).unwrap();
    assert!(triangles(&drawing) == 0 && !says(&drawing, "outside"));
    // 12 and 15 are the next lower products.
    let drawing = on_surface((20_000.0, highest - 1.0)).unwrap();
    assert!(triangles(&drawing) == 1 && says(&drawing, "1 point lies outside of the range"));
    on_surface((1.0, 2.0)).refused(&["none of the heights is in it"]);

    let of_medians = |range| {
        let mut figure = medians(1, false);
        figure.chart.range = Some(range);
        figure.draw(SIZE)
    };
    let of_tails = |upper: i64, high| {
        let mut figure = percentiles(&[vec![1; 100], (upper - 99..=upper).collect()]);
        figure.chart.range = Some((0.0, high));
        figure.percentiles(SIZE)
    };
    let of_marks = |range, outside| {
        let mut figure = over_time(&[vec![-1, 0, 5, 6]]);
        (figure.chart.scale, figure.chart.range) = (Some(ScaleKind::Log), range);
        figure.clouds[0].outside = outside;
        figure.draw(SIZE)
    };
    let middle = medians(1, false).lines[0].middles[0];
    for (drawn, told) in [
        // 2000 and a tenth of the size: all but those up to 1000 bytes.
        (of_medians((0.0, 2100.0)), "6 marks lie outside of the axis"),
        (
            of_medians((middle.value * 0.9 + 1.0, 1e9)),
            "1 bar goes on outside of the axis",
        ),
        (of_tails(500, 2.0), "1 curve lies outside"),
        (of_tails(100, 50.0), "1 curve goes on outside of the axis"),
        (of_marks(None, 0), "2 samples lie outside"),
        (of_marks(Some((1.0, 5.5)), 3), "3 samples lie outside"),
        // In the range, but a logarithmic axis has no place for them.
        (of_marks(Some((-1.0, 6.0)), 0), "2 samples lie outside"),
    ] {
        assert!(says(&drawn.unwrap(), told), "{told}");
    }
    assert!(!says(&of_tails(100, 100.0).unwrap(), "outside"));

    // A curve beyond the range stays at 0 %.
    let mut figure = ecdf(&[vec![1; 10], vec![5; 10]]);
    figure.chart.range = Some((0.0, 2.0));
    let drawing = figure.ecdf(SIZE).unwrap();
    let of_second = palette::look((1, 0)).colour;
    assert!(paths(&drawing).any(|(_, width, colour)| width == 1.8 && colour == of_second));
}

#[test]
fn curves_of_a_family_keep_the_order_of_load_and_those_of_others_are_dashed() {
    let mut figure = family(3);
    let drawing = figure.draw(SIZE).unwrap();
    has(
        &drawing,
        &[
            "0 % reads",
            "100 % reads",
            "in-cache",
            "published: curves.csv",
            "estimated bandwidth (GB/s)",
        ],
    );
    let lines = |width: f64| -> Vec<Vec<(f64, f64)>> {
        let of_width =
            paths(&drawing).filter(|(points, its, _)| *its == width && points.len() == 6);
        of_width.map(|(points, ..)| points.to_vec()).collect()
    };
    // One of three was not smoothed: its line is thin, and as it is of another kind, has dashes.
    let thin = paths(&drawing).filter(|(_, width, colour)| *width == 0.8 && *colour == graded(0.5));
    let smoothed = lines(2.0);
    assert!(smoothed.len() == 2 && thin.count() > 10);
    for line in &smoothed {
        let steps: Vec<bool> = line.windows(2).map(|pair| pair[1].0 > pair[0].0).collect();
        assert_eq!(steps, [true, true, true, false, false]);
        let falls = line.windows(2).all(|pair| pair[1].1 < pair[0].1);
        assert!(falls, "upwards: {line:?}");
    }
    // What lies outside of the range is told.
    figure.chart.range = Some((0.0, 300.0));
    let drawing = figure.draw(SIZE).unwrap();
    assert!(says(&drawing, "outside of the axis"));
    figure.curves.clear();
    figure.published.clear();
    figure
        .draw(SIZE)
        .refused(&["no point has a bandwidth and a latency"]);
}
