use crate::testing::{Has as _, Refused as _, put, temporary};
use proptest::prelude::*;

use super::earlier::stays_inside;
use super::*;
use crate::results::schema::hca;

const MESSAGES: &str = hca::MESSAGES.name;
const OF_A_POINT: [&str; 3] = [HISTOGRAM, MESSAGES, SETTINGS];
/// What stands in a mark while the run goes on.
const NOT_ENDED: &str = "These results are incomplete. The run has not ended yet";

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn create(path: &Path, force: bool) -> Result<ResultsFolder, ReportError> {
    ResultsFolder::create(path, force, 0)
}

fn run(path: &Path, force: bool) -> Result<(), ReportError> {
    let results = create(path, force)?;
    fs::write(results.file(SUMMARY)?, "service\nrc\n").unwrap();
    let point = results.point("rc-send-8")?;
    for name in OF_A_POINT {
        fs::write(point.file(name)?, "data").unwrap();
    }
    point.complete()?;
    results.complete()
}

#[test]
fn the_marks_stand_from_the_beginning_and_outlive_a_kill() {
    let home = tempfile::tempdir().unwrap();
    let results = create(home.path(), false).unwrap();
    let point = results.point("p1").unwrap();
    for mark in [home.path().join(MARK), home.path().join("p1").join(MARK)] {
        fs::read_to_string(mark).unwrap().begins(NOT_ENDED);
    }
    drop(point);
    drop(results);
    assert!(home.path().join(MARK).exists() && home.path().join("p1").join(MARK).exists());
}

#[test]
fn a_failed_point_says_why_and_the_whole_cannot_be_complete() {
    let home = tempfile::tempdir().unwrap();
    let results = create(home.path(), false).unwrap();
    results.point("good").unwrap().complete().unwrap();
    let bad = results.point("bad").unwrap();
    bad.fail("The device rxe1 is gone.").unwrap();
    let text = fs::read_to_string(home.path().join("bad").join(MARK)).unwrap();
    let told = "These results are incomplete. The device rxe1 is gone.\n";
    assert!(text.starts_with(told), "{text}");
    assert!(!home.path().join("good").join(MARK).exists());
    results.complete().refused(&["1 of its points are not"]);
    assert!(home.path().join(MARK).exists());
}

#[test]
fn on_a_full_disk_the_mark_says_why() {
    let home = tempfile::tempdir().unwrap();
    let results = create(home.path(), false).unwrap();
    let point = results.point("p1").unwrap();
    for mark in [home.path().join(MARK), home.path().join("p1").join(MARK)] {
        durable::tests::fill_the_disk_for(&mark);
    }
    point.fail("No space left on device.").unwrap();
    results.fail("No space left on device.").unwrap();
    for folder in [home.path(), &home.path().join("p1")] {
        let text = fs::read_to_string(folder.join(MARK)).unwrap();
        let told = "These results are incomplete. No space left on device.\n";
        assert!(text.starts_with(told), "{text}");
        text.has(&["are complete.\n"]);
        text.lacks(&["not ended yet"]);
    }
}

#[test]
fn existing_results_are_refused() {
    let marks: [(&str, &str); 4] = [
        (SUMMARY, "anything"),
        (MARK, "These results are incomplete. Killed."),
        (LIST, ""),
        ("point/INCOMPLETE", ""),
    ];
    for (file, text) in marks {
        let home = tempfile::tempdir().unwrap();
        put(&home, file, text);
        let told = ["already holds results", "--force"];
        create(home.path(), false).refused(&told);
    }
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("p")).unwrap();
    fs::write(home.path().join("p").join(MESSAGES), "").unwrap();
    fs::write(home.path().join("p").join(SETTINGS), "").unwrap();
    assert!(create(home.path(), false).is_err());
}

#[test]
fn foreign_files_are_no_results() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("notes.txt"), "mine").unwrap();
    fs::create_dir(home.path().join(".vscode")).unwrap();
    fs::write(home.path().join(".vscode").join(SETTINGS), "mine").unwrap();
    run(home.path(), false).unwrap();
}

