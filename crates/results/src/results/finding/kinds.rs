//! The kinds of findings, with all of their wording.

use super::{FindingKind, Severity};

/// `NAME "id" Severity "problem" "cause" "fix";`
macro_rules! kinds {
    ($($name:ident $id:literal $severity:ident $problem:literal $cause:literal $fix:literal;)+) => {
        $(
            #[allow(missing_docs)]
            pub const $name: FindingKind = FindingKind {
                id: $id,
                severity: Severity::$severity,
                problem: $problem,
                cause: $cause,
                fix: $fix,
            };
        )+

        /// All kinds.
        pub const ALL: &[FindingKind] = &[$($name),+];
    };
}

kinds! {
    // The machine.
    EMULATED_PROCESSOR "emulated-processor" Invalid
        "the processor is emulated in software ({hypervisor})" "latencies are not those of hardware"
        "use KVM, or measure on the machine itself";
    SOFTWARE_DEVICE "software-device" Invalid
        "{device} is a software device" "latencies are not those of an adapter" "";
    MACHINE_NOT_READY "machine-not-ready" Reservation
        "{check}: {found}" "" "{advice}";
    MACHINE_COULD_BE_TUNED "machine-could-be-tuned" Advice
        "this machine could be tuned further: {checks}" "" "run `hcabench host`";
    // What all benchmarks measure with.
    PAGE_FAULTS "page-faults" Reservation
        "{count} page faults in the loops" "the figures contain their time" "raise --warmup";
    RECEIVER_CLOCK "receiver-clock" Reservation
        "the clock of the receiver's CPU is ahead by {offset_ns}" "latencies contain that" "use --clock monotonic";
    // Queues.
    ELEMENTS_LOST "elements-lost" Invalid
        "{count} elements were lost" "the queue is broken" "";
}
