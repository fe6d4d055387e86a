//! Files as they come back from mail, editors and disks: whatever becomes of one, a page has all, or names the file.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::arguments;
use crate::made_up_run::fabric::{MadeFabric, fabric_run};
use crate::page::{Page, Sheet};
use crate::report::page_of;
use crate::results::finding::FINDINGS;
use crate::results::folder::{LEFT_OUT, LIST, RUNS, SETTINGS, SUMMARY};
use crate::results::read::{Fabric, Run};
use crate::results::schema::fabric::{FABRIC, NODES, PAIRS};

/// A change of a file.
type Change = (&'static str, fn(&[u8]) -> Vec<u8>);

/// A table, of which each line is a row of cells.
fn lines(good: &[u8]) -> Vec<&[u8]> {
    good.split_inclusive(|&byte| byte == b'\n').collect()
}

/// As each line of text is changed.
fn each_line(good: &[u8], change: impl Fn(usize, &str) -> String) -> Vec<u8> {
    let text = String::from_utf8_lossy(good);
    let lines = text.lines().enumerate();
    let changed = lines.map(|(place, line)| change(place, line) + "\n");
    changed.collect::<String>().into_bytes()
}

fn cut(good: &[u8], [part, of]: [usize; 2]) -> Vec<u8> {
    good[..good.len() * part / of].to_vec()
}

/// What may become of any file.
const ANY: [Change; 9] = [
    ("cut at its end", |good| good[..good.len() - 1].to_vec()),
    (IN_THE_MIDDLE, |good| cut(good, [1, 2])),
    ("cut at a third", |good| cut(good, [1, 3])),
    ("without its last line", |good| {
        let all = lines(good);
        all[..all.len() - 1].concat()
    }),
    ("with its first line only", |good| lines(good)[0].to_vec()),
    ("empty", |_| Vec::new()),
    ("compressed", |good| {
        [b"\x1f\x8b\x08\0\0\0\0\0\0\x03", good].concat()
    }),
    ("marked", |good| [b"\xef\xbb\xbf", good].concat()),
    ("with the lines of Windows", |good| {
        each_line(good, |_, line| format!("{line}\r"))
    }),
];

const IN_THE_MIDDLE: &str = "cut in the middle";
const MOVED: &str = "with rows in another order";

/// What may become of a table.
const TABLE: [Change; 7] = [
    ("with semicolons", |good| {
        each_line(good, |_, line| line.replace(',', ";"))
    }),
    ("with a row twice", |good| {
        let mut all = lines(good);
        let last = all[all.len() - 1];
        all.push(last);
        all.concat()
    }),
    (MOVED, |good| {
        let mut all = lines(good);
        all[1..].reverse();
        all.concat()
    }),
    ("with a column more", |good| {
        each_line(good, |place, line| match place {
            0 => format!("{line},more"),
            _ => format!("{line},1"),
        })
    }),
    ("with a column less", |good| {
        each_line(good, |_, line| match line.rsplit_once(',') {
            Some((rest, _)) => rest.to_owned(),
            None => line.to_owned(),
        })
    }),
    ("with a text in place of a number", |good| {
        each_line(good, |place, line| match place {
            1 => {
                let cells = line.split(',');
                let no_numbers = cells.map(|it| {
                    if it.parse::<f64>().is_ok() {
                        "many"
                    } else {
                        it
                    }
                });
                no_numbers.collect::<Vec<_>>().join(",")
            }
            _ => line.to_owned(),
        })
    }),
    ("with a row cut off", |good| {
        each_line(good, |place, line| match place {
            1 => line[..line.len() / 2].to_owned(),
            _ => line.to_owned(),
        })
    }),
];

/// What a reader sees of a page, in numbers.
fn size_of(page: &Page) -> Vec<(String, usize)> {
    let sheet = |title: &str, sheet: &Sheet| (title.to_owned(), sheet.rows.len());
    let mut sizes = vec![
        sheet("answer", &page.answer.sheet),
        sheet("points", &page.points.1),
        sheet("instrument", &page.instrument),
        ("facts".to_owned(), page.facts.len()),
    ];
    let sheets = page.tables.iter().chain(&page.more);
    sizes.extend(sheets.map(|(title, table)| sheet(title, table)));
    // A line or a point less is a shorter drawing.
    let figures = page.figures.iter();
    sizes.extend(figures.map(|it| (it.title.clone(), it.svg.len())));
    sizes
}

/// The first two points of a sample, with all kinds of files.
fn sample(benchmark: &str, to: &Path) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("notebooks/sample")
        .join(benchmark);
    let all = Run::open(&from).unwrap();
    let is_kept = |name: &str| all.points[..2].iter().any(|point| point.name == name);
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(&from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), to.join(&name)).unwrap();
        } else if is_kept(&name) {
            fs::create_dir(to.join(&name)).unwrap();
            for file in fs::read_dir(entry.path()).unwrap() {
                let file = file.unwrap();
                fs::copy(file.path(), to.join(&name).join(file.file_name())).unwrap();
            }
        }
    }
    for table in [SUMMARY, RUNS, LIST] {
        let Ok(text) = fs::read_to_string(to.join(table)) else {
            continue;
        };
        let is_of_others = |row: &&str| {
            let mut names = all.points[2..].iter().map(|point| &point.name);
            names.any(|name| {
                row.starts_with(&format!("{name}/")) || row.split(',').any(|it| it == name)
            })
        };
        let rows = text.split_inclusive('\n').filter(|row| !is_of_others(row));
        fs::write(to.join(table), rows.collect::<String>()).unwrap();
    }
    // Older results do not state how many points were left out.
    let settings = to.join(SETTINGS);
    let mut document: Value =
        serde_json::from_str(&fs::read_to_string(&settings).unwrap()).unwrap();
    document["details"]["left_out"] = Run::open(to).unwrap().left_out.rows.len().into();
    fs::write(&settings, document.to_string()).unwrap();
    crate::findings::of(&Run::open(to).unwrap())
        .write(to)
        .unwrap();
    to.to_path_buf()
}

