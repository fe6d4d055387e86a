//! Tables: how they are laid out, what the options change in them, and that no width loses what tells rows apart.

use crate::program::{Ended, hcabench as program};
use crate::testing::{Has as _, temporary};

use hcabench::arguments::UsageError;
use hcabench::results::Record;
use hcabench::results::schema::hca::{SERVICE, latency};
use hcabench::results::schema::{COMPLETE, Column, STATUS};
use hcabench::terminal::table::{Column as Heading, Table};
use hcabench::terminal::table_options::{Order, TableOptions, key_of};
use proptest::prelude::*;

fn sweep() -> Table {
    let mut table = Table::new(vec![
        Heading::text("service").setting(),
        Heading::text("operation").setting(),
        Heading::number("size", "B").setting(),
        Heading::text("inline").setting(),
        Heading::number("received", ""),
        Heading::number("lost", ""),
        Heading::number("p50", "us"),
        Heading::number("p99", "us"),
        Heading::number("max", "us"),
    ]);
    table
        .row([
            "rc", "send", "8", "on", "1000", "0", "21.345", "44.1", "1021.999",
        ])
        .row([
            "rc", "send", "32768", "off", "1000", "0", "121.345", "144.123", "990.5",
        ])
        .separator()
        .row(["ud", "send", "8", "on", "1000", "0", "9.345", "-", "85"]);
    table
}

#[test]
fn points_under_points_and_what_is_the_same_above() {
    let expected = "\
in all rows: operation send

service   size  inline  received  lost      p50      p99       max
             B                               us       us        us
-------  -----  ------  --------  ----  -------  -------  --------
rc           8  on          1000     0   21.345   44.1    1021.999
rc       32768  off         1000     0  121.345  144.123   990.5

ud           8  on          1000     0    9.345    -        85
";
    assert_eq!(sweep().render(None), expected);
    assert_eq!(sweep().render(Some(66)), expected);
    let narrower = sweep().render(Some(60));
    assert!(
        narrower.starts_with(
            "in all rows: operation send, received 1000, lost 0\n\nservice   size  inline  "
        ),
        "{narrower}"
    );
}

#[test]
fn what_is_still_too_wide_continues_below() {
    let expected = "\
in all rows: operation send,
  received 1000, lost 0

service   size  inline      p50
             B               us
-------  -----  ------  -------
rc           8  on       21.345
rc       32768  off     121.345

ud           8  on        9.345

service   size  inline      p99
             B               us
-------  -----  ------  -------
rc           8  on       44.1
rc       32768  off     144.123

ud           8  on        -

service   size  inline       max
             B                us
-------  -----  ------  --------
rc           8  on      1021.999
rc       32768  off      990.5

ud           8  on        85
";
    assert_eq!(sweep().render(Some(35)), expected);
}

#[test]
fn a_single_row_keeps_its_figures() {
    let mut table = Table::new(vec![
        Heading::text("service").setting(),
        Heading::number("p50", "us"),
    ]);
    table.row(["rc", "21.3"]);
    let expected = "in all rows: service rc\n\n p50\n  us\n----\n21.3\n";
    assert_eq!(table.render(Some(5)), expected);
}

#[test]
fn separators_at_the_ends_are_not_shown() {
    let mut table = Table::new(vec![Heading::text("a")]);
    table
        .separator()
        .row(["1"])
        .separator()
        .separator()
        .row(["2"])
        .separator();
    assert_eq!(table.render(None), "a\n-\n1\n\n2\n");
}

#[test]
fn a_cell_cannot_steer_the_terminal() {
    let mut table = Table::new(vec![Heading::text("host")]);
    table.row(["\x1b[31mred\n"]);
    let expected = "host\n---------------\n\\u{1b}[31mred\\n\n";
    assert_eq!(table.render(None), expected);
}

#[test]
fn nothing_to_show() {
    assert_eq!(
        Table::new(vec![Heading::text("service")]).render(Some(80)),
        ""
    );
}

#[test]
#[should_panic(expected = "a cell for each column")]
fn a_short_row_is_refused() {
    Table::new(vec![Heading::text("a"), Heading::text("b")]).row(["1"]);
}

