//! Smoothing of a curve by the filter of Savitzky and Golay ("Smoothing and differentiation of data by simplified least
//! squares procedures", 1964): each figure is replaced by what a polynomial through its neighbours has in its place.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The widest window.
const WIDEST: usize = 999;

/// How the figures of a curve are smoothed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Smoothing {
    /// They are not.
    None,
    /// By polynomials of this order over this many neighbours.
    Savgol {
        /// How many figures each polynomial is fitted to: odd, 3 to 999.
        window: usize,
        /// The highest power in the polynomial, below the window.
        order: usize,
    },
}

impl Default for Smoothing {
    fn default() -> Self {
        Self::Savgol {
            window: 11,
            order: 3,
        }
    }
}

impl fmt::Display for Smoothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Savgol { window, order } => write!(f, "savgol:{window}:{order}"),
        }
    }
}

impl FromStr for Smoothing {
    type Err = NoSmoothing;

    fn from_str(text: &str) -> Result<Self, NoSmoothing> {
        if text == "none" {
            return Ok(Self::None);
        }
        let wrong = || NoSmoothing(text.to_owned());
        let numbers = text.strip_prefix("savgol:").ok_or_else(wrong)?;
        let (window, order) = numbers.split_once(':').ok_or_else(wrong)?;
        let number = |text: &str| text.parse::<usize>().map_err(|_| wrong());
        let (window, order) = (number(window)?, number(order)?);
        let is_right = (3..=WIDEST).contains(&window) && window % 2 == 1 && order < window;
        match is_right {
            true => Ok(Self::Savgol { window, order }),
            false => Err(wrong()),
        }
    }
}

/// A text that names no smoothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a smoothing; use savgol:WINDOW:ORDER, with an odd window of 3 to {widest} points and an order below \
     it, as in savgol:11:3, or none",
    widest = WIDEST
)]
pub struct NoSmoothing(String);

impl Smoothing {
    /// The figures smoothed, in their order; `None` without smoothing, and with fewer figures than the window has.
    pub fn of(self, figures: &[f64]) -> Option<Vec<f64>> {
        match self {
            Self::None => None,
            Self::Savgol { window, order } => savgol(figures, window, order),
        }
    }

    /// Why a curve of this many points is not smoothed; `None` if it is.
    pub fn lacks(self, points: usize) -> Option<String> {
        match self {
            Self::None => Some("no smoothing was asked for".to_owned()),
            Self::Savgol { window, .. } => (points < window).then(|| {
                format!("{self} needs {window} points in a curve, and there are {points}")
            }),
        }
    }
}

/// Smooths figures at equal distances: the polynomial of the window around each of them. At the ends, where there is
/// no whole window around, that of the first and of the last. `None` with fewer figures than the window has, and for a
/// window that is even or not above the order.
pub fn savgol(figures: &[f64], window: usize, order: usize) -> Option<Vec<f64>> {
    if window.is_multiple_of(2) || order >= window || figures.len() < window {
        return None;
    }
    let basis = orthonormal_polynomials(window, order);
    let half = window / 2;
    let last = figures.len() - window;
    let at = |place: usize| {
        // The window around it, or the one that is nearest to that.
        let begin = place.saturating_sub(half).min(last);
        let neighbours = &figures[begin..begin + window];
        let terms = basis.iter();
        let terms = terms.map(|polynomial| dot(polynomial, neighbours) * polynomial[place - begin]);
        terms.sum()
    };
    Some((0..figures.len()).map(at).collect())
}

/// Polynomials of each order up to this one, by what they have in the places of a window: each of length 1, and at
/// right angles to all others. The best fit to figures is then the sum of their parts along each, and the solution
/// needs no system of equations, which would lose digits with the order.
fn orthonormal_polynomials(window: usize, order: usize) -> Vec<Vec<f64>> {
    let half = (window / 2) as f64;
    let place = |index: usize| (index as f64 - half) / half;
    let mut basis: Vec<Vec<f64>> = Vec::with_capacity(order + 1);
    for _ in 0..=order {
        let mut next: Vec<f64> = match basis.last() {
            None => vec![1.0; window],
            Some(before) => (before.iter().enumerate())
                .map(|(index, value)| place(index) * value)
                .collect(),
        };
        // Twice: the first time leaves what it rounds.
        for other in basis.iter().chain(&basis) {
            let part = dot(other, &next);
            let both = next.iter_mut().zip(other);
            both.for_each(|(value, of_other)| *value -= part * of_other);
        }
        let length = dot(&next, &next).sqrt();
        next.iter_mut().for_each(|value| *value /= length);
        basis.push(next);
    }
    basis
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

#[cfg(test)]
mod tests;
