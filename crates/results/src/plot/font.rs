//! The one font, which comes with the program: figures look the same on a machine that has none.

use std::sync::{LazyLock, Once};

use miniz_oxide::inflate::decompress_to_vec_zlib;
use plotters::style::{FontDesc, FontFamily, FontStyle, register_font};
use ttf_parser::{Face, GlyphId};

/// What an SVG asks for, ours first; the others are no wider, so that what fits here fits there. The name under which
/// ours is registered.
pub(super) const FAMILY: &str = "DejaVu Sans, Verdana, Arial, sans-serif";

static COMPRESSED: &[u8] = include_bytes!("font/DejaVuSans.ttf.zlib");
/// Half of the program's constant data, were it not compressed.
pub(super) static BYTES: LazyLock<Vec<u8>> =
    LazyLock::new(|| decompress_to_vec_zlib(COMPRESSED).expect("the font of the program is whole"));
static REGISTERED: Once = Once::new();
static FACE: LazyLock<Face<'static>> =
    LazyLock::new(|| Face::parse(&BYTES, 0).expect("the font of the program is whole"));

/// From the font's lowest to its highest point, in its em: the size that `ab_glyph` goes by.
pub(super) const HEIGHT: f64 = 2384.0 / 2048.0;

/// The font at a size as `plotters` counts it.
pub(super) fn at(size: f64) -> FontDesc<'static> {
    REGISTERED.call_once(|| {
        // Only data that is not a font is refused; a test draws with it.
        let _ = register_font(FAMILY, FontStyle::Normal, &BYTES);
    });
    FontDesc::new(FontFamily::Name(FAMILY), size, FontStyle::Normal)
}

/// The glyph of a letter; that of unknown ones where it has none.
pub(super) fn glyph(letter: char) -> GlyphId {
    FACE.glyph_index(letter).unwrap_or_default()
}

/// How far the next letter is, in its em.
pub(super) fn advance(letter: char) -> f64 {
    let units = FACE.glyph_hor_advance(glyph(letter)).unwrap_or_default();
    f64::from(units) / f64::from(FACE.units_per_em())
}

/// The box that holds all letters, in thousandths of their em: left, lower, right, upper.
pub(super) fn bounds() -> [f32; 4] {
    let all = FACE.global_bounding_box();
    let thousandths = 1000.0 / f32::from(FACE.units_per_em());
    [all.x_min, all.y_min, all.x_max, all.y_max].map(|side| f32::from(side) * thousandths)
}

/// The width of a text in a font whose em has this height.
pub fn width(text: &str, em: f64) -> f64 {
    text.chars().map(advance).sum::<f64>() * em
}

/// The width of the widest of these texts; 0 without any.
pub fn widest<'a>(texts: impl IntoIterator<Item = &'a String>, em: f64) -> f64 {
    let widths = texts.into_iter().map(|text| width(text, em));
    widths.fold(0.0, f64::max)
}

/// The text, or as much of its beginning as fits into `most`, with an ellipsis.
pub fn fit(text: &str, em: f64, most: f64) -> String {
    if width(text, em) <= most {
        return text.to_owned();
    }
    let mut kept: Vec<char> = text.chars().collect();
    loop {
        kept.pop();
        let shorter: String = kept.iter().collect::<String>().trim_end().to_owned() + "…";
        if kept.is_empty() || width(&shorter, em) <= most {
            return shorter;
        }
    }
}

/// 8 points, the least that papers take.
const LEAST_EM: f64 = 8.0 * 96.0 / 72.0;

/// The text with the em, not above `em`, in which it fits into `most`; as much of it as does, if none is large enough,
/// but the unit in brackets at its end always.
pub fn shrunk(text: &str, em: f64, most: f64) -> (String, f64) {
    let em = (em * most / width(text, em).max(1.0)).clamp(LEAST_EM, em);
    let unit = text.rfind(" (").filter(|_| text.ends_with(')'));
    let (text, unit) = text.split_at(unit.unwrap_or(text.len()));
    (fit(text, em, most - width(unit, em)) + unit, em)
}

/// The text in lines between words that fit into `most`; what is left of the last line of `lines` ends in an ellipsis.
pub fn wrap(text: &str, em: f64, most: f64, lines: usize) -> Vec<String> {
    let mut wrapped: Vec<String> = Vec::new();
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let last = wrapped.len() == lines;
        match wrapped.last_mut() {
            Some(line) if width(&format!("{line} {word}"), em) <= most => {
                line.push(' ');
                line.push_str(word);
            }
            Some(line) if last => {
                let rest: Vec<&str> = std::iter::once(word).chain(words).collect();
                *line = fit(&format!("{line} {}", rest.join(" ")), em, most);
                break;
            }
            _ => wrapped.push(fit(word, em, most)),
        }
    }
    wrapped
}
