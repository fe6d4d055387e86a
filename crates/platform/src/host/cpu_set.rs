//! Sets of CPUs, and the kernel's way to write them ("0-3,8").

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The largest CPU number taken from a text; beyond what any kernel is built for, and a bound on what a range expands
/// to.
pub const HIGHEST_CPU: usize = 65_535;

/// A text that is not a list of CPUs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a list of CPUs: {reason}; write for example 0-3,8")]
pub struct CpuListError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A set of CPU numbers, in ascending order.
///
/// Its text, in both directions, is the kernel's list format (`Documentation/admin-guide/cputopology.rst`): numbers and
/// inclusive ranges, separated by commas; nothing at all for the empty set.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuSet(BTreeSet<usize>);

impl CpuSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether `cpu` is in the set.
    pub fn contains(&self, cpu: usize) -> bool {
        self.0.contains(&cpu)
    }

    /// Adds `cpu`; false if it was in the set before.
    pub fn insert(&mut self, cpu: usize) -> bool {
        self.0.insert(cpu)
    }

    /// The number of CPUs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no CPU.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The lowest CPU.
    pub fn first(&self) -> Option<usize> {
        self.0.first().copied()
    }

    /// All CPUs, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    /// The CPUs in this set and not in the other.
    pub fn difference(&self, other: &Self) -> Self {
        Self(&self.0 - &other.0)
    }

    /// Whether the two have no CPU in common.
    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.0.is_disjoint(&other.0)
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl FromStr for CpuSet {
    type Err = CpuListError;

    fn from_str(text: &str) -> Result<Self, CpuListError> {
        let malformed = |reason: String| CpuListError {
            text: text.to_owned(),
            reason,
        };
        let number = |part: &str| {
            let no_number = |_| malformed(format!("{part:?} is not a number"));
            let value: usize = part.trim().parse().map_err(no_number)?;
            if value > HIGHEST_CPU {
                return Err(malformed(format!("CPU {value} is beyond {HIGHEST_CPU}")));
            }
            Ok(value)
        };
        let mut set = Self::new();
        // A kernel built for nohz_full and booted without it writes this instead of nothing.
        if matches!(text.trim(), "" | "(null)") {
            return Ok(set);
        }
        for part in text.trim().split(',') {
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(malformed(format!("the range {part} runs backwards")));
            }
            set.0.extend(first..=last);
        }
        Ok(set)
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        let mut cpus = self.iter().peekable();
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if(|&next| next == last + 1) {
                last = next;
            }
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(&first.to_string());
            if last > first {
                text.push_str(&format!("-{last}"));
            }
        }
        f.pad(&text)
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Refused as _;
    use proptest::prelude::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        let set: CpuSet = "0-3,8,10-11\n".parse().unwrap();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 1, 2, 3, 8, 10, 11]);
        assert!("\n".parse::<CpuSet>().unwrap().is_empty());
        assert!(" (null)\n".parse::<CpuSet>().unwrap().is_empty());
    }

    #[test]
    fn refuses_what_is_no_list_and_says_why() {
        for (text, reason) in [
            ("3-1", "backwards"),
            ("a", "not a number"),
            ("1,,2", "not a number"),
            ("-1", "not a number"),
            ("0-18446744073709551615", "beyond"),
            ("70000", "beyond"),
        ] {
            text.parse::<CpuSet>().refused(&[reason, text]);
        }
    }

    #[test]
    fn serializes_as_its_text() {
        let set = CpuSet::from_iter([2, 3, 4, 9]);
        assert_eq!(serde_json::to_string(&set).unwrap(), "\"2-4,9\"");
    }

    proptest! {
        #[test]
        fn text_and_back(cpus in prop::collection::btree_set(0usize..300, 0..80)) {
            let set = CpuSet::from_iter(cpus);
            prop_assert_eq!(set.to_string().parse::<CpuSet>().unwrap(), set);
        }

        #[test]
        fn the_text_is_as_short_as_can_be(cpus in prop::collection::btree_set(0usize..60, 1..60)) {
            // As many parts as there are gaps, plus one.
            let gaps = cpus.iter().filter(|&&cpu| cpu > 0 && !cpus.contains(&(cpu - 1))).count();
            let starts = gaps + usize::from(cpus.contains(&0));
            let text = CpuSet::from_iter(cpus).to_string();
            prop_assert_eq!(text.split(',').count(), starts);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[-0-9, a()]{0,24}") {
            if let Ok(set) = text.parse::<CpuSet>() {
                prop_assert_eq!(set.to_string().parse::<CpuSet>().unwrap(), set);
            }
        }
    }
}
