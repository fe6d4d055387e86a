//! What `hcabench report` writes, opened in headless `chromium` (`ci/setup test`), hence behind the feature `browser`.

use crate::testing::{Has as _, temporary};
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::common::ends;
use crate::program::Program;

/// How long Chromium may take, on a machine that others use.
const LIMIT: Duration = Duration::from_secs(90);

/// What Chromium makes of a page: the document after its scripts ran, and what it says besides.
fn opened(page: &Path) -> (String, String) {
    browsed(page, &["--dump-dom"])
}

fn printed(page: &Path) -> usize {
    let pdf = page.with_extension("pdf");
    browsed(page, &[&format!("--print-to-pdf={}", pdf.display())]);
    let bytes = fs::read(&pdf).unwrap();
    // Each page says what it is; `/Pages` is their list.
    let is_page = |it: &&[u8]| it.starts_with(b"/Type /Page") && it[11] != b's';
    bytes.windows(12).filter(is_page).count()
}

/// What a script makes of a page in a window of this width and height: numbers with spaces between them. The window is
/// a frame, since that of a browser has a least width.
fn measured(page: &Path, [width, height]: [u32; 2], script: &str) -> Vec<f64> {
    let text = fs::read_to_string(page).unwrap();
    let script =
        format!("<script>parent.document.title = (() => {{{script}}})().join(' ')</script></body>");
    let text = text.replace("</body>", &script);
    let text = text.replace('&', "&amp;").replace('"', "&quot;");
    let frame = format!(
        "<title></title><iframe style=\"border: 0\" width={width} height={height} srcdoc=\"{text}\"></iframe>"
    );
    let path = page.with_extension("measured.html");
    fs::write(&path, frame).unwrap();
    let (document, said) = browsed(&path, &["--dump-dom", "--window-size=1400,900"]);
    assert!(!said.contains("CONSOLE"), "{said}");
    let title = document.split("<title>").nth(1).unwrap();
    let title = title.split("</title>").next().unwrap();
    let numbers = title.split(' ').map(|number| number.parse().unwrap());
    numbers.collect()
}

fn browsed(page: &Path, options: &[&str]) -> (String, String) {
    let folder = &*temporary("");
    let profile = format!("--user-data-dir={}", folder.display());
    let mut starter = vec![
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--enable-logging=stderr",
        &profile,
    ];
    starter.extend(options);
    let page = format!("file://{}", page.display());
    let browser = Program::under(&starter, &page, "").start();
    let ended = browser.wait(LIMIT).expect(0);
    (ended.stdout, ended.stderr)
}

/// The same of a page whose scripts do not fail and whose policy keeps it from nothing.
fn well_opened(page: &Path) -> String {
    let (document, said) = opened(page);
    assert!(!said.contains("CONSOLE"), "{said}");
    document
}

/// A column of the table of all points.
fn column(document: &str, title: &str) -> Vec<String> {
    let points = document.split(" points in full<").nth(1);
    let table = points
        .expect("all points")
        .split("<table>")
        .nth(1)
        .expect("a table")
        .split("</table>")
        .next()
        .unwrap();
    let heads: Vec<&str> = table.split("<th ").skip(1).collect();
    let place = heads
        .iter()
        .position(|head| head.contains(&format!(">{title}<")))
        .unwrap_or_else(|| panic!("no column {title} in {heads:?}"));
    let body = table.split("<tbody>").nth(1).unwrap();
    body.split("<tr>")
        .skip(1)
        .map(|row| {
            let cell = row.split("<td").nth(place + 1).unwrap();
            let text = cell.split_once('>').unwrap().1;
            text.split("</td>").next().unwrap().to_owned()
        })
        .collect()
}

fn clicked(page: &Path, title: &str, times: usize) -> std::path::PathBuf {
    let text = fs::read_to_string(page).unwrap();
    let click = format!(
        "<script>for (let i = 0; i < {times}; i++) [...document.querySelectorAll('th button')]\
         .find((button) => button.textContent === '{title}').click();</script>\n</body>"
    );
    let path = page.with_file_name(format!("clicked-{times}.html"));
    fs::write(&path, text.replace("</body>", &click)).unwrap();
    path
}

fn numbers(cells: &[String]) -> Vec<f64> {
    cells.iter().map(|cell| cell.parse().unwrap()).collect()
}

