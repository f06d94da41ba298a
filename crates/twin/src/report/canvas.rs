//! Writes an SVG: a frame with axes, and elements placed in it by their values. Colors are CSS
//! classes, so that the page chooses them, for light and dark mode.

use std::fmt::Write;

use super::scale::{Scale, number};

/// Size of a figure, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Frame {
    /// A figure at half width, for two side by side.
    pub(crate) const HALF: Self = Self { width: 680.0, height: 400.0 };
    /// A low figure over the full width of the page, one of many stacked vertically.
    pub(crate) const STRIP: Self = Self { width: 1080.0, height: 200.0 };
    /// Horizontal margins: the rest of the width is for values.
    pub(crate) const MARGINS: f64 = LEFT + RIGHT;
    /// Vertical margins with one legend row: the rest of the height is for values.
    pub(crate) const MARGINS_HIGH: f64 = 12.0 + LEGEND_ROW + BOTTOM;
}

/// Margins, in pixels.
const LEFT: f64 = 72.0;
const RIGHT: f64 = 18.0;
const BOTTOM: f64 = 52.0;
const LEGEND_ROW: f64 = 20.0;
/// Approximate width of a character of a legend or of a mark.
const CHAR_WIDTH: f64 = 7.0;
const LEGEND_SWATCH: f64 = 44.0;

/// Number of series that can be told apart: by color, by dash and by the shape of their points.
pub(crate) const STYLES: usize = 6;

/// An SVG being written.
#[derive(Debug)]
pub(crate) struct Canvas {
    svg: String,
    frame: Frame,
    top: f64,
    x: Scale,
    y: Scale,
}

/// The legend symbol of a series.
#[derive(Clone, Debug)]
pub(crate) enum Key {
    /// A line with points, of this style.
    Line(usize),
    /// A filled area, of this style.
    Fill(usize),
    /// A point from the paper.
    Paper,
    /// A cell of a heat map of this strength.
    Heat(f64),
    /// A line shown for comparison.
    Other,
}

impl Canvas {
    /// Creates an empty frame with a legend above it.
    pub(crate) fn new(title: &str, legend: &[(Key, String)], x: Scale, y: Scale) -> Self {
        Self::framed(Frame::HALF, title, legend, x, y)
    }

