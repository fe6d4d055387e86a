//! A figure of each ordered pair of a fabric.

use crate::time::between::HostPairs;

/// N x N figures, from and to. The diagonal is no pair; what was not measured is missing, and nothing else. Of a sample of
/// all pairs only these take memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    pairs: HostPairs,
    /// By place; not a number where it is missing.
    values: Vec<f64>,
}

impl Matrix {
    /// All pairs of so many nodes, missing.
    pub fn missing(nodes: usize) -> Self {
        Matrix::missing_of(&HostPairs::all(nodes))
    }

    /// These pairs, missing.
    pub fn missing_of(pairs: &HostPairs) -> Self {
        Matrix {
            pairs: pairs.clone(),
            values: vec![f64::NAN; pairs.places()],
        }
    }

    /// The figure that `of` has of each pair, if it has one.
    pub fn of(nodes: usize, mut of: impl FnMut(usize, usize) -> Option<f64>) -> Self {
        let mut matrix = Matrix::missing(nodes);
        for (from, to) in ordered_pairs(nodes) {
            if let Some(value) = of(from, to) {
                matrix.set(from, to, value);
            }
        }
        matrix
    }

    /// The same pairs, each with the figure that `of` has of it, if it has one.
    pub fn alike(&self, mut of: impl FnMut(usize, usize) -> Option<f64>) -> Self {
        let mut matrix = Matrix::missing_of(&self.pairs);
        for (from, to) in self.pairs.each() {
            if let Some(value) = of(from, to) {
                matrix.set(from, to, value);
            }
        }
        matrix
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.pairs.hosts()
    }

    /// The figure of a pair.
    pub fn get(&self, from: usize, to: usize) -> Option<f64> {
        let value = self.values[self.pairs.place(from, to)?];
        value.is_finite().then_some(value)
    }

    /// Sets the figure of a pair; what is no finite number leaves it missing.
    ///
    /// # Panics
    /// When both are the same node, or none of the pairs.
    pub fn set(&mut self, from: usize, to: usize, value: f64) {
        assert!(from != to, "node {from} is not a pair with itself");
        let value = if value.is_finite() { value } else { f64::NAN };
        let place = self.pairs.place(from, to);
        self.values[place.expect("it is one of the pairs")] = value;
    }

    /// The pairs that may have a figure.
    pub fn pairs(&self) -> &HostPairs {
        &self.pairs
    }

    /// Each pair that has a figure, by rows.
    pub fn each(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        let all = self.pairs.each();
        all.filter_map(|(from, to)| Some((from, to, self.get(from, to)?)))
    }

    /// Replaces each figure by what `of` makes of it.
    pub fn replace_each(&mut self, mut of: impl FnMut(usize, usize, f64) -> f64) {
        let pairs = self.pairs.clone();
        for (from, to) in pairs.each() {
            if let Some(value) = self.get(from, to) {
                self.set(from, to, of(from, to, value));
            }
        }
    }

    /// How many pairs have a figure.
    pub fn measured(&self) -> usize {
        self.values.iter().filter(|value| value.is_finite()).count()
    }

    /// How many ordered pairs with a node have a figure.
    pub fn measured_with(&self, node: usize) -> usize {
        let both = self
            .pairs
            .of(node)
            .flat_map(|other| [self.get(node, other), self.get(other, node)]);
        both.flatten().count()
    }

    /// The same nodes in another order, or some of them: place by place the number of the node here.
    pub fn of_nodes(&self, places: &[usize]) -> Matrix {
        let pairs = self.pairs.of_hosts(places);
        Matrix::missing_of(&pairs).alike(|from, to| self.get(places[from], places[to]))
    }
}

/// All ordered pairs of so many nodes, by rows.
pub fn ordered_pairs(nodes: usize) -> impl Iterator<Item = (usize, usize)> {
    let all = (0..nodes).flat_map(move |from| (0..nodes).map(move |to| (from, to)));
    all.filter(|(from, to)| from != to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_stays_missing() {
        let mut matrix = Matrix::of(3, |from, to| (from != 1).then_some((10 * from + to) as f64));
        assert_eq!((matrix.get(0, 1), matrix.get(1, 0)), (Some(1.0), None));
        assert_eq!((matrix.measured(), matrix.measured_with(1)), (4, 2));
        matrix.set(0, 1, f64::INFINITY);
        assert_eq!(matrix.get(0, 1), None);
        let each: Vec<_> = matrix.each().collect();
        assert_eq!(each, [(0, 2, 2.0), (2, 0, 20.0), (2, 1, 21.0)]);
        let pairs = HostPairs::some(3, [(0, 2), (1, 2)]);
        let mut some = Matrix::missing_of(&pairs);
        some.set(2, 0, 3.0);
        assert_eq!(
            (some.get(2, 0), some.get(0, 1), some.measured()),
            (Some(3.0), None, 1)
        );
        assert_eq!(some.each().collect::<Vec<_>>(), [(2, 0, 3.0)]);
        some.replace_each(|from, to, value| value + (10 * from + to) as f64);
        assert_eq!(some.get(2, 0), Some(23.0));
        let other = some.alike(|from, to| (from < to).then_some(1.0));
        assert_eq!(other.each().collect::<Vec<_>>(), [(0, 2, 1.0), (1, 2, 1.0)]);
        assert_eq!((other.measured_with(2), other.measured_with(0)), (2, 1));
        let turned = matrix.of_nodes(&[2, 0]);
        assert_eq!(turned.get(0, 1), Some(20.0));
        assert_eq!(turned.get(1, 0), Some(2.0));
    }
}
