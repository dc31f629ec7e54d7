//! Writes the effective configuration as a file that parses to the same configuration.

use toml::Value;

use super::values::{ELECTED_FAILURES, KEY_MODES, STATIC_ROLES, TIE_BREAKS, word};
use super::{Config, SETTINGS, duration};

impl Config {
    /// The configuration as TOML with every default filled in, one key a line. A key without a
    /// value is a comment. Contains no secrets: `key_file` is a path.
    pub fn to_toml(&self) -> String {
        let lines = SETTINGS.iter().filter(|setting| setting.name != "preset").map(|setting| {
            match self.value_of(setting.name) {
                Some(value) => format!("{} = {value}\n", setting.name),
                None => format!("# {} is not set\n", setting.name),
            }
        });
        lines.collect()
    }

    /// The value of a key, if it has one. A preset appears as the keys that it sets.
    fn value_of(&self, key: &str) -> Option<Value> {
        let election = &self.election;
        let time = |value| Some(Value::from(duration::format(value)));
        let text = |value: &str| Some(Value::from(value));
        let path = |value: &std::path::Path| Some(Value::from(value.to_string_lossy().as_ref()));
        match key {
            "group" => text(self.group.as_str()),
            "node_id" => text(self.node_id.as_str()),
            "priority" => Some(Value::from(election.priority.0)),
            "tie_break" => word(TIE_BREAKS, election.tie_break.rule()).and_then(text),
            "candidate" => Some(Value::from(election.candidate)),
            "interface" if self.interfaces.is_empty() => None,
            "interface" => Some(Value::from(self.interfaces.clone())),
            "multicast" => match self.multicast_group() {
                Some(group) => text(&group.to_string()),
                None => text(&format!("none:{}", self.port)),
            },
            "peers" if self.peers.is_empty() => None,
            "peers" => {
                Some(Value::from(self.peers.iter().map(ToString::to_string).collect::<Vec<_>>()))
            }
            "heartbeat_interval" => time(election.heartbeat_interval),
            "leader_alive_threshold" => time(election.leader_alive_threshold),
            "leader_election_duration" => time(election.leader_election_duration),
            "startup_grace_period" => time(election.startup_grace_period),
            "membership_sample_interval" => time(election.membership_sample_interval),
            "static_role" => {
                election.static_role.and_then(|role| word(STATIC_ROLES, role)).and_then(text)
            }
            "mode" => text(&election.mode().to_string()),
            "voters" => election.quorum.as_ref().map(|quorum| {
                let ids = quorum.voters.ids().iter();
                Value::from(ids.map(|id| id.as_str().to_owned()).collect::<Vec<_>>())
            }),
            "min_candidates" => Some(Value::from(u32::from(election.min_candidates))),
            "preempt" => Some(Value::from(election.preempt)),
            "preempt_delay" => time(election.preempt_delay),
            "hook" => self.hook.as_deref().and_then(text),
            "hook_timeout" => time(self.hook_timeout),
            "hook_socket" => self.hook_socket.as_deref().and_then(path),
            "refresh_interval" => election.refresh_interval.and_then(time),
            "on_elected_failure" => {
                word(ELECTED_FAILURES, election.on_elected_failure).and_then(text)
            }
            "failure_holdoff" => time(election.failure_holdoff),
            "demote_grace" => election.quorum.as_ref().and_then(|quorum| time(quorum.demote_grace)),
            "fence" => self.fence.as_deref().and_then(text),
            "check" => self.check.as_deref().and_then(text),
            "check_leader" => self.check_leader.as_deref().and_then(text),
            "check_interval" => time(self.check_interval),
            "check_timeout" => time(self.check_timeout),
            "check_fall" => Some(Value::from(self.check_thresholds.fall)),
            "check_rise" => Some(Value::from(self.check_thresholds.rise)),
            "key_file" => self.key_file.as_deref().and_then(path),
            "key_mode" => election.key_mode.and_then(|mode| word(KEY_MODES, mode)).and_then(text),
            "state_dir" => path(&self.state_dir),
            "socket" => path(&self.socket),
            "socket_group" => self.socket_group.as_deref().and_then(text),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::super::{Config, Peer, PeerHost};
    use super::KEY_MODES;
    use crate::core::params::{OnElectedFailure, Params, QuorumParams, StaticRole, Thresholds};
    use crate::core::quorum::Voters;
    use crate::core::rank;
    use crate::types::{Priority, TieBreak, TieBreakRule};

    /// A duration from `least_ms` on, in odd nanoseconds too.
    fn duration(least_ms: u64) -> impl Strategy<Value = Duration> {
        (least_ms..=50_000, 0..1_000_000_u64)
            .prop_map(|(ms, ns)| Duration::from_millis(ms) + Duration::from_nanos(ns))
    }

    fn quorum() -> impl Strategy<Value = QuorumParams> {
        let voters = prop::collection::btree_set("[a-z0-9\"'\\\\#é]{1,9}", 1..6);
        (voters, duration(0)).prop_map(|(voters, demote_grace)| QuorumParams {
            voters: Voters::new(voters.iter().map(|id| id.parse().unwrap())).unwrap(),
            demote_grace,
        })
    }

    type Roles = (Option<QuorumParams>, Option<StaticRole>, bool, bool, u16);

    fn roles() -> impl Strategy<Value = Roles> {
        let elected =
            (quorum(), any::<bool>(), any::<bool>()).prop_map(|(quorum, candidate, preempt)| {
                (Some(quorum), None, candidate, preempt && candidate, 1)
            });
        let available = available_role()
            .prop_map(|(role, candidate, preempt, least)| (None, role, candidate, preempt, least));
        prop_oneof![elected, available]
    }

    fn available_role() -> impl Strategy<Value = (Option<StaticRole>, bool, bool, u16)> {
        prop_oneof![
            (any::<bool>(), 1..=1000_u16).prop_map(|(preempt, least)| (None, true, preempt, least)),
            (1..=1000_u16).prop_map(|least| (None, false, false, least)),
            Just((Some(StaticRole::Leader), true, false, 1)),
            (any::<bool>(), 1..=1000_u16).prop_map(|(candidate, least)| (
                Some(StaticRole::Follower),
                candidate,
                false,
                least
            )),
        ]
    }

    fn params() -> impl Strategy<Value = Params> {
        let durations = (duration(10), duration(1), duration(1), duration(1));
        let others = (duration(0), duration(1), any::<u8>(), any::<bool>());
        (durations, others, roles()).prop_map(|(durations, others, roles)| {
            let (heartbeat, election, grace, sample) = durations;
            let (preempt_delay, holdoff, priority, resign) = others;
            let (quorum, static_role, candidate, preempt, min_candidates) = roles;
            Params {
                priority: Priority(priority),
                tie_break: TieBreak::default(),
                candidate,
                static_role,
                heartbeat_interval: heartbeat,
                leader_alive_threshold: heartbeat * 2 + sample,
                leader_election_duration: election,
                startup_grace_period: grace,
                membership_sample_interval: sample,
                min_candidates,
                preempt,
                preempt_delay,
                on_elected_failure: match resign {
                    true => OnElectedFailure::Resign,
                    false => OnElectedFailure::Ignore,
                },
                refresh_interval: None,
                failure_holdoff: holdoff,
                check: None,
                check_leader: None,
                key_mode: None,
                unicast: false,
                quorum,
            }
        })
    }

    fn rule(spreads: bool) -> TieBreakRule {
        if spreads { TieBreakRule::Spread } else { TieBreakRule::LowestId }
    }

    /// A peer, whose name or address tells it apart from those with other numbers.
    fn peer() -> impl Strategy<Value = Peer> {
        (any::<u16>(), 0..3_u8).prop_map(|(number, kind)| {
            let [high, low] = number.to_be_bytes();
            let host = match kind {
                0 => PeerHost::Name(format!("db{number}.example")),
                1 => PeerHost::Address([10, 0, high, low].into()),
                _ => PeerHost::Address([0x2001, 0xdb8, 0, 0, 0, 0, 0, number].into()),
            };
            let port = (number % 2 == 0).then_some(number).filter(|port| *port != 0);
            Peer { host, port }
        })
    }

    fn config() -> impl Strategy<Value = Config> {
        let path = || "/[a-zA-Z0-9 \"'\\\\é/]{1,30}";
        let names = ("[a-z0-9\"'\\\\=#é]{1,20}", "[^\\s\\pC]{1,15}");
        let interfaces = prop::collection::btree_set("[a-z0-9\"#]{1,15}", 0..4);
        let carriers = (interfaces, prop::collection::btree_set(peer(), 0..4));
        let command = || prop::option::of("[^\\x00]{0,40}[a-z\"'\\\\]\\n?");
        let paths = (prop::option::of(path()), prop::option::of(path()), path(), path());
        let key_mode =
            prop::sample::select(KEY_MODES.iter().map(|(_, mode)| *mode).collect::<Vec<_>>());
        let rest = (prop::option::of("[a-z_]{1,9}"), duration(100), any::<bool>());
        let thresholds =
            (1..=1000_u32, 1..=1000_u32).prop_map(|(fall, rise)| Thresholds { fall, rise });
        let commands = (command(), command(), command(), command());
        let check = (duration(100), duration(100), thresholds);
        (names, carriers, commands, check, (paths, key_mode), rest, params()).prop_map(
            |(
                names,
                (interfaces, peers),
                (hook, fence, check, check_leader),
                timing,
                (paths, key_mode),
                rest,
                election,
            )| {
                let (group, node_id) = (names.0.parse().unwrap(), names.1.parse().unwrap());
                let multicast = match rest.2 {
                    true => "ff15::7".parse().ok(),
                    false if peers.is_empty() => "224.0.1.2".parse().ok(),
                    false => None,
                };
                let unicast = !peers.is_empty();
                Config {
                    group,
                    node_id,
                    interfaces: match multicast {
                        Some(_) => interfaces.into_iter().collect(),
                        None => Vec::new(),
                    },
                    multicast,
                    port: if rest.2 { 9 } else { 65535 },
                    peers: peers.into_iter().collect(),
                    fence: fence.filter(|_| election.quorum.is_some() && hook.is_some()),
                    election: Params {
                        check: check.as_ref().map(|_| timing.2),
                        check_leader: check_leader.as_ref().map(|_| timing.2),
                        key_mode: paths.1.as_ref().map(|_| key_mode),
                        tie_break: rank::tie_break(rule(rest.2), &group, &node_id),
                        refresh_interval: hook.as_ref().map(|_| rest.1 + Duration::from_secs(1)),
                        unicast,
                        ..election
                    },
                    check,
                    check_leader,
                    check_interval: timing.0,
                    check_timeout: timing.1,
                    check_thresholds: timing.2,
                    hook,
                    hook_timeout: rest.1,
                    hook_socket: paths.0.map(|path| PathBuf::from(path + ".hook")),
                    key_file: paths.1.map(PathBuf::from),
                    state_dir: paths.2.into(),
                    socket: paths.3.into(),
                    socket_group: rest.0,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn the_effective_configuration_reads_back_to_itself(config in config()) {
            let text = config.to_toml();
            prop_assert_eq!(Config::from_toml(&text), Ok(config), "{}", text);
        }

        /// A daemon saves it for `post-stop`.
        #[test]
        fn what_a_reload_makes_of_two_configurations_is_one(old in config(), new in config()) {
            let taken = old.taking_over(new);
            let text = taken.to_toml();
            prop_assert_eq!(Config::from_toml(&text), Ok(taken), "{}", text);
        }
    }
}
