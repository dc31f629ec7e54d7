//! What was measured of each carrier, and the table of it.

use crate::programs::YARDSTICK;
use crate::report::{Samples, Table, ratio};

/// The figures of one carrier.
pub(crate) struct Sheet {
    pub(crate) name: String,
    /// From the leader's death to the successor's script, in milliseconds.
    pub(crate) takeovers: Vec<f64>,
    /// From SIGTERM to the successor's script, in milliseconds.
    pub(crate) handovers: Vec<f64>,
    /// Datagrams that all hosts sent during a takeover.
    pub(crate) sent: Vec<f64>,
    /// The same, without those that they send in calm operation.
    pub(crate) sent_beyond: Vec<f64>,
    /// One for each window.
    pub(crate) calm: Vec<Calm>,
}

/// A second of calm operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Calm {
    /// Of the leader, and of a follower on average.
    pub(crate) cpu_micros: [f64; 2],
    pub(crate) sent: [f64; 2],
}

impl Sheet {
    pub(crate) fn new(name: &str) -> Sheet {
        Sheet {
            name: name.to_owned(),
            takeovers: Vec::new(),
            handovers: Vec::new(),
            sent: Vec::new(),
            sent_beyond: Vec::new(),
            calm: Vec::new(),
        }
    }

    fn calm_median(&self, part: impl Fn(&Calm) -> f64) -> f64 {
        median(&self.calm.iter().map(part).collect::<Vec<_>>())
    }
}

fn median(values: &[f64]) -> f64 {
    Samples::new("", values.to_vec()).median()
}

fn worst(values: &[f64]) -> f64 {
    Samples::new("", values.to_vec()).max()
}

/// Prints the figures of all carriers. The others are compared with the first one, and with
/// keepalived at its default interval.
pub(crate) fn print(size: usize, sheets: &[Sheet]) {
    let headings = [
        "",
        "takeover",
        "worst",
        "n",
        "to multicast",
        "to keepalived",
        "handover",
        "worst",
        "n",
        "CPU leader",
        "follower",
        "sent leader",
        "follower",
        "a takeover",
        "worst",
        "beyond calm",
        "worst",
    ];
    let mut table = Table::new(1, headings);
    let base = median(&sheets[0].takeovers);
    let yardstick = sheets.iter().find(|sheet| sheet.name.starts_with(YARDSTICK));
    let yardstick = yardstick.map(|sheet| median(&sheet.takeovers));
    for sheet in sheets {
        let took = median(&sheet.takeovers);
        let one = |value: f64| format!("{value:.1}");
        let whole = |value: f64| format!("{value:.0}");
        table.row([
            sheet.name.clone(),
            one(took),
            one(worst(&sheet.takeovers)),
            sheet.takeovers.len().to_string(),
            ratio(took, Some(base)),
            ratio(took, yardstick),
            one(median(&sheet.handovers)),
            one(worst(&sheet.handovers)),
            sheet.handovers.len().to_string(),
            whole(sheet.calm_median(|calm| calm.cpu_micros[0])),
            whole(sheet.calm_median(|calm| calm.cpu_micros[1])),
            one(sheet.calm_median(|calm| calm.sent[0])),
            one(sheet.calm_median(|calm| calm.sent[1])),
            whole(median(&sheet.sent)),
            whole(worst(&sheet.sent)),
            whole(median(&sheet.sent_beyond)),
            whole(worst(&sheet.sent_beyond)),
        ]);
    }
    println!("{size} hosts: times in ms, CPU in µs a second, datagrams a second\n{table}");
}