proptest! {
    #[test]
    fn no_cell_is_lost_at_any_width(
        rows in prop::collection::vec(prop::collection::vec("[a-z]{1,9}|-?[0-9]{1,6}\\.[0-9]{1,3}", 6), 1..6),
        width in 0_usize..80,
    ) {
        let mut table = Table::new(
            (0..6)
                .map(|i| {
                    let column = if i % 2 == 0 { Heading::text("t") } else { Heading::number("n", "us") };
                    if i < 2 { column.setting() } else { column }
                })
                .collect(),
        );
        rows.iter().for_each(|row| { table.row(row.clone()); });
        let text = table.render(Some(width));
        let shown: Vec<&str> = text.split_whitespace().map(|word| word.trim_end_matches(',')).collect();
        for cell in rows.iter().flatten() {
            prop_assert!(shown.contains(&cell.as_str()), "{} is not in\n{}", cell, text);
        }
        prop_assert!(text.lines().all(|line| line.trim_end() == line));
    }
}

const COLUMNS: [Column; 3] = [SERVICE, latency::P50, latency::P99];

fn order(sort: &str) -> Result<Option<Order>, UsageError> {
    let options = TableOptions {
        sort: Some(sort.to_owned()),
        ..TableOptions::default()
    };
    options.order(&COLUMNS.map(|it| (it.title.to_owned(), it.name)))
}

#[test]
fn a_column_has_its_name_its_name_without_unit_and_its_heading() {
    for asked in ["latency_p50_ns", "latency-p50", "P50", "-p50"] {
        let descending = asked == "-p50";
        let expected = Order {
            column: 1,
            descending,
        };
        assert_eq!(order(asked).unwrap(), Some(expected), "{asked}");
    }
    let told = order("p5").unwrap_err().to_string();
    let expected =
        "--sort p5: the table has no such column; it has service, latency_p50_ns, latency_p99_ns";
    assert_eq!(told, expected);
}

#[test]
fn what_was_not_measured_is_last_in_both_directions() {
    let row = |service: &str, p50: Option<f64>, status: &str| {
        let mut row = Record::new();
        row.set(&SERVICE, service)
            .set(&latency::P50, p50)
            .set(&STATUS, status);
        row
    };
    let rows = [
        row("ud", Some(9.0), COMPLETE),
        row("uc", None, COMPLETE),
        row("rc", Some(10.0), COMPLETE),
        row("broken", Some(1.0), "incomplete"),
    ];
    for (sort, expected) in [
        ("p50", ["ud", "rc", "uc", "broken"]),
        ("-p50", ["rc", "ud", "uc", "broken"]),
        ("service", ["broken", "rc", "uc", "ud"]),
    ] {
        let (order, mut sorted) = (order(sort).unwrap().unwrap(), rows.clone());
        order.sort(&mut sorted, |row| key_of(row, &COLUMNS[order.column]));
        assert_eq!(sorted.map(|row| row.text(&SERVICE)), expected, "{sort}");
    }
}

#[test]
fn a_brief_table_has_the_settings_that_vary_and_the_first_figures() {
    let mut table = Table::new(vec![
        Heading::text("service").setting(),
        Heading::text("operation").setting(),
        Heading::number("sent", ""),
        Heading::number("p50", "us").first(),
    ]);
    table
        .row(["rc", "send", "10", "1.5"])
        .row(["ud", "send", "10", "1.25"]);
    let expected = "\
service   p50
           us
-------  ----
rc       1.5
ud       1.25
";
    assert_eq!(table.brief(true).render(None), expected);
}

const WIDTHS: [usize; 4] = [60, 61, 80, 120];

fn hcabench(words: &str, width: usize) -> Ended {
    let program = program(words).in_folder(env!("CARGO_MANIFEST_DIR"));
    program.env("COLUMNS", width.to_string()).run()
}

