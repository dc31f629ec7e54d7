//! The tables and plots of what was measured on simulated groups.

use std::time::Duration;

use crate::measure::{Sample, Startup, Takeover, heartbeat};
use crate::report::svg::{Bars, bars};
use crate::report::{Samples, Table, save};

/// Prints everything, and draws it where there is something to compare.
pub(crate) fn print(samples: &[Sample]) {
    println!("All start within 0.1 s\n{}", startups(samples));
    println!("Nothing happens\n{}", steady_states(samples));
    println!("The leader is killed\n{}", takeovers(samples));
    if samples.len() > 1 {
        draw(samples);
    }
}

fn startups(samples: &[Sample]) -> Table {
    let mut table = Table::new(
        0,
        [
            "nodes",
            "n",
            "all follow one leader (intervals)",
            "most",
            "leaders ever, most",
            "demotions, most",
            "most received in 1 s",
        ],
    );
    for Sample { size, startups, .. } in samples {
        let times = startup_times(startups);
        let most = |count: fn(&Startup) -> u64| startups.iter().map(count).max().unwrap_or(0);
        table.row([
            size.to_string(),
            startups.len().to_string(),
            format!("{:.1}", times.median()),
            format!("{:.1}", times.max()),
            most(|startup| startup.accessions).to_string(),
            most(|startup| startup.demotions).to_string(),
            most(|startup| startup.busiest_second.into()).to_string(),
        ]);
    }
    table
}

/// In intervals; without end where there was no one leader.
fn startup_times(startups: &[Startup]) -> Samples {
    let time = |startup: &Startup| startup.took.map_or(f64::INFINITY, intervals);
    Samples::new("", startups.iter().map(time).collect())
}

fn steady_states(samples: &[Sample]) -> Table {
    let mut table = Table::new(
        0,
        [
            "nodes",
            "from (s)",
            "watched (s)",
            "received a second, mean",
            "most of a node in 1 s",
            "memory a member (bytes)",
        ],
    );
    for Sample { size, steady, bytes_per_member, .. } in samples {
        let mean = format!("{:.1}", steady.mean);
        let bytes = bytes_per_member.map_or("-".into(), |bytes| bytes.to_string());
        let (from, seconds) = (steady.from.as_secs().to_string(), steady.seconds.to_string());
        let most = steady.busiest_second.to_string();
        table.row([size.to_string(), from, seconds, mean, most, bytes]);
    }
    table
}

fn takeovers(samples: &[Sample]) -> Table {
    let mut table = Table::new(
        0,
        [
            "nodes",
            "n",
            "successor leads (ms)",
            "most",
            "all follow (ms)",
            "most",
            "datagrams",
            "most",
            "heartbeats due anyway",
            "the most were",
        ],
    );
    for sample in samples {
        let [led, led_most] = median_and_most(sample, led_after);
        let [followed, followed_most] = median_and_most(sample, followed_after);
        let [sent, sent_most] = median_and_most(sample, datagrams);
        let [heartbeats, _] = median_and_most(sample, routine_heartbeats);
        let most = sample.takeovers.iter().max_by_key(|takeover| takeover.datagrams());
        table.row([
            sample.size.to_string(),
            sample.takeovers.len().to_string(),
            led,
            led_most,
            followed,
            followed_most,
            sent,
            sent_most,
            heartbeats,
            most.map_or("-".into(), Takeover::kinds),
        ]);
    }
    table
}

fn median_and_most(sample: &Sample, what: fn(&Takeover) -> f64) -> [String; 2] {
    match set(sample, what) {
        Some(set) => [set.median(), set.max()].map(|value| format!("{value:.0}")),
        None => ["-", "-"].map(String::from),
    }
}

fn draw(samples: &[Sample]) {
    let plot = |file: &str, title: &str, unit: &str, series: &[Bars]| {
        let groups: Vec<_> = samples.iter().map(|sample| sample.size.to_string()).collect();
        let groups: Vec<_> = groups.iter().map(String::as_str).collect();
        save(file, &bars(title, unit, &groups, series));
    };
    plot(
        "scale-startup",
        "All start at once: until all follow one leader",
        "intervals",
        &[
            series(samples, "median", |sample| finite(startup_times(&sample.startups).median())),
            series(samples, "most", |sample| finite(startup_times(&sample.startups).max())),
        ],
    );
    plot(
        "scale-received",
        "Received by a node in a second",
        "datagrams",
        &[
            series(samples, "mean", |sample| Some(sample.steady.mean)),
            series(samples, "most", |sample| Some(sample.steady.busiest_second.into())),
        ],
    );
    plot(
        "scale-takeover",
        "Leader killed: until all follow the next",
        "ms",
        &[
            series(samples, "median", |sample| Some(set(sample, followed_after)?.median())),
            series(samples, "most", |sample| Some(set(sample, followed_after)?.max())),
        ],
    );
    plot(
        "scale-datagrams",
        "Leader killed: sent beside heartbeats that are due",
        "datagrams",
        &[
            series(samples, "median", |sample| Some(set(sample, datagrams)?.median())),
            series(samples, "most", |sample| Some(set(sample, datagrams)?.max())),
        ],
    );
}

fn series(samples: &[Sample], name: &str, value: fn(&Sample) -> Option<f64>) -> Bars {
    Bars { name: name.into(), values: samples.iter().map(value).collect() }
}

fn set(sample: &Sample, what: fn(&Takeover) -> f64) -> Option<Samples> {
    let values: Vec<_> = sample.takeovers.iter().map(what).collect();
    (!values.is_empty()).then(|| Samples::new("", values))
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn intervals(duration: Duration) -> f64 {
    duration.div_duration_f64(heartbeat())
}

fn led_after(takeover: &Takeover) -> f64 {
    takeover.led_after.as_secs_f64() * 1e3
}

fn followed_after(takeover: &Takeover) -> f64 {
    takeover.followed_after.as_secs_f64() * 1e3
}

fn datagrams(takeover: &Takeover) -> f64 {
    takeover.datagrams() as f64
}

fn routine_heartbeats(takeover: &Takeover) -> f64 {
    takeover.routine_heartbeats() as f64
}
