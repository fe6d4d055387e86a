//! The matrix of the CPUs of a machine.

use super::*;
use crate::made_up_run::cores::{CPUS, cores_run, half_ns};
use crate::testing::{Has as _, Refused as _};

fn folder_of(folder: &tempfile::TempDir, name: &str, unfinished: bool) -> Vec<PathBuf> {
    vec![cores_run(&folder.path().join(name), 3, unfinished)]
}

#[test]
fn each_figure_of_a_pair_is_drawn_with_what_has_most_in_common_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder_of(&folder, "cores", false);
    let drawn = |words: &[&str]| made(Figure::Matrix, &from, words).unwrap().data;
    let data = drawn(&[]);
    let names: Vec<&str> = (0..CPUS)
        .map(|it| data["nodes"][it]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["0", "4", "1", "5", "2", "6", "3", "7"]);
    let groups = ["socket 1", "node 1", "cache 2-3,6-7", "core 3,7"];
    assert_eq!(data["nodes"][7]["groups"], serde_json::json!(groups));
    // The median of three rounds, which are a nanosecond apart.
    let cell = |data: &serde_json::Value, from: usize, to: usize| data["cells"][from][to].as_f64();
    assert_eq!(cell(&data, 0, 1), Some(half_ns(0, 4) + 1.0));
    assert_eq!(cell(&data, 7, 0), Some(half_ns(7, 0) + 1.0));
    assert_eq!(cell(&data, 3, 3), None);
    let one_way = drawn(&["--metric", "one-way"]);
    assert_eq!(cell(&one_way, 0, 1), Some(half_ns(0, 4) + 16.0));
    // In GB/s.
    let stream = cell(&drawn(&["--metric", "stream"]), 0, 1).unwrap();
    assert!(
        (stream - 500.0 / (half_ns(0, 4) + 1.0)).abs() < 0.1,
        "{stream}"
    );
    let svg = picture(Figure::Matrix, &from, &[]).unwrap();
    svg.has(&[
        "CPUs: half of a round trip",
        "8 CPUs; a row writes",
        "from CPU",
        "to CPU",
    ]);
}

#[test]
fn what_is_not_whole_is_marked_and_what_it_does_not_have_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder_of(&folder, "part", true);
    let svg = picture(Figure::Matrix, &from, &[]).unwrap();
    svg.has(&["(incomplete)", "interrupted by SIGINT"]);
    let names = "half-round-trip, one-way, stream";
    picture(Figure::Matrix, &from, &["--metric", "lost"]).refused(&["--metric \"lost\"", names]);

    let from = folder_of(&folder, "damaged", false);
    let file = from[0].join("other-socket/pairs.csv");
    fs::write(&file, "round,sender_cpu\n0,1\n").unwrap();
    let made = made(Figure::Matrix, &from, &[]).unwrap();
    made.without[0]
        .to_string()
        .has(&["other-socket/pairs.csv", "no column"]);
    assert!(made.data["cells"][0][7].is_null() && made.data["cells"][0][1].is_f64());
}
