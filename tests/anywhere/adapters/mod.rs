//! The program on adapters that are not there: the model of `tests/adapters` plays them, in place of libibverbs,
//! librdmacm and sysfs. What is compared is what the program does and says by the rules of a driver, never how long it
//! took.

mod choice;
mod find_rate;
mod hw_timestamps;
mod messages;
mod path;
mod report;
mod settings;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;

use crate::common::{Row, alone, json, number, rows};
use crate::program::{self, Ended, Program};
use crate::testing::{Temporary, temporary};

/// The folder of the object, which is libibverbs and librdmacm; built once. Other tests may run with an earlier one, so
/// it takes its place at once.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/adapters");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("adapters");
        fs::create_dir_all(&folder).unwrap();
        let made = folder.join(format!("made-by-{}", std::process::id()));
        let words = "-std=gnu11 -O1 -Wall -Wextra -Wno-override-init -fPIC -shared -fvisibility=hidden \
                     -Wl,-soname,libibverbs.so.1 -pthread -o";
        let mut build = Program::under(&[], "gcc", words);
        build.0.arg(&made);
        for source in ["characters", "cm", "system", "transport", "verbs"] {
            build.0.arg(sources.join(source).with_extension("c"));
        }
        build.word("-ldl").ends(0);
        fs::rename(made, folder.join("libibverbs.so.1")).unwrap();
        // That of an earlier run leads there as well.
        let _ = std::os::unix::fs::symlink("libibverbs.so.1", folder.join("librdmacm.so.1"));
        folder
    })
}

/// A host with the adapters of a character (`tests/adapters/characters.c`).
struct Host {
    character: &'static str,
    circumstances: &'static str,
    system: Temporary,
}

impl Host {
    fn with(character: &'static str) -> Self {
        Host {
            character,
            circumstances: "",
            system: temporary("sys"),
        }
    }

    fn but(self, circumstances: &'static str) -> Self {
        Host {
            circumstances,
            ..self
        }
    }

    fn hcabench(&self, words: &str) -> Program {
        self.hcabench_under(&[], words)
    }

    fn hcabench_under(&self, starter: &[&str], words: &str) -> Program {
        let libraries = built();
        Program::under(starter, program::path(), words)
            // By its name, as blanks and colons end a path there.
            .env("LD_PRELOAD", "libibverbs.so.1")
            .env("LD_LIBRARY_PATH", libraries)
            .env("ADAPTERS_CHARACTER", self.character)
            .env("ADAPTERS_WITH", self.circumstances)
            .env("ADAPTERS_FOLDER", &*self.system)
    }

    #[track_caller]
    fn ends(&self, words: &str, code: i32) -> Ended {
        self.ended(self.hcabench(words), code)
    }

    /// The model has written its folder, so that what ran was not on the libraries of this system.
    #[track_caller]
    fn ended(&self, program: Program, code: i32) -> Ended {
        let ended = program.ends(code);
        assert!(self.system.exists(), "the model was not loaded");
        ended
    }

    /// A run whose points are all measured, each with `--burst 50` unless the words have another.
    #[track_caller]
    fn measured(&self, words: &str) -> Measured {
        let _alone = alone();
        let folder = temporary("results");
        let burst = if words.contains("--burst") {
            ""
        } else {
            "--burst 50"
        };
        let words = format!("{words} {burst} --timeout 20s --quiet");
        let ended = self.ended(self.hcabench(&words).out(&*folder), 0);
        let measured = Measured { ended, folder };
        for row in measured.rows() {
            let devices = &measured.settings(&row)["obtained"]["devices"];
            for end in ["sender", "receiver"] {
                let firmware = &devices[end]["device"]["firmware"];
                assert_eq!(firmware, "model of an adapter", "{row:?}");
            }
        }
        measured
    }
}

/// That of most users is 8 MiB, for a run that locks more; here it is even less.
#[test]
fn the_user_s_limit_of_locked_memory_bounds_no_run() {
    let without_right = ["setpriv", "--bounding-set", "-ipc_lock"];
    let limit = ["prlimit", "--memlock=65536"];
    // Only root has the right to exceed it, and may give it up.
    let may = Program::under(&without_right, "true", "").run();
    let starter = match may.status.success() {
        true => [&without_right[..], &limit].concat(),
        false => limit.to_vec(),
    };
    let _alone = alone();
    let folder = temporary("results");
    let host = Host::with("connectx-roce");
    let words = "--service rc --burst 4096 --timeout 20s --quiet";
    host.ended(host.hcabench_under(&starter, words).out(&*folder), 0);
    let summary = rows(&folder.join("summary.csv"));
    assert_eq!(number(&summary[0], "messages_received"), 4096);
}

/// What a run wrote.
struct Measured {
    ended: Ended,
    folder: Temporary,
}

impl Measured {
    fn rows(&self) -> Vec<Row> {
        rows(&self.folder.join("summary.csv"))
    }

    /// The reasons why points were left out, by what was asked for.
    fn left_out(&self) -> Vec<Row> {
        let file = self.folder.join("left_out.csv");
        if file.exists() {
            rows(&file)
        } else {
            Vec::new()
        }
    }

    /// The findings, by their kind.
    fn findings(&self) -> BTreeMap<String, String> {
        let found = json(&self.folder.join("findings.json"));
        let found = found["findings"].as_array().unwrap().iter();
        let text = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
        found
            .map(|one| (text(one, "kind"), text(one, "problem")))
            .collect()
    }

    /// The settings of a point.
    fn settings(&self, row: &Row) -> Value {
        json(&self.folder.join(&row["point"]).join("settings.json"))
    }

    /// That each point brought all of its messages, each once and whole, with stamps in the order of what happened.
    #[track_caller]
    fn is_whole(&self) -> &Self {
        for row in self.rows() {
            let burst = number(&row, "burst");
            let brings = !["read", "compare-swap", "fetch-add"].contains(&&*row["operation"]);
            let all = burst * number(&row, "repeat");
            if brings {
                assert_eq!(number(&row, "messages_received"), all, "{row:?}");
            }
            for kind in ["lost", "corrupted", "duplicated", "late", "foreign"] {
                let cell = &row[&format!("messages_{kind}")];
                assert!(["0", ""].contains(&cell.as_str()), "{kind}: {row:?}");
            }
            let messages = rows(&self.folder.join(&row["point"]).join("messages.csv"));
            assert_eq!(messages.len() as u64, all, "{row:?}");
            let stamp = |message: &Row, name: &str| message[name].parse::<i64>().ok();
            for (place, message) in (0..).zip(&messages) {
                assert_eq!(number(message, "seq"), place % burst, "{row:?}");
                let submitted = stamp(message, "t_subm_ns").unwrap();
                let received = stamp(message, "t_recv_ns");
                assert_eq!(received.is_some(), brings, "{row:?}: {message:?}");
                assert!(received.is_none_or(|received| received >= submitted));
                let completed = stamp(message, "t_comp_ns");
                assert!(completed.is_none_or(|completed| completed >= submitted));
            }
        }
        self
    }

    /// What was measured, by these columns.
    fn points(&self, columns: &[&str]) -> Vec<String> {
        let cells = |row: &Row| {
            let cells = columns.iter().map(|column| row[*column].as_str());
            cells.collect::<Vec<_>>().join(" ")
        };
        let mut points: Vec<_> = self.rows().iter().map(cells).collect();
        points.sort_unstable();
        points.dedup();
        points
    }
}
