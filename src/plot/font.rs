//! The one font, which comes with the program: figures look the same on a machine that has none.

use std::sync::Once;

use plotters::style::{FontDesc, FontFamily, FontStyle, register_font};

/// What an SVG asks for, ours first; the others are no wider, so that what fits here fits there. The name under which
/// ours is registered.
pub(super) const FAMILY: &str = "DejaVu Sans, Verdana, Arial, sans-serif";

static BYTES: &[u8] = include_bytes!("font/DejaVuSans.ttf");
static REGISTERED: Once = Once::new();

/// From the font's lowest to its highest point, in its em: the size that `ab_glyph` goes by.
pub(super) const HEIGHT: f64 = 2384.0 / 2048.0;

/// The font at a size as `plotters` counts it.
pub(super) fn at(size: f64) -> FontDesc<'static> {
    REGISTERED.call_once(|| {
        // Only what is no font is refused; a test draws with it.
        let _ = register_font(FAMILY, FontStyle::Normal, BYTES);
    });
    FontDesc::new(FontFamily::Name(FAMILY), size, FontStyle::Normal)
}

/// The width of a text in a font whose em has this height.
pub fn width(text: &str, em: f64) -> f64 {
    // Widths come as whole numbers: of a large font, that is exact enough.
    const LARGE: f64 = 1000.0;
    let layout = at(LARGE * HEIGHT).layout_box(text);
    layout.map_or(0.0, |((left, _), (right, _))| {
        f64::from(right - left) / LARGE * em
    })
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
