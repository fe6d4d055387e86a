//! Which nodes are drained, and which runs count for it.

use super::*;

#[test]
fn a_node_that_was_repaired_is_failing_for_a_while_and_not_drained() {
    let folder = healthy();
    for number in 6..=8 {
        put_run(&folder, &format!("runs/{number}"), &slow_day(number));
    }
    let drain = "health runs --baseline baseline.json --drain-command slurm";
    expect(&folder, drain, 3).0.has(&["nodename=node5"]);
    put_run(&folder, "runs/9", &day(9));
    let json = json_of(&folder, "health runs --baseline baseline.json --json", 3);
    assert_eq!(json["failing"], serde_json::json!(["node5"]));
    let (text, said) = expect(&folder, drain, 3);
    assert_eq!(text, "");
    said.has(&["node5 is failing by earlier runs", "it is not drained"]);
}

#[test]
fn a_node_without_a_working_port_is_drained_by_the_name_of_its_host() {
    let folder = healthy();
    for number in 6..=7 {
        let path = format!("runs/{number}");
        let made = MadeFabric {
            dead: Some(2),
            ..day(number)
        };
        put_run(&folder, &path, &made);
        fs::write(folder.join(&path).join(MARK), "node2 cannot measure").unwrap();
    }
    let (text, _) = expect(&folder, "health runs --drain-command slurm", 3);
    text.begins("scontrol update nodename=node2 state=drain reason='hcabench: missing 100 %");
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn a_run_that_was_copied_counts_once() {
    let folder = healthy();
    for name in ["runs/6", "runs/6-copy"] {
        put_run(&folder, name, &slow_day(6));
    }
    let (_, said) = expect(&folder, "health runs --baseline baseline.json", 0);
    said.has(&["runs/6-copy: it is a copy of runs/6"]);
    let copied = "baseline runs/1 runs/2 runs/6 runs/6-copy --out again.json";
    let (_, said) = expect(&folder, copied, 2);
    said.has(&["runs/6-copy: it is a copy of runs/6", "fix: "]);
}
