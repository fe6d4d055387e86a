//! A figure of each ordered pair of a fabric.

/// N x N figures, from and to. The diagonal is no pair; what was not measured is missing, and nothing else.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    nodes: usize,
    /// By rows; not a number where it is missing.
    values: Vec<f64>,
}

impl Matrix {
    /// All pairs of so many nodes, missing.
    pub fn missing(nodes: usize) -> Self {
        Matrix {
            nodes,
            values: vec![f64::NAN; nodes * nodes],
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

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The figure of a pair.
    pub fn get(&self, from: usize, to: usize) -> Option<f64> {
        let value = self.values[from * self.nodes + to];
        value.is_finite().then_some(value)
    }

    /// Sets the figure of a pair; what is no finite number leaves it missing.
    ///
    /// # Panics
    /// When both are the same node.
    pub fn set(&mut self, from: usize, to: usize, value: f64) {
        assert!(from != to, "node {from} is not a pair with itself");
        let value = if value.is_finite() { value } else { f64::NAN };
        self.values[from * self.nodes + to] = value;
    }

    /// Each pair that has a figure, by rows.
    pub fn each(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        let values = self.values.iter().enumerate();
        let present = values.filter(|(_, value)| value.is_finite());
        present.map(|(place, value)| (place / self.nodes, place % self.nodes, *value))
    }

    /// How many pairs have a figure.
    pub fn measured(&self) -> usize {
        self.each().count()
    }

    /// How many ordered pairs with a node have a figure.
    pub fn measured_with(&self, node: usize) -> usize {
        let others = (0..self.nodes).filter(|&other| other != node);
        let both = others.flat_map(|other| [self.get(node, other), self.get(other, node)]);
        both.flatten().count()
    }

    /// The same nodes in another order, or some of them: place by place the number of the node here.
    pub fn of_nodes(&self, places: &[usize]) -> Matrix {
        Matrix::of(places.len(), |from, to| self.get(places[from], places[to]))
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
        let turned = matrix.of_nodes(&[2, 0]);
        assert_eq!(turned.get(0, 1), Some(20.0));
        assert_eq!(turned.get(1, 0), Some(2.0));
    }
}
