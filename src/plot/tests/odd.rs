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
