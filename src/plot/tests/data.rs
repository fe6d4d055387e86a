//! The data that is drawn, and where.

use std::collections::HashSet;

use super::drawing::Colour;
use super::palette::heat;
use super::scale::Kind;
use super::*;

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
    let median = "set 0: median 4 µs";
    let axes = ["one-way latency (ns)", "share of messages (%)", "10000"];
    has(&drawing, &["above 10 µs", "1.0 %", "12 µs", "max", median]);
    has(&drawing, &axes);
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
        interval: None,
        incomplete: false,
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
    let points = shares_of_sorted(&sorted);
    assert!(points.len() <= 2001);
    assert_eq!(points[0], (1.0, 0.0001));
    assert_eq!(points.last(), Some(&(10_000.0, 1.0)));
    let is_exact = |&(value, share): &(f64, f64)| (share - value / 10_000.0).abs() < 1e-12;
    assert!(points.iter().all(is_exact));
    assert_eq!(shares_of_sorted(&[7; 50]), [(7.0, 1.0)]);
    let points = tail_of_sorted(&sorted);
    assert_eq!(points[0], (0.0, 1.0));
    let last = points.last().unwrap();
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
    let told = ["lost messages", "message size", "messages in a burst"];
    has(&drawing, &told);
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
        incomplete: false,
    });
    let drawing = figure.draw(DEFAULT_SIZE).unwrap();
    assert_eq!(squares(&drawing, 10.0), [heat(1.0).lightness()]);
    // The scale reaches to what was worst.
    has(&drawing, &["100 %"]);
    for height in figure.heights.iter_mut().flatten().flatten() {
        height.value = None;
    }
    refused(figure.draw(DEFAULT_SIZE), "there is nothing to draw");
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
        has(&drawing.unwrap(), &[entry]);
    }
}