/// A fabric of four nodes, of which one is missing.
fn fabric(to: &Path) -> PathBuf {
    let made = MadeFabric {
        dead: Some(2),
        rounds: 3,
        ..MadeFabric::of(4, 2)
    };
    fabric_run(to, &made)
}

/// The page of a folder, what is damaged, or why there is none.
fn read(folder: &Path) -> Result<(Page, Vec<String>), String> {
    if Fabric::is_one(folder) {
        let fabric = Fabric::salvage(folder).map_err(|error| error.to_string())?;
        let page = crate::report::fabric::page(&fabric, &arguments(folder, Path::new("x.html")));
        let damaged = fabric
            .damaged()
            .iter()
            .map(|error| error.to_string())
            .collect();
        return Ok((page.map_err(|error| error.to_string())?, damaged));
    }
    let run = Run::salvage(folder).map_err(|error| error.to_string())?;
    let (page, damaged) = page_of(&run, &arguments(folder, Path::new("report.html")));
    Ok((
        page,
        damaged.iter().map(|error| error.to_string()).collect(),
    ))
}

/// Changes each of the files in each way, and looks at the page.
fn check(folder: &Path, files: impl IntoIterator<Item = PathBuf>) {
    let (whole, damaged) = read(folder).unwrap();
    assert!(damaged.is_empty(), "{damaged:?}");
    let whole = size_of(&whole);
    let mut wrong = Vec::new();
    for file in files.into_iter().filter(|file| file.exists()) {
        let good = fs::read(&file).unwrap();
        let is_table = file.extension().is_some_and(|it| it == "csv");
        let name = file.strip_prefix(folder).unwrap().to_str().unwrap();
        for (change, of) in ANY.iter().chain(TABLE.iter().filter(|_| is_table)) {
            let changed = of(&good);
            if changed == good {
                continue;
            }
            fs::write(&file, changed).unwrap();
            let is_named = |run: Run| {
                let mut paths = run.damaged.iter().map(|error| &error.path);
                paths.any(|path| *path == file)
            };
            // Figures take time: of what is named already they are drawn in one case.
            if *change != IN_THE_MIDDLE && Run::salvage(folder).is_ok_and(is_named) {
                continue;
            }
            let told = match read(folder) {
                Err(error) if error.contains(name) => continue,
                Err(error) => format!("no page: {error}"),
                Ok((_, damaged)) if damaged.iter().any(|it| it.contains(name)) => continue,
                Ok((page, damaged)) => {
                    let now = size_of(&page);
                    // Lines have another order, then, and other colours.
                    let is_moved = *change == MOVED && now.len() == whole.len();
                    let less = whole.iter().filter(|it| !now.contains(it) && !is_moved);
                    let less: Vec<_> = less.collect();
                    if less.is_empty() && damaged.is_empty() {
                        continue;
                    }
                    format!("{less:?}, {damaged:?}")
                }
            };
            wrong.push(format!("{name} {change}: {told}"));
        }
        fs::write(&file, good).unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A sample with its own files, and those of a point.
fn check_sample(benchmark: &str) {
    let home = tempfile::tempdir().unwrap();
    let folder = sample(benchmark, &home.path().join(benchmark));
    let own = [SUMMARY, RUNS, SETTINGS, FINDINGS, LEFT_OUT].map(|name| folder.join(name));
    let point = Run::open(&folder).unwrap().points.remove(0).folder;
    let of_point = fs::read_dir(&point).unwrap();
    let of_point = of_point.map(|entry| entry.unwrap().path());
    check(&folder, own.into_iter().chain(of_point));
}

#[test]
fn a_page_of_an_hca_has_all_or_names_what_is_damaged() {
    check_sample("hca");
}

#[test]
fn a_page_of_queues_has_all_or_names_what_is_damaged() {
    check_sample("queue");
}

#[test]
fn a_page_of_a_clock_has_all_or_names_what_is_damaged() {
    check_sample("clock");
}

#[test]
fn a_page_of_nodes_has_all_or_names_what_is_damaged() {
    check_sample("node");
}

#[test]
fn a_page_of_curves_has_all_or_names_what_is_damaged() {
    check_sample("memory");
}

#[test]
fn a_page_of_a_fabric_has_all_or_names_what_is_damaged() {
    let home = tempfile::tempdir().unwrap();
    let folder = fabric(&home.path().join("fabric"));
    let own = [PAIRS, RUNS, NODES, SUMMARY, FABRIC].map(|name| folder.join(name));
    check(&folder, own);
}
