//! How much faster than time the simulator is.

use std::time::{Duration, Instant};

use lanelect::core::params::Params;

use crate::available::checkers::Checkers;
use crate::world::{HookHabit, World, nanos};

/// Simulates five undisturbed nodes at the default settings and prints the ratio.
#[expect(clippy::disallowed_methods, reason = "it measures the time that really passes")]
pub fn measure() {
    let hooks = HookHabit::of_length(0);
    let settings = vec![(Params::default(), hooks); 5];
    let mut world = World::new(1, settings, 0, Checkers::new(5));
    world.keeps_datagrams = false;
    for host in 0..5 {
        world.start(host).expect("no violation");
    }
    let simulated = Duration::from_secs(200_000);
    let begin = Instant::now();
    world.run_for(nanos(simulated)).expect("no violation");
    let wall = begin.elapsed();
    println!(
        "five nodes, 1 s heartbeat: {} simulated s in {:.2} s, {:.0} to 1, {} datagrams",
        simulated.as_secs(),
        wall.as_secs_f64(),
        simulated.as_secs_f64() / wall.as_secs_f64(),
        world.sent,
    );
}
