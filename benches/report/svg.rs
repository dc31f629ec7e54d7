//! Plots as plain SVG: distributions as curves, quantities as bars.

use std::fmt::Write as _;

use super::Samples;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 400.0;

/// What is left free around the plot for its title, axes and legend.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 180.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 56.0;

const PLOT_WIDTH: f64 = WIDTH - LEFT - RIGHT;
const PLOT_HEIGHT: f64 = HEIGHT - TOP - BOTTOM;

/// Told apart by people with any colour vision.
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#555555"];

/// Steps that an axis is divided into, at most.
const STEPS: f64 = 6.0;

/// A series of bars, one in each group.
#[derive(Debug)]
pub(crate) struct Bars {
    /// What the legend says.
    pub(crate) name: String,
    /// One value a group; none where there is no bar.
    pub(crate) values: Vec<Option<f64>>,
}

/// Points that a line joins.
#[derive(Debug)]
pub(crate) struct Curve {
    /// What the legend says.
    pub(crate) name: String,
    /// Along the line.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Lines with their points marked, and what the axes stand for.
pub(crate) fn curves(title: &str, across: &str, up: &str, curves: &[Curve]) -> String {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let (width, x_step) = axis(points().map(|point| point.0).fold(0.0, f64::max));
    let (height, y_step) = axis(points().map(|point| point.1).fold(0.0, f64::max));
    let x = |value: f64| LEFT + PLOT_WIDTH * value / width;
    let y = |value: f64| TOP + PLOT_HEIGHT * (1.0 - value / height);
    let mut plot = Plot::new(title);
    for tick in ticks(width, x_step) {
        plot.line((x(tick), TOP), (x(tick), TOP + PLOT_HEIGHT));
        plot.text((x(tick), HEIGHT - BOTTOM + 18.0), "middle", &number(tick));
    }
    for tick in ticks(height, y_step) {
        plot.line((LEFT, y(tick)), (LEFT + PLOT_WIDTH, y(tick)));
        plot.text((LEFT - 8.0, y(tick) + 4.0), "end", &number(tick));
    }
    plot.text((LEFT + PLOT_WIDTH / 2.0, HEIGHT - 14.0), "middle", across);
    plot.text((LEFT, TOP - 8.0), "start", up);
    for (at, curve) in curves.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        let points: Vec<_> = curve.points.iter().map(|point| (x(point.0), y(point.1))).collect();
        plot.curve(colour, &points);
        points.iter().for_each(|point| plot.dot(colour, *point));
        plot.legend(at, &curve.name);
    }
    plot.end()
}

/// The share of samples that are at most so large, one curve for each set of samples.
pub(crate) fn distribution(title: &str, unit: &str, sets: &[Samples]) -> String {
    let largest = sets.iter().map(Samples::max).fold(0.0, f64::max);
    let (end, step) = axis(largest);
    let x = |value: f64| LEFT + PLOT_WIDTH * value / end;
    let y = |share: f64| TOP + PLOT_HEIGHT * (1.0 - share);
    let mut plot = Plot::new(title);
    for tick in ticks(end, step) {
        plot.line((x(tick), TOP), (x(tick), TOP + PLOT_HEIGHT));
        plot.text((x(tick), HEIGHT - BOTTOM + 18.0), "middle", &number(tick));
    }
    for tick in ticks(1.0, 0.25) {
        plot.line((LEFT, y(tick)), (LEFT + PLOT_WIDTH, y(tick)));
        plot.text((LEFT - 8.0, y(tick) + 4.0), "end", &format!("{:.0} %", tick * 100.0));
    }
    plot.text((LEFT + PLOT_WIDTH / 2.0, HEIGHT - 14.0), "middle", unit);
    for (at, set) in sets.iter().enumerate() {
        plot.curve(COLOURS[at % COLOURS.len()], &stairs(set.values(), x, y));
        plot.legend(at, &set.name);
    }
    plot.end()
}

