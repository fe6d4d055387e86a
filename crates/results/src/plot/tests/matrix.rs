//! The matrix of a fabric: what is missing is never coloured, and names have room.

use super::*;
use crate::plot::drawing::Colour;
use crate::plot::matrix::{CellKind, Matrix, Node};
use crate::plot::palette::heat;
use crate::testing::Refused as _;

/// Nodes in racks of so many, two rows of racks; node 2 is slow, and what it sends to node 0 is missing.
fn fabric(nodes: usize, rack: usize) -> Matrix {
    let racks = nodes.div_ceil(rack);
    let node = |node: usize| Node {
        name: format!("node{node:03}"),
        groups: vec![
            format!("row{}", 2 * (node / rack) / racks),
            format!("rack{}", node / rack),
        ],
        slow: node == 2,
    };
    let cell = |from: usize, to: usize| match (from, to) {
        (2, 0) => None,
        _ if from == to => None,
        (2, _) => Some(9000.0),
        _ => Some(1500.0 + (7 * from + 13 * to) as f64 % 50.0),
    };
    Matrix {
        chart: chart("Fabric: median of half a round trip", "to", "from"),
        value: "median of half a round trip".to_owned(),
        kind: CellKind::Time,
        nodes: (0..nodes).map(node).collect(),
        cells: (0..nodes)
            .map(|from| (0..nodes).map(|to| cell(from, to)).collect())
            .collect(),
    }
}

fn labels(drawing: &Drawing) -> Vec<&str> {
    let names = drawing.texts().map(|text| text.text.as_str());
    let names = names.filter(|text| text.starts_with("node") || text.starts_with("rack"));
    names.collect()
}

#[test]
fn no_text_of_a_matrix_is_cut_off_or_covered() {
    for size in [SIZE, (640, 480), (1600, 900), ONE_COLUMN, TWO_COLUMNS] {
        for (nodes, rack) in [(2, 1), (4, 2), (8, 8), (16, 4), (64, 8), (64, 64), (200, 7)] {
            let mut figure = fabric(nodes, rack);
            assert_sound(&figure.draw(size).unwrap());
            figure.kind = CellKind::Count;
            figure.nodes[0].name = "a name that is far too long for a node.example.org".to_owned();
            assert_sound(&figure.draw(size).unwrap());
        }
    }
}

/// How many squares have that colour. They stand left of the bar, which has the same colours.
fn squares(drawing: &Drawing, wanted: Colour) -> usize {
    let is_square = |points: &[(f64, f64)]| points[2].0 - points[0].0 > 20.0 && points[0].0 < 700.0;
    let areas = drawing.shapes.iter().filter(|shape| match shape {
        Shape::Area { points, colour } => *colour == wanted && is_square(points),
        _ => false,
    });
    areas.count()
}

#[test]
fn of_rates_the_least_is_the_darkest() {
    let mut figure = fabric(4, 2);
    figure.kind = CellKind::Rate;
    for (from, row) in figure.cells.iter_mut().enumerate() {
        for cell in row.iter_mut().flatten() {
            *cell = if from == 1 { 1.0 } else { 20.0 };
        }
    }
    let drawing = figure.draw(SIZE).unwrap();
    // Node 1 sends to 0, and to 2 and 3 side by side; 1 of 20 is a step of 64 above none.
    assert_eq!(squares(&drawing, heat(60.0 / 63.0)), 2);
    assert!(squares(&drawing, heat(0.0)) > 2);
    has(&drawing, &["1 GB/s", "20 GB/s"]);
}

#[test]
fn what_is_missing_is_hatched_and_what_is_slow_is_dark_and_named() {
    let drawing = fabric(4, 2).draw(SIZE).unwrap();
    let of_colour = |wanted: Colour| squares(&drawing, wanted);
    // Node 2 sends to 1 and 3, two squares apart; white is what is missing, and the page.
    assert_eq!((of_colour(heat(1.0)), of_colour(Colour::WHITE)), (2, 2));
    has(&drawing, &["9 µs", "not measured", "node002", "from", "to"]);
    assert!(says(&drawing, "1 pair without this figure is hatched"));
    let red = drawing
        .texts()
        .filter(|text| text.text == "node002" && text.colour != Colour::INK);
    assert_eq!(red.count(), 2);
}

#[test]
fn of_many_nodes_groups_are_named_and_those_that_are_slow() {
    let drawing = fabric(64, 8).draw(SIZE).unwrap();
    let found = labels(&drawing);
    assert!(found.contains(&"node002"), "{found:?}");
    assert!(found.contains(&"rack7"), "{found:?}");
    assert!(!found.contains(&"node003"), "{found:?}");
    // Without groups, some of the nodes.
    let drawing = fabric(64, 64).draw(SIZE).unwrap();
    let found = labels(&drawing).len();
    assert!((20..128).contains(&found), "{found}");
    let drawing = fabric(512, 32).draw(SIZE).unwrap();
    assert!(says(&drawing, "each square shows the worst of 3 x 3 pairs"));
    assert!(labels(&drawing).contains(&"node002"));
    assert!(drawing.shapes.len() < 512 * 64, "{}", drawing.shapes.len());
}

#[test]
fn a_matrix_without_figures_or_of_too_many_nodes_is_refused() {
    let mut figure = fabric(4, 2);
    figure
        .cells
        .iter_mut()
        .flatten()
        .for_each(|cell| *cell = None);
    figure.draw(SIZE).refused(&["no pair has this figure"]);
    let mut figure = fabric(4, 2);
    figure.chart.range = Some((0.0, 1.0));
    figure.draw(SIZE).refused(&["none of the pairs is in it"]);
    figure.chart.range = Some((0.0, 5000.0));
    assert!(says(
        &figure.draw(SIZE).unwrap(),
        "2 pairs lie outside of the range"
    ));
}
