//! What leaves the program can be read by others.

use super::*;

fn parse(svg: &str) -> roxmltree::Document<'_> {
    roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error}\n{svg}"))
}

#[test]
fn svg_is_xml_that_needs_nothing_from_elsewhere() {
    for drawing in all_figures(DEFAULT_SIZE) {
        let text = svg(&drawing).unwrap();
        let document = parse(&text);
        let root = document.root_element();
        assert_eq!(
            (root.attribute("width"), root.attribute("height")),
            (Some("900"), Some("560"))
        );
        let found: Vec<String> = root
            .descendants()
            .filter(|node| node.has_tag_name("text"))
            .map(|node| node.text().unwrap().trim().to_owned())
            .collect();
        let drawn: Vec<String> = drawing.texts().map(|text| text.text.clone()).collect();
        assert_eq!(found, drawn);
        assert!(!text.contains("href") && !text.contains("<script") && !text.contains("<image"));
        assert!(!text.contains("NaN"));
    }
}

#[test]
fn names_cannot_break_the_document() {
    let nasty = "</text><script>alert(\"x\")</script> & 'q' \u{1}\u{0}\u{fffe} \t\n Größe 日本";
    let mut figure = ecdf(&[samples(1, 100), samples(2, 100)]);
    figure.curves[0].label = nasty.to_owned();
    figure.words.title = nasty.to_owned();
    let text = svg(&figure.draw(DEFAULT_SIZE).unwrap()).unwrap();
    let document = parse(&text);
    assert!(
        document
            .descendants()
            .all(|node| !node.has_tag_name("script"))
    );
    let title = document
        .descendants()
        .find(|node| node.has_tag_name("title"))
        .unwrap();
    assert!(title.text().unwrap().contains("alert(\"x\")"));
    png(&figure.draw(DEFAULT_SIZE).unwrap()).unwrap();
}

#[test]
fn a_png_has_its_size_and_text_in_it() {
    let drawing = medians(3, false).draw((600, 400)).unwrap();
    let bytes = png(&drawing).unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(&bytes))
        .read_info()
        .unwrap();
    assert_eq!((reader.info().width, reader.info().height), (1200, 800));
    // 192 pixels to the inch.
    assert_eq!(reader.info().pixel_dims.unwrap().xppu, 7559);
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    let dark_within = |bounds: [f64; 4]| {
        let [left, top, right, bottom] = bounds.map(|side| (side * 2.0) as usize);
        let places = (top..bottom).flat_map(|y| (left..right).map(move |x| (y * 1200 + x) * 3));
        places.filter(|&place| pixels[place] < 140).count()
    };
    for text in drawing.texts() {
        assert!(
            dark_within(text.bounds()) > 5,
            "{:?} is not to be seen",
            text.text
        );
    }
    // Nothing is between title and subtitle: letters stand where they are said to stand.
    let title = drawing.texts().next().unwrap();
    let [left, top, right, bottom] = title.bounds();
    assert_eq!(dark_within([left, bottom + 0.5, right, bottom + 4.0]), 0);
    assert_eq!(dark_within([left, top - 8.0, right, top - 1.0]), 0);
    assert!(dark_within([left, title.y - 2.0, right, title.y]) > 5);
    assert!(dark_within([left, top, right, top + 3.5]) > 5);
}

#[test]
fn files_are_written_in_either_format_or_an_error_says_why_not() {
    let folder = tempfile::tempdir().unwrap();
    let drawing = surface(0.2).draw((400, 300)).unwrap();
    for (name, begins) in [("f.svg", &b"<?xml"[..]), ("f.PNG", &b"\x89PNG"[..])] {
        let path = folder.path().join(name);
        write(&path, Format::of(&path).unwrap(), &drawing).unwrap();
        assert!(std::fs::read(&path).unwrap().starts_with(begins));
    }
    assert_eq!(Format::of("figure.pdf".as_ref()), None);
    let nowhere = folder.path().join("missing/f.svg");
    let error = write(&nowhere, Format::Svg, &drawing).unwrap_err();
    assert!(
        matches!(&error, PlotError::Report(_)) && error.to_string().contains("missing/f.svg"),
        "{error}"
    );
}