#[test]
fn force_removes_the_earlier_run_and_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join(MESSAGES), "elsewhere").unwrap();
    let path = home.path();
    run(path, false).unwrap();
    fs::write(path.join("notes.txt"), "mine").unwrap();
    fs::write(path.join("rc-send-8/plot.png"), "mine").unwrap();
    fs::create_dir(path.join("other")).unwrap();
    fs::write(path.join("other").join(MESSAGES), "mine").unwrap();
    // Entries that nobody of us wrote, and a listed folder that has become a link to elsewhere.
    let mut list = fs::read_to_string(path.join(LIST)).unwrap();
    list += &format!(
        "../{}/{MESSAGES}\n{}\nlinked/{MESSAGES}\nlinked/\n",
        outside.path().display(),
        outside.path().join(MESSAGES).display()
    );
    fs::write(path.join(LIST), list).unwrap();
    std::os::unix::fs::symlink(outside.path(), path.join("linked")).unwrap();

    let results = create(path, true).unwrap();
    let left = [LIST, MARK, "linked", "notes.txt", "other", "rc-send-8"];
    assert_eq!(names(path), left);
    assert_eq!(names(&path.join("rc-send-8")), ["plot.png"]);
    assert_eq!(names(&path.join("other")), [MESSAGES]);
    assert_eq!(names(outside.path()), [MESSAGES]);
    // A point moves in beside what the user keeps there, and still overwrites none of it.
    fs::write(path.join("rc-send-8").join(SETTINGS), "mine").unwrap();
    let point = results.point("rc-send-8").unwrap();
    point.file(MESSAGES).unwrap();
    let told = ["something of that name is already there"];
    point.file(SETTINGS).refused(&told);
    results.point("linked").refused(&told);
    results.point("notes.txt").refused(&told);
    results.file("notes.txt").refused(&told);
    point.complete().unwrap();
    results.complete().unwrap();
}

#[test]
fn a_file_of_this_run_may_be_written_again() {
    let home = tempfile::tempdir().unwrap();
    let results = create(home.path(), false).unwrap();
    let point = results.point("p").unwrap();
    for _ in 0..2 {
        fs::write(results.file("plan.json").unwrap(), "1").unwrap();
        fs::write(point.file(SETTINGS).unwrap(), "1").unwrap();
    }
    let list = fs::read_to_string(home.path().join(LIST)).unwrap();
    assert_eq!(list, "p/\np/INCOMPLETE\nplan.json\np/settings.json\n");
    point.complete().unwrap();
    assert!(results.point("p").is_err());
}

#[test]
fn what_looks_like_results_and_is_not_on_a_list_of_ours_stays() {
    for (name, text) in [
        (MARK, "my notes on what is missing"),
        (SUMMARY, "somebody's"),
    ] {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(name), text).unwrap();
        create(home.path(), false).refused(&["already holds results"]);
        create(home.path(), true).refused(&["not on its list of files"]);
        assert_eq!(names(home.path()), [name]);
    }
}

#[test]
fn a_whole_run_leaves_no_mark_and_force_replaces_run_after_run() {
    let path = temporary("deep/er/results");
    for force in [false, true, true] {
        run(&path, force).unwrap();
        assert_eq!(names(&path), [LIST, "rc-send-8", SUMMARY]);
        assert_eq!(names(&path.join("rc-send-8")), OF_A_POINT);
    }
    // A run killed in the middle of writing leaves a partial file; it goes as well.
    let partial = format!("rc-send-8/.{SETTINGS}.partial");
    fs::write(path.join(partial), "{").unwrap();
    run(&path, true).unwrap();
    assert_eq!(names(&path.join("rc-send-8")), OF_A_POINT);
}

#[test]
fn too_little_space_is_refused_before_anything_is_made() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a/b");
    let made = ResultsFolder::create(&path, false, u64::MAX);
    made.refused(&["the results may take"]);
    assert_eq!(names(home.path()), [""; 0]);
    ResultsFolder::create(&path, false, 1).unwrap();
}

#[test]
fn a_path_below_a_file_is_an_error_that_names_it() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("file"), "").unwrap();
    for path in ["file/results", "file"] {
        let told = format!("{path}: Not a directory");
        create(&home.path().join(path), false).refused(&[&told]);
    }
}

#[test]
fn a_place_where_nobody_may_write_is_an_error() {
    // No user, not even root, makes folders in /proc; the last one exists and takes no files.
    for place in ["/proc/hcabench", "/proc/self/hcabench/deep", "/proc/self"] {
        assert!(create(Path::new(place), false).is_err(), "{place}");
    }
}

#[test]
fn a_full_disk_in_the_probe_leaves_no_folder() {
    let home = tempfile::tempdir().unwrap();
    durable::tests::fill_the_disk_for(&home.path().join("new").join(PROBE));
    let error = create(&home.path().join("new"), false).unwrap_err();
    assert!(error.is_full(), "{error}");
    assert_eq!(names(home.path()), [""; 0]);
}

