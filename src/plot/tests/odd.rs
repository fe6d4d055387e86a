//! Data that is out of the ordinary.

use super::scale::Kind;
use super::*;

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
        let positive = sets.iter().flatten().any(|&value| value > 0);
        // Percentiles end before the maximum.
        let nearly = |set: &Vec<i64>| set.iter().rev().nth(usize::from(set.len() == 2)) > Some(&0);
        let positive = [positive, sets.iter().any(nearly), positive];
        for kind in [None, Some(Kind::Linear), Some(Kind::Log)] {
            let mut figures = (ecdf(sets), percentiles(sets), over_time(sets));
            (figures.0.scale, figures.1.scale, figures.2.scale) = (kind, kind, kind);
            let drawn = [
                figures.0.draw(DEFAULT_SIZE),
                figures.1.draw(DEFAULT_SIZE),
                figures.2.draw(DEFAULT_SIZE),
            ];
            for (drawing, positive) in drawn.into_iter().zip(positive) {
                if kind == Some(Kind::Log) && !positive {
                    assert!(matches!(drawing, Err(PlotError::Outside { .. })));
                    continue;
                }
                let drawing = drawing.unwrap();
                assert_sound(&drawing);
                assert!(!drawing.shapes.is_empty());
            }
        }
    }
    let size = DEFAULT_SIZE;
    for nothing in [vec![], vec![vec![]]] {
        for drawn in [
            histogram(&nothing, (0.0, 1.0)).draw(size),
            ecdf(&nothing).draw(size),
            percentiles(&nothing).draw(size),
            over_time(&nothing).draw(size),
        ] {
            refused(drawn, "there is nothing to draw: no samples");
        }
    }
    let mut lost = histogram(&[vec![]], (0.0, 1.0));
    lost.series[0].lost = 7;
    refused(lost.draw(size), "all of 7 messages were lost");
    refused(medians(0, false).draw(size), "no point has a median");
    let many: Vec<Vec<i64>> = (0..15).map(|seed| samples(seed, 10)).collect();
    refused(ecdf(&many).draw(size), "15 curves cannot be told apart");
    let histograms = histogram(&many, (0.0, 1.0)).draw(size);
    refused(histograms, "15 histograms over each other cannot be");
    let small = ecdf(&many[..14]).draw((300, 300));
    refused(small, "14 lines in the legend cannot be");
    let mut long = ecdf(&many[..2]);
    long.words.title = "long ".repeat(200);
    long.words.subtitle = "unbroken".repeat(100);
    long.words.warning = "incomplete ".repeat(100);
    long.curves[0].label = "name ".repeat(100);
    long.value = "value ".repeat(100);
    assert_sound(&long.draw(DEFAULT_SIZE).unwrap());
}
