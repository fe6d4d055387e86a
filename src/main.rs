//! The `hcabench` binary: parse, run, exit code.

fn main() -> std::process::ExitCode {
    hcabench::cli::main()
}
