//! lanelect as it is built here, with a key, and with the niceness that its unit gives it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use lanelect::wire::message::Body;

use crate::harness::forge::codec;
use crate::harness::frame::udp_from;
use crate::harness::tap::Heard;
use crate::programs::lanelect::Lanelect;
use crate::programs::{Group, Program, Seat};

/// Of which digit the key is.
const KEY: &str = "1";

/// As in the unit, `systemd/lanelect@.service`.
const NICENESS: &str = "-10";

pub(crate) struct Keyed;

impl Program for Keyed {
    fn name(&self) -> &'static str {
        "lanelect with a key"
    }

    fn version(&self) -> Result<String, String> {
        Lanelect.version()
    }

    fn supports(&self, interval: Duration) -> bool {
        Lanelect.supports(interval)
    }

    fn takeover(&self) -> f64 {
        Lanelect.takeover()
    }

    fn command(&self, seat: &Seat<'_>) -> Command {
        let path = seat.host.path("key");
        fs::write(&path, KEY.repeat(64)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let daemon = Lanelect.command(seat);
        // Which goes on without, where it may not.
        let mut command = Command::new("nice");
        command.args(["-n", NICENESS]).arg(daemon.get_program()).args(daemon.get_args());
        command.args(["--key-file", &path]);
        command
    }

    fn agreed_leader(&self, group: &Group<'_>) -> Option<usize> {
        Lanelect.agreed_leader(group)
    }
}

/// When this was heard, where it is a declaration.
pub(crate) fn declared_at(heard: &Heard) -> Option<Duration> {
    let mut frame = heard.frame.clone();
    let (source, datagram) = udp_from(&mut frame)?;
    let message = codec("default", Some(KEY)).decode(source, datagram).ok()?.message;
    matches!(message.body, Body::Declaration { .. }).then_some(heard.at)
}
