use super::*;
use crate::host::Topology;

const WORKS: Role = Role::new("worker", "test-work");
const OTHER: Role = Role::new("other worker", "test-other");

type WorkerReport = u32;
type WorkerFailure = HostError;

fn seat(role: Role) -> WorkerPlacement {
    let allowed = Topology::read().unwrap().allowed();
    WorkerPlacement {
        role,
        cpu: allowed.iter().next().unwrap(),
        priority: None,
    }
}

fn crew() -> (Arc<Control>, Crew<WorkerReport, WorkerFailure>) {
    let control = Arc::new(Control::default());
    let crew = Crew::new(&control).unwrap();
    (control, crew)
}

fn patience() -> SupervisorTimeouts {
    SupervisorTimeouts {
        look: Duration::from_millis(5),
        ..SupervisorTimeouts::default()
    }
}

fn collect<X>(
    crew: &mut Crew<WorkerReport, WorkerFailure>,
    watch: impl FnMut() -> Option<X>,
) -> Result<CrewOutcome<WorkerReport, WorkerFailure, X>, RigError> {
    crew.collect_under(&|| None, &patience(), watch, || {})
}

fn no_reason() -> Option<()> {
    None
}

fn start_a_loop(crew: &mut Crew<WorkerReport, WorkerFailure>, control: &Arc<Control>) {
    let control = Arc::clone(control);
    let work = move |reporter: &Reporter<WorkerReport>| {
        while !control.stopped() {
            std::thread::yield_now();
        }
        reporter.send(7);
        Ok(())
    };
    crew.start(seat(WORKS), work).unwrap();
}

fn start_one_that_hangs(crew: &mut Crew<WorkerReport, WorkerFailure>) -> Sender<()> {
    let (release, wait) = channel::<()>();
    let work = move |_: &Reporter<WorkerReport>| {
        let _ = wait.recv();
        Ok(())
    };
    crew.start(seat(OTHER), work).unwrap();
    release
}

#[test]
fn each_report_comes_with_its_place_and_all_are_waited_for() {
    let (_, mut crew) = crew();
    for number in 0..3 {
        crew.start(seat(WORKS), move |reporter| {
            assert!(reporter.send(number * 10));
            Ok(())
        })
        .unwrap();
    }
    let mut found = collect(&mut crew, no_reason).unwrap();
    found.reports.sort_unstable();
    assert_eq!(found.reports, [(0, 0), (1, 10), (2, 20)]);
    assert!(found.cause.is_none() && found.failures.is_empty());
}

#[test]
fn a_signal_raises_the_stop_flag_and_what_was_found_is_kept() {
    let (control, mut crew) = crew();
    start_a_loop(&mut crew, &control);
    let mut wakes = 0;
    let found = crew
        .collect_under(
            &|| Some(Signal::SIGTERM),
            &patience(),
            || None::<()>,
            || wakes += 1,
        )
        .unwrap();
    assert_eq!(found.reports, [(0, 7)]);
    assert_eq!(found.cause, Some(Cause::Signal(Signal::SIGTERM)));
    assert!(control.stopped());
}

#[test]
fn the_watch_ends_a_run_with_its_reason() {
    let (control, mut crew) = crew();
    start_a_loop(&mut crew, &control);
    let found = collect(&mut crew, || Some("silence")).unwrap();
    assert_eq!(found.cause, Some(Cause::Watch("silence")));
}

#[test]
fn a_worker_that_fails_ends_the_others() {
    let (control, mut crew) = crew();
    let shared = Arc::clone(&control);
    crew.start(seat(OTHER), move |reporter| {
        // Waits for a worker that will never be ready.
        assert!(!shared.start_together(2));
        reporter.send(1);
        Ok(())
    })
    .unwrap();
    crew.start(seat(WORKS), |_| Err(HostError::NoCpu)).unwrap();
    let found = collect(&mut crew, no_reason).unwrap();
    assert_eq!(found.failures.len(), 1);
    assert_eq!(found.failures[0].0, WORKS);
    assert_eq!(found.reports, [(0, 1)]);
    assert_eq!(found.cause, Some(Cause::Worker));
}

