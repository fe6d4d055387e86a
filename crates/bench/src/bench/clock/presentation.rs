//! What plots and reports show of it.

use crate::bench::presentation::{Metric, Opening, Presentation, ReportFigure};
use crate::plot::scale::{duration, plain};
use crate::results::read::Run;
use crate::results::schema::Column;
use crate::results::schema::clock::{
    CPU, ITERATIONS, JUMP_TIME, JUMPS, JUMPS_TOTAL, MAX, MEAN, MIN, P50, P99, P999, P9999, SCHEMA,
    THRESHOLD, jump,
};

pub(crate) static PRESENTATION: Presentation = Presentation {
    title: "Jumps of the clock",
    opening: Opening::Whole("How a loop that reads the clock is stopped", of_jumps),
    plural: "jumps",
    metrics: &[
        Metric {
            alias: "jumps",
            ..Metric::new("jump", "length of a jump", &[jump::LENGTH])
        },
        Metric {
            alias: "differences",
            plural: Some("readings"),
            stem: "histogram",
            ..Metric::new("difference", "difference between two readings", &[])
        },
    ],
    subject: &["load", "cpu_quota"],
    usual_percentiles: &["difference"],
    without_file: "name folders of points with jumps; of wake-ups plot percentiles draws the histogram.hgrm",
    time: jump::AT,
    causes: Some([jump::AT, jump::LENGTH, jump::CAUSE]),
    has_usual_range: false,
    colour: CPU,
    columns: &[
        &[ITERATIONS],
        &[MEAN, MIN],
        &[P50, P99, P999, P9999, MAX],
        &[THRESHOLD, JUMPS, JUMPS_TOTAL],
    ],
    figures: &[
        ReportFigure::new(
            "time",
            "Jumps over time",
            "Each mark is a jump: when it began, and how long it was; the colour is its cause.",
        ),
        ReportFigure::by_interval(
            "Jumps by interval",
            "Percentiles and the maximum of the jumps that began in each interval of the first round; a gap is an \
             interval with too few jumps for the percentile.",
        ),
        ReportFigure::new(
            "median",
            "Jumps by cause",
            "The median length of the jumps of each cause; the bars hold the middle 80 %.",
        )
        .with("percentile", "p50"),
        ReportFigure::new(
            "percentiles",
            "Differences between two readings",
            "Differences of all readings by percentile: a loop that nothing disturbs is level.",
        ),
    ],
    reading: &[
        "jump: A difference between two readings of the clock far above the usual: time in which the thread did not \
         run.",
        "cause: The kernel's counter that rose in that time. Unexplained: none did; on several CPUs at once that \
         indicates the firmware or the hypervisor.",
        "jumps together: The time of all jumps. The percentiles are of all differences, with the loop's own cost.",
    ],
    ..Presentation::of(&SCHEMA)
};

fn of_jumps(run: &Run) -> Option<String> {
    let jumps = run.sum(&JUMPS)?;
    let most = |column: &Column| {
        let all = run.points.iter().filter_map(|point| point.number(column));
        all.max_by(f64::total_cmp)
    };
    let plural = if jumps == 1 { "" } else { "s" };
    let mut text = format!("{jumps} jump{plural} of the clock");
    if let Some(threshold) = most(&THRESHOLD) {
        text += &format!(" above {}", duration(threshold));
    }
    match run.points.len() {
        1 => text += &format!(" on {}", run.points[0].name),
        cpus => text += &format!(" on {cpus} CPUs"),
    }
    if let Some(share) = most(&JUMP_TIME) {
        text += &format!(", which took up to {} % of the time", plain(share));
    }
    if let Some(longest) = most(&MAX) {
        text += &format!(", the longest stop {}", duration(longest));
    }
    Some(text)
}
