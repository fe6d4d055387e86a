//! The figures, by name.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Figure {
    Histogram,
    Median,
    Surface,
    Ecdf,
    Percentiles,
    Time,
    Load,
    Curves,
    Matrix,
}

use Figure::{Curves, Ecdf, Histogram, Load, Matrix, Median, Percentiles, Surface, Time};

impl Figure {
    pub(crate) const ALL: [Figure; 9] = [
        Histogram,
        Median,
        Surface,
        Ecdf,
        Percentiles,
        Time,
        Load,
        Curves,
        Matrix,
    ];

    /// On the command line and in a file.
    pub(crate) fn name(self) -> &'static str {
        self.described().0
    }

    /// Its name, and what it shows.
    pub(crate) fn described(self) -> (&'static str, &'static str) {
        match self {
            Histogram => (
                "histogram",
                "Distributions over each other: share of samples by latency, a line at each median, and what lies above \
                 the range",
            ),
            Median => (
                "median",
                "The median or another percentile over a setting, medians with bars for the middle 80 %; of a clock, by the cause \
                 of jumps",
            ),
            Surface => (
                "surface",
                "The median or another percentile over two settings as a surface in space; colour is the share that was lost, or \
                 started late",
            ),
            Ecdf => ("ecdf", "The share of samples up to each latency"),
            Percentiles => (
                "percentiles",
                "Latencies up to the highest percentiles, on a scale that spreads the tail",
            ),
            Time => (
                "time",
                "Samples over time; of a clock, its jumps by their cause",
            ),
            Load => (
                "load",
                "Latency under load: percentiles over the bytes that were delivered in the --background, with what was \
                 offered",
            ),
            Curves => (
                "curves",
                "Latency by the bandwidth of a memory: a curve for each share of reads, in the order of load; beside it, \
                 curves of others",
            ),
            Matrix => (
                "matrix",
                "A fabric: a figure of each ordered pair of nodes as a square of its colour, with the groups of nodes; \
                 pairs that were not measured are hatched",
            ),
        }
    }
}