    /// Creates such a frame in another size.
    pub(crate) fn framed(
        frame: Frame,
        title: &str,
        legend: &[(Key, String)],
        x: Scale,
        y: Scale,
    ) -> Self {
        let mut rows: Vec<Vec<(&Key, &str, f64)>> = vec![Vec::new()];
        let mut at = LEFT;
        for (key, label) in legend {
            let width = LEGEND_SWATCH + CHAR_WIDTH * text_width(label);
            if at + width > frame.width - RIGHT && at > LEFT {
                rows.push(Vec::new());
                at = LEFT;
            }
            if let Some(row) = rows.last_mut() {
                row.push((key, label, at));
            }
            at += width;
        }
        let top = 12.0 + LEGEND_ROW * count(rows.len());
        let mut canvas = Self { svg: String::new(), frame, top, x, y };
        canvas.put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" \
             role=\"img\"><title>{}</title>",
            frame.width,
            frame.height,
            escape(title)
        ));
        for (index, row) in rows.iter().enumerate() {
            let y = 14.0 + LEGEND_ROW * count(index);
            for &(key, label, x) in row {
                canvas.key(key, x, y);
                canvas.text("legend", x + 32.0, y + 4.0, label);
            }
        }
        canvas
    }

    /// Draws the left axis, with grid lines.
    pub(crate) fn y_axis(&mut self, label: &str) {
        for tick in self.y.ticks() {
            let y = self.y_at(tick);
            self.line("grid", [LEFT, y, self.right(), y]);
            self.text("tick end", LEFT - 8.0, y + 4.0, &number(tick));
        }
        self.y_name(label);
        self.line("frame", [LEFT, self.top, LEFT, self.bottom()]);
    }

    fn y_name(&mut self, label: &str) {
        let middle = f64::midpoint(self.top, self.bottom());
        let label = escape(label);
        self.put(format_args!(
            "<text class=\"axis middle\" transform=\"translate(14 {middle:.1}) rotate(-90)\">\
             {label}</text>"
        ));
    }

    /// Draws the bottom axis with these marks; long names take two lines.
    pub(crate) fn x_axis(&mut self, label: &str, ticks: &[(f64, String)]) {
        let bottom = self.bottom();
        self.line("frame", [LEFT, bottom, self.right(), bottom]);
        let room = (self.right() - LEFT) / count(ticks.len().max(1));
        for (tick, name) in ticks {
            let x = self.x_at(*tick);
            self.line("frame", [x, bottom, x, bottom + 5.0]);
            let mut y = bottom + 18.0;
            for line in wrap(name, room) {
                self.text("tick middle", x, y, line);
                y += 13.0;
            }
        }
        let middle = f64::midpoint(LEFT, self.right());
        self.text("axis middle", middle, self.frame.height - 10.0, label);
    }

    /// Draws a horizontal line over the full width.
    pub(crate) fn across(&mut self, class: &str, value: f64) {
        let y = self.y_at(value);
        self.line(class, [LEFT, y, self.right(), y]);
    }

    /// Draws a limit with its name at the right end.
    pub(crate) fn limit(&mut self, value: f64, label: &str) {
        self.across("limit", value);
        let y = self.y_at(value) - 5.0;
        self.text("limit-label end", self.right() - 4.0, y, label);
    }

    /// Draws a limit with its name at the left end, for curves that rise.
    pub(crate) fn limit_left(&mut self, value: f64, label: &str) {
        self.across("limit", value);
        let y = self.y_at(value) - 5.0;
        self.text("limit-label", LEFT + 6.0, y, label);
    }

    /// Shades the range between two values over the full height.
    pub(crate) fn shade(&mut self, from: f64, to: f64, label: &str) {
        let (x, right) = (self.x_at(from), self.x_at(to));
        let (y, width, height) = (self.top, right - x, self.bottom() - self.top);
        self.put(format_args!(
            "<rect class=\"shade\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\"/>"
        ));
        self.text("tick middle", x + width / 2.0, y - 4.0, label);
    }

    /// Draws the row names of a heat map, next to the middle of each row.
    pub(crate) fn rows(&mut self, label: &str, names: &[(f64, String)]) {
        for (at, name) in names {
            let y = self.y_at(*at);
            self.text("tick end", LEFT - 8.0, y + 4.0, name);
        }
        self.y_name(label);
    }

    /// Draws cells of a heat map with this `strength` (0 to 1), given as x from, x to, y from, y
    /// to.
    pub(crate) fn cells(&mut self, cells: &[[f64; 4]], strength: f64) {
        let mut d = String::new();
        for &[x1, x2, y1, y2] in cells {
            let (x, y) = (self.x_at(x1), self.y_at(y2));
            let (width, height) = (self.x_at(x2) - x, self.y_at(y1) - y);
            d.push_str(&format!("M{x:.1} {y:.1}h{width:.1}v{height:.1}h-{width:.1}z"));
        }
        self.put(format_args!("<path class=\"heat\" fill-opacity=\"{strength:.2}\" d=\"{d}\"/>"));
    }

    /// Draws text in the middle of a cell; `inverse` for text on a strong cell.
    pub(crate) fn cell_text(&mut self, at: f64, value: f64, texts: &[String], inverse: bool) {
        let class = if inverse { "cell inverse middle" } else { "cell middle" };
        let x = self.x_at(at);
        let mut y = self.y_at(value) + 5.0 - 7.0 * count(texts.len().saturating_sub(1));
        for text in texts {
            self.text(class, x, y, text);
            y += 15.0;
        }
    }

    /// Draws a line through points, with the range around it.
    pub(crate) fn curve(&mut self, style: usize, points: &[[f64; 4]], dots: bool) {
        let edge = |of: usize, point: &[f64; 4]| (self.x_at(point[0]), self.y_at(point[of]));
        let upper = points.iter().map(|point| edge(3, point));
        let lower = points.iter().rev().map(|point| edge(2, point));
        let range = path(upper.chain(lower));
        let middle = path(points.iter().map(|point| edge(1, point)));
        if points.iter().any(|point| point[3] > point[2]) {
            self.put(format_args!("<path class=\"range fill{style}\" d=\"{range}Z\"/>"));
        }
        self.put(format_args!("<path class=\"line line{style}\" d=\"{middle}\"/>"));
        for point in points.iter().filter(|_| dots) {
            let (x, y) = (self.x_at(point[0]), self.y_at(point[1]));
            self.dot(style, x, y);
        }
    }

    /// Draws a line through points, for comparison.
    pub(crate) fn other(&mut self, points: &[[f64; 2]]) {
        let d = path(points.iter().map(|point| (self.x_at(point[0]), self.y_at(point[1]))));
        self.put(format_args!("<path class=\"other\" d=\"{d}\"/>"));
    }

    /// Draws a bar from one value to another around a position.
    pub(crate) fn bar(&mut self, style: usize, at: f64, [from, to]: [f64; 2], width: f64) {
        let (x, right) = (self.x_at(at - width / 2.0), self.x_at(at + width / 2.0));
        let (y, bottom) = (self.y_at(to), self.y_at(from));
        let (width, height) = (right - x, (bottom - y).max(0.0));
        self.put(format_args!(
            "<rect class=\"bar fill{style}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\"/>"
        ));
    }

    /// Draws the range of a bar.
    pub(crate) fn whisker(&mut self, at: f64, low: f64, high: f64) {
        let (x, low, high) = (self.x_at(at), self.y_at(low), self.y_at(high));
        self.line("whisker", [x, low, x, high]);
        self.line("whisker", [x - 5.0, low, x + 5.0, low]);
        self.line("whisker", [x - 5.0, high, x + 5.0, high]);
    }

    /// Draws a point that the paper states, in the color of its series.
    pub(crate) fn paper(&mut self, style: usize, at: f64, value: f64) {
        let (x, y) = (self.x_at(at), self.y_at(value));
        self.diamond(x, y);
        self.put(format_args!(
            "<circle class=\"fill{style}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\"/>"
        ));
    }

    /// Draws the name of something inside the frame.
    pub(crate) fn note(&mut self, at: f64, value: f64, text: &str) {
        let (x, y) = (self.x_at(at), self.y_at(value) - 7.0);
        self.text("value middle", x, y, text);
    }

    /// Returns the complete SVG.
    pub(crate) fn finish(mut self) -> String {
        self.svg.push_str("</svg>");
        self.svg
    }

    fn key(&mut self, key: &Key, x: f64, y: f64) {
        match *key {
            Key::Line(style) => {
                let end = x + 26.0;
                self.put(format_args!(
                    "<path class=\"line line{style}\" d=\"M{x:.1} {y:.1}L{end:.1} {y:.1}\"/>"
                ));
                self.dot(style, x + 13.0, y);
            }
            Key::Fill(style) => {
                let (x, y) = (x + 6.0, y - 6.0);
                self.put(format_args!(
                    "<rect class=\"bar fill{style}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"16\" \
                     height=\"12\"/>"
                ));
            }
            Key::Paper => self.diamond(x + 13.0, y),
            Key::Heat(strength) => {
                let (x, y) = (x + 6.0, y - 6.0);
                self.put(format_args!(
                    "<rect class=\"heat key\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"20\" \
                     height=\"12\" fill-opacity=\"{strength:.2}\"/>"
                ));
            }
            Key::Other => self.line("other", [x, y, x + 26.0, y]),
        }
    }

    /// Draws the point of a series: circle, square, triangle, and the same hollow.
    fn dot(&mut self, style: usize, x: f64, y: f64) {
        let class = format!("dot line{style} {}", if style < 3 { "full" } else { "hollow" });
        let class = format!("{class} fill{style}");
        match style % 3 {
            0 => self.put(format_args!(
                "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.4\"/>"
            )),
            1 => self.put(format_args!(
                "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"6.4\" height=\"6.4\"/>",
                x - 3.2,
                y - 3.2
            )),
            _ => {
                let corners = [(x - 4.0, y + 3.4), (x, y - 4.0), (x + 4.0, y + 3.4)];
                let d = path(corners.into_iter());
                self.put(format_args!("<path class=\"{class}\" d=\"{d}Z\"/>"));
            }
        }
    }

    fn diamond(&mut self, x: f64, y: f64) {
        let corners = [(x - 7.0, y), (x, y - 7.0), (x + 7.0, y), (x, y + 7.0)];
        let d = path(corners.into_iter());
        self.put(format_args!("<path class=\"paper\" d=\"{d}Z\"/>"));
    }

    fn line(&mut self, class: &str, [x1, y1, x2, y2]: [f64; 4]) {
        self.put(format_args!(
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        ));
    }

    fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let text = escape(text);
        self.put(format_args!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"));
    }

    fn right(&self) -> f64 {
        self.frame.width - RIGHT
    }

    fn bottom(&self) -> f64 {
        self.frame.height - BOTTOM
    }

    fn x_at(&self, value: f64) -> f64 {
        LEFT + self.x.place(value).clamp(0.0, 1.0) * (self.right() - LEFT)
    }

    fn y_at(&self, value: f64) -> f64 {
        let bottom = self.bottom();
        bottom - self.y.place(value).clamp(0.0, 1.0) * (bottom - self.top)
    }

    fn put(&mut self, arguments: std::fmt::Arguments<'_>) {
        let written = self.svg.write_fmt(arguments);
        assert!(written.is_ok(), "writing to a string never fails");
    }
}

/// Escapes the special characters of XML.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut d = String::new();
    for (x, y) in points {
        let word = if d.is_empty() { 'M' } else { 'L' };
        d.push_str(&format!("{word}{x:.1} {y:.1}"));
    }
    d
}

/// Splits a name into one line, or two where it needs more space.
fn wrap(name: &str, room: f64) -> Vec<&str> {
    let middle = name.len() / 2;
    let spaces = name.char_indices().filter(|(_, character)| *character == ' ').map(|(at, _)| at);
    match spaces.min_by_key(|at| at.abs_diff(middle)) {
        Some(at) if CHAR_WIDTH * text_width(name) > room => vec![&name[..at], &name[at + 1..]],
        _ => vec![name],
    }
}

fn text_width(text: &str) -> f64 {
    count(text.chars().count())
}

#[expect(clippy::cast_precision_loss, reason = "a legend is short")]
const fn count(number: usize) -> f64 {
    number as f64
}
