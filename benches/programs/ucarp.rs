//! ucarp, whose leader is the CARP master.

use std::process::Command;
use std::time::Duration;

use super::{Group, Program, Seat, find, first_line, sole_speaker};

/// How much later, in 256ths of a second, each host advertises than the one before: without a skew
/// both backups would take over at once.
const SKEW: usize = 10;

pub(crate) struct Ucarp;

impl Program for Ucarp {
    fn name(&self) -> &'static str {
        "ucarp"
    }

    fn version(&self) -> Result<String, String> {
        Ok(first_line(&find("ucarp")?, "--help"))
    }

    /// It counts its interval in seconds.
    fn supports(&self, interval: Duration) -> bool {
        interval >= Duration::from_secs(1) && interval.subsec_nanos() == 0
    }

    /// Three intervals and the skew, less the time that has passed since the last advertisement.
    fn takeover(&self) -> f64 {
        3.0 + SKEW as f64 / 256.0 - 0.5
    }

    fn command(&self, seat: &Seat<'_>) -> Command {
        let mut command = Command::new(find("ucarp").unwrap());
        command.args(["--interface=eth0", "--vhid=51", "--pass=bench", "--addr=10.77.0.201"]);
        command.arg(format!("--srcip={}", seat.host.address(0)));
        command.arg(format!("--advbase={}", seat.interval.as_secs()));
        command.arg(format!("--advskew={}", SKEW * seat.rank));
        command.arg(format!("--upscript={}", seat.script()));
        command
    }

    fn agreed_leader(&self, group: &Group<'_>) -> Option<usize> {
        sole_speaker(group)
    }
}
