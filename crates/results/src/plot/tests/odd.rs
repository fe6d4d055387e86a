//! Data that is out of the ordinary.

use super::scale::ScaleKind;
use super::*;
use crate::testing::Refused as _;

#[test]
fn odd_data_is_drawn_or_told_and_never_breaks() {
    let odd: [Vec<Vec<i64>>; 7] = [
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
            assert_sound(&histogram(sets, range).draw(SIZE).unwrap());
        }
        let positive = sets.iter().flatten().any(|&value| value > 0);
        // Percentiles end before the maximum.
        let nearly = |set: &Vec<i64>| set.iter().rev().nth(usize::from(set.len() == 2)) > Some(&0);
        let positive = [positive, sets.iter().any(nearly), positive];
        for kind in [None, Some(ScaleKind::Linear), Some(ScaleKind::Log)] {
            let (mut shares, mut tails, mut marks) =
                (ecdf(sets), percentiles(sets), over_time(sets));
            for chart in [&mut shares.chart, &mut tails.chart, &mut marks.chart] {
                chart.scale = kind;
            }
            let drawn = [shares.ecdf(SIZE), tails.percentiles(SIZE), marks.draw(SIZE)];
            for (drawn, positive) in drawn.into_iter().zip(positive) {
                match drawn {
                    Err(PlotError::Outside { .. }) if kind == Some(ScaleKind::Log) && !positive => {
                    }
                    drawn => assert_sound(&drawn.unwrap()),
                }
            }
        }
    }
}

#[test]
fn what_cannot_be_drawn_says_why() {
    for nothing in [vec![], vec![vec![]]] {
        for drawn in [
            histogram(&nothing, (0.0, 1.0)).draw(SIZE),
            ecdf(&nothing).ecdf(SIZE),
            percentiles(&nothing).percentiles(SIZE),
            over_time(&nothing).draw(SIZE),
        ] {
            drawn.refused(&["there is nothing to draw: no samples"]);
        }
    }
    medians(0, false)
        .draw(SIZE)
        .refused(&["no point has a median"]);
    let mut flat = surface(0.3);
    for height in flat.heights.iter_mut().flatten().flatten() {
        height.value = None;
    }
    flat.draw(SIZE).refused(&["no point has a median"]);
    let many: Vec<Vec<i64>> = (0..15).map(|set| samples(set, 10)).collect();
    ecdf(&many)
        .ecdf(SIZE)
        .refused(&["15 curves cannot be distinguished"]);
    let histograms = histogram(&many, (0.0, 1.0)).draw(SIZE);
    histograms.refused(&["15 histograms over each other cannot be"]);
    let small = ecdf(&many[..14]).ecdf((300, 300));
    small.refused(&["14 lines in the legend cannot be"]);
}

#[test]
fn long_words_are_cut_or_stand_in_lines() {
    let mut long = ecdf(&[samples(0, 10), samples(1, 10)]);
    long.chart.words.title = "long ".repeat(200);
    long.chart.words.subtitle = "unbroken".repeat(100);
    long.chart.words.warning = "incomplete ".repeat(100);
    long.curves[0].label = "name ".repeat(100);
    long.chart.x = "value ".repeat(100);
    assert_sound(&long.ecdf(SIZE).unwrap());

    // Names of places stand whole, and upright.
    let mut figure = medians(1, true);
    let name = |place| format!("interrupts {place} LOC virtio1-request.0");
    figure.ticks = (0..10)
        .map(|place| (f64::from(place), name(place)))
        .collect();
    let drawing = figure.draw(SIZE).unwrap();
    assert_sound(&drawing);
    let upright: Vec<&Text> = drawing.texts().filter(|text| text.upwards).collect();
    let is_whole = |text: &&Text| !text.text.contains('…');
    assert!(upright.len() > 20, "{upright:?}");
    assert!(upright.iter().all(is_whole), "{upright:?}");
}
