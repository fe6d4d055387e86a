//! The matrix of a fabric.

use super::*;
use crate::results::folder::MARK;
use crate::results::schema::fabric::{NODES, PAIRS};
use crate::testing::{Has as _, Refused as _};

fn folder_of(folder: &tempfile::TempDir, name: &str, made: &MadeFabric) -> Vec<PathBuf> {
    vec![fabric_run(&folder.path().join(name), made)]
}

fn texts(from: &[PathBuf], words: &[&str]) -> String {
    let drawing = made(Figure::Matrix, from, words).unwrap().drawing;
    let texts: Vec<&str> = drawing.texts().map(|text| &text.text[..]).collect();
    texts.join(" ")
}

#[test]
fn each_figure_of_a_fabric_is_drawn_by_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let whole = MadeFabric {
        slow: Some((5, 4000.0)),
        dead: Some(2),
        ..MadeFabric::of(8, 4)
    };
    let from = folder_of(&folder, "fabric", &whole);
    for (name, column) in [
        ("half-round-trip", "half_round_trip_p50_ns"),
        ("excess", "excess_p99_ns"),
        ("one-way", "one_way_p50_high_ns"),
        ("lost", "messages_lost"),
    ] {
        let drawn = made(Figure::Matrix, &from, &["--metric", name])
            .unwrap()
            .data;
        let cell = |from: usize, to: usize| drawn["cells"][from][to].as_f64();
        assert!(cell(3, 3).is_none() && cell(2, 0).is_none() && cell(0, 2).is_none());
        let mut reader = csv::Reader::from_path(from[0].join(PAIRS)).unwrap();
        let header = reader.headers().unwrap().clone();
        let place = |name: &str| header.iter().position(|it| it == name).unwrap();
        let row = reader.records().map(Result::unwrap);
        let mut row =
            row.filter(|row| &row[place("from")] == "node5" && &row[place("to")] == "node1");
        let told = row.next().unwrap()[place(column)].parse().ok();
        assert_eq!(cell(5, 1), told, "{column}");
    }
    let said = texts(&from, &[]);
    said.has(&[
        "14 pairs without this figure are hatched",
        "named as slow: node5",
        "node7",
    ]);
}

#[test]
fn nodes_of_a_group_stand_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder_of(&folder, "fabric", &MadeFabric::of(4, 2));
    let path = from[0].join(NODES);
    // Ranks that alternate between two racks.
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replace("node1,1,row0.rack0", "node1,1,row1.rack1");
    let text = text.replace("node2,2,row1.rack1", "node2,2,row0.rack0");
    fs::write(&path, text).unwrap();
    let drawn = made(Figure::Matrix, &from, &[]).unwrap().data;
    let names: Vec<&str> = (0..4)
        .map(|it| drawn["nodes"][it]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["node0", "node2", "node1", "node3"]);
    // A run that was killed has no nodes yet: they are those of its pairs.
    fs::remove_file(&path).unwrap();
    fs::write(
        from[0].join(MARK),
        "These results are incomplete. rank 0 was killed\n",
    )
    .unwrap();
    let said = texts(&from, &[]);
    said.has(&["(incomplete)", "rank 0 was killed"]);
    let drawn = made(Figure::Matrix, &from, &[]).unwrap().data;
    assert_eq!(drawn["nodes"][1]["name"], "node1");
}

#[test]
fn what_is_no_fabric_and_what_it_does_not_have_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder_of(&folder, "fabric", &MadeFabric::of(4, 2));
    let run = run_of(&folder, "run", &TWO, 0);
    let two = [from.clone(), from.clone()].concat();
    picture(Figure::Matrix, &two, &[]).refused(&["2 folders are named"]);
    let names = "half-round-trip, excess, one-way, lost";
    picture(Figure::Matrix, &from, &["--metric", "jump"]).refused(&["--metric \"jump\"", names]);
    picture(Figure::Matrix, &from, &["--metric", "lost,excess"]).refused(&["name that only"]);
    picture(Figure::Matrix, &run, &[]).refused(&["pairs.csv", "hcabench fabric"]);
    let pairs = fs::read_to_string(from[0].join(PAIRS)).unwrap();
    fs::write(from[0].join(PAIRS), pairs.replace(",node3,", ",elsewhere,")).unwrap();
    let made = made(Figure::Matrix, &from, &[]).unwrap();
    made.without[0]
        .to_string()
        .has(&["elsewhere", "not a pair of nodes.csv"]);
    assert_eq!(made.data["cells"].as_array().unwrap().len(), 4);
}