#[test]
fn samples_below_the_range_are_told() {
    let samples = [vec![100, 5000, 6000, 20_000]];
    let drawn = |range| histogram(&samples, range).draw(DEFAULT_SIZE).unwrap();
    let both = drawn((1000.0, 6000.0));
    has(&both, &["below 1 µs", "above 6 µs", "25.0 %"]);
    assert!(!says(&drawn((0.0, 6000.0)), "below"));
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

/// The middles of rings: closed lines of as many corners.
fn rings(drawing: &Drawing) -> Vec<(f64, f64)> {
    let ring = |shape: &Shape| match shape {
        Shape::Path { points, .. } if points.len() == frame::RING_CORNERS + 1 => {
            let across = points[frame::RING_CORNERS / 2];
            Some((
                (points[0].0 + across.0) / 2.0,
                (points[0].1 + across.1) / 2.0,
            ))
        }
        _ => None,
    };
    drawing.shapes.iter().filter_map(ring).collect()
}

#[test]
fn a_ring_is_around_what_is_incomplete_and_the_legend_says_so() {
    let mut figure = medians(2, false);
    let whole = figure.draw(DEFAULT_SIZE).unwrap();
    assert!(rings(&whole).is_empty() && !says(&whole, "incomplete"));
    figure.lines[1].middles[4].incomplete = true;
    let drawing = figure.draw(DEFAULT_SIZE).unwrap();
    assert_sound(&drawing);
    // In the legend, and around the mark.
    let [sign, around] = rings(&drawing)[..] else {
        panic!("{:?}", rings(&drawing))
    };
    let sizes = drawing.texts().find(|text| text.text == figure.ticks[4].1);
    assert!((sizes.unwrap().x - around.0).abs() < 0.01, "{around:?}");
    let entry = drawing
        .texts()
        .find(|text| text.text == "incomplete")
        .unwrap();
    assert!((entry.y - sign.1).abs() < 8.0 && (0.0..40.0).contains(&(entry.x - sign.0)));

    for worst in [0.0, 0.3] {
        let mut figure = surface(worst);
        assert!(rings(&figure.draw(DEFAULT_SIZE).unwrap()).is_empty());
        let all = |figure: &Surface| rings(&figure.draw(DEFAULT_SIZE).unwrap()).len();
        figure.heights[0][0].as_mut().unwrap().incomplete = true;
        let drawing = figure.draw(DEFAULT_SIZE).unwrap();
        assert_sound(&drawing);
        assert!(says(&drawing, "incomplete"));
        assert_eq!(rings(&drawing).len(), 2);
        figure.heights[0][0].as_mut().unwrap().value = None;
        assert_eq!(all(&figure), 2);
    }
}

/// Triangles are the only areas with a first point twice among four.
fn triangles(drawing: &Drawing) -> usize {
    let is_one = |shape: &&Shape| match shape {
        Shape::Area { points, colour } => {
            points.len() == 4 && points[0] == points[3] && *colour == Colour::WHITE
        }
        _ => false,
    };
    drawing.shapes.iter().filter(is_one).count()
}

#[test]
fn what_a_range_leaves_out_is_told() {
    let mut figure = surface(0.3);
    let highest = 20_000.0 + 4000.0 * 18.0;
    figure.range = Some((20_000.0, highest));
    let drawing = figure.draw(DEFAULT_SIZE).unwrap();
    assert!(triangles(&drawing) == 0 && !says(&drawing, "outside"));
    // 12 and 15 are the next lower products.
    figure.range = Some((20_000.0, highest - 1.0));
    let drawing = told(
        figure.draw(DEFAULT_SIZE),
        "1 point lies outside of the range",
    );
    assert_eq!(triangles(&drawing), 1);
    figure.range = Some((1.0, 2.0));
    refused(figure.draw(DEFAULT_SIZE), "none of the medians is in it");

    let mut figure = medians(1, false);
    figure.range = Some((0.0, 2100.0));
    // 2000 and a tenth of the size: those up to 1000 bytes.
    let left_out = figure.ticks.iter().filter(|tick| tick.0 > 1000.0).count();
    let note = format!("{left_out} medians lie outside of the axis");
    told(figure.draw(DEFAULT_SIZE), &note);
    let middle = figure.lines[0].middles[0];
    let (low, _) = middle.most.unwrap();
    figure.range = Some((low + 1.0, 1e9));
    told(
        figure.draw(DEFAULT_SIZE),
        "1 bar goes on outside of the axis",
    );

    let mut figure = percentiles(&[vec![1; 10], vec![5; 10]]);
    figure.range = Some((0.0, 2.0));
    told(figure.draw(DEFAULT_SIZE), "1 curve lies outside");
    let mut figure = percentiles(&[vec![1; 100], (1..=100).collect()]);
    figure.range = Some((0.0, 50.0));
    told(
        figure.draw(DEFAULT_SIZE),
        "1 curve goes on outside of the axis",
    );
    figure.range = Some((0.0, 100.0));
    assert!(!says(&figure.draw(DEFAULT_SIZE).unwrap(), "outside"));
    let mut figure = over_time(&[vec![-1, 0, 5, 6]]);
    figure.scale = Some(Kind::Log);
    told(figure.draw(DEFAULT_SIZE), "2 samples lie outside");
    figure.range = Some((1.0, 5.5));
    figure.clouds[0].outside = 3;
    told(figure.draw(DEFAULT_SIZE), "3 samples lie outside");
    // In the range, but a logarithmic axis has no place for them.
    figure.range = Some((-1.0, 6.0));
    figure.clouds[0].outside = 0;
    told(figure.draw(DEFAULT_SIZE), "2 samples lie outside");

    // A curve beyond the range stays at 0 %.
    let mut figure = ecdf(&[vec![1; 10], vec![5; 10]]);
    figure.range = Some((0.0, 2.0));
    let drawing = figure.draw(DEFAULT_SIZE).unwrap();
    let colour = palette::look(1).colour;
    let drawn = drawing.shapes.iter().filter(|shape| match shape {
        Shape::Path {
            colour: its, width, ..
        } => *its == colour && *width == 1.8,
        _ => false,
    });
    assert!(drawn.count() > 0);
}

#[test]
fn samples_outside_are_counted_while_they_are_thinned() {
    let mut thinned = time::Thinned::new(DEFAULT_SIZE, Some((0.0, 10.0)));
    (0..100).for_each(|at| thinned.push((at, at)));
    assert_eq!(thinned.outside(), 89);
}

#[test]
fn long_names_of_places_stand_whole_in_upright_lines() {
    let mut figure = medians(1, true);
    let name = |place| {
        (
            f64::from(place),
            format!("interrupts {place} LOC virtio1-request.0"),
        )
    };
    figure.ticks = (0..10).map(name).collect();
    let drawing = figure.draw(DEFAULT_SIZE).unwrap();
    assert_sound(&drawing);
    let upright: Vec<&Text> = drawing.texts().filter(|text| text.upwards).collect();
    assert!(upright.len() > 20, "{}", upright.len());
    assert!(
        upright.iter().all(|text| !text.text.contains('…')),
        "{upright:?}"
    );
}
