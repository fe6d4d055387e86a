//! Several hosts: bounds of two clocks by way of third ones.

use super::Span;
use super::exchange::clamped;

/// Bounds between the clocks of several hosts, by number.
///
/// All of them must be of one moment, or of clocks that run at one rate. [`Bounds::over`](super::Bounds::over) gives
/// bounds that hold for a length of time.
#[derive(Debug, Clone, Default)]
pub struct Hosts {
    names: Vec<String>,
    bounds: Vec<Bound>,
}

/// `theta` is the clock of `to` less the clock of `from`.
#[derive(Debug, Clone, Copy)]
struct Bound {
    from: usize,
    to: usize,
    theta: Span,
}

/// Bounds of several clocks do not add up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the clocks of {} contradict each other: what is proved of each of them against the next, and of the last against \
     the first, misses adding up to nothing by {missing_ns} ns. The clock of one of them was set, or their rates \
     differ and they were measured at different moments",
    .hosts.join(", ")
)]
pub struct Cycle {
    /// The names of the hosts, in the order of the cycle.
    pub hosts: Vec<String>,
    /// Their numbers.
    pub numbers: Vec<usize>,
    /// By how many nanoseconds.
    pub missing_ns: i64,
}

/// No bound.
const NONE: i64 = 1 << 61;
/// Sums with [`NONE`] in them are above this, and all others are below.
const LARGEST: i64 = 1 << 60;
/// A bound further from the origin than this, which is 18 minutes in nanoseconds, is none: the sum over a hundred
/// thousand hosts is far below [`LARGEST`].
const FARTHEST: i128 = 1 << 40;

