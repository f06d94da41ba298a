//! An SVG being written: a frame with axes, and things placed in it by their values. Colors are
//! classes, so that the page decides them, for light and for dark.

use std::fmt::Write;

use super::scale::{Scale, number};

/// Size of a figure and of its margins, in pixels.
const WIDTH: f64 = 680.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 18.0;
const BOTTOM: f64 = 52.0;
const LEGEND_ROW: f64 = 20.0;
/// Width of a letter of a legend, roughly.
const LETTER: f64 = 7.0;
const LEGEND_SWATCH: f64 = 44.0;

/// Series that can be told apart: by color, by dash and by the shape of their points.
pub(crate) const STYLES: usize = 6;

/// An SVG being written.
#[derive(Debug)]
pub(crate) struct Canvas {
    svg: String,
    top: f64,
    x: Scale,
    y: Scale,
}

/// What a legend says of a series.
#[derive(Clone, Debug)]
pub(crate) enum Key {
    /// A line with points, of this style.
    Line(usize),
    /// A filled place, of this style.
    Fill(usize),
    /// A point of the paper.
    Paper,
}

impl Canvas {
    /// A frame with a legend above it; nothing inside yet.
    pub(crate) fn new(title: &str, legend: &[(Key, String)], x: Scale, y: Scale) -> Self {
        let mut rows: Vec<Vec<(&Key, &str, f64)>> = vec![Vec::new()];
        let mut at = LEFT;
        for (key, label) in legend {
            let width = LEGEND_SWATCH + LETTER * letters(label);
            if at + width > WIDTH - RIGHT && at > LEFT {
                rows.push(Vec::new());
                at = LEFT;
            }
            if let Some(row) = rows.last_mut() {
                row.push((key, label, at));
            }
            at += width;
        }
        let top = 12.0 + LEGEND_ROW * count(rows.len());
        let mut canvas = Self { svg: String::new(), top, x, y };
        canvas.put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             role=\"img\"><title>{}</title>",
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

    /// The axis on the left, with lines across.
    pub(crate) fn y_axis(&mut self, label: &str) {
        for tick in self.y.ticks() {
            let y = self.y_at(tick);
            self.line("grid", [LEFT, y, WIDTH - RIGHT, y]);
            self.text("tick end", LEFT - 8.0, y + 4.0, &number(tick));
        }
        let middle = f64::midpoint(self.top, HEIGHT - BOTTOM);
        let label = escape(label);
        self.put(format_args!(
            "<text class=\"axis middle\" transform=\"translate(15 {middle:.1}) rotate(-90)\">\
             {label}</text>"
        ));
        self.line("frame", [LEFT, self.top, LEFT, HEIGHT - BOTTOM]);
    }

    /// The axis below, with these marks.
    pub(crate) fn x_axis(&mut self, label: &str, ticks: &[(f64, String)]) {
        let bottom = HEIGHT - BOTTOM;
        self.line("frame", [LEFT, bottom, WIDTH - RIGHT, bottom]);
        for (tick, name) in ticks {
            let x = self.x_at(*tick);
            self.line("frame", [x, bottom, x, bottom + 5.0]);
            self.text("tick middle", x, bottom + 19.0, name);
        }
        let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
        self.text("axis middle", middle, HEIGHT - 10.0, label);
    }

    /// A horizontal line over the whole width.
    pub(crate) fn across(&mut self, class: &str, value: f64) {
        let y = self.y_at(value);
        self.line(class, [LEFT, y, WIDTH - RIGHT, y]);
    }

    /// A limit with its name.
    pub(crate) fn limit(&mut self, value: f64, label: &str) {
        self.across("limit", value);
        let y = self.y_at(value) - 5.0;
        self.text("limit-label end", WIDTH - RIGHT - 4.0, y, label);
    }

    /// A line through points, with the range around it.
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

    /// A bar from one value to another around a place, `shift` bars of `width` from its middle.
    pub(crate) fn bar(&mut self, style: usize, at: f64, [from, to]: [f64; 2], width: f64) {
        let (x, right) = (self.x_at(at - width / 2.0), self.x_at(at + width / 2.0));
        let (y, bottom) = (self.y_at(to), self.y_at(from));
        let (width, height) = (right - x, (bottom - y).max(0.0));
        self.put(format_args!(
            "<rect class=\"bar fill{style}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\"/>"
        ));
    }

    /// The range of a bar.
    pub(crate) fn whisker(&mut self, at: f64, low: f64, high: f64) {
        let (x, low, high) = (self.x_at(at), self.y_at(low), self.y_at(high));
        self.line("whisker", [x, low, x, high]);
        self.line("whisker", [x - 5.0, low, x + 5.0, low]);
        self.line("whisker", [x - 5.0, high, x + 5.0, high]);
    }

    /// A point that the paper states, in the color of the series it belongs to.
    pub(crate) fn paper(&mut self, style: usize, at: f64, value: f64) {
        let (x, y) = (self.x_at(at), self.y_at(value));
        self.diamond(x, y);
        self.put(format_args!(
            "<circle class=\"fill{style}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.6\"/>"
        ));
    }

    /// The name of something inside the frame.
    pub(crate) fn note(&mut self, at: f64, value: f64, text: &str) {
        let (x, y) = (self.x_at(at), self.y_at(value) - 7.0);
        self.text("value middle", x, y, text);
    }

    /// The whole SVG.
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
        }
    }

    /// The point of a series: circle, square, triangle, and the same hollow.
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

    fn x_at(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - RIGHT - LEFT)
    }

    fn y_at(&self, value: f64) -> f64 {
        let bottom = HEIGHT - BOTTOM;
        bottom - self.y.place(value).clamp(0.0, 1.0) * (bottom - self.top)
    }

    fn put(&mut self, arguments: std::fmt::Arguments<'_>) {
        let written = self.svg.write_fmt(arguments);
        assert!(written.is_ok(), "a string takes what is written to it");
    }
}

/// Text with the signs that mean something to a browser spelled out.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
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

fn letters(text: &str) -> f64 {
    count(text.chars().count())
}

#[expect(clippy::cast_precision_loss, reason = "a legend is short")]
const fn count(number: usize) -> f64 {
    number as f64
}
