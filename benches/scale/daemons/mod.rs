//! A hundred real daemons on this machine.

mod crowd;
mod listener;

use std::collections::BTreeMap;
use std::time::Duration;

use self::crowd::Crowd;
use self::listener::Listener;
use crate::harness::inside::{Inside, isolated};
use crate::harness::patience::{LIMIT, now, pass, wait_for, wait_until};
use crate::report::Samples;

/// The measurement's name, by which it is told to run inside.
pub(crate) const NAME: &str = "daemons";

/// How many there are.
const HOSTS: usize = 100;

/// The daemons' default interval between declarations.
const INTERVAL: Duration = Duration::from_secs(1);

/// Leaders that are killed.
const KILLS: usize = 11;

/// How long the steady state is watched, in intervals.
const STEADY: u32 = 20;

/// How long the group is left alone before it is looked at, in intervals.
const SETTLING: u32 = 5;

/// Measures them in namespaces of their own.
pub(crate) fn measure() {
    isolated(NAME, measure_inside);
}

fn measure_inside(inside: Inside) {
    let mut crowd = Crowd::new(inside, HOSTS);
    let listener = Listener::new();
    println!("{HOSTS} daemons in network namespaces, at the default interval of 1 s");
    start_all(&mut crowd);
    pass(INTERVAL * SETTLING);
    watch(&crowd);
    kill_leaders(&mut crowd, &listener);
}

fn start_all(crowd: &mut Crowd) {
    let begun = now();
    (0..crowd.size()).for_each(|host| crowd.start(host));
    let started = begun.elapsed();
    wait_closely("a leader is elected", || crowd.promotions() > 0);
    let elected = begun.elapsed();
    wait_until("all follow the leader", || crowd.leader().is_some());
    let followed = begun.elapsed();
    let [started, elected, followed] =
        [started, elected, followed].map(|duration| duration.as_secs_f64());
    println!("  all started within {started:.2} s; the leader's hook after {elected:.2} s");
    println!("  all follow after {followed:.2} s; leaders so far: {}", crowd.promotions());
}

/// What the settled group costs.
fn watch(crowd: &Crowd) {
    let received = crowd.count("datagrams_received");
    let (begun, used) = (now(), crowd.processor_time());
    pass(INTERVAL * STEADY);
    let (used, took) = (crowd.processor_time() - used, begun.elapsed());
    let received = crowd.count("datagrams_received") - received;
    let intervals = took.div_duration_f64(INTERVAL);
    let daemons = crowd.size() as f64;
    println!(
        "  processor time per interval: {:.2} ms in all, {:.0} µs a daemon",
        used.as_secs_f64() * 1e3 / intervals,
        used.as_secs_f64() * 1e6 / intervals / daemons,
    );
    let memory = crowd.memory() as f64 / 1024.0;
    println!("  memory (PSS): {memory:.0} MiB in all, {:.2} MiB a daemon", memory / daemons);
    println!(
        "  received: {:.1} datagrams a second and daemon",
        received as f64 / took.as_secs_f64() / daemons
    );
}

fn kill_leaders(crowd: &mut Crowd, listener: &Listener) {
    let takeovers: Vec<_> = (0..KILLS).map(|_| kill_leader(crowd, listener)).collect();
    let millis = takeovers.iter().map(|takeover| takeover.took.as_secs_f64() * 1e3).collect();
    let times = Samples::new("takeover", millis);
    println!(
        "  leader killed to the successor's hook: median {:.0} ms, {:.0} to {:.0} ms, n = {KILLS}",
        times.median(),
        times.min(),
        times.max(),
    );
    let mut kinds: Vec<&String> =
        takeovers.iter().flat_map(|takeover| takeover.sent.keys()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    println!("  sent from then to half an interval later:");
    for kind in kinds {
        let counts = takeovers.iter().map(|takeover| takeover.sent.get(kind).copied().unwrap_or(0));
        let counts = Samples::new(kind.as_str(), counts.map(|count| count as f64).collect());
        println!("    {kind}: median {}, at most {}", counts.median(), counts.max());
    }
}

struct Takeover {
    took: Duration,
    /// Datagrams by their kind.
    sent: BTreeMap<String, u64>,
}

/// Kills the leader at any moment between two declarations; its daemon is back afterwards.
fn kill_leader(crowd: &mut Crowd, listener: &Listener) -> Takeover {
    let leader = wait_for("all follow one leader", || crowd.leader());
    pass(INTERVAL * SETTLING + INTERVAL.mul_f64(fastrand::f64()));
    let promotions = crowd.promotions();
    let killed = crowd.kill(leader);
    wait_closely("a successor is elected", || crowd.promotions() > promotions);
    let took = killed.elapsed();
    pass(INTERVAL / 2);
    let sent = listener.between(killed, now());
    crowd.start(leader);
    Takeover { took, sent }
}

/// Like [`wait_until`], looking so often that it does not show.
fn wait_closely(what: &str, mut condition: impl FnMut() -> bool) {
    let started = now();
    while !condition() {
        assert!(started.elapsed() < LIMIT, "gave up waiting until {what}");
        pass(Duration::from_millis(1));
    }
}
