//! A bar over a sweep, on standard error.
//!
//! The bar is redrawn when a point begins or ends, and when its caller says how far the point is: no thread of its own runs
//! beside a measurement. It shows the points
//! done, the time passed and the time left by the mean of the points so far, the figures of the last point and the name
//! of the one being measured.
//!
//! It appears when standard error is a terminal. The environment variable [`VARIABLE`] overrides that: `never`, or
//! `always` for a pipe that ends at a terminal, as that of a virtual machine does; the line is then redrawn with carriage
//! returns and without escape sequences, in a width taken from `COLUMNS` (80 if unset).

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle, TermLike};

use crate::results::units;

/// The environment variable that overrides whether a bar is shown: `always`, `never` or `auto`.
pub const VARIABLE: &str = "HCABENCH_PROGRESS";

/// Redraws a second, on average; a few quick ones in a row are let through.
const REDRAWS_A_SECOND: u8 = 5;

/// Where a bar is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressMode {
    /// On the terminal that standard error is.
    Terminal,
    /// On standard error, whatever it is, with carriage returns, in lines of so many characters.
    Plain {
        /// Characters in a line of the terminal at the other end.
        width: u16,
    },
    /// Nowhere.
    Hidden,
}

impl ProgressMode {
    /// The mode that the environment and standard error ask for, and what to warn about.
    pub fn from_environment() -> (Self, Option<String>) {
        let text = |name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        let (asked, columns) = (text(VARIABLE), text("COLUMNS"));
        Self::choose(
            asked.as_deref(),
            columns.as_deref(),
            io::stderr().is_terminal(),
        )
    }

    fn choose(
        asked: Option<&str>,
        columns: Option<&str>,
        is_terminal: bool,
    ) -> (Self, Option<String>) {
        let automatic = if is_terminal {
            Self::Terminal
        } else {
            Self::Hidden
        };
        match asked {
            None | Some("" | "auto") => (automatic, None),
            Some("never") => (Self::Hidden, None),
            Some("always") if is_terminal => (Self::Terminal, None),
            Some("always") => {
                let width = columns
                    .and_then(|text| text.trim().parse().ok())
                    .filter(|&width| width > 0);
                (
                    Self::Plain {
                        width: width.unwrap_or(80),
                    },
                    None,
                )
            }
            Some(other) => {
                let warning = format!(
                    "{VARIABLE}={other} is not known and ignored: use always, never or auto"
                );
                (automatic, Some(warning))
            }
        }
    }
}

/// What is shown of the point that was measured last.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LastPoint {
    /// Messages received.
    pub messages: u64,
    /// The median in nanoseconds, if any message arrived.
    pub p50_ns: Option<f64>,
    /// The 99th percentile in nanoseconds, if any message arrived.
    pub p99_ns: Option<f64>,
}

/// The progress of a sweep.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    sink: Sink,
    began: Instant,
    points: u64,
    last: Mutex<Option<LastPoint>>,
}

impl Progress {
    /// A bar over so many points, shown where [`ProgressMode::from_environment`] says.
    pub fn new(points: usize) -> Self {
        let (mode, warning) = ProgressMode::from_environment();
        let progress = Self::with_mode(points, mode);
        if let Some(warning) = warning {
            progress.warn(&warning);
        }
        progress
    }

    /// A bar over so many points, shown as `mode` says.
    pub fn with_mode(points: usize, mode: ProgressMode) -> Self {
        Self::with_sink(points, mode, Sink::new(io::stderr()))
    }

    fn with_sink(points: usize, mode: ProgressMode, sink: Sink) -> Self {
        let target = match mode {
            ProgressMode::Terminal => ProgressDrawTarget::stderr_with_hz(REDRAWS_A_SECOND),
            ProgressMode::Plain { width } => {
                let line = PlainLine {
                    sink: sink.clone(),
                    pending: Mutex::default(),
                    width,
                };
                ProgressDrawTarget::term_like_with_hz(Box::new(line), REDRAWS_A_SECOND)
            }
            ProgressMode::Hidden => ProgressDrawTarget::hidden(),
        };
        let points = points as u64;
        let number = |state: &ProgressState, out: &mut dyn fmt::Write| {
            let points = state.len().unwrap_or(0);
            // A bar without its number is no reason to end a run.
            let _ = write!(out, "{}/{points}", (state.pos() + 1).min(points));
        };
        let style = ProgressStyle::with_template("{number} [{bar:8}] {wide_msg}")
            .expect("the template is well-formed")
            .with_key("number", number)
            .progress_chars("=> ");
        let bar = ProgressBar::with_draw_target(Some(points), target).with_style(style);
        Self {
            bar,
            sink,
            began: Instant::now(),
            points,
            last: Mutex::new(None),
        }
    }

