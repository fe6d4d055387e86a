//! What needs two RDMA devices. Run by `ci/test` in the SoftRoCE machine, as root, in one boot; without the devices
//! every test fails.
//!
//! `program` runs the binary as a user does, `results` reads back what it wrote, `machine` changes the machine and puts
//! it right again, `own_process` keeps apart the tests that use the library. The rest are tests, one file a theme.

#[macro_use]
mod own_process;

#[path = "../../crates/assertions.rs"]
mod assertions;
#[path = "../loops/counting.rs"]
mod counting;
mod machine;
#[path = "../program/mod.rs"]
mod program;
mod results;

mod allocations;
mod background;
mod between;
mod both_kernels;
mod commands;
mod compare;
mod connections;
mod depth;
mod devices_gone;
mod errors;
mod fabric;
mod link;
mod listings;
mod loss;
mod main_job;
mod memory;
mod memory_load;
mod moved;
mod node;
mod node_ends;
mod node_fallback;
mod node_pool;
mod operations;
mod path;
mod peer;
mod placement;
mod queue_pairs;
mod removal;
mod rounds;
mod settings;
mod signals;
mod strangers;
mod trace;

/// How long a run may take unless a test says otherwise. Emulated, on a busy machine, one of a few thousand messages
/// takes some seconds.
pub const LIMIT: std::time::Duration = std::time::Duration::from_secs(120);

/// A folder for one test.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/tmp").expect("/tmp can be written to")
}
