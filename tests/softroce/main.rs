//! What needs two RDMA devices: run by `ci/test` in the SoftRoCE machine, as root, in one boot. `program` runs the
//! binary, `results` reads what it wrote, `machine` changes the machine, `own_process` keeps library tests apart.

#![expect(clippy::disallowed_methods, reason = "a test may panic")]

#[macro_use]
mod own_process;

#[path = "../loops/counting.rs"]
mod counting;
mod machine;
#[path = "../program/mod.rs"]
mod program;
mod results;
#[path = "../../crates/testing.rs"]
mod testing;

mod allocations;
mod background;
mod between;
mod both_kernels;
mod commands;
mod compare;
mod connections;
mod cores;
mod depth;
mod devices_gone;
mod errors;
mod fabric;
mod find_rate;
mod link;
mod listings;
mod loss;
mod main_job;
mod memory;
mod memory_load;
mod memory_nodes;
mod moved;
mod namespaces;
mod node;
mod node_between;
mod node_ends;
mod node_fallback;
mod node_pool;
mod operations;
mod path;
mod peer;
mod placement;
mod queue_pairs;
mod removal;
mod resources;
mod rounds;
mod settings;
mod signals;
mod siw;
mod strangers;
mod throttling;
mod trace;

/// Emulated, on a busy machine, a run of a few thousand messages takes some seconds.
pub const LIMIT: std::time::Duration = std::time::Duration::from_secs(120);

/// How often something is done: as `ci/measure` says, or a few times.
fn count_or(few: usize) -> usize {
    std::env::var("HCABENCH_COUNT").map_or(few, |count| count.parse().unwrap())
}

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/tmp").expect("/tmp can be written to")
}
