//! Whether a program without unwinding goes on when a worker panics: tests are built with it, whatever the profile says,
//! so ci/test runs this as built for users. Ends with exit code 0 if so.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hcabench::host::{CpuSet, HostError, pinning};
use hcabench::rig::control::Control;
use hcabench::rig::error::RigError;
use hcabench::rig::role::Role;
use hcabench::rig::workers::{Crew, SupervisorTimeouts, WorkerPlacement};

const PANICS: Role = Role::new("worker that panics", "panics");
const WORKS: Role = Role::new("worker", "works");

fn collected(
    role: Role,
    cpus: &CpuSet,
    work: fn() -> Result<u32, HostError>,
) -> Result<Vec<(usize, u32)>, RigError> {
    let control = Arc::new(Control::default());
    let mut crew = Crew::<u32, HostError>::new(&control)?;
    let seat = WorkerPlacement {
        role,
        cpu: cpus.iter().next().expect("a CPU"),
        priority: None,
    };
    crew.start(seat, move |reporter| {
        reporter.send(work()?);
        Ok(())
    })?;
    let began = Instant::now();
    let late = || (began.elapsed() > Duration::from_secs(60)).then_some(());
    let reports = crew
        .collect(&SupervisorTimeouts::default(), late, || ())?
        .reports;
    crew.dismiss(Duration::from_secs(60));
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "it was waited for"
    );
    Ok(reports)
}

fn main() {
    if cfg!(panic = "unwind") {
        eprintln!("error: built with unwinding: build it with --release");
        std::process::exit(2);
    }
    let cpus = pinning::reachable_cpus().expect("the CPUs of this process");
    let panicked = collected(PANICS, &cpus, || panic!("on purpose"));
    assert!(matches!(panicked, Err(RigError::Panicked { role }) if role == PANICS));
    // The one after it is measured.
    assert_eq!(
        collected(WORKS, &cpus, || Ok(7)).expect("a report"),
        [(0, 7)]
    );
    println!("a worker panicked, and the next one worked");
}
