//! The figures, by name.

use crate::rig::named::named;

named! {
    /// Its name is on the command line and in a file.
    Figure {
        Histogram = "histogram",
        Median = "median",
        Surface = "surface",
        Ecdf = "ecdf",
        Percentiles = "percentiles",
        Time = "time",
        Load = "load",
        Curves = "curves",
        Matrix = "matrix",
    }
}

impl Figure {
    /// What it shows.
    pub(crate) fn about(self) -> &'static str {
        match self {
            Figure::Histogram => {
                "Distributions over each other: share of samples by latency, a line at each median, and what \
                 lies above the range"
            }
            Figure::Median => {
                "The median or another percentile over a setting, medians with bars for the middle 80 %; of a \
                 clock, by the cause of jumps"
            }
            Figure::Surface => {
                "The median or another percentile over two settings as a surface in space; colour is the \
                 share that was lost, or started late"
            }
            Figure::Ecdf => "The share of samples up to each latency",
            Figure::Percentiles => {
                "Latencies up to the highest percentiles, on a scale that spreads the tail"
            }
            Figure::Time => {
                "Samples over time, or percentiles and the maximum by interval, where a run was long enough for .hlog \
                 files; of a clock, its jumps by their cause"
            }
            Figure::Load => {
                "Latency under load: percentiles over the bytes that were delivered in the --background, with \
                 what was offered"
            }
            Figure::Curves => {
                "Latency by the bandwidth of a memory: a curve for each share of reads, in the order of load; \
                 beside it, curves of others"
            }
            Figure::Matrix => {
                "A fabric, or the CPUs of a machine: a figure of each ordered pair as a square of its colour, with \
                 the groups of nodes; pairs that were not measured are hatched"
            }
        }
    }
}