#[test]
fn a_worker_that_cannot_be_placed_says_so() {
    let (_, mut crew) = crew();
    let nowhere = WorkerPlacement {
        cpu: 1023,
        ..seat(WORKS)
    };
    crew.start(nowhere, |_| Ok(())).unwrap();
    let found = collect(&mut crew, no_reason).unwrap();
    assert_eq!(found.failures.len(), 1);
}

#[test]
fn a_panic_is_told_with_its_role() {
    let (control, mut crew) = crew();
    crew.start(seat(OTHER), |_| panic!("as a test wants it"))
        .unwrap();
    let error = collect(&mut crew, no_reason).unwrap_err();
    let is_expected = matches!(error, RigError::Panicked { role } if role == OTHER);
    assert!(is_expected, "{error}");
    assert!(control.stopped() && control.failed());
}

#[test]
fn a_worker_that_hangs_is_left_behind_and_named() {
    let (_, mut crew) = crew();
    let release = start_one_that_hangs(&mut crew);
    let brief = SupervisorTimeouts {
        grace: Duration::from_millis(30),
        ..patience()
    };
    let error = crew
        .collect_under(&|| None, &brief, || Some("too slow"), || {})
        .unwrap_err();
    let is_expected = matches!(error, RigError::Stuck { role, .. } if role == OTHER);
    assert!(is_expected, "{error}");
    drop(release);
}

#[test]
fn a_machine_that_stands_still_after_a_signal_costs_no_report() {
    let (control, mut crew) = crew();
    start_a_loop(&mut crew, &control);
    let patience = patience();
    let mut stands_still = true;
    let told = || {
        // The supervisor gets no CPU for longer than a worker may take.
        if std::mem::take(&mut stands_still) {
            std::thread::sleep(2 * patience.grace_after_signal);
        }
    };
    let signal = || Some(Signal::SIGINT);
    let found = crew.collect_under(&signal, &patience, || None::<()>, told);
    assert_eq!(found.unwrap().reports, [(0, 7)]);
}

#[test]
fn a_worker_that_hangs_after_a_signal_does_not_hold_the_program_up() {
    let (_, mut crew) = crew();
    let release = start_one_that_hangs(&mut crew);
    let begun = Instant::now();
    let error = crew
        .collect_under(&|| Some(Signal::SIGINT), &patience(), || None::<()>, || {})
        .unwrap_err();
    let is_expected = matches!(error, RigError::Interrupted(Signal::SIGINT));
    assert!(is_expected, "{error}");
    assert!(begun.elapsed() < Duration::from_secs(20));
    drop(release);
}

#[test]
fn workers_report_more_than_once() {
    let (_, mut crew) = crew();
    crew.start(seat(WORKS), |reporter| {
        reporter.send(1);
        // The second belongs to the second collection, which takes it from the channel.
        reporter.send(2);
        Ok(())
    })
    .unwrap();
    let first = collect(&mut crew, no_reason).unwrap();
    let mut all = first.reports;
    if all.len() == 1 {
        let second = collect(&mut crew, no_reason).unwrap();
        all.extend(second.reports);
    }
    assert_eq!(all, [(0, 1), (0, 2)]);
    crew.dismiss(Duration::from_secs(20));
    assert!(crew.team.workers.is_empty());
}

#[test]
fn a_worker_that_ends_without_a_report_is_not_waited_for() {
    let (_, mut crew) = crew();
    crew.start(seat(OTHER), |_| Ok(())).unwrap();
    let error = collect(&mut crew, no_reason).unwrap_err();
    let is_expected = matches!(error, RigError::NoReport { role } if role == OTHER);
    assert!(is_expected, "{error}");
}
