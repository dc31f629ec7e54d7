//! Whether the settings suit the way to the members.

use std::fmt;
use std::time::Duration;

use super::{MemberReport, StatusReport};
use crate::core::params::{ROUND_TRIPS_PER_ELECTION, ROUND_TRIPS_PER_WINDOW};
use crate::core::status::MemberState;
use crate::types::NodeId;

/// A member that is too far away for the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooFar {
    /// The member.
    pub node_id: NodeId,
    /// The time to it and back.
    pub round_trip: Duration,
    /// The longest time that the settings suit.
    pub most: Duration,
}

impl MemberReport {
    /// The mean time of a datagram to it and back, where it is measured.
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trip_us.map(Duration::from_micros)
    }
}

impl StatusReport {
    /// The farthest member that is alive, if it is farther away than `most`.
    pub fn too_far(&self, most: Duration) -> Option<TooFar> {
        let alive = self.members.iter().filter(|member| member.state == MemberState::Alive);
        let far = alive.filter_map(|it| Some((it.round_trip()?, it.node_id)));
        let (round_trip, node_id) = far.max()?;
        (round_trip > most).then_some(TooFar { node_id, round_trip, most })
    }

    /// The same with the settings of the daemon.
    pub fn too_far_here(&self) -> Option<TooFar> {
        self.too_far(Duration::from_micros(self.round_trip_max_us?))
    }
}

/// What is wrong, and what to do.
impl fmt::Display for TooFar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooFar { node_id, round_trip, most } = self;
        let times = |count| (*round_trip * count).as_micros().div_ceil(1000);
        write!(
            f,
            "a datagram to {node_id} and back takes {}, and the settings suit {}; set \
             leader_election_duration to {}ms or more, and leader_alive_threshold to \
             heartbeat_interval + {}ms or more, on all nodes",
            milliseconds(*round_trip),
            milliseconds(*most),
            times(ROUND_TRIPS_PER_ELECTION),
            times(ROUND_TRIPS_PER_WINDOW),
        )
    }
}

/// For people: in milliseconds with one decimal place.
pub fn milliseconds(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}
