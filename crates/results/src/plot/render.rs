//! From a drawing to a file: SVG, and PNG in this many pixels to a unit, both by the backends of `plotters`; and PDF.

use std::io::Write;
use std::path::Path;

use plotters::backend::{BitMapBackend, DrawingBackend, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontTransform, RGBAColor, ShapeStyle, TextStyle};

use super::PlotError;
use super::drawing::{Anchor, Colour, Drawing, Shape, Text, fit_for_xml};
use super::font;
use super::pdf::pdf;
use crate::results::durable;

/// Pixels of a PNG to a unit of the drawing: 192 to the inch.
pub const PIXELS_PER_UNIT: u32 = 2;
/// Coordinates of the backends are whole numbers. Those of an SVG are tenths of a unit.
const SVG_GRID: u32 = 10;
/// A PNG is drawn larger and made smaller, which smooths what the backend does not.
const SMOOTHING: u32 = 2;
/// Unless that takes more pixels than these: 192 MB. There is little to smooth in a figure of this many.
const MOST_PIXELS: u64 = 1 << 26;
/// About what a PNG file of the largest figures takes, in bytes.
const ENCODED: u64 = 2 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Svg,
    Png,
    Pdf,
}

impl Format {
    /// The format that a file's name ends in; `None` for others.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "svg" => Some(Format::Svg),
            "png" => Some(Format::Png),
            "pdf" => Some(Format::Pdf),
            _ => None,
        }
    }
}

/// Writes a drawing to a file, in one step.
pub fn write(path: &Path, format: Format, drawing: &Drawing) -> Result<(), PlotError> {
    let bytes = match format {
        Format::Svg => svg(drawing)?.into_bytes(),
        Format::Png => png(drawing)?,
        Format::Pdf => pdf(drawing)?,
    };
    Ok(durable::replace(path, |out| out.write_all(&bytes))?)
}

/// Memory that this takes for the pixels of a drawing, in bytes: all else is little.
pub fn memory_of(format: Format, drawing: &Drawing) -> u64 {
    let Format::Png = format else { return 0 };
    let pixels = |(width, height): (u32, u32)| u64::from(width) * u64::from(height);
    let (size, smoothing) = pixels_of(drawing);
    let large = (size.0 * smoothing, size.1 * smoothing);
    3 * (pixels(large) + pixels(size)) + ENCODED
}

/// The size of a drawing in pixels, and how many times finer it is drawn.
fn pixels_of(drawing: &Drawing) -> ((u32, u32), u32) {
    let pixels_of = |units: f64| units as u32 * PIXELS_PER_UNIT;
    let (width, height) = (pixels_of(drawing.width), pixels_of(drawing.height));
    let area = u64::from(width) * u64::from(height);
    let is_large = area * u64::from(SMOOTHING.pow(2)) > MOST_PIXELS;
    ((width, height), if is_large { 1 } else { SMOOTHING })
}

/// A drawing as an SVG document, without anything from elsewhere.
pub fn svg(drawing: &Drawing) -> Result<String, PlotError> {
    let mut text = String::new();
    let (width, height) = (drawing.width as u32, drawing.height as u32);
    {
        let mut backend = SVGBackend::with_string(&mut text, (width * SVG_GRID, height * SVG_GRID));
        render(drawing, &mut backend, f64::from(SVG_GRID), true)?;
        backend.present().map_err(PlotError::failed)?;
    }
    // Baselines are given, so nothing is to be shifted; quotes in texts are escaped, so these can only be attributes.
    let text = text.replace(" dy=\"0.76em\"", "");
    let body = text.split_once('>').map_or("", |(_, body)| body);
    let title = escape(&fit_for_xml(&drawing.title));
    Ok(format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {} {}\" role=\"img\" stroke-linejoin=\"round\">\n<title>{title}</title>{body}",
        width * SVG_GRID,
        height * SVG_GRID,
    ))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// A drawing as a PNG file.
