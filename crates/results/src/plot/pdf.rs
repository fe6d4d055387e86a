//! From a drawing to PDF: one page of its size, as lines, areas and text, with the glyphs of the font that it needs.

use std::collections::BTreeMap;

use miniz_oxide::deflate::compress_to_vec_zlib;
use pdf_writer::types::{
    CidFontType, FontFlags, LineCapStyle, LineJoinStyle, SystemInfo, UnicodeCmap,
};
use pdf_writer::writers::ExtGraphicsState;
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, Str, TextStr};
use subsetter::GlyphRemapper;

use super::PlotError;
use super::drawing::{Anchor, Colour, Drawing, Shape, Text, fit_for_xml};
use super::font;

const FONT_NAME: Name<'static> = Name(b"HCABEN+DejaVuSans");
const CODES: SystemInfo<'static> = SystemInfo {
    registry: Str(b"Adobe"),
    ordering: Str(b"Identity"),
    supplement: 0,
};
/// Points of a page to a unit of the drawing.
const POINTS: f32 = 72.0 / 96.0;

/// The page's content, with the glyphs and the opacities that it uses.
struct PdfPage {
    content: Content,
    glyphs: GlyphRemapper,
    /// The character that each glyph of the page stands for, and its width in thousandths of an em.
    used: BTreeMap<u16, (char, f32)>,
    /// In per cent; each is a graphics state of that name.
    opacities: Vec<u8>,
}

/// A drawing as a PDF file.
///
/// # Errors
/// When the font cannot be cut down.
pub fn pdf(drawing: &Drawing) -> Result<Vec<u8>, PlotError> {
    let mut page = PdfPage {
        content: Content::new(),
        glyphs: GlyphRemapper::new(),
        used: BTreeMap::new(),
        opacities: Vec::new(),
    };
    let [width, height] = [drawing.width, drawing.height].map(|side| side as f32 * POINTS);
    // Places of drawings are counted from the upper left corner.
    let downwards = [POINTS, 0.0, 0.0, -POINTS, 0.0, height];
    page.content.transform(downwards);
    page.content.set_line_join(LineJoinStyle::RoundJoin);
    for shape in &drawing.shapes {
        page.shape(shape);
    }

    let mut pdf = Pdf::new();
    let [catalog, pages, sheet, info, content, font] = [1, 2, 3, 4, 5, 6].map(Ref::new);
    pdf.catalog(catalog).pages(pages);
    pdf.pages(pages).kids([sheet]).count(1);
    let title = fit_for_xml(&drawing.title);
    pdf.document_info(info).title(TextStr(&title));
    let mut this = pdf.page(sheet);
    this.parent(pages).contents(content);
    this.media_box(Rect::new(0.0, 0.0, width, height));
    let mut resources = this.resources();
    resources.fonts().pair(Name(b"F"), font);
    let mut states = resources.ext_g_states();
    for percent in &page.opacities {
        let opacity = f32::from(*percent) / 100.0;
        let name = state_name(*percent);
        let mut state: ExtGraphicsState<'_> = states.insert(Name(&name)).start();
        state.stroking_alpha(opacity).non_stroking_alpha(opacity);
    }
    states.finish();
    resources.finish();
    this.finish();
    let drawn = std::mem::replace(&mut page.content, Content::new()).finish();
    stream(&mut pdf, content, &drawn);
    embed(&mut pdf, font, &page)?;
    Ok(pdf.finish())
}

fn stream(pdf: &mut Pdf, id: Ref, bytes: &[u8]) {
    let packed = compress_to_vec_zlib(bytes, 6);
    pdf.stream(id, &packed).filter(Filter::FlateDecode);
}

fn state_name(percent: u8) -> Vec<u8> {
    format!("A{percent}").into_bytes()
}

