use super::*;

#[test]
fn times_are_days_or_moments() {
    assert_eq!(moment("2026-11-20").unwrap(), "2026-11-20T00:00:00.000Z");
    let moment_of_day = moment("2026-11-20T12:30:00Z").unwrap();
    assert_eq!(moment_of_day, "2026-11-20T12:30:00.000Z");
    for text in ["", "yesterday", "2026-11", "2026-13-01", "20.11.2026"] {
        let told = moment(text).unwrap_err();
        assert!(told.contains("2026-11-20T12:30:00Z"), "{told}");
    }
}

#[test]
fn figures_are_named_as_compare_names_them() {
    let names = figures("p50,latency.p99.9,throughput").unwrap();
    let names: Vec<String> = names.0.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["p50", "latency.p99.9", "throughput"]);
    assert!(figures("speed").unwrap_err().contains("\"speed\""));
}
