//! Curves of others, from a CSV file: those that Mess writes, or plain ones.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use crate::arguments::UsageError;
use crate::results::durable::open_regular;
use crate::results::schema::memory;
use crate::results::text::printable_path;
use crate::sorting::sort_by;

/// The most that is read.
const MOST_BYTES: u64 = 64 << 20;

/// Which columns a file has; the first of each list that is there is taken.
struct Format {
    reads: &'static [&'static str],
    bandwidth: &'static [&'static str],
    latency: &'static [&'static str],
    /// What one of its bandwidths is in 10^9 bytes a second.
    unit: f64,
}

/// The pause between accesses, where a file has it: the order of load.
const PAUSE: &str = "pause";

/// A plain one, and `memory_curves.csv` as Mess writes it, where what it calls smooth is what it publishes.
const FORMATS: [Format; 2] = [
    Format {
        reads: &[memory::READ_SHARE.name],
        bandwidth: &["bandwidth_mb_s"],
        latency: &[memory::LATENCY.name],
        unit: 1e-3,
    },
    Format {
        reads: &["read_pct_rounded", "rd_percentage"],
        bandwidth: &["bandwidth_smooth", "bandwidth_mean", "bandwidth"],
        latency: &["latency_smooth", "latency_mean", "latency"],
        unit: 1.0,
    },
];

const EXPECTED: &str = "read_share_percent,bandwidth_mb_s,latency_ns, or memory_curves.csv of Mess, with \
                        read_pct_rounded, bandwidth_smooth (GB/s) and latency_smooth (ns)";

/// A curve of others.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OfOthers {
    /// Its share of reads.
    pub reads_percent: f64,
    /// Bandwidth in 10^9 bytes a second and latency in nanoseconds, in the order of load.
    pub points: Vec<(f64, f64)>,
}

/// What a file holds.
#[derive(Debug, PartialEq)]
pub(super) struct Found {
    /// By their share of reads.
    pub curves: Vec<OfOthers>,
    /// How many rows have no bandwidth or no latency above zero, and are left out.
    pub left_out: usize,
}

/// Reads a file; `named` is what it is called in a message.
pub(super) fn read(path: &Path) -> Result<Found, UsageError> {
    let wrong = |why: String| UsageError(format!("--with {}: {why}", printable_path(path)));
    let text = text_of(path).map_err(&wrong)?;
    let found = of_text(&text).map_err(&wrong)?;
    match found.curves.is_empty() {
        true => Err(wrong(
            "no row has a bandwidth and a latency above zero".to_owned(),
        )),
        false => Ok(found),
    }
}

fn text_of(path: &Path) -> Result<String, String> {
    let unreadable = |cause: std::io::Error| format!("cannot be read: {cause}");
    let size = fs::metadata(path).map_err(unreadable)?.len();
    if size > MOST_BYTES {
        return Err(format!(
            "{size} bytes are too many, {MOST_BYTES} are allowed"
        ));
    }
    let mut text = String::new();
    let file = open_regular(path).map_err(unreadable)?;
    (file.take(MOST_BYTES).read_to_string(&mut text)).map_err(unreadable)?;
    Ok(text)
}

fn of_text(text: &str) -> Result<Found, String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let broken = |cause: csv::Error| format!("is not a table with commas: {cause}");
    let header: Vec<String> = (reader.headers().map_err(broken)?.iter())
        .map(|name| name.trim().trim_start_matches('\u{feff}').to_owned())
        .collect();
    let place = |names: &[&str]| {
        let mut names = names.iter();
        names.find_map(|name| header.iter().position(|it| it == name))
    };
    let columns = FORMATS.iter().find_map(|format| {
        let places = [
            place(format.reads)?,
            place(format.bandwidth)?,
            place(format.latency)?,
        ];
        Some((places, format.unit))
    });
    let (places, unit) = columns
        .ok_or_else(|| format!("its columns are those of no curves: {EXPECTED} are needed"))?;
    let pause = place(&[PAUSE]);
    let mut rows: Vec<(f64, f64, (f64, f64))> = Vec::new();
    let mut left_out = 0;
    for record in reader.records() {
        let record = record.map_err(broken)?;
        let line = record.position().map_or(0, csv::Position::line);
        let number = |place: usize| -> Result<f64, String> {
            let text = record.get(place).unwrap_or_default().trim();
            let number = text.parse::<f64>();
            number.map_err(|_| format!("line {line}: {} is {text:?}, no number", header[place]))
        };
        let [reads, bandwidth, latency] =
            [number(places[0])?, number(places[1])?, number(places[2])?];
        let is_above_zero = |number: f64| number.is_finite() && number > 0.0;
        if !(is_above_zero(bandwidth) && is_above_zero(latency) && reads.is_finite()) {
            left_out += 1;
            continue;
        }
        let pause = pause.map_or(Ok(0.0), number)?;
        rows.push((reads, pause, (bandwidth * unit, latency)));
    }
    // The order of load, and that of the file where nothing tells it.
    sort_by(&mut rows, |one, other| {
        one.0.total_cmp(&other.0).then(other.1.total_cmp(&one.1))
    });
    let mut curves: Vec<OfOthers> = Vec::new();
    for (reads_percent, _, point) in rows {
        match curves
            .last_mut()
            .filter(|last| last.reads_percent == reads_percent)
        {
            Some(curve) => curve.points.push(point),
            None => curves.push(OfOthers {
                reads_percent,
                points: vec![point],
            }),
        }
    }
    Ok(Found { curves, left_out })
}

