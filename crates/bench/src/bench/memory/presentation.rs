//! What plots and reports show of it, beside its curves.

use crate::bench::presentation::{Metric, Opening, Presentation, ReportFigure};
use crate::plot::scale::duration;
use crate::results::read::Run;
use crate::results::schema::memory::{
    MEASURED_WINDOWS, READ_SHARE, SCHEMA, SIZE, SOURCE, STALLED, window,
};

pub(crate) static PRESENTATION: Presentation = Presentation {
    title: "Memory: latency by bandwidth",
    opening: Opening::Whole(
        "The latency of a load that waits for the one before it (a pointer chase), by the bandwidth that generators \
         draw from the memory",
        of_curves,
    ),
    plural: "windows",
    metrics: &[
        Metric::new("latency", "latency of a load", &[window::LATENCY]),
        // By shares of the largest bandwidth, in place of the curves.
        Metric {
            stem: "",
            ..Metric::new("loaded", "latency under load", &[])
        },
    ],
    time: window::START,
    x: &[SIZE, READ_SHARE],
    has_usual_range: false,
    shares: &[("stalled windows", STALLED, &[MEASURED_WINDOWS])],
    figures: &[
        ReportFigure::new(
            "curves",
            "Latency by bandwidth",
            "A curve for each share of reads, from no load to full load: a dot is a point as measured, the thick line \
             is smoothed. A curve that bends backwards shows an over-saturated memory.",
        ),
        ReportFigure::new(
            "curves",
            "Latency under load",
            "The latency without load, and where a curve reaches these shares of its largest \
             bandwidth.",
        )
        .with("metric", "loaded"),
        ReportFigure::new(
            "median",
            "Latency by the size of the buffer",
            "From the first level of cache to the memory: a step of the chase through buffers of several sizes. A rise \
             is where a buffer leaves a level of cache, or what a TLB reaches.",
        )
        .with("x", SIZE.name),
        ReportFigure::new(
            "time",
            "Windows over time",
            "Each mark is a window of a round: when it began, and the mean latency in it, also \
             where it was left out.",
        ),
    ],
    reading: &[
        "latency: The time of a load that waits for the one before it: a pointer chase over all lines of a buffer in \
         an order that no prefetcher foresees. No message is involved, and nothing is halved or subtracted. A round \
         has the mean of the windows that were kept.",
        "without TLB: The latency less the cycles of page walks and of hits of the second-level TLB, by counters of the \
         chase's core. A separate figure: the latency includes them.",
        "bandwidth: Bandwidth that generators on other CPUs draw meanwhile. Counted by the memory controllers where \
         that is possible, else estimated: an upper bound, with a line read for each line that a regular store writes.",
        "unloaded, at 50 % of it: Without generators (or with the least load), and on the straight line between two \
         points before the largest bandwidth, by latencies as they were measured.",
        "smoothed: Savitzky and Golay's filter over the latencies in the order of load. Bandwidths are never smoothed, \
         and points are never sorted by them: a curve may bend backwards.",
        "in-cache, core-limited: The buffers may lie in the last level of cache, or one core alone draws the \
         bandwidth: the figures do not describe the memory.",
        "stalled, unstable: A generator did nothing for half of a window or longer, which then does not count; or the \
         bandwidth had not settled before the first window.",
    ],
    ..Presentation::of(&SCHEMA)
};

/// The latency without load, and the curve with the largest bandwidth.
fn of_curves(run: &Run) -> Option<String> {
    let (curves, _) = run.curves_of_largest();
    let unloaded = curves.iter().map(|curve| curve.unloaded());
    let unloaded = unloaded.min_by(|one, other| one.latency_ns.total_cmp(&other.latency_ns))?;
    let load = match unloaded.pause {
        None => "without load",
        Some(_) => "at the least load",
    };
    let text = format!("Latency {} {load}", duration(unloaded.latency_ns));
    let peaks = curves
        .iter()
        .filter_map(|curve| Some((curve, curve.peak()?)));
    let most = peaks.max_by(|(_, one), (_, other)| one.0.total_cmp(&other.0));
    let Some((curve, (bandwidth, latency))) = most else {
        return Some(text);
    };
    let last = &run.points[curve.loads.last()?.row];
    let reads = last.setting(READ_SHARE.name).unwrap_or_default();
    let source = last.row.as_ref().and_then(|row| row.text(SOURCE.name));
    Some(format!(
        "{text}; the largest bandwidth is {:.1} GB/s ({}), at {reads} % reads, with a latency of {}",
        bandwidth / 1e3,
        source.unwrap_or_default(),
        duration(latency)
    ))
}
