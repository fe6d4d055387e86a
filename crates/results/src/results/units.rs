//! Durations, bytes and rates for people: three significant digits, plain ASCII.

/// A duration in nanoseconds as text: `85 ns`, `12.3 us`, `1.20 ms`, `45.0 s`, `2 min 5 s`, `3 h 20 min`.
pub fn duration(nanoseconds: f64) -> String {
    if !nanoseconds.is_finite() {
        return format!("{nanoseconds} ns");
    }
    let seconds = (nanoseconds.abs() / 1e9).round();
    if nanoseconds.abs() / 1e9 >= 59.95 {
        let sign = if nanoseconds < 0.0 { "-" } else { "" };
        let (count, units) = match seconds < 3600.0 {
            true => (seconds, ["min", "s"]),
            false => ((seconds / 60.0).round(), ["h", "min"]),
        };
        let (whole, rest) = ((count / 60.0).floor(), count % 60.0);
        return format!("{sign}{whole} {} {rest} {}", units[0], units[1]);
    }
    if nanoseconds.abs() < 999.5 && nanoseconds.fract() == 0.0 {
        return format!("{} ns", nanoseconds as i64);
    }
    scaled(nanoseconds, 1000.0, &["ns", "us", "ms", "s"])
}

/// A time of day's worth of seconds as `m:ss` or `h:mm:ss`, for a line that is redrawn.
pub fn clock(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

/// A number of bytes as text: `8 B`, `32 KiB`, `1.50 MiB`. Whole multiples are without decimals.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = (count.max(1).ilog2() / 10) as usize;
    let unit = 1_u64 << (10 * power);
    if count.is_multiple_of(unit) {
        format!("{} {}", count / unit, UNITS[power])
    } else {
        scaled(count as f64, 1024.0, &UNITS)
    }
}

/// A rate per second as text: `850 /s`, `1.20 M/s`.
pub fn rate(per_second: f64) -> String {
    scaled(per_second, 1000.0, &["/s", "k/s", "M/s", "G/s"])
}

/// A value in the unit of its column, as text: `12.3 us`, `1.20 M/s`, `9.87 GB/s`, `3.12 %`.
pub fn quantity(value: f64, unit: &str) -> String {
    match unit {
        "1/s" if value == 0.0 => "0 /s".to_owned(),
        "MB/s" if value == 0.0 => "0 MB/s".to_owned(),
        "ns" => duration(value),
        "B" => bytes(value.max(0.0) as u64),
        "1/s" => rate(value),
        "MB/s" => scaled(value, 1000.0, &["MB/s", "GB/s", "TB/s"]),
        "" => digits(value),
        unit => format!("{} {unit}", digits(value)),
    }
}

/// A number with three significant digits, and no more decimals than three: `0.532`, `12.0`, `12600`.
pub fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        magnitude if magnitude < 0.9995 => fixed(value, 3),
        magnitude if magnitude < 999.5 => fixed(value, decimals(magnitude)),
        magnitude if magnitude.is_finite() => {
            let step = 10_f64.powf(magnitude.log10().floor() - 2.0);
            fixed((value / step).round() * step, 0)
        }
        _ => value.to_string(),
    }
}

/// The decimals that make three significant digits of a magnitude from 1 to 1000.
fn decimals(magnitude: f64) -> usize {
    match magnitude {
        magnitude if magnitude < 9.995 => 2,
        magnitude if magnitude < 99.95 => 1,
        _ => 0,
    }
}

/// A number with four significant digits, and no more decimals than three.
pub fn significant(value: f64) -> String {
    let decimals = match value.abs() {
        magnitude if magnitude < 9.9995 => 3,
        magnitude if magnitude < 99.995 => 2,
        magnitude if magnitude < 999.95 => 1,
        _ => 0,
    };
    fixed(value, decimals)
}

/// The unit that fits the numbers of a column, which are in `unit`, and what to divide them by: the largest of which
/// three quarters of them have at least 1.
pub fn fitting(unit: &'static str, numbers: &[f64]) -> (&'static str, f64) {
    let larger: &[(&'static str, f64)] = match unit {
        "ns" => &[("us", 1e3), ("ms", 1e6), ("s", 1e9)],
        "us" => &[("ms", 1e3), ("s", 1e6)],
        "1/s" => &[("k/s", 1e3), ("M/s", 1e6), ("G/s", 1e9)],
        "MB/s" => &[("GB/s", 1e3)],
        _ => &[],
    };
    let has_most = |size: f64| {
        let told = numbers.iter().filter(|number| **number != 0.0);
        let large = told.clone().filter(|number| number.abs() >= size);
        4 * large.count() >= 3 * told.count().max(1)
    };
    let fits = larger.iter().rev().find(|(_, size)| has_most(*size));
    fits.copied().unwrap_or((unit, 1.0))
}

/// A value with three significant digits in the largest unit that leaves at least 1 before the point.
fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let mut scaled = value;
    let mut unit = 0;
    // What would be shown as 1000 of a unit is shown as 1.00 of the next.
    while unit + 1 < units.len() && scaled.abs() >= step - 0.5 {
        scaled /= step;
        unit += 1;
    }
    format!("{} {}", fixed(scaled, decimals(scaled.abs())), units[unit])
}

