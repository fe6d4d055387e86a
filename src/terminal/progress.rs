//! A bar over a sweep, on standard error.
//!
//! The bar is redrawn when a point begins or ends, and when its caller reports how far the point is: no further thread
//! runs beside a measurement. It shows the points done, the time passed and the time left by the mean of the points so
//! far, the figures of the last point and the name of the one being measured.
//!
//! It appears when standard error is a terminal. The environment variable [`VARIABLE`] overrides that: `never`, or
//! `always` for a pipe that ends at a terminal, as that of a virtual machine does; the line is then redrawn with
//! carriage returns and without escape sequences, in a width taken from `COLUMNS` (80 if unset).

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle, TermLike};

use crate::results::units;

/// The environment variable that overrides whether a bar is shown: `always` or `never`.
pub(crate) const VARIABLE: &str = "HCABENCH_PROGRESS";

/// Redraws a second, on average; a few quick ones in a row are let through.
const REDRAWS_A_SECOND: u8 = 5;

/// Whether a bar is shown to anybody.
pub(crate) fn is_shown() -> bool {
    match std::env::var(VARIABLE).as_deref() {
        Ok("always") => true,
        Ok("never") => false,
        _ => io::stderr().is_terminal(),
    }
}

/// The progress of a sweep. Dropping it takes the bar off the screen.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Messages, median and 99th percentile of the point that was measured last.
    last: Option<[Option<f64>; 3]>,
}

impl Progress {
    /// A bar over this many points.
    pub(crate) fn new(points: usize) -> Self {
        Self::with(Some(points as u64), |done, points| {
            format!("{}/{points}", (done + 1).min(points))
        })
    }

    /// A bar over points whose number is not known.
    pub(crate) fn without_end() -> Self {
        Self::with(None, |done, _| (done + 1).to_string())
    }

    /// A bar over this many items called `what`, of which many may be done at once.
    pub(crate) fn counting(all: u64, what: &'static str) -> Self {
        Self::with(Some(all), move |done, all| format!("{done}/{all} {what}"))
    }

    fn with(
        all: Option<u64>,
        number: impl Fn(u64, u64) -> String + Clone + Send + Sync + 'static,
    ) -> Self {
        let target = match (is_shown(), io::stderr().is_terminal()) {
            (false, _) => ProgressDrawTarget::hidden(),
            (true, true) => ProgressDrawTarget::stderr_with_hz(REDRAWS_A_SECOND),
            (true, false) => {
                let columns = std::env::var("COLUMNS").ok();
                let width = columns.and_then(|text| text.trim().parse().ok());
                let line = PlainLine(width.filter(|width| *width > 0).unwrap_or(80));
                ProgressDrawTarget::term_like_with_hz(Box::new(line), REDRAWS_A_SECOND)
            }
        };
        let number = move |state: &ProgressState, out: &mut dyn fmt::Write| {
            // A bar without its number must not end a run.
            let _ = out.write_str(&number(state.pos(), state.len().unwrap_or(0)));
        };
        let style = ProgressStyle::with_template("{number} [{bar:8}] {wide_msg}")
            .expect("the template is well-formed")
            .with_key("number", number)
            .progress_chars("=> ");
        let bar = ProgressBar::with_draw_target(all, target).with_style(style);
        Self { bar, last: None }
    }

    /// Shows what is being measured.
    pub(crate) fn show(&self, name: &str) {
        self.bar.set_message(self.message(name, self.bar.elapsed()));
    }

    /// Keeps messages, median and 99th percentile of the point that was measured, to be shown with the next one.
    pub(crate) fn finish_point(&mut self, figures: [Option<f64>; 3]) {
        self.last = Some(figures);
        self.bar.update(|state| state.set_pos(state.pos() + 1));
    }

    /// This many more are done.
    pub(crate) fn advance(&self, by: u64) {
        self.bar.update(|state| state.set_pos(state.pos() + by));
    }

    fn message(&self, name: &str, elapsed: Duration) -> String {
        let done = self.bar.position();
        let points = self.bar.length().unwrap_or(0);
        let mut text = units::clock(elapsed.as_secs());
        if done > 0 && done < points {
            let left = elapsed.as_secs_f64() / done as f64 * (points - done) as f64;
            text += &format!(", {} left", units::clock(left.round() as u64));
        }
        if let Some([Some(messages), p50, p99]) = self.last {
            text += &format!("  last {} msgs", messages as u64);
            if let (Some(p50), Some(p99)) = (p50, p99) {
                text += &format!(" p50 {} p99 {}", units::duration(p50), units::duration(p99));
            }
        }
        format!("{text}  {name}")
    }

    /// Writes a line to standard error, above the bar if there is one.
    pub(crate) fn warn(&self, text: &str) {
        self.bar.suspend(|| {
            // No reader is left to report a closed standard error to.
            let _ = writeln!(io::stderr(), "{text}");
        });
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// One line on standard error of this many characters, redrawn with carriage returns. It stays one character short,
/// because some terminals break the line after the last.
#[derive(Debug)]
struct PlainLine(u16);

impl TermLike for PlainLine {
    fn width(&self) -> u16 {
        self.0.saturating_sub(1).max(1)
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
        writeln!(io::stderr(), "{line}")
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        io::stderr().write_all(text.as_bytes())
    }

    fn clear_line(&self) -> io::Result<()> {
        let blank = " ".repeat(self.width().into());
        self.write_str(&format!("\r{blank}\r"))
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_point_is_shown_and_the_time_left_follows_the_points_so_far() {
        let mut progress = Progress::new(10);
        let message = |progress: &Progress| progress.message("p", Duration::from_secs(60));
        assert_eq!(message(&progress), "1:00  p");
        progress.finish_point([Some(1000.0), Some(21_345.0), Some(44_100.0)]);
        let expected = "1:00, 9:00 left  last 1000 msgs p50 21.3 us p99 44.1 us  p";
        assert_eq!(message(&progress), expected);
        progress.finish_point([None; 3]);
        assert_eq!(message(&progress), "1:00, 4:00 left  p");
        let pairs = Progress::counting(400, "pairs");
        pairs.advance(100);
        assert_eq!(message(&pairs), "1:00, 3:00 left  p");
    }
}
