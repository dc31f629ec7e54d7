//! The picture in the README: the takeovers that were measured, beside each other.

use crate::report::strips::{self, Panel};
use crate::report::{self, Samples};

/// The measurements that it shows, and what their panels are headed.
const PANELS: [(&str, &str); 2] =
    [("takeover-default", "Default settings"), ("takeover-100ms", "One declaration every 100 ms")];

/// Draws what was measured last, in this run or an earlier one.
pub(crate) fn of_takeovers() {
    let panels: Vec<Panel> = PANELS
        .iter()
        .filter_map(|(name, heading)| {
            Some(Panel { heading: (*heading).to_owned(), sets: report::recall(name)? })
        })
        .collect();
    if panels.is_empty() {
        return println!("nothing to draw: `cargo bench --bench failover -- takeover` measures it");
    }
    let title = "Time until another host takes over from a leader that was cut off";
    let description: String = panels.iter().map(describe).collect();
    report::save("failover", &strips::draw(title, description.trim_end(), &panels));
}

fn describe(panel: &Panel) -> String {
    let median = |set: &Samples| format!("{} {:.0} ms", set.name, set.median());
    let medians: Vec<String> = panel.sets.iter().map(median).collect();
    let count = panel.sets.first().map_or(0, |set| set.values().len());
    format!("{}, median of {count}: {}. ", panel.heading, medians.join(", "))
}
