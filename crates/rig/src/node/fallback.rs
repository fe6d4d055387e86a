//! What an end does that cannot connect.

use std::fmt;

use crate::rig::named::{Named, named};

named! {
    /// What an active end of `infiniband` does that cannot connect.
    Fallback {
        /// It listens on its own address, and its peer connects to it.
        Listen = "listen",
        /// It fails.
        Fatal = "fatal",
    }
}

named! {
    /// Why an end could not connect: the errors of the connection manager before there is a connection.
    ConnectFailure {
        /// The address of the peer has no device, or no neighbour answers for it.
        Address = "address error",
        /// There is no path to it.
        Route = "route error",
        /// The connection was agreed on, and one of the queue pairs does not take it.
        Connect = "connect error",
        /// The peer refuses, or no process listens there.
        Rejected = "rejected",
        /// The peer does not answer.
        Unreachable = "unreachable",
    }
}

/// Connections that came about the other way round, by what had kept the active end from connecting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FallbackCounts([u32; ConnectFailure::ALL.len()]);

impl FallbackCounts {
    /// One more.
    pub fn add(&mut self, why: ConnectFailure) {
        self.0[why as usize] += 1;
    }

    /// Those of two ends.
    pub fn and(mut self, other: Self) -> Self {
        (self.0.iter_mut().zip(other.0)).for_each(|(one, other)| *one += other);
        self
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|&count| u64::from(count)).sum()
    }
}

impl fmt::Display for FallbackCounts {
    /// `2 rejected, 1 unreachable`
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = ConnectFailure::ALL.iter().zip(self.0);
        let told = all.filter(|(_, count)| *count > 0);
        let told: Vec<String> = told
            .map(|(why, count)| format!("{count} {}", why.name()))
            .collect();
        formatter.write_str(&told.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted_by_what_failed_before_them() {
        let (mut one, mut other) = (FallbackCounts::default(), FallbackCounts::default());
        one.add(ConnectFailure::Rejected);
        other.add(ConnectFailure::Unreachable);
        other.add(ConnectFailure::Rejected);
        let both = one.and(other);
        assert_eq!((both.count(), one.count()), (3, 1));
        assert_eq!(both.to_string(), "2 rejected, 1 unreachable");
        assert_eq!(FallbackCounts::default().to_string(), "");
    }
}