    /// Shows that the next point is being measured.
    pub fn start_point(&self, name: &str) {
        self.show(name, self.began.elapsed());
    }

    /// Shows how far the current point is.
    pub fn messages(&self, name: &str, done: u64, of: u64) {
        self.show(
            &format!("{name} ({done} of {of} messages)"),
            self.began.elapsed(),
        );
    }

    fn show(&self, name: &str, elapsed: Duration) {
        self.bar.set_message(self.message(name, elapsed));
    }

    /// Keeps the figures of the point that was measured, to be shown with the next one.
    pub fn finish_point(&self, last: LastPoint) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(last);
        self.bar.update(|state| state.set_pos(state.pos() + 1));
    }

    fn message(&self, name: &str, elapsed: Duration) -> String {
        let done = self.bar.position();
        let mut text = units::clock(elapsed.as_secs());
        if done > 0 && done < self.points {
            let left = elapsed.as_secs_f64() / done as f64 * (self.points - done) as f64;
            text += &format!(", {} left", units::clock(left.round() as u64));
        }
        if let Some(last) = *self.last.lock().unwrap_or_else(PoisonError::into_inner) {
            text += &format!("  last {} msgs", last.messages);
            if let (Some(p50), Some(p99)) = (last.p50_ns, last.p99_ns) {
                text += &format!(" p50 {} p99 {}", units::duration(p50), units::duration(p99));
            }
        }
        format!("{text}  {name}")
    }

    /// Writes a line to standard error, above the bar if there is one.
    pub fn warn(&self, text: &str) {
        self.suspend(|| {
            // Nobody is left to be told that standard error is closed.
            let _ = self.sink.write(format!("{text}\n").as_bytes());
        });
    }

    /// Runs `print` while the bar is not on the screen.
    pub fn suspend<R>(&self, print: impl FnOnce() -> R) -> R {
        self.bar.suspend(print)
    }

    /// Takes the bar off the screen; dropping the progress does so too.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Standard error, or what stands for it in a test.
#[derive(Clone)]
struct Sink(Arc<Mutex<dyn Write + Send>>);

impl Sink {
    fn new(out: impl Write + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(out)))
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        out.write_all(bytes)?;
        out.flush()
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Sink")
    }
}

/// One line that is redrawn with carriage returns, each redraw in a single write. It stays one character short of the
/// width, because some terminals break the line after the last.
#[derive(Debug)]
struct PlainLine {
    sink: Sink,
    pending: Mutex<String>,
    width: u16,
}

impl PlainLine {
    fn put(&self, text: &str) -> io::Result<()> {
        self.pending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_str(text);
        Ok(())
    }
}