/// A number with exactly this many decimals, and without a minus sign in front of nothing but zeros.
pub fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(digits) if digits.bytes().all(|digit| matches!(digit, b'0' | b'.')) => {
            digits.to_owned()
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations() {
        for (nanoseconds, text) in [
            (0.0, "0 ns"),
            (85.0, "85 ns"),
            (-12.0, "-12 ns"),
            (10.25, "10.2 ns"),
            (999.0, "999 ns"),
            (999.7, "1.00 us"),
            (1000.0, "1.00 us"),
            (12_345.0, "12.3 us"),
            (-12_345.0, "-12.3 us"),
            (999_949.0, "1.00 ms"),
            (1_204_000.0, "1.20 ms"),
            (123_000_000.0, "123 ms"),
            (45e9, "45.0 s"),
            (59.96e9, "1 min 0 s"),
            (125e9, "2 min 5 s"),
            (3599.9e9, "1 h 0 min"),
            (12_000e9, "3 h 20 min"),
        ] {
            assert_eq!(duration(nanoseconds), text, "{nanoseconds}");
        }
    }

    #[test]
    fn sizes_and_rates() {
        for (count, text) in [
            (0, "0 B"),
            (8, "8 B"),
            (1000, "1000 B"),
            (1024, "1 KiB"),
            (32 << 10, "32 KiB"),
            (1 << 20, "1 MiB"),
            (3 << 19, "1.50 MiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(bytes(count), text);
        }
        for (per_second, text) in [
            (850.0, "850 /s"),
            (20_000.0, "20.0 k/s"),
            (1.2e6, "1.20 M/s"),
            (2e12, "2000 G/s"),
        ] {
            assert_eq!(rate(per_second), text);
        }
    }

    #[test]
    fn four_digits() {
        for (value, text) in [
            (0.0, "0.000"),
            (1.2345, "1.234"),
            (-14.447, "-14.45"),
            (372.562, "372.6"),
            (999.96, "1000"),
            (1146.187, "1146"),
            (33_999.4, "33999"),
        ] {
            assert_eq!(significant(value), text);
        }
    }

    #[test]
    fn the_unit_of_a_column() {
        for (unit, numbers, fits) in [
            ("ns", &[266.0, 386.0, 34151.0][..], ("ns", 1.0)),
            ("ns", &[486.0, 1_200.0, 9_400.0, 109_380_000.0], ("us", 1e3)),
            ("ns", &[0.0, 0.0, 2_000.0], ("us", 1e3)),
            ("ns", &[900.0, 1_000.0, 2_000.0, 3_000.0], ("us", 1e3)),
            ("1/s", &[250e3, 1e6, 4e6], ("k/s", 1e3)),
            ("B", &[8.0, 1e9], ("B", 1.0)),
            ("ns", &[], ("ns", 1.0)),
        ] {
            assert_eq!(fitting(unit, numbers), fits, "{numbers:?}");
        }
    }

    #[test]
    fn three_digits_in_the_unit_of_a_column() {
        for (value, unit, text) in [
            (0.0, "%", "0 %"),
            (3.125, "%", "3.12 %"),
            (0.0437, "%", "0.044 %"),
            (-12.0, "", "-12.0"),
            (12_613.8, "%", "12600 %"),
            (999.7, "", "1000"),
            (120_754.0, "ns", "121 us"),
            (12_003_000.0, "1/s", "12.0 M/s"),
            (9_872.0, "MB/s", "9.87 GB/s"),
            (4096.0, "B", "4 KiB"),
            (0.0, "1/s", "0 /s"),
            (f64::INFINITY, "", "inf"),
        ] {
            assert_eq!(quantity(value, unit), text);
        }
    }

    #[test]
    fn times_of_a_redrawn_line() {
        assert_eq!(clock(5), "0:05");
        assert_eq!(clock(754), "12:34");
        assert_eq!(clock(3_661), "1:01:01");
    }

    #[test]
    fn no_minus_before_nothing() {
        assert_eq!(fixed(-0.0004, 3), "0.000");
        assert_eq!(fixed(-0.0006, 3), "-0.001");
        assert_eq!(fixed(-0.0, 0), "0");
        assert_eq!(fixed(f64::NAN, 3), "NaN");
    }

    proptest! {
        #[test]
        fn never_more_digits_than_the_unit_holds(nanoseconds in 1.0..5.9e10_f64) {
            let text = duration(nanoseconds);
            let (number, unit) = text.split_once(' ').unwrap();
            let shown: f64 = number.parse().unwrap();
            let factor = match unit { "ns" => 1.0, "us" => 1e3, "ms" => 1e6, "s" => 1e9, _ => panic!("{}", text) };
            prop_assert!(shown < 1000.0);
            prop_assert!((shown * factor / nanoseconds - 1.0).abs() <= 0.0051, "{} for {}", text, nanoseconds);
        }
    }
}
