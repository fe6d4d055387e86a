//! The values of the options, from text.

use std::time::Duration;

use crate::arguments::values::{number, time};
use crate::bench::cores::config::LineNode;

/// How long a pair is measured.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    time(text, Duration::from_micros(100)..=Duration::from_secs(10))
}

/// Where lines lie.
pub(crate) fn node(text: &str) -> Result<LineNode, String> {
    match text {
        "writer" => Ok(LineNode::Writer),
        "reader" => Ok(LineNode::Reader),
        _ => number::<u32>(text, 0..=1023)
            .map(LineNode::Node)
            .map_err(|error| format!("{error}, nor writer or reader")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Refused as _;

    #[test]
    fn values_are_read_and_others_are_refused_with_what_is_allowed() {
        for place in ["writer", "reader", "3"] {
            assert_eq!(
                node(place).map(|node| node.to_string()),
                Ok(place.to_owned())
            );
        }
        node("near").refused(&["\"near\"", "0 to 1023", "writer or reader"]);
        assert_eq!(duration("2ms"), Ok(Duration::from_millis(2)));
        duration("20us").refused(&["100us to 10s"]);
    }
}
