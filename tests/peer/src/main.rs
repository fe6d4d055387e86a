//! The peer is not written yet: the package pins the source of rdma-core.

fn main() -> std::process::ExitCode {
    eprintln!("hcabench-peer: not built yet");
    std::process::ExitCode::from(2)
}