/// Whatever name of ours somebody planted a link under, what it leads to and the link stay.
#[test]
fn planted_links_are_not_followed() {
    for name in [
        PROBE,
        LIST,
        MARK,
        SUMMARY,
        ".INCOMPLETE.partial",
        "p/.INCOMPLETE.partial",
        "p/.settings.json.partial",
        "p/messages.csv",
    ] {
        let home = tempfile::tempdir().unwrap();
        let victim = home.path().join("victim");
        let link = home.path().join("run").join(name);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        // Not there yet, and there: neither is made nor changed.
        for contents in [None, Some("precious")] {
            if let Some(text) = contents {
                fs::write(&victim, text).unwrap();
            }
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(&victim, &link).unwrap();
            let _ = ResultsFolder::check(&home.path().join("run"), false, 0);
            for force in [false, true] {
                let _ = run(&home.path().join("run"), force);
                let found = fs::read_to_string(&victim).ok();
                assert_eq!(found.as_deref(), contents, "{name}");
                // With --force a list is replaced, whatever it is.
                assert!(link.is_symlink() || name == LIST && force, "{name}");
            }
            let _ = fs::remove_dir_all(home.path().join("run"));
            fs::create_dir_all(link.parent().unwrap()).unwrap();
        }
    }
}

#[test]
fn a_check_touches_nothing_of_the_users() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join(PROBE), "mine").unwrap();
    ResultsFolder::check(home.path(), false, 0).unwrap();
    assert_eq!(fs::read_to_string(home.path().join(PROBE)).unwrap(), "mine");
    assert_eq!(names(home.path()), [PROBE]);
}

/// Opening a pipe would wait for somebody to write into it.
#[test]
fn pipes_in_place_of_our_files_are_refused() {
    for name in [PROBE, LIST, MARK, "p/INCOMPLETE", ".INCOMPLETE.partial"] {
        let home = tempfile::tempdir().unwrap();
        let pipe = home.path().join(name);
        fs::create_dir_all(pipe.parent().unwrap()).unwrap();
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for force in [false, true] {
            let made = create(home.path(), force);
            match name {
                LIST => made.refused(&["it is a pipe, not a file"]),
                MARK => assert!(made.is_err()),
                _ => drop(made),
            }
        }
        assert!(!pipe.symlink_metadata().unwrap().is_file());
    }
}

#[test]
fn a_run_is_taken_up_again() {
    let path = temporary("run");
    let told = ["no run that could be resumed"];
    EarlierFolder::lock(&path).refused(&told);
    run(&path, false).unwrap();
    let results = EarlierFolder::lock(&path).unwrap().resume().unwrap();
    assert!(path.join(MARK).exists());
    let point = results.point("rc-send-8").unwrap();
    assert!(point.path().join(MARK).exists());
    let messages = point.file(MESSAGES).unwrap();
    assert_eq!(messages, path.join("rc-send-8/messages.csv"));
    assert!(results.point("rc-send-8").is_err());
    results.point("rc-send-16").unwrap().complete().unwrap();
    point.complete().unwrap();
    results.complete().unwrap();
    let list = fs::read_to_string(path.join(LIST)).unwrap();
    assert_eq!(list.matches("rc-send-8/\n").count(), 1);
    list.ends("rc-send-16/\nrc-send-16/INCOMPLETE\n");
    run(&path, true).unwrap();
}

#[test]
fn folders_with_a_number_never_collide() {
    let base = &*temporary("results/20261128-101010");
    let make = || {
        ResultsFolder::check_numbered(base, 0).unwrap();
        let results = ResultsFolder::create_numbered(base, 0).unwrap();
        let path = results.path().to_owned();
        results.complete().unwrap();
        path
    };
    let made: BTreeSet<PathBuf> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    assert_eq!(made.len(), 8);
    let second = base.with_file_name("20261128-101010-2");
    assert!(made.contains(base) && made.contains(&second), "{made:?}");
    let results = folder_of(base);
    assert_eq!(names(results).len(), 8);
    // Whatever else has the name.
    std::os::unix::fs::symlink("gone", results.join("next")).unwrap();
    let next = ResultsFolder::create_numbered(&results.join("next"), 0).unwrap();
    assert_eq!(next.path(), results.join("next-2"));
    let few = ResultsFolder::create_numbered(&results.join("large"), u64::MAX);
    few.refused(&["the results may take"]);
    assert!(!results.join("large").exists());
}

#[test]
fn a_folder_that_is_written_to_is_refused_until_the_run_has_ended() {
    let path = temporary("run");
    let results = create(&path, false).unwrap();
    let before = names(&path);
    let told = ["run is in use: a run writes to it"];
    for force in [false, true] {
        ResultsFolder::check(&path, force, 0).refused(&told);
        create(&path, force).refused(&told);
    }
    assert_eq!(names(&path), before);
    drop(results);
    ResultsFolder::check(&path, false, 0).refused(&["already holds results"]);
    run(&path, true).unwrap();
}

