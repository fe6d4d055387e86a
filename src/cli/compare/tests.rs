use super::*;
use clap::Parser;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    compare: CompareArguments,
}

fn parse(text: &str) -> Result<CompareArguments, String> {
    Line::try_parse_from(["compare"].into_iter().chain(text.split_whitespace()))
        .map(|line| line.compare)
        .map_err(|error| error.to_string())
}

#[test]
fn percentiles_are_those_asked_for_and_those_with_limits() {
    let request = parse("a b --max-regression 5%@p99.9,10%@p50,0.1%@lost")
        .unwrap()
        .request();
    assert_eq!(request.percentiles, [50.0, 99.0, 99.9]);
    assert_eq!(
        request.limits,
        [
            (5.0, Kind::Percentile(99.9)),
            (10.0, Kind::Percentile(50.0)),
            (0.1, Kind::Lost)
        ]
        .map(|(percent, of)| Limit { percent, of })
    );
    assert_eq!(
        parse("a b --percentiles p90")
            .unwrap()
            .request()
            .percentiles,
        [90.0]
    );
}

#[test]
fn bad_values_name_option_value_and_what_is_allowed() {
    for (text, parts) in [
        ("a", &["<NEW>"][..]),
        (
            "a b --max-regression 5",
            &["--max-regression", "\"5\"", "5%@p50"],
        ),
        ("a b --max-regression x%@p50", &["\"x%@p50\"", "5%@p50"]),
        ("a b --max-regression=-1%@p50", &["\"-1%@p50\""]),
        (
            "a b --max-regression 5%@max",
            &["\"max\"", "p99.9", "throughput"],
        ),
        ("a b --max-regression 5%@p100", &["\"p100\""]),
        ("a b --max-regression NaN%@p50", &["NaN%@p50"]),
        ("a b --max-regression 5%@p50,6%@p50", &["two limits of p50"]),
        (
            "a b --percentiles p0",
            &["--percentiles", "\"p0\"", "p99.9"],
        ),
        ("a b --percentiles lost", &["\"lost\""]),
    ] {
        let error = parse(text).unwrap_err();
        for part in parts {
            assert!(error.contains(part), "{text}: {part} is not in {error}");
        }
    }
}
