//! `time`: samples over time.

use std::path::PathBuf;

use super::causes::{CAUSES_IN_COLOUR, causes_of};
use super::names::named;
use super::{capital, marked, nothing_measured, one_metric_label, samples_usual};
use crate::cli::plot::config::Checked;
use crate::cli::plot::made::Made;
use crate::cli::plot::options::Figure;
use crate::cli::plot::sources::{Source, Sources};
use crate::plot::time::{Cloud, OverTime, Thinned};
use crate::results::read::Benchmark;

pub(in crate::cli::plot) fn time(from: &[PathBuf], settings: &Checked) -> anyhow::Result<Made> {
    let mut sources = Sources::open(from, settings, samples_usual)?;
    if sources.rounds() > 1 {
        // The times of each round begin anew.
        sources.all = sources.all.iter().map(Source::of_a_round).collect();
    }
    sources.must_have_samples(Figure::Time, settings)?;
    let labels = sources.labels(&[]);
    let mut clouds: Vec<Cloud> = Vec::new();
    if sources.benchmark == Benchmark::Clock {
        for (cause, points) in causes_of(&sources, CAUSES_IN_COLOUR)?.into_iter().flatten() {
            match clouds.iter_mut().find(|cloud| cloud.label == cause) {
                Some(cloud) => cloud.points.extend(points),
                None => clouds.push(Cloud {
                    label: cause,
                    lost: 0,
                    outside: 0,
                    points,
                }),
            }
        }
        let is_outside = |point: &&(i64, i64)| {
            let range = settings.range.given();
            range.is_some_and(|(low, high)| (point.1 as f64) < low || point.1 as f64 > high)
        };
        for cloud in &mut clouds {
            cloud.outside = cloud.points.iter().filter(is_outside).count() as u64;
        }
        // What is rare stands on top.
        clouds.sort_by_key(|cloud| cloud.points.len());
    }
    let one_by_one = sources.benchmark != Benchmark::Clock;
    for (source, label) in sources.all.iter().zip(&labels).filter(|_| one_by_one) {
        if nothing_measured(source) {
            continue;
        }
        if !source.has_samples() {
            return Err(source.nothing_there());
        }
        clouds.push(over_time(source, &marked(label, source), settings)?);
    }
    let value = one_metric_label(&sources);
    let (title, time) = match sources.benchmark {
        Benchmark::Clock => (
            "Jumps over time, by cause".to_owned(),
            "time since the start",
        ),
        _ => (
            format!("{} over time", capital(value)),
            "time since the first of a point",
        ),
    };
    let together = format!("{} CPUs together", sources.all.len());
    let notes: &[&str] = match sources.benchmark {
        Benchmark::Clock if sources.all.len() > 1 => &[&together],
        _ => &[],
    };
    let words = sources.words(&title, notes, settings);
    let (clouds, looks, told) = named(clouds, |cloud| &mut cloud.label, Some(&sources), settings)?;
    let figure = OverTime {
        words,
        time: settings.x_label(time),
        value: settings.y_label(value),
        range: settings.range.given(),
        scale: settings.scale,
        clouds,
        looks,
    };
    let drawing = figure.draw(settings.size)?;
    Ok(told.made(figure, drawing))
}

/// The samples of a point, but for those that nobody could see beside the others. Points were measured one after another:
/// the time of each begins at zero.
fn over_time(source: &Source, label: &str, settings: &Checked) -> anyhow::Result<Cloud> {
    let columns = [vec![source.metric.time], source.columns()].concat();
    let (mut points, mut lost) = (Thinned::new(settings.size, settings.range.given()), 0);
    source.each(&columns, |cells| {
        let value = source.value(cells, 1)?;
        match (cells.integer(0)?, value) {
            (Some(time), Some(value)) => points.push((time, value)),
            (_, None) if source.metric.may_be_lost => lost += 1,
            _ => {}
        }
        Ok(())
    })?;
    let outside = points.outside();
    let mut points = points.into_points();
    let begin = points.iter().map(|point| point.0).min().unwrap_or(0);
    for point in &mut points {
        point.0 -= begin;
    }
    Ok(Cloud {
        label: label.to_owned(),
        lost,
        outside,
        points,
    })
}