#[test]
fn a_round_of_a_run_that_was_killed_is_waited_for_until_it_ends() {
    let path = temporary("run");
    run(&path, false).unwrap();
    for (ends_after, result) in [(3, Ok(())), (9, Err("run is in use"))] {
        let mut round = Some(hold(&path).unwrap());
        let folder = File::open(&path).unwrap();
        let mut pauses = 0;
        let locked = wait_while(
            &path,
            || folder.try_lock(),
            || {
                pauses += 1;
                if pauses == ends_after {
                    round.take();
                }
                pauses < 5
            },
        );
        match result {
            Ok(()) => locked.unwrap(),
            Err(told) => locked.refused(&[told]),
        }
        assert_eq!(pauses, ends_after.min(5));
    }
    run(&path, true).unwrap();
}

/// Several begin at the same moment, in a folder that is there, or not.
#[test]
fn one_of_several_runs_gets_a_folder() {
    for force in [false, true] {
        for name in ["", "a/b/run"] {
            let path = &*temporary(name);
            let runs: Vec<_> = std::thread::scope(|scope| {
                let begin = || create(path, force);
                let begun: Vec<_> = (0..8).map(|_| scope.spawn(begin)).collect();
                begun.into_iter().map(|run| run.join().unwrap()).collect()
            });
            let (got, refused): (Vec<_>, Vec<_>) = runs.into_iter().partition(Result::is_ok);
            assert_eq!(got.len(), 1, "{refused:?}");
            for error in refused {
                error.refused(&["is in use"]);
            }
            got.into_iter()
                .for_each(|run| run.unwrap().complete().unwrap());
            assert_eq!(names(path), [LIST]);
        }
    }
}

#[test]
fn a_link_that_leads_nowhere_is_named() {
    let home = tempfile::tempdir().unwrap();
    let link = home.path().join("link");
    std::os::unix::fs::symlink("gone", &link).unwrap();
    let told = ["link is a symbolic link to gone, which does not exist"];
    for path in [link.clone(), link.join("deep/run")] {
        for force in [false, true] {
            create(&path, force).refused(&told);
            ResultsFolder::check(&path, force, 0).refused(&told);
        }
        ResultsFolder::check_numbered(&path.join("run"), 0).refused(&told);
        ResultsFolder::create_numbered(&path.join("run"), 0).refused(&told);
    }
    assert_eq!(names(home.path()), ["link"]);
    // One that leads somewhere is followed.
    fs::create_dir(home.path().join("gone")).unwrap();
    run(&link.join("run"), false).unwrap();
}

#[test]
fn a_full_disk_at_the_mark_leaves_a_folder_that_can_be_used() {
    let path = temporary("results");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("notes.txt"), "mine").unwrap();
    durable::tests::fill_the_disk_for(&path.join(MARK));
    let error = create(&path, false).unwrap_err();
    assert!(error.is_full(), "{error}");
    assert_eq!(names(&path), ["notes.txt"]);
    durable::tests::empty_the_disk();
    run(&path, false).unwrap();
}

#[test]
fn a_failure_while_replacing_keeps_the_earlier_run() {
    let home = tempfile::tempdir().unwrap();
    run(home.path(), false).unwrap();
    durable::tests::fill_the_disk_for(&home.path().join(MARK));
    assert!(create(home.path(), true).is_err());
    assert_eq!(names(home.path()), [LIST, "rc-send-8", SUMMARY]);
    assert_eq!(names(&home.path().join("rc-send-8")), OF_A_POINT);
}

#[test]
fn names_stay_in_the_folder() {
    let home = tempfile::tempdir().unwrap();
    let results = create(home.path(), false).unwrap();
    let point = results.point("p").unwrap();
    let bad = [
        "", ".", "..", "../x", "a/b", "/etc", ".hidden", "a\nb", MARK, LIST,
    ];
    for name in bad {
        assert!(results.file(name).is_err(), "{name:?}");
        assert!(results.point(name).is_err(), "{name:?}");
        assert!(point.file(name).is_err(), "{name:?}");
    }
    assert!(results.point("p").is_err());
}

#[test]
fn a_relative_path_of_one_name_works() {
    assert_eq!(folder_of(Path::new("results")), Path::new("."));
    let nearest = nearest_existing(Path::new("no-such-folder-here/at/all"));
    assert_eq!(nearest, Path::new("."));
}

proptest! {
    #[test]
    fn no_list_leads_outside(line in "[./a-c~]{0,12}") {
        if stays_inside(&line) {
            prop_assert!(!line.starts_with('/') && line.split('/').all(|part| part != ".."), "{}", line);
        }
    }
}
