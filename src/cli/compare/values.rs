//! Values of the options, from text.

use crate::compare::Limit;
use crate::compare::figures::Kind;

/// One value or several. A type of its own, because clap takes a `Vec` for repeated options.
#[derive(Debug, Clone, PartialEq)]
pub struct List<T>(pub Vec<T>);

fn list<T>(text: &str, one: impl Fn(&str) -> Result<T, String>) -> Result<List<T>, String> {
    text.split(',').map(one).collect::<Result<_, _>>().map(List)
}

/// `5%@p50,10%@p99`.
pub fn limits(text: &str) -> Result<List<Limit>, String> {
    let limits = list(text, |part| {
        let form = || format!("{part:?} is not a limit such as 5%@p50 or 0.1%@lost");
        let (percent, of) = part.split_once("%@").ok_or_else(form)?;
        let percent: f64 = percent.parse().map_err(|_| form())?;
        if !(0.0..=1e6).contains(&percent) {
            return Err(format!("{part:?} is not between 0% and 1000000%"));
        }
        Ok(Limit {
            percent,
            of: of.parse()?,
        })
    })?;
    for (place, limit) in limits.0.iter().enumerate() {
        if limits.0[..place].iter().any(|other| other.of == limit.of) {
            return Err(format!("{text:?} has two limits of {}", limit.of));
        }
    }
    Ok(limits)
}

/// `p50,p99.9`.
pub fn percentiles(text: &str) -> Result<List<f64>, String> {
    list(text, |part| match part.parse() {
        Ok(Kind::Percentile(percent)) => Ok(percent),
        _ => Err(format!(
            "{part:?} is not a percentile above p0 and below p100, such as p50 or p99.9"
        )),
    })
}