pub fn png(drawing: &Drawing) -> Result<Vec<u8>, PlotError> {
    let ((width, height), smoothing) = pixels_of(drawing);
    let large = (width * smoothing, height * smoothing);
    let mut pixels = vec![255_u8; large.0 as usize * large.1 as usize * 3];
    {
        let mut backend = BitMapBackend::with_buffer(&mut pixels, large);
        let grid = f64::from(PIXELS_PER_UNIT * smoothing);
        render(drawing, &mut backend, grid, false)?;
        backend.present().map_err(PlotError::failed)?;
    }
    let size = (width as usize, height as usize);
    let smooth = shrink(&pixels, size, smoothing as usize);
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let per_metre = (f64::from(96 * PIXELS_PER_UNIT) / 0.0254).round() as u32;
    encoder.set_pixel_dims(Some(png::PixelDimensions {
        xppu: per_metre,
        yppu: per_metre,
        unit: png::Unit::Meter,
    }));
    encoder
        .add_text_chunk("Title".to_owned(), latin(&drawing.title))
        .and_then(|()| encoder.write_header())
        .and_then(|mut writer| writer.write_image_data(&smooth))
        .map_err(PlotError::failed)?;
    Ok(bytes)
}

/// Text chunks hold Latin-1.
fn latin(text: &str) -> String {
    fit_for_xml(text)
        .chars()
        .map(|c| if (c as u32) < 256 { c } else { '?' })
        .collect()
}

/// The mean of each square of `by` times `by` pixels.
fn shrink(pixels: &[u8], (width, height): (usize, usize), by: usize) -> Vec<u8> {
    let row = width * by * 3;
    let mut shrunk = Vec::with_capacity(width * height * 3);
    for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y * by, x * by))) {
        for channel in 0..3 {
            let square = (0..by).flat_map(|down| (0..by).map(move |right| (y + down, x + right)));
            let sum: u32 = square
                .map(|(y, x)| u32::from(pixels[y * row + x * 3 + channel]))
                .sum();
            shrunk.push((sum / (by * by) as u32) as u8);
        }
    }
    shrunk
}

fn colour_of(colour: Colour) -> RGBAColor {
    RGBAColor(colour.0, colour.1, colour.2, colour.3)
}

fn render<B: DrawingBackend>(
    drawing: &Drawing,
    backend: &mut B,
    grid: f64,
    is_svg: bool,
) -> Result<(), PlotError> {
    let place = |(x, y): (f64, f64)| ((x * grid).round() as i32, (y * grid).round() as i32);
    let length = |units: f64| (units * grid).round().max(1.0) as u32;
    for shape in &drawing.shapes {
        let drawn = match shape {
            Shape::Path {
                points,
                width,
                colour,
            } => {
                let style = ShapeStyle {
                    color: colour_of(*colour),
                    filled: false,
                    stroke_width: length(*width),
                };
                match points[..] {
                    [from, to] => backend.draw_line(place(from), place(to), &style),
                    _ => backend.draw_path(points.iter().map(|&point| place(point)), &style),
                }
            }
            Shape::Area { points, colour } => {
                let style = colour_of(*colour).filled();
                backend.fill_polygon(points.iter().map(|&point| place(point)), &style)
            }
            Shape::Dot { at, radius, colour } => {
                let style = colour_of(*colour).filled();
                backend.draw_circle(place(*at), length(*radius), &style, true)
            }
            Shape::Text(text) => {
                let colour = colour_of(text.colour);
                let (lower, style) = style_of(text, &colour, grid, is_svg);
                let (x, y) = match text.upwards {
                    true => (text.x * grid - lower, text.y * grid),
                    false => (text.x * grid, text.y * grid - lower),
                };
                backend.draw_text(&text.text, &style, (x.round() as i32, y.round() as i32))
            }
        };
        drawn.map_err(PlotError::failed)?;
    }
    Ok(())
}

/// How far below its place a backend has a text's baseline, and the style.
fn style_of<'a>(
    text: &Text,
    colour: &'a RGBAColor,
    grid: f64,
    is_svg: bool,
) -> (f64, TextStyle<'a>) {
    // The SVG backend divides by 1.24 and names the place's baseline. The other has the baseline half the size lower.
    let size = text.em * grid * if is_svg { 1.24 } else { font::HEIGHT };
    let lower = if is_svg { 0.0 } else { size / 2.0 };
    let across = match text.anchor {
        Anchor::Start => HPos::Left,
        Anchor::Middle => HPos::Center,
        Anchor::End => HPos::Right,
    };
    let turned = match text.upwards {
        true => FontTransform::Rotate270,
        false => FontTransform::None,
    };
    let style = TextStyle::from(font::at(size).transform(turned))
        .color(colour)
        .pos(Pos::new(across, VPos::Top));
    (lower, style)
}
