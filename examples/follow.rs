//! Follows the daemon of this host from a program: prints who leads, and each transition. A daemon
//! that stops is waited for.
//!
//! ```sh
//! cargo run --no-default-features --features client --example follow -- web
//! ```

#![expect(
    clippy::disallowed_methods,
    reason = "a program that waits for a daemon has nothing else"
)]

use std::error::Error;
use std::thread;
use std::time::Duration;

use lanelect::client::{ClientError, Target};

/// How long to wait before a daemon that is not there is asked again.
const PAUSE: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn Error>> {
    let group = std::env::args().nth(1).unwrap_or_else(|| "default".to_string()).parse()?;
    let daemon = Target::of_group(&group);
    loop {
        match follow(&daemon) {
            Err(error) if error.is_unreachable() => {
                // No daemon confirms that this host leads, so the program must not act as it.
                eprintln!("{error}");
                thread::sleep(PAUSE);
            }
            ended => return Ok(ended?),
        }
    }
}

fn follow(daemon: &Target) -> Result<(), ClientError> {
    let transitions = daemon.watch()?;
    // Asked after the watch has begun, so that no transition is between the two.
    let status = daemon.status()?;
    let leader = status.leader.map_or("nobody".to_string(), |leader| leader.node_id.to_string());
    println!("{}: {} in term {}, led by {leader}", status.node_id, status.role, status.term);
    for transition in transitions {
        let transition = transition?;
        println!("{} in term {}", transition.role, transition.term);
    }
    Ok(())
}
