//! The `hcabench` binary: parse, run, exit code.

use hcabench::queues::arena::Allocator;

/// The system's, but for the memory of queues.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> std::process::ExitCode {
    hcabench::cli::main()
}
