//! What leaves the program can be read by others.

use super::pdf::pdf;
use super::render::png;
use super::*;

#[test]
fn names_cannot_break_the_document() {
    let nasty = "</text><script>alert(\"x\")</script> & 'q' \u{1}\u{0}\u{fffe} \t\n Größe 日本";
    let mut figure = ecdf(&[samples(1, 100), samples(2, 100)]);
    figure.curves[0].label = nasty.to_owned();
    figure.chart.words.title = nasty.to_owned();
    let drawing = figure.ecdf(DEFAULT_SIZE).unwrap();
    let text = svg(&drawing).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap();
    let named = |name| {
        document
            .descendants()
            .filter(move |it| it.has_tag_name(name))
    };
    assert_eq!(named("script").count(), 0);
    let title = named("title").next().unwrap();
    assert!(title.text().unwrap().contains("alert(\"x\")"));
    png(&drawing).unwrap();
}

#[test]
fn a_png_has_its_size_and_text_in_it() {
    let drawing = medians(3, false).draw((600, 400)).unwrap();
    let bytes = png(&drawing).unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(&bytes))
        .read_info()
        .unwrap();
    assert_eq!((reader.info().width, reader.info().height), (1200, 800));
    // Drawn twice as fine, with three bytes a pixel.
    let drawn = 3 * 1200 * 800 * (1 + 2 * 2);
    assert!(memory_of(Format::Png, &drawing) >= drawn + bytes.len() as u64);
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
        let dark = dark_within(bounds(text));
        assert!(dark > 5, "{text:?} is not to be seen");
    }
    // Nothing is between title and subtitle: letters stand where they are said to stand.
    let title = drawing.texts().next().unwrap();
    let [left, top, right, bottom] = bounds(title);
    assert_eq!(dark_within([left, bottom + 0.5, right, bottom + 4.0]), 0);
    assert_eq!(dark_within([left, top - 8.0, right, top - 1.0]), 0);
    assert!(dark_within([left, title.y - 2.0, right, title.y]) > 5);
    assert!(dark_within([left, top, right, top + 3.5]) > 5);
}

#[test]
fn a_pdf_has_its_size_and_its_text_as_text() {
    let mut drawing = surface(0.3).draw(ONE_COLUMN).unwrap();
    drawing.title = "Größe (µs)".to_owned();
    let bytes = pdf(&drawing).unwrap();
    let is_small_pdf = bytes.starts_with(b"%PDF-") && bytes.len() < 100_000;
    assert!(is_small_pdf, "{}", bytes.len());
    let text = String::from_utf8_lossy(&bytes);
    // 3.5 inches.
    assert!(text.contains("/MediaBox [0 0 252 225]"));
    assert!(text.contains("/FontFile2") && !text.contains("/Subtype /Image"));
    // The map from glyphs has all letters that are drawn.
    let mut unpacked = String::new();
    let mut rest = &bytes[..];
    while let Some(begin) = find(rest, b"stream\n") {
        rest = &rest[begin + 7..];
        let end = find(rest, b"\nendstream").unwrap();
        let found = miniz_oxide::inflate::decompress_to_vec_zlib(&rest[..end]).unwrap();
        unpacked += &String::from_utf8_lossy(&found);
        rest = &rest[end + 10..];
    }
    for letter in drawing.texts().flat_map(|text| text.text.chars()) {
        let code = format!("<{:04X}>", letter as u32);
        assert!(unpacked.contains(&code), "{letter:?}");
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let mut places = bytes.windows(wanted.len());
    places.position(|it| it == wanted)
}