#[test]
fn a_report_opens_sorts_and_hides_nothing_behind_its_script() {
    let folder = &*temporary("");
    ends(
        folder,
        "queue --queue lamport,baton,b-queue --capacity 64,128 --count 2000 --warmup 1ms --clock monotonic --quiet --out run",
        0,
    );
    // A name that would be markup.
    let points = fs::read_dir(folder.join("run")).unwrap();
    let points = points.map(|entry| entry.unwrap().path());
    for place in points.chain([folder.join("run")]) {
        let file = place.join("settings.json");
        if let Ok(text) = fs::read_to_string(&file) {
            let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
            document["machine"]["hostname"] =
                "<img src=x onerror=\"document.title='caught'\">".into();
            fs::write(&file, document.to_string()).unwrap();
        }
    }
    ends(folder, "report run --out run.html", 0);
    let page = folder.join("run.html");

    let document = well_opened(&page);
    document.has(&["&lt;img src=x onerror="]);
    document.lacks(&["<img", "caught</title>"]);
    let names = column(&document, "queue");
    assert_eq!(names.len(), 6);
    let (figures, narrow) = ("<figcaption>", "class=\"drawing narrow\"");
    let [figures, narrow, drawings] =
        [figures, narrow, "<svg "].map(|part| document.matches(part).count());
    assert!(figures >= 3 && narrow >= 1);
    assert_eq!(figures + narrow, drawings);
    for part in [
        "<h2>Figures</h2>",
        "<h2>Findings</h2>",
        "<h2>Machine and run</h2>",
        "<h2>The instrument itself</h2>",
        "<summary>How to read it</summary>",
    ] {
        assert!(document.contains(part), "{part}");
    }
    for figure in document.split("<svg ").skip(1) {
        let figure = figure.split("</svg>").next().unwrap();
        assert!(figure.contains("<text"), "a figure without words");
    }

    // Browsers do not repeat buttons on the pages of a print: there each title has a text for that.
    let buttons = document.matches("<button").count();
    assert!(buttons > names.len());
    let printed = document.matches("class=\"title printed\"").count();
    assert_eq!(printed, buttons);

    let up = well_opened(&clicked(&page, "enqueue p50", 1));
    let sorted = numbers(&column(&up, "enqueue p50"));
    assert!(sorted.is_sorted(), "{sorted:?}");
    assert!(up.contains("aria-sort=\"ascending\""));
    let down = well_opened(&clicked(&page, "enqueue p50", 2));
    let mut reversed = numbers(&column(&down, "enqueue p50"));
    reversed.reverse();
    assert_eq!(reversed, sorted);
    let mut moved = column(&up, "queue");
    let mut there = names.clone();
    moved.sort();
    there.sort();
    assert_eq!(moved, there, "no row is lost by sorting");
    let by_name = well_opened(&clicked(&page, "queue", 1));
    assert_eq!(column(&by_name, "queue"), there);

    // Where scripts do not run nothing is missing but the buttons.
    let text = fs::read_to_string(&page).unwrap();
    let without = folder.join("without.html");
    fs::write(
        &without,
        text.replace("script-src 'unsafe-inline'", "script-src 'none'"),
    )
    .unwrap();
    let (plain, said) = opened(&without);
    assert!(said.contains("CONSOLE"), "the script ran: {said}");
    assert!(!plain.contains("<button"));
    assert_eq!(column(&plain, "queue"), names);
}

#[test]
fn a_report_prints_on_two_to_four_pages() {
    let folder = &*temporary("");
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/notebooks/sample");
    for name in ["hca", "queue", "clock"] {
        ends(
            folder,
            &format!("report {samples}/{name} --out {name}.html"),
            0,
        );
        let pages = printed(&folder.join(format!("{name}.html")));
        assert!((2..=4).contains(&pages), "{name}: {pages} pages");
    }
    // More points, and more to warn of, than a print has room for.
    let page = fs::read_to_string(folder.join("hca.html")).unwrap();
    let (_, all) = page.split_once(" points in full").unwrap();
    let row = all.split("<tbody>\n").nth(1).unwrap();
    let row = &row[..row.find("</tr>\n").unwrap() + 6];
    let long = page
        .replacen(row, &row.repeat(300), 1)
        .replace("</li>", &"</li><li>x</li>".repeat(50));
    let path = folder.join("long.html");
    fs::write(&path, long).unwrap();
    let pages = printed(&path);
    assert!((2..=4).contains(&pages), "{pages} pages of 300 points");
}

/// Where the first figure begins and ends, the least size of a letter, the width of the page beyond that of the window,
/// and how many findings are not folded up.
const SEEN: &str = "
    let least = 1e9;
    for (const element of document.querySelectorAll('body *')) {
      const has_text = [...element.childNodes].some((it) => it.nodeType === 3 && it.textContent.trim());
      if (!has_text || !element.getBoundingClientRect().width) continue;
      const svg = element.closest('svg');
      const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
      least = Math.min(least, scale * parseFloat(getComputedStyle(element).fontSize));
    }
    const figure = document.querySelector('figure').getBoundingClientRect();
    const beyond = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    const findings = [...document.querySelectorAll('.finding')];
    const shown = findings.filter((it) => !it.closest('details.rest'));
    return [figure.top, figure.bottom, least, beyond, shown.length, innerWidth];";

#[test]
fn a_report_fits_wide_and_narrow_screens() {
    let folder = &*temporary("");
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/notebooks/sample");
    for name in ["hca", "queue", "node", "clock", "memory"] {
        let out = folder.join(format!("{name}.html"));
        ends(
            folder,
            &format!("report {samples}/{name} --out {name}.html"),
            0,
        );
        for width in [1280, 400] {
            let seen = measured(&out, [width, 800], SEEN);
            let [top, bottom, letter, beyond, findings, window] = seen[..] else {
                panic!("{seen:?}");
            };
            assert_eq!(window, f64::from(width));
            // Numbers of pixels are rounded.
            assert!(
                letter >= 10.95 && beyond <= 0.0,
                "{name}, {width}: {seen:?}"
            );
            assert!(top < 800.0 && findings <= 12.0, "{name}, {width}: {seen:?}");
            assert!(width < 1280 || bottom <= 800.0, "{name}, {width}: {seen:?}");
        }
    }
}

#[test]
fn a_history_fits_wide_and_narrow_screens() {
    let folder = &*crate::history::made(true);
    let out = folder.join("history.html");
    ends(folder, "history runs --out history.html", 0);
    let document = well_opened(&out);
    document.has(&["1 of 4 figures changed", "runs/18"]);
    let script = "\
    const drawings = [...document.querySelectorAll('.drawing')].filter((it) => it.offsetWidth > 0);
    const beyond = drawings.filter((it) => it.scrollWidth > it.clientWidth);
    const { scrollWidth, clientWidth } = document.documentElement;
    return [innerWidth, scrollWidth - clientWidth, drawings.length, beyond.length];";
    for width in [1280, 400] {
        let seen = measured(&out, [width, 800], script);
        assert_eq!(seen, [f64::from(width), 0.0, 4.0, 0.0]);
    }
}
