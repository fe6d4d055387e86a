//! The ordered pairs of hosts that measure with each other: all of them, or some. What is kept of each pair is in a list
//! by their places, which takes no memory for others.

use std::sync::Arc;

/// Ordered pairs of hosts, each with a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPairs {
    hosts: usize,
    /// None: all.
    some: Option<Arc<Sample>>,
}

/// The other hosts of each, in order.
#[derive(Debug, PartialEq, Eq)]
struct Sample {
    /// Where those of a host begin; one more than there are hosts.
    begin: Vec<usize>,
    others: Vec<u32>,
}

impl HostPairs {
    /// All pairs; a host and itself have a place as well.
    pub fn all(hosts: usize) -> Self {
        HostPairs { hosts, some: None }
    }

    /// These pairs, in both directions.
    ///
    /// # Panics
    /// When there is no host of such a number, or both are one.
    pub fn some(hosts: usize, pairs: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut others: Vec<Vec<u32>> = vec![Vec::new(); hosts];
        for (one, other) in pairs {
            assert!(one < hosts && other < hosts && one != other);
            others[one].push(other as u32);
            others[other].push(one as u32);
        }
        let mut all = Sample {
            begin: vec![0],
            others: Vec::new(),
        };
        for mut of_host in others {
            of_host.sort_unstable();
            of_host.dedup();
            all.others.extend(of_host);
            all.begin.push(all.others.len());
        }
        HostPairs {
            hosts,
            some: Some(Arc::new(all)),
        }
    }

    /// All pairs if these are at least half of them, else these, in both directions.
    ///
    /// # Panics
    /// As [`some`](Self::some).
    pub fn most_or_some(hosts: usize, pairs: &[(usize, usize)]) -> Self {
        match 2 * pairs.len() >= hosts * hosts.saturating_sub(1) {
            true => HostPairs::all(hosts),
            false => HostPairs::some(hosts, pairs.iter().copied()),
        }
    }

    /// The pairs among some of the hosts: the number of each is its place in `hosts`.
    pub fn of_hosts(&self, hosts: &[usize]) -> Self {
        if self.some.is_none() {
            return HostPairs::all(hosts.len());
        }
        let mut numbers = vec![None; self.hosts];
        for (number, host) in hosts.iter().enumerate() {
            numbers[*host] = Some(number);
        }
        let pairs = hosts.iter().enumerate().flat_map(|(number, host)| {
            let others = self.of(*host).filter_map(|other| numbers[other]);
            others.map(move |other| (number, other))
        });
        HostPairs::some(hosts.len(), pairs)
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> usize {
        self.hosts
    }

    /// How many places there are.
    pub fn places(&self) -> usize {
        match &self.some {
            None => self.hosts * self.hosts,
            Some(some) => some.others.len(),
        }
    }

    /// The place of a pair, if it is one of them.
    pub fn place(&self, from: usize, to: usize) -> Option<usize> {
        let Some(some) = &self.some else {
            return (from < self.hosts && to < self.hosts).then_some(from * self.hosts + to);
        };
        let begin = *some.begin.get(from)?;
        let others = &some.others[begin..*some.begin.get(from + 1)?];
        let at = others.binary_search(&u32::try_from(to).ok()?).ok()?;
        Some(begin + at)
    }

    /// The hosts that a host measures with, in order.
    pub fn of(&self, host: usize) -> impl Iterator<Item = usize> + '_ {
        let all = match &self.some {
            None => 0..self.hosts,
            Some(some) => some.begin[host]..some.begin[host + 1],
        };
        let others = self.some.as_ref().map(|some| some.others.as_slice());
        let other = move |at: usize| others.map_or(at, |others| others[at] as usize);
        all.map(other).filter(move |other| *other != host)
    }

    /// All pairs, by the first host and then the second.
    pub fn each(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.hosts).flat_map(move |from| self.of(from).map(move |to| (from, to)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_has_a_place_of_its_own() {
        let all = HostPairs::all(4);
        let some = HostPairs::some(4, [(3, 0), (1, 2), (0, 3), (3, 1)]);
        assert_eq!(
            some.each().collect::<Vec<_>>(),
            [(0, 3), (1, 2), (1, 3), (2, 1), (3, 0), (3, 1)]
        );
        assert_eq!(
            (all.each().count(), all.places(), some.places()),
            (12, 16, 6)
        );
        for pairs in [&all, &some] {
            let mut places: Vec<usize> = pairs
                .each()
                .map(|(from, to)| pairs.place(from, to).unwrap())
                .collect();
            assert!(places.is_sorted() && places.iter().all(|place| *place < pairs.places()));
            places.dedup();
            assert_eq!(places.len(), pairs.each().count());
            assert_eq!(pairs.place(4, 0), None);
            assert_eq!(pairs.place(0, 4), None);
        }
        assert_eq!(some.place(0, 1), None);
        assert_eq!(some.of(3).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(all.of(3).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(HostPairs::some(3, []).places(), 0);
    }

    #[test]
    fn pairs_among_some_hosts_have_their_new_numbers() {
        let some = HostPairs::some(5, [(4, 0), (1, 2), (4, 2), (3, 0)]);
        let pairs = |of: &HostPairs| of.each().collect::<Vec<_>>();
        let of_three = some.of_hosts(&[4, 2, 0]);
        assert_eq!(pairs(&of_three), [(0, 1), (0, 2), (1, 0), (2, 0)]);
        assert_eq!(of_three.places(), 4);
        assert_eq!(HostPairs::all(5).of_hosts(&[4, 2]), HostPairs::all(2));
        let most = [(0, 1), (1, 0), (2, 0)];
        assert_eq!(HostPairs::most_or_some(3, &most), HostPairs::all(3));
        let few = HostPairs::most_or_some(3, &most[..2]);
        assert_eq!(few, HostPairs::some(3, [(0, 1)]));
    }
}