impl TermLike for PlainLine {
    fn width(&self) -> u16 {
        self.width.saturating_sub(1).max(1)
    }

    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, line: &str) -> io::Result<()> {
        self.put(line)?;
        self.put("\n")
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.put(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.put(&format!("\r{}\r", " ".repeat(self.width().into())))
    }

    fn flush(&self) -> io::Result<()> {
        let text =
            std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        if text.is_empty() {
            Ok(())
        } else {
            self.sink.write(text.as_bytes())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Captured {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }

        /// What a terminal shows: a carriage return goes back to the line's start, and text overwrites.
        fn screen(&self) -> Vec<String> {
            let lines = self.text();
            lines
                .split('\n')
                .map(|line| {
                    let mut shown: Vec<char> = Vec::new();
                    for part in line.split('\r') {
                        for (column, character) in part.chars().enumerate() {
                            if column < shown.len() {
                                shown[column] = character;
                            } else {
                                shown.push(character);
                            }
                        }
                    }
                    shown.into_iter().collect::<String>().trim_end().to_owned()
                })
                .collect()
        }
    }

    fn plain(points: usize, width: u16) -> (Progress, Captured) {
        let captured = Captured::default();
        let progress = Progress::with_sink(
            points,
            ProgressMode::Plain { width },
            Sink::new(captured.clone()),
        );
        (progress, captured)
    }

    #[test]
    fn where_it_is_drawn() {
        let choose = |asked, columns, terminal| ProgressMode::choose(asked, columns, terminal).0;
        assert_eq!(choose(None, None, true), ProgressMode::Terminal);
        assert_eq!(choose(None, Some("100"), false), ProgressMode::Hidden);
        assert_eq!(choose(Some("never"), None, true), ProgressMode::Hidden);
        assert_eq!(choose(Some("always"), None, true), ProgressMode::Terminal);
        assert_eq!(
            choose(Some("always"), None, false),
            ProgressMode::Plain { width: 80 }
        );
        assert_eq!(
            choose(Some("always"), Some("132"), false),
            ProgressMode::Plain { width: 132 }
        );
        assert_eq!(
            choose(Some("always"), Some("wide"), false),
            ProgressMode::Plain { width: 80 }
        );
        let (mode, warning) = ProgressMode::choose(Some("yes"), None, false);
        assert_eq!(mode, ProgressMode::Hidden);
        assert!(
            warning
                .unwrap()
                .starts_with("HCABENCH_PROGRESS=yes is not known")
        );
    }

    #[test]
    fn one_line_with_the_last_point() {
        let (progress, captured) = plain(3, 100);
        progress.show("rc-send-8", Duration::ZERO);
        assert_eq!(captured.screen(), ["1/3 [        ] 0:00  rc-send-8"]);
        progress.finish_point(LastPoint {
            messages: 1000,
            p50_ns: Some(21_345.0),
            p99_ns: Some(44_100.0),
        });
        progress.show("ud-send-8", Duration::ZERO);
        assert_eq!(
            captured.screen(),
            [
                "2/3 [==>     ] 0:00, 0:00 left  last 1000 msgs p50 21.3 us p99 44.1 us  ud-send-8"
                    .chars()
                    .take(99)
                    .collect::<String>()
            ]
        );
        progress.finish_point(LastPoint::default());
        progress.show("x", Duration::ZERO);
        assert_eq!(
            captured.screen(),
            ["3/3 [=====>  ] 0:00, 0:00 left  last 0 msgs  x"]
        );
        progress.finish();
        assert_eq!(captured.screen(), [""]);
    }

    #[test]
    fn a_warning_stands_above_the_bar() {
        let (progress, captured) = plain(2, 60);
        progress.show("rc-send-8", Duration::ZERO);
        progress.warn("the CPU governor is powersave: set it to performance");
        assert_eq!(
            captured.screen(),
            [
                "the CPU governor is powersave: set it to performance",
                "1/2 [        ] 0:00  rc-send-8"
            ]
        );
        drop(progress);
        assert_eq!(captured.screen()[1], "");
    }

    #[test]
    fn no_line_is_as_wide_as_the_terminal() {
        let (progress, captured) = plain(5, 40);
        progress.start_point(&"a-very-long-name".repeat(10));
        progress.finish_point(LastPoint {
            messages: 1,
            p50_ns: Some(1.0),
            p99_ns: Some(2.0),
        });
        progress.start_point("b");
        assert!(
            captured
                .text()
                .split(['\r', '\n'])
                .all(|line| line.chars().count() < 40),
            "{:?}",
            captured.text()
        );
        assert!(!captured.text().contains('\u{1b}'), "{:?}", captured.text());
    }

    #[test]
    fn redraws_are_rare() {
        let (progress, captured) = plain(10_000, 80);
        for _ in 0..10_000 {
            progress.start_point("p");
            progress.finish_point(LastPoint::default());
        }
        let seconds = progress.began.elapsed().as_secs_f64();
        let redraws = captured.text().matches("/10000 [").count() as f64;
        assert!(
            redraws <= 22.0 + f64::from(REDRAWS_A_SECOND) * (seconds + 1.0),
            "{redraws} in {seconds} s"
        );
    }

    #[test]
    fn warnings_appear_without_a_bar() {
        let captured = Captured::default();
        let progress = Progress::with_sink(1, ProgressMode::Hidden, Sink::new(captured.clone()));
        progress.start_point("p");
        progress.warn("look");
        progress.finish();
        assert_eq!(captured.text(), "look\n");
    }

    #[test]
    fn the_time_left_follows_the_points_so_far() {
        let (progress, _) = plain(10, 80);
        progress.finish_point(LastPoint::default());
        progress.finish_point(LastPoint::default());
        let text = progress.message("p", Duration::from_secs(60));
        assert!(
            text.starts_with("1:00, 4:00 left  last 0 msgs  p"),
            "{text}"
        );
    }
}
