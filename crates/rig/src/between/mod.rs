//! What benchmarks between two hosts share: the control connection, and what exchanged messages prove of two clocks.
//!
//! | module | what is in it |
//! | --- | --- |
//! | `error` | why the other host cannot be measured with |
//! | `message` | messages of a benchmark over the connection, each awaited within a limit |
//! | `peer` | the other host as it is asked for, and how it is reached |
//! | `listening` | who may be served |
//! | `time_of_day` | what PTP and NTP keep, against the clock of the stamps |
//! | `probe` | exchanged probes, and their rows |
//! | `proof` | what the stamps of two clocks prove, as figures |

pub mod error;
#[allow(missing_docs)]
pub mod listening;
pub mod message;
pub mod peer;
pub mod probe;
pub mod proof;
pub mod time_of_day;
