//! The sweep that tests begin with.

use super::*;

/// One value each, the default of the command line.
pub fn single() -> Sweep {
    Sweep {
        services: vec![Service::Rc],
        operations: vec![Operation::Send],
        inline: vec![Switch::Off],
        unsignaled: vec![Switch::Off],
        polls: vec![(Poll::Busy, Poll::Busy)],
        timestamps: vec![Timestamp::Submit],
        clocks: vec![ClockKind::Monotonic],
        pauses: vec![Nanos(0)],
        rates: vec![None],
        receiver_pauses: vec![Nanos(0)],
        bursts: vec![1000],
        depths: vec![None],
        sizes: vec![8],
        connects: vec![Connect::Auto],
        paths: vec![PathSettings::default()],
        resources: vec![ResourceSettings::default()],
        queue_pairs: vec![1],
        backgrounds: vec![None],
        memory_loads: vec![MemoryLoad::OFF],
    }
}
