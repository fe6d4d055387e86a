//! How results between two hosts are shown.

use super::present::Layout;
use crate::driver::View;
use crate::results::schema::Column;
use crate::results::schema::between::{P50_HIGH, P50_LOW, P99_HIGH, P99_LOW, excess, half};
use crate::results::schema::node::{DELIVERY_RATE, LOST, REFUSED, SENT, STEPS_MISSED};

/// The latency of samples has bounds, which those of another node-type overlap; half a round trip has a value.
const LAYOUT: Layout = Layout {
    figures: &FIGURES,
    first: &FIRST,
    compared: half::P50,
    metric: " --metric half-round-trip",
};

/// Its figures.
const FIGURES: [Column; 14] = [
    SENT,
    STEPS_MISSED,
    REFUSED,
    LOST,
    DELIVERY_RATE,
    half::MIN,
    half::P50,
    half::P99,
    P50_LOW,
    P50_HIGH,
    P99_LOW,
    P99_HIGH,
    excess::P50,
    excess::P99,
];

/// Those that people ask for first.
const FIRST: [Column; 4] = [LOST, half::P50, P50_HIGH, excess::P99];

/// How results are shown.
pub(crate) const VIEW: View = View {
    tables: |shown| LAYOUT.tables(shown),
    columns: || LAYOUT.columns(),
    json: |shown| LAYOUT.json(shown),
};
