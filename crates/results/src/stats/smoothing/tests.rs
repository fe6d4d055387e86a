//! Against figures that `scipy.signal.savgol_filter(mode='interp')` of scipy 1.17.1 gave for the same curves.

use super::*;
use crate::testing::{Has as _, Refused as _};
use proptest::prelude::*;

/// What scipy makes of curves: rising, noisy, as long as the window, longer, and swinging around zero.
const GOLDEN: &str = include_str!("scipy.csv");

#[test]
fn it_agrees_with_scipy() {
    let lines = GOLDEN.lines().filter(|line| !line.starts_with('#'));
    let (mut curve, mut compared) = (Vec::new(), 0);
    for line in lines {
        let (head, rest) = line.split_once(',').unwrap();
        let (order, figures) = rest.split_once(',').unwrap();
        let figures: Vec<f64> = figures.split(',').map(|it| it.parse().unwrap()).collect();
        if head == "curve" {
            curve = figures;
            continue;
        }
        let found = savgol(&curve, head.parse().unwrap(), order.parse().unwrap()).unwrap();
        assert_eq!(found.len(), figures.len());
        for (found, expected) in found.iter().zip(&figures) {
            let apart = (found - expected).abs() / expected.abs().max(1.0);
            assert!(apart < 1e-9, "{head}/{order}: {found} is not {expected}");
        }
        compared += 1;
    }
    assert_eq!(compared, 12);
}

#[test]
fn too_few_figures_and_windows_that_are_none_give_nothing() {
    let ten = [1.0; 10];
    let usual = Smoothing::default();
    assert_eq!(usual.of(&ten), None);
    assert_eq!(usual.of(&[1.0; 11]).map(|all| all.len()), Some(11));
    assert_eq!(Smoothing::None.of(&[1.0; 50]), None);
    for (window, order) in [(4, 2), (3, 3), (5, 9), (0, 0)] {
        assert_eq!(savgol(&ten, window, order), None, "{window}/{order}");
    }
    assert_eq!(savgol(&[], 3, 1), None);
    let why = usual.lacks(10).unwrap();
    why.has(&["savgol:11:3 needs 11 points", "there are 10"]);
    assert_eq!(usual.lacks(11), None);
    assert!(Smoothing::None.lacks(100).unwrap().contains("no smoothing"));
}

#[test]
fn texts_are_read_and_written() {
    let savgol = |window, order| Smoothing::Savgol { window, order };
    for (text, smoothing) in [
        ("none", Smoothing::None),
        ("savgol:11:3", Smoothing::default()),
        ("savgol:3:0", savgol(3, 0)),
        ("savgol:999:4", savgol(999, 4)),
    ] {
        assert_eq!(text.parse(), Ok(smoothing));
        assert_eq!(smoothing.to_string(), text);
    }
    for wrong in [
        "",
        "None",
        "savgol",
        "savgol:11",
        "savgol:10:3",
        "savgol:11:11",
        "savgol:1:0",
        "savgol:1001:3",
        "savgol:-11:3",
        "savgol:11:3:1",
        "median:11:3",
    ] {
        let quoted = format!("{wrong:?}");
        let parts = [
            quoted.as_str(),
            "odd window of 3 to 999",
            "savgol:11:3",
            "none",
        ];
        wrong.parse::<Smoothing>().refused(&parts);
    }
}

proptest! {
    #[test]
    fn a_polynomial_of_the_order_stays_what_it_is(
        coefficients in prop::collection::vec(-10.0_f64..10.0, 1..5),
        half in 1_usize..30,
        more in 0_usize..40,
    ) {
        let (window, order) = (2 * half + 1, coefficients.len() - 1);
        prop_assume!(order < window);
        let at = |place: usize| {
            let x = place as f64 / 10.0;
            coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient)
        };
        let figures: Vec<f64> = (0..window + more).map(at).collect();
        let smoothed = savgol(&figures, window, order).unwrap();
        let largest = figures.iter().fold(1.0, |most: f64, figure| most.max(figure.abs()));
        for (one, other) in figures.iter().zip(&smoothed) {
            prop_assert!((one - other).abs() <= 1e-9 * largest, "{} instead of {}", other, one);
        }
    }
}
