//! A row of `left_out.csv`.

use crate::host::CoreRelation;
use crate::results::Record;
use crate::results::schema::{REASON, queue as columns};

/// What is not named is all.
pub(super) fn left_out(
    queue: Option<&str>,
    capacity: Option<usize>,
    cores: Option<CoreRelation>,
    reason: &str,
) -> Record {
    let mut record = Record::new();
    record
        .set(&columns::QUEUE, queue.unwrap_or("all"))
        .set(&columns::CAPACITY, capacity)
        .set(&columns::CORES, cores.map(|cores| cores.name()))
        .set(&REASON, reason);
    record
}
