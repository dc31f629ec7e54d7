//! A plot for the README: each sample as a dot on the line of its program, and the median.
//!
//! It follows the reader's light or dark theme, and has a title and a description for readers who
//! do not see it.

use std::fmt::Write as _;

use super::Samples;
use super::svg::{axis, escape, number, ticks};

const WIDTH: f64 = 820.0;
const LEFT: f64 = 110.0;
const RIGHT: f64 = 44.0;
const PLOT_WIDTH: f64 = WIDTH - LEFT - RIGHT;

/// Heights: the title, the heading of a panel, one program, and the axis below.
const TITLE: f64 = 50.0;
const HEADING: f64 = 34.0;
const ROW: f64 = 44.0;
const AXIS: f64 = 44.0;

const STYLE: &str = "\
    .paper{fill:#ffffff}.ink{fill:#1f2328}.faint{fill:#59636e}.rule{stroke:#d1d9e0}\
    .own{fill:#0072b2;stroke:#0072b2}.other{fill:#b35900;stroke:#b35900}\
    @media (prefers-color-scheme:dark){\
    .paper{fill:#0d1117}.ink{fill:#f0f6fc}.faint{fill:#9198a1}.rule{stroke:#3d444d}\
    .own{fill:#56b4e9;stroke:#56b4e9}.other{fill:#e69f00;stroke:#e69f00}}";

/// Programs that were measured under the same settings.
pub(crate) struct Panel {
    /// The settings.
    pub(crate) heading: String,
    /// One for each program; that which is drawn in its own colour comes first.
    pub(crate) sets: Vec<Samples>,
}

/// Draws panels of times in milliseconds, one below the other.
pub(crate) fn draw(title: &str, description: &str, panels: &[Panel]) -> String {
    let height = |panel: &Panel| HEADING + ROW * panel.sets.len() as f64 + AXIS;
    let total: f64 = TITLE + panels.iter().map(height).sum::<f64>();
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total}" role="img" aria-labelledby="title desc" font-family="sans-serif" font-size="14">"#
    );
    let _ = writeln!(svg, r#"<title id="title">{}</title>"#, escape(title));
    let _ = writeln!(svg, r#"<desc id="desc">{}</desc>"#, escape(description));
    let _ = writeln!(svg, "<style>{STYLE}</style>");
    let _ = writeln!(svg, r#"<rect class="paper" width="100%" height="100%"/>"#);
    text(&mut svg, (20.0, 32.0), "ink", r#"font-size="18" font-weight="bold""#, title);
    let mut top = TITLE;
    for panel in panels {
        draw_panel(&mut svg, top, panel);
        top += height(panel);
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_panel(svg: &mut String, top: f64, panel: &Panel) {
    text(svg, (20.0, top + 22.0), "ink", "", &panel.heading);
    let (end, step) = axis(panel.sets.iter().map(Samples::max).fold(0.0, f64::max));
    let x = |value: f64| LEFT + PLOT_WIDTH * value / end;
    let first = top + HEADING;
    let bottom = first + ROW * panel.sets.len() as f64;
    for tick in ticks(end, step) {
        let _ = writeln!(
            svg,
            r#"<line class="rule" x1="{0:.1}" y1="{first}" x2="{0:.1}" y2="{bottom}"/>"#,
            x(tick)
        );
        let label = format!("{} ms", number(tick));
        text(svg, (x(tick), bottom + 18.0), "faint", r#"text-anchor="middle""#, &label);
    }
    for (at, set) in panel.sets.iter().enumerate() {
        let middle = first + ROW * at as f64 + 28.0;
        let class = if at == 0 { "own" } else { "other" };
        let weight = if at == 0 { r#"font-weight="bold""# } else { "" };
        text(svg, (20.0, middle + 5.0), "ink", weight, &set.name);
        for value in set.values() {
            let _ = writeln!(
                svg,
                r#"<circle class="{class}" cx="{:.1}" cy="{middle}" r="4" fill-opacity="0.45"/>"#,
                x(*value)
            );
        }
        let median = set.median();
        let _ = writeln!(
            svg,
            r#"<line class="{class}" x1="{0:.1}" y1="{1}" x2="{0:.1}" y2="{2}" stroke-width="3"/>"#,
            x(median),
            middle - 10.0,
            middle + 10.0
        );
        // To the right of the line, if there is room.
        let (shift, anchor) =
            if x(median) > WIDTH - 200.0 { (-6.0, "end") } else { (6.0, "start") };
        let label = format!("median {median:.0} ms");
        let anchor = format!(r#"text-anchor="{anchor}""#);
        text(svg, (x(median) + shift, middle - 11.0), "ink", &anchor, &label);
    }
}

fn text(svg: &mut String, (x, y): (f64, f64), class: &str, attributes: &str, text: &str) {
    let text = escape(text);
    let _ =
        writeln!(svg, r#"<text class="{class}" x="{x:.1}" y="{y:.1}" {attributes}>{text}</text>"#);
}
