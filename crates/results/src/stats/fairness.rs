//! Whether all got alike.

/// Jain's index: the square of the sum over the sum of the squares, by their number. 1 if all got as many, 1/n if one of n
/// got all; `None` if none got any.
///
/// Source: R. Jain, D. Chiu, W. Hawe, A Quantitative Measure of Fairness and Discrimination for Resource Allocation in
/// Shared Computer Systems, DEC-TR-301, 1984.
pub fn fairness(counts: &[u64]) -> Option<f64> {
    let sum: f64 = counts.iter().map(|&count| count as f64).sum();
    let squares: f64 = counts.iter().map(|&count| (count as f64).powi(2)).sum();
    (squares > 0.0).then(|| sum * sum / (counts.len() as f64 * squares))
}

/// What the one with the least got, in per cent of an equal share; `None` if none got any.
pub fn least_percent(counts: &[u64]) -> Option<f64> {
    let sum: u64 = counts.iter().sum();
    let least = counts.iter().min()?;
    (sum > 0).then(|| 100.0 * *least as f64 * counts.len() as f64 / sum as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_one_for_all_equal_and_a_share_where_one_gets_all() {
        assert_eq!(fairness(&[7, 7, 7]), Some(1.0));
        assert_eq!(fairness(&[9, 0, 0]), Some(1.0 / 3.0));
        assert_eq!(fairness(&[0, 0]), None);
    }

    #[test]
    fn the_least_is_a_share_of_what_all_would_have_if_they_had_alike() {
        assert_eq!(least_percent(&[7, 7, 7]), Some(100.0));
        assert_eq!(least_percent(&[30, 10]), Some(50.0));
        assert_eq!(least_percent(&[9, 0, 0]), Some(0.0));
        assert_eq!((least_percent(&[0, 0]), least_percent(&[])), (None, None));
    }
}
