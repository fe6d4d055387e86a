//! To come.

pub mod host;

/// Parses the command line, runs what it names, and returns the exit code.
pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::FAILURE
}