/// Of many curves, those that are nearest to shares of reads that are drawn, each once.
pub(super) fn nearest(curves: Vec<OfOthers>, shares: &[f64], most: usize) -> Vec<OfOthers> {
    if curves.len() <= most {
        return curves;
    }
    let distance = |curve: &OfOthers, share: f64| (curve.reads_percent - share).abs();
    let is_nearest = |place: usize| {
        shares.iter().any(|share| {
            let places = 0..curves.len();
            let nearest = places.min_by(|one, other| {
                distance(&curves[*one], *share).total_cmp(&distance(&curves[*other], *share))
            });
            nearest == Some(place)
        })
    };
    let kept: Vec<bool> = (0..curves.len()).map(is_nearest).collect();
    let both = curves.into_iter().zip(kept);
    let kept = both.filter_map(|(curve, kept)| kept.then_some(curve));
    kept.take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Has as _, Refused as _};

    #[test]
    fn plain_curves_are_in_megabytes_and_keep_the_order_of_the_file() {
        let text = "latency_ns,read_share_percent,bandwidth_mb_s,note\n\
                    100,50,1000,a\n300,50,9000,b\n400,50,8000,c\n90.5,100,2000,d\n";
        let found = of_text(text).unwrap();
        assert_eq!(found.left_out, 0);
        let curves: Vec<_> = found
            .curves
            .iter()
            .map(|it| (it.reads_percent, &it.points[..]))
            .collect();
        let [half, all] = curves[..] else {
            panic!("{curves:?}")
        };
        let expected = (50.0, &[(1.0, 100.0), (9.0, 300.0), (8.0, 400.0)][..]);
        assert_eq!(half, expected);
        assert_eq!(all, (100.0, &[(2.0, 90.5)][..]));
    }

    #[test]
    fn curves_of_mess_are_in_gigabytes_and_in_the_order_of_their_pauses() {
        let header = "read_pct_rounded,pause,bandwidth_mean,bandwidth_std,rd_percentage_actual_mean,latency_mean,\
                      latency_std,bandwidth_smooth,latency_smooth\n";
        // As they are published: sorted by bandwidth, with a row that was put in, and one that smoothing made negative.
        let rows = "52,160,0.9,0.1,0.52,121.0,2.6,0.0,121.0\n\
                    52,160,0.9,,0.52,121.0,2.6,0.9,121.0\n\
                    52,40,90.0,0.1,0.52,130.0,2.6,-4.6,130.0\n\
                    52,0,95.0,0.1,0.52,400.0,2.6,95.0,400.0\n\
                    52,10,98.0,0.1,0.52,300.0,2.6,98.0,300.0\n";
        let found = of_text(&format!("{header}{rows}")).unwrap();
        assert_eq!(found.left_out, 2);
        assert_eq!(found.curves.len(), 1);
        let expected = [(0.9, 121.0), (98.0, 300.0), (95.0, 400.0)];
        assert_eq!(found.curves[0].points, expected);
    }

    #[test]
    fn other_files_are_refused() {
        for (text, told) in [
            ("", "read_share_percent,bandwidth_mb_s,latency_ns"),
            ("a,b\n1,2\n", "memory_curves.csv of Mess"),
            ("read_share_percent,latency_ns\n1,2\n", "bandwidth_mb_s"),
            (
                "read_share_percent,bandwidth_mb_s,latency_ns\n50,1,2\n50,many,2\n",
                "line 3: bandwidth_mb_s is \"many\"",
            ),
            (
                "read_share_percent,bandwidth_mb_s,latency_ns\n50,1\n",
                "is not a table with commas",
            ),
        ] {
            of_text(text).refused(&[told]);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("zeros.csv");
        fs::write(
            &path,
            "read_share_percent,bandwidth_mb_s,latency_ns\n50,0,2\n",
        )
        .unwrap();
        let refusal = read(&path).unwrap_err().to_string();
        refusal.begins("--with ");
        refusal.has(&["zeros.csv: no row"]);
        let missing = read(&folder.path().join("none.csv")).unwrap_err();
        assert!(missing.to_string().contains("cannot be read"));
        assert!(read(folder.path()).is_err());
    }

    #[test]
    fn of_many_curves_the_nearest_are_kept() {
        let of = |reads_percent: f64| OfOthers {
            reads_percent,
            points: vec![(1.0, 1.0)],
        };
        let all: Vec<OfOthers> = (50..=100).map(|reads| of(f64::from(reads))).collect();
        let kept = nearest(all.clone(), &[0.0, 50.0, 76.0, 100.0], 8);
        assert_eq!(kept, [50.0, 76.0, 100.0].map(of));
        assert_eq!(nearest(all.clone(), &[0.0], 60), all);
    }
}
