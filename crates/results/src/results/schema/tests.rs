use std::collections::BTreeSet;

use super::*;

#[test]
fn no_name_occurs_twice_in_a_file_and_each_has_a_meaning() {
    for schema in Schema::ALL {
        for columns in [schema.summary(), schema.runs()] {
            let names: BTreeSet<&str> = columns.iter().map(|(name, _)| name.as_ref()).collect();
            assert_eq!(names.len(), columns.len(), "{}", schema.benchmark);
            assert!(columns.iter().all(|(_, column)| !column.meaning.is_empty()));
        }
        for file in schema.samples {
            assert!(file.columns.contains(&ROUND), "{}", file.name);
            assert!(schema.figures.contains(&file.counted_by), "{}", file.name);
        }
    }
}

#[test]
fn times_are_in_nanoseconds_everywhere() {
    for schema in Schema::ALL {
        let files = schema.samples.iter().flat_map(|file| file.columns);
        let settings = schema.run.iter().chain(schema.point);
        for column in settings.chain(schema.figures).chain(files) {
            let other = ["_us", "_ms", "_s"]
                .iter()
                .find(|end| column.name.ends_with(*end));
            let is_rate = ["_per_s", "_mb_s"]
                .iter()
                .any(|end| column.name.ends_with(end));
            // Fields that others read have the names and units that others gave them, beside ours.
            let is_of_others = node::MICROSECONDS.contains(column);
            let has_known_unit = other.is_none() || is_rate || is_of_others;
            assert!(has_known_unit, "{}", column.name);
        }
    }
}

#[test]
fn units_and_bounds_follow_from_the_name() {
    let column = Column::measured("latency_p50_ns", 1, "median").with_bounds();
    assert_eq!(column.unit(), "ns");
    let bounds = ["latency_p50_low_ns", "latency_p50_high_ns"];
    assert_eq!(column.bounds(), bounds);
    let split = split_unit("sender_cycles_per_element");
    assert_eq!(split, ("sender_cycles", "per element"));
    let split = split_unit("background_offered_bytes_per_s");
    assert_eq!(split, ("background_offered", "B/s"));
    assert_eq!(split_unit("messages_sent"), ("messages_sent", ""));
}
