//! What runs write for other programs, read by these.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// What a program writes that reads a file: it must end well.
#[track_caller]
pub(crate) fn read_by(command: &mut Command) -> String {
    let ended = command.output().unwrap();
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{command:?}: {told}");
    assert_eq!(told, "", "{command:?}");
    String::from_utf8(ended.stdout).unwrap()
}

/// The lines of a file of `--json-lines`, each as its schema wants it by Python's jsonschema, with the types of all.
#[track_caller]
pub(crate) fn lines(file: &Path) -> (Vec<Value>, Vec<String>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The one that Debian's python3-jsonschema is for.
    let types = read_by(
        Command::new("/usr/bin/python3")
            .arg(root.join("tests/anywhere/json_lines.py"))
            .arg(root.join("docs/json-lines.schema.json"))
            .arg(file),
    );
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    (lines.collect(), types.lines().map(str::to_owned).collect())
}

/// Asserts that promtool finds nothing wrong with a file of `--prometheus`.
#[track_caller]
pub(crate) fn promtool_reads(file: &Path) {
    let promtool = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/bin/promtool");
    assert!(
        promtool.exists(),
        "run ci/setup test: {promtool:?} is missing"
    );
    let gauges = File::open(file).unwrap();
    let told = read_by(
        Command::new(promtool)
            .args(["check", "metrics"])
            .stdin(gauges),
    );
    assert_eq!(told, "", "{}", fs::read_to_string(file).unwrap());
}