impl PdfPage {
    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Path {
                points,
                width,
                colour,
            } => {
                self.colour(*colour);
                self.content.set_line_width(*width as f32);
                self.through(points);
                self.content.stroke();
            }
            Shape::Area { points, colour } => {
                self.colour(*colour);
                self.through(points);
                self.content.fill_nonzero();
            }
            Shape::Dot { at, radius, colour } => {
                self.colour(*colour);
                // Of a line without length nothing but its round ends is to be seen.
                self.content.set_line_width(2.0 * *radius as f32);
                self.content.set_line_cap(LineCapStyle::RoundCap);
                self.through(&[*at, *at]);
                self.content.stroke().set_line_cap(LineCapStyle::ButtCap);
            }
            Shape::Text(text) => {
                self.colour(text.colour);
                self.text(text);
            }
        }
    }

    fn colour(&mut self, Colour(red, green, blue, opacity): Colour) {
        let parts = [red, green, blue].map(|part| f32::from(part) / 255.0);
        self.content.set_fill_rgb(parts[0], parts[1], parts[2]);
        self.content.set_stroke_rgb(parts[0], parts[1], parts[2]);
        let percent = (100.0 * opacity).round() as u8;
        if !self.opacities.contains(&percent) {
            self.opacities.push(percent);
        }
        self.content.set_parameters(Name(&state_name(percent)));
    }

    fn through(&mut self, points: &[(f64, f64)]) {
        for (number, &(x, y)) in points.iter().enumerate() {
            match number {
                0 => self.content.move_to(x as f32, y as f32),
                _ => self.content.line_to(x as f32, y as f32),
            };
        }
    }

    fn text(&mut self, text: &Text) {
        let mut codes = Vec::with_capacity(2 * text.text.len());
        for letter in text.text.chars() {
            let code = self.glyphs.remap(font::glyph(letter).0);
            let advance = 1000.0 * font::advance(letter) as f32;
            self.used.entry(code).or_insert((letter, advance));
            codes.extend(code.to_be_bytes());
        }
        let width = font::width(&text.text, text.em);
        let before = match text.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => width / 2.0,
            Anchor::End => width,
        };
        // Letters are upside down where places are counted downwards.
        let matrix = match text.upwards {
            true => [0.0, -1.0, -1.0, 0.0, text.x, text.y + before],
            false => [1.0, 0.0, 0.0, -1.0, text.x - before, text.y],
        };
        let size = text.em as f32;
        self.content.begin_text().set_font(Name(b"F"), size);
        self.content.set_text_matrix(matrix.map(|part| part as f32));
        self.content.show(Str(&codes)).end_text();
    }
}

/// The font, with no more than the glyphs that are used.
fn embed(pdf: &mut Pdf, id: Ref, page: &PdfPage) -> Result<(), PlotError> {
    let subset = subsetter::subset(&font::BYTES, 0, &page.glyphs).map_err(PlotError::failed)?;
    let [cid_font, about, file, letters] = [1, 2, 3, 4].map(|next| Ref::new(id.get() + next));
    stream(pdf, file, &subset);
    let mut whole = pdf.type0_font(id);
    whole.base_font(FONT_NAME).descendant_font(cid_font);
    whole
        .encoding_predefined(Name(b"Identity-H"))
        .to_unicode(letters);
    whole.finish();
    let mut cid = pdf.cid_font(cid_font);
    cid.subtype(CidFontType::Type2).base_font(FONT_NAME);
    cid.system_info(CODES).font_descriptor(about);
    cid.cid_to_gid_map_predefined(Name(b"Identity"));
    let mut widths = cid.widths();
    for (code, (_, width)) in &page.used {
        widths.consecutive(*code, [*width]);
    }
    widths.finish();
    cid.finish();
    let [left, lower, right, upper] = font::bounds();
    let mut descriptor = pdf.font_descriptor(about);
    descriptor.name(FONT_NAME).flags(FontFlags::SYMBOLIC);
    descriptor.bbox(Rect::new(left, lower, right, upper));
    descriptor.ascent(upper).descent(lower).cap_height(729.0);
    descriptor.italic_angle(0.0).stem_v(80.0).font_file2(file);
    descriptor.finish();
    let mut map = UnicodeCmap::new(Name(b"Custom"), CODES);
    for (code, (letter, _)) in &page.used {
        map.pair(*code, *letter);
    }
    stream(pdf, letters, &map.finish());
    Ok(())
}