/// Groups of bars, with what they stand for below and their values above.
pub(crate) fn bars(title: &str, unit: &str, groups: &[&str], series: &[Bars]) -> String {
    let values = series.iter().flat_map(|bars| bars.values.iter().flatten());
    let (end, step) = axis(values.copied().fold(0.0, f64::max));
    let y = |value: f64| TOP + PLOT_HEIGHT * (1.0 - value / end);
    let group_width = PLOT_WIDTH / groups.len() as f64;
    let bar_width = 0.8 * group_width / series.len() as f64;
    let mut plot = Plot::new(title);
    for tick in ticks(end, step) {
        plot.line((LEFT, y(tick)), (LEFT + PLOT_WIDTH, y(tick)));
        plot.text((LEFT - 8.0, y(tick) + 4.0), "end", &number(tick));
    }
    plot.text((LEFT, TOP - 8.0), "start", unit);
    for (at, group) in groups.iter().enumerate() {
        let left = LEFT + group_width * at as f64;
        plot.text((left + group_width / 2.0, HEIGHT - BOTTOM + 18.0), "middle", group);
        for (nth, bars) in series.iter().enumerate() {
            let Some(value) = bars.values[at] else { continue };
            let left = left + 0.1 * group_width + bar_width * nth as f64;
            let corner = (left, y(value));
            plot.bar(COLOURS[nth % COLOURS.len()], corner, bar_width * 0.92);
            plot.text((left + bar_width * 0.46, y(value) - 4.0), "middle", &number(value));
        }
    }
    for (at, bars) in series.iter().enumerate() {
        plot.legend(at, &bars.name);
    }
    plot.end()
}

/// The corners of the empirical distribution of ascending `values`.
fn stairs(values: &[f64], x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    let share = |count: usize| count as f64 / values.len() as f64;
    let corners =
        |(at, value): (usize, &f64)| [(x(*value), y(share(at))), (x(*value), y(share(at + 1)))];
    values.iter().enumerate().flat_map(corners).collect()
}

/// Where an axis that shows values up to `largest` ends, and its steps: 1, 2 or 5 times a power of
/// ten.
pub(super) fn axis(largest: f64) -> (f64, f64) {
    let largest = if largest > 0.0 { largest } else { 1.0 };
    let rough = largest / STEPS;
    let magnitude = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * magnitude);
    let step = step.into_iter().find(|step| *step >= rough).unwrap_or(rough);
    ((largest / step).ceil() * step, step)
}

pub(super) fn ticks(end: f64, step: f64) -> impl Iterator<Item = f64> {
    (0..).map(move |count| f64::from(count) * step).take_while(move |tick| *tick <= end * 1.001)
}

/// A number with as many digits as tell something.
pub(super) fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 || size.fract() == 0.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

/// An SVG document that grows.
struct Plot {
    text: String,
}

impl Plot {
    fn new(title: &str) -> Plot {
        let mut plot = Plot { text: String::new() };
        plot.push(&format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12" fill="#222">"##
        ));
        plot.push(r##"<rect width="100%" height="100%" fill="#fff"/>"##);
        plot.push(&format!(r#"<text x="{LEFT}" y="20" font-size="15">{}</text>"#, escape(title)));
        plot
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.push(&format!(
            r##"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="#ddd"/>"##
        ));
    }

    fn text(&mut self, (x, y): (f64, f64), anchor: &str, text: &str) {
        let text = escape(text);
        self.push(&format!(r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#));
    }

    fn curve(&mut self, colour: &str, points: &[(f64, f64)]) {
        let points: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        self.push(&format!(
            r#"<polyline fill="none" stroke="{colour}" stroke-width="2" points="{}"/>"#,
            points.join(" ")
        ));
    }

    fn dot(&mut self, colour: &str, (x, y): (f64, f64)) {
        self.push(&format!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="4" fill="{colour}"/>"#));
    }

    /// A bar from its top left corner down to the axis.
    fn bar(&mut self, colour: &str, (x, y): (f64, f64), width: f64) {
        let height = TOP + PLOT_HEIGHT - y;
        self.push(&format!(
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill="{colour}"/>"#
        ));
    }

    fn legend(&mut self, nth: usize, name: &str) {
        let (x, y) = (WIDTH - RIGHT + 14.0, TOP + 20.0 * nth as f64);
        let colour = COLOURS[nth % COLOURS.len()];
        self.push(&format!(
            r#"<rect x="{x:.1}" y="{y:.1}" width="12" height="12" fill="{colour}"/>"#
        ));
        self.text((x + 18.0, y + 10.0), "start", name);
    }

    fn push(&mut self, element: &str) {
        let _ = writeln!(self.text, "{element}");
    }

    fn end(mut self) -> String {
        self.push("</svg>");
        self.text
    }
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