/// That each block of the tables with one of these headings at its beginning has all of them, and fits.
fn assert_tells_apart(text: &str, headings: &[&str], width: usize) {
    let lines: Vec<&str> = text.lines().collect();
    let is_ruled = |at: usize| {
        lines[at + 1..]
            .iter()
            .take(2)
            .any(|line| line.starts_with("--"))
    };
    let blocks = lines.iter().enumerate().filter_map(|(at, line)| {
        let is_heading = line.split_whitespace().next() == Some(headings[0]) && is_ruled(at);
        is_heading.then_some(line)
    });
    let mut found = 0;
    for line in blocks {
        let there: Vec<&str> = line.split_whitespace().collect();
        let is_there = |heading| there.contains(heading);
        assert!(headings.iter().all(is_there), "{width}: {line}\n{text}");
        found += 1;
    }
    assert!(found > 0, "{text}");
    // Where settings alone fill the width, one figure stands beside them all the same.
    let is_full = |line: &str| {
        // A cell may be a number with its unit.
        let cells = line.split("  ").filter(|cell| !cell.is_empty()).count();
        line.split_whitespace()
            .count()
            .min(if cells > 1 { cells } else { usize::MAX })
            <= headings.len() + 2
    };
    for line in text.lines().filter(|line| !is_full(line)) {
        assert!(line.chars().count() <= width, "{width}: {line}\n{text}");
    }
}

#[test]
fn no_table_of_queues_loses_what_tells_rows_apart() {
    let out = temporary("run");
    let sweep = "queue --queue lamport,baton --payload 8,64 --load constant-rate --rate 100k,200k --count 200 \
                 --warmup 1ms --rounds 1 --force --out";
    let apart = ["queue", "size", "load"];
    for width in WIDTHS {
        let sweep = format!("{sweep} {}", out.display());
        let text = hcabench(&sweep, width).expect(0).stdout;
        assert_tells_apart(&text, &apart, width);
        let is_detail = |line: &str| line.starts_with("queue") && !line.contains("through");
        assert!(text.lines().any(is_detail));
        let brief = hcabench(&format!("{sweep} --brief --sort=-size"), width).stdout;
        assert_tells_apart(&brief, &apart, width);
        // A mark, which a busy machine brings, may have a block of its own behind the figures.
        let first = brief.lines().find(|line| line.starts_with("queue"));
        let figures = ["through", "latency"].map(|figure| first.unwrap().contains(figure));
        assert_eq!(figures, [true; 2], "{brief}");
        let rows = brief
            .lines()
            .filter(|line| line.starts_with("lamport") || line.starts_with("baton"));
        let sizes: Vec<&str> = rows
            .map(|row| row.split_whitespace().nth(1).unwrap())
            .collect();
        let expected = [["64"; 4], ["8"; 4]].concat();
        // Of each block.
        assert!(sizes.chunks(8).all(|sizes| sizes == expected), "{brief}");
    }
}

#[test]
fn no_table_of_a_comparison_loses_what_tells_rows_apart() {
    for width in WIDTHS {
        for more in ["", "--brief", "--sort=-shift"] {
            let words = format!("compare notebooks/sample/hca --by service {more}");
            let ended = hcabench(&words, width);
            let (text, told) = (ended.stdout, ended.stderr);
            let apart = ["size", "burst", "inline", "figure"];
            text.has(&["uc against rc:", "ud against rc:"]);
            assert!(told.is_empty() || told.starts_with("warning"), "{told}");
            assert_tells_apart(&text, &apart, width);
        }
    }
}

#[test]
fn no_table_of_a_watch_or_a_plan_loses_what_tells_rows_apart() {
    let folder = &*temporary("");
    for width in WIDTHS {
        let watch = format!(
            "clock --iterations 100k --baseline-iterations 10k --cpu 0 --force --out {}",
            folder.join("run").display()
        );
        let text = hcabench(&watch, width).expect(0).stdout;
        for heading in ["difference", "rank"] {
            assert_tells_apart(&text, &[heading, "CPU"], width);
        }
        let words = "queue --queue lamport,baton --capacity 8,16 --dry-run";
        let plan = hcabench(words, width).stdout;
        let count = |is_it: fn(&&str) -> bool| plan.lines().filter(is_it).count();
        let points = count(|line| line.starts_with("point"));
        assert!(points > 0, "{plan}");
        assert_eq!(points, count(|line| line.contains("----")), "{plan}");
    }
}

#[test]
fn an_unknown_column_is_refused_before_anything_is_measured() {
    for (words, column) in [
        ("queue --sort nonsense", "latency_p99_ns"),
        ("clock --sort=-nonsense", "p999_ns"),
        (
            "compare notebooks/sample/hca --by service --sort nonsense",
            "verdict",
        ),
    ] {
        let ended = hcabench(words, 80).expect(2);
        assert_eq!(ended.stdout, "");
        ended.stderr.has(&["--sort", "nonsense", column]);
    }
}