impl Hosts {
    /// Hosts of these names, with nothing known of their clocks.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Hosts {
            names: names.into_iter().collect(),
            bounds: Vec::new(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Adds that the clock of host `to` less the clock of host `from` lies in `theta`. Several of a pair all hold.
    ///
    /// # Panics
    /// When there is no host of such a number, or both are one.
    pub fn bound(&mut self, from: usize, to: usize, theta: Span) {
        assert!(from < self.len() && to < self.len() && from != to);
        self.bounds.push(Bound { from, to, theta });
    }

    /// The tightest bounds that follow for all pairs: shortest paths by Floyd and Warshall, in O(n^3) steps of a
    /// nanosecond or less and 8 n^2 bytes: 0.2 s and 2 MiB for 512 hosts, 1 s and 8 MiB for 1024.
    ///
    /// # Errors
    /// When the bounds contradict each other.
    pub fn tighten(&self) -> Result<TightestBounds, Cycle> {
        let origins = self.origins();
        let mut paths = self.matrix(&origins);
        let count = self.len();
        let mut over = vec![NONE; count];
        for third in 0..count {
            over.copy_from_slice(&paths[third * count..][..count]);
            for (from, row) in paths.chunks_exact_mut(count).enumerate() {
                let first = row[third];
                if first > LARGEST || from == third {
                    continue;
                }
                for (path, second) in row.iter_mut().zip(&over) {
                    *path = (*path).min(first + second);
                }
                // Only then can sums go on falling.
                if row[from] < 0 {
                    return Err(self.cycle(&origins));
                }
            }
        }
        Ok(TightestBounds { origins, paths })
    }

    /// Of each clock about how far it is ahead of the first that it is compared with, so that what is added up is
    /// small: the epochs of two clocks may be decades apart.
    fn origins(&self) -> Vec<i128> {
        let mut neighbours = vec![Vec::new(); self.len()];
        for bound in &self.bounds {
            neighbours[bound.from].push((bound.to, i128::from(bound.theta.low_ns)));
            neighbours[bound.to].push((bound.from, -i128::from(bound.theta.low_ns)));
        }
        let mut origins = vec![None; self.len()];
        for first in 0..self.len() {
            if origins[first].is_some() {
                continue;
            }
            let mut reached = vec![(first, 0)];
            while let Some((host, ahead)) = reached.pop() {
                if origins[host].is_none() {
                    origins[host] = Some(ahead);
                    let next = neighbours[host].iter();
                    reached.extend(next.map(|(host, theta)| (*host, ahead + theta)));
                }
            }
        }
        origins.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// Of each ordered pair the most that the second's clock can be ahead of the first's, from their origins.
    fn matrix(&self, origins: &[i128]) -> Vec<i64> {
        let count = self.len();
        let mut matrix = vec![NONE; count * count];
        for host in 0..count {
            matrix[host * count + host] = 0;
        }
        for &Bound { from, to, theta } in &self.bounds {
            let ahead = origins[to] - origins[from];
            for (from, to, most) in [
                (from, to, i128::from(theta.high_ns) - ahead),
                (to, from, ahead - i128::from(theta.low_ns)),
            ] {
                let path = &mut matrix[from * count + to];
                if most <= FARTHEST {
                    *path = (*path).min(clamped(most.max(-FARTHEST)));
                }
            }
        }
        matrix
    }

    /// A cycle of hosts whose bounds contradict each other, where there is one: of two or three hosts the worst, if
    /// there is one of so few, since it shows best which one it is.
    fn cycle(&self, origins: &[i128]) -> Cycle {
        let matrix = self.matrix(origins);
        let numbers = self
            .worst_of_two_or_three(&matrix)
            .unwrap_or_else(|| self.any_cycle(&matrix));
        let next = numbers.iter().cycle().skip(1);
        let sum = numbers.iter().zip(next);
        let sum: i128 = sum.map(|(&from, &to)| self.most_ahead(from, to)).sum();
        Cycle {
            missing_ns: clamped(-sum),
            hosts: numbers
                .iter()
                .map(|&host| self.names[host].clone())
                .collect(),
            numbers,
        }
    }

    /// What two hosts that a bound connects prove themselves.
    fn most_ahead(&self, from: usize, to: usize) -> i128 {
        let bounds = self.bounds.iter().filter_map(|bound| {
            if (bound.from, bound.to) == (from, to) {
                Some(i128::from(bound.theta.high_ns))
            } else {
                let is_back = (bound.from, bound.to) == (to, from);
                is_back.then_some(-i128::from(bound.theta.low_ns))
            }
        });
        bounds.min().unwrap_or_default()
    }

    fn worst_of_two_or_three(&self, matrix: &[i64]) -> Option<Vec<usize>> {
        let count = self.len();
        let mut worst = (0, None);
        for first in 0..count {
            for second in first + 1..count {
                for (from, to) in [(first, second), (second, first)] {
                    let path = matrix[from * count + to];
                    if path > LARGEST {
                        continue;
                    }
                    // With the first again as the third it is a cycle of two.
                    for third in first..count {
                        let sum = path + matrix[to * count + third] + matrix[third * count + from];
                        if third != to && sum < worst.0 {
                            worst = (sum, Some([from, to, third]));
                        }
                    }
                }
            }
        }
        let mut hosts = worst.1?.to_vec();
        hosts.dedup();
        if hosts.first() == hosts.last() {
            hosts.pop();
        }
        Some(hosts)
    }

    /// By Bellman and Ford: a path that is still shortened after as many rounds as there are hosts has a cycle in it.
    fn any_cycle(&self, matrix: &[i64]) -> Vec<usize> {
        let count = self.len();
        let (mut length, mut before) = (vec![0_i64; count], vec![0; count]);
        let mut shortened = 0;
        for _ in 0..count {
            for from in 0..count {
                for to in 0..count {
                    let path = length[from] + matrix[from * count + to];
                    if path < length[to] {
                        (length[to], before[to], shortened) = (path, from, to);
                    }
                }
            }
        }
        let mut host = shortened;
        for _ in 0..count {
            host = before[host];
        }
        let mut cycle = vec![host];
        let mut at = before[host];
        while at != host {
            cycle.push(at);
            at = before[at];
        }
        cycle.reverse();
        cycle
    }
}

/// The tightest bounds between the clocks of all pairs of hosts.
#[derive(Debug, Clone)]
pub struct TightestBounds {
    origins: Vec<i128>,
    paths: Vec<i64>,
}

impl TightestBounds {
    /// Bounds of the clock of host `to` less the clock of host `from`; `None` where nothing connects the two.
    ///
    /// # Panics
    /// When there is no host of such a number.
    pub fn theta(&self, from: usize, to: usize) -> Option<Span> {
        let count = self.origins.len();
        let ahead = self.origins[to] - self.origins[from];
        let most = self.paths[from * count + to];
        let least = self.paths[to * count + from];
        (most < LARGEST && least < LARGEST).then(|| {
            Span::new(
                clamped(ahead - i128::from(least)),
                clamped(ahead + i128::from(most)),
            )
        })
    }
}
