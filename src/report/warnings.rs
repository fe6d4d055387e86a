//! Whether a run measured hardware.

use crate::results::read::Run;

/// Whether a device is no hardware.
pub(crate) fn is_software(run: &Run) -> bool {
    let devices = &run.document()["obtained"]["devices"];
    let mut ends = ["sender", "receiver"].into_iter();
    ends.any(|end| devices[end]["device"]["software"] == true)
}

/// Whether the processor is none.
pub(crate) fn is_emulated(run: &Run) -> bool {
    run.machine()["virtualisation"]["emulated"] == true
}
