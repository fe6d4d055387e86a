//! The points of a plan once it is known where the threads in the background run.

use super::{Plan, Point};
use crate::bench::hca::settings::background::Traffic;

/// The same plan with these places. Beside each point where the background `shares_cpu` with a measuring thread comes
/// one with the same work there that sends nothing.
///
/// # Errors
/// Those of `shares_cpu`.
pub fn placed<E>(
    mut plan: Plan,
    shares_cpu: impl Fn(&Point) -> Result<bool, E>,
) -> Result<Plan, E> {
    for mut point in std::mem::take(&mut plan.points) {
        let shares = point.background.is_some() && shares_cpu(&point)?;
        if let Some(background) = &mut point.background {
            background.shares_cpu = Some(shares);
        }
        plan.points.push(point);
        if let Some(background) = &mut point.background
            && shares
        {
            background.traffic = Traffic::None;
            plan.points.push(point);
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::hca::plan::made_up::single;
    use crate::bench::hca::settings::background::tests::background;
    use crate::bench::hca::settings::config::Sweep;

    #[test]
    fn beside_a_background_that_shares_a_cpu_stands_one_that_sends_nothing() {
        let (small, large) = (background(200, 4096, 1), background(4000, 4096, 2));
        let sweep = Sweep {
            backgrounds: vec![None, Some(small), Some(large)],
            ..single()
        };
        let plan = Plan::new(&sweep);
        assert_eq!(plan.points.len(), 3);
        let all = |shares| {
            let placed = placed(plan.clone(), |_| Ok::<_, ()>(shares));
            placed.unwrap().points
        };
        let own = all(false);
        let marks: Vec<_> = own.iter().map(|it| it.background?.placed()).collect();
        assert_eq!(marks, [None, Some("own-cpu"), Some("own-cpu")]);
        let shared = all(true);
        let ends: Vec<_> = shared
            .iter()
            .map(|point| {
                let name = point.to_string();
                let (_, end) = name.split_once("-away0ns").unwrap();
                (end.to_owned(), point.background.and_then(|it| it.placed()))
            })
            .collect();
        let mark = Some("cpu-shared");
        let expected = [
            ("", None),
            ("-background200@4096", mark),
            ("-background200@4096-unsent", mark),
            ("-background4000@4096x2", mark),
            ("-background4000@4096x2-unsent", mark),
        ];
        assert_eq!(ends, expected.map(|(end, mark)| (end.to_owned(), mark)));
        assert_eq!(placed(plan, |_| Err("no CPU")), Err("no CPU"));
    }
}
