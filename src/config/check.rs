//! Turns values into a checked [`Config`], or into a list of everything that is wrong.

mod quorum;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use toml::Value;

use super::error::{Place, Problem};
use super::file::Written;
use super::{Config, default_socket, duration, peers, values};
use crate::core::params::{Params, StaticRole, Thresholds};
use crate::core::rank;
use crate::types::{GroupName, NodeId, Priority, TieBreak};

const HEARTBEAT: RangeInclusive<Duration> = millis(10)..=secs(60);
/// For waiting times: at least one clock tick of the event loop, at most an hour.
const WAIT: RangeInclusive<Duration> = millis(1)..=secs(3600);
const PREEMPT_DELAY: RangeInclusive<Duration> = Duration::ZERO..=secs(3600);
/// A hook needs time to start a process, and must not block the next run for ever.
const HOOK_TIMEOUT: RangeInclusive<Duration> = millis(100)..=secs(3600);
/// Each refresh runs the hook, which may take a while.
const REFRESH: RangeInclusive<Duration> = secs(1)..=secs(86_400);
/// Each check starts a process; a check that runs less than once an hour reports too late.
const CHECK: RangeInclusive<Duration> = millis(100)..=secs(3600);
/// Not zero: a node whose hook keeps failing would lead again at once, every time.
const HOLDOFF: RangeInclusive<Duration> = millis(1)..=secs(86_400);

const DEFAULT_MULTICAST: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 255, 76, 69));
/// How long a run of the hook may take if nothing else is set.
pub const DEFAULT_HOOK_TIMEOUT: Duration = secs(30);
const DEFAULT_CHECK: Duration = secs(1);
const DEFAULT_STATE_DIR: &str = "/var/lib/lanelect";

/// Checks `written`. Parsing has already found `problems`.
///
/// # Errors
///
/// Every problem that was found. The check of the other keys uses the default in place of a wrong
/// value, because one mistake must not be reported twice.
pub(super) fn check(written: &Written, problems: Vec<Problem>) -> Result<Config, Vec<Problem>> {
    let mut checker = Checker { written, problems };
    let group = checker.text_or("group", || values::group(super::DEFAULT_GROUP), values::group);
    let node_id = checker.text_or("node_id", values::hostname, values::node_id);
    let interfaces =
        checker.names("interface", "[\"eth0\", \"eth1\"]", values::interfaces).unwrap_or_default();
    let (multicast, port) = checker
        .text("multicast", values::multicast)
        .unwrap_or((Some(DEFAULT_MULTICAST), values::DEFAULT_PORT));
    let peers = checker.names("peers", "[\"10.0.1.5\", \"10.0.2.7\"]", peers::parse);
    checker.carrier_conflicts(multicast.is_some());
    let mut election = checker.election();
    election.tie_break = checker.tie_break(group, node_id);
    election.unicast = peers.is_some();
    let hook = checker.text("hook", values::command);
    election.refresh_interval = checker.refresh_interval(hook.is_some());
    let hook_timeout = checker.duration("hook_timeout", HOOK_TIMEOUT);
    let hook_socket = checker.text("hook_socket", values::socket_path);
    let fence = checker.fence();
    let check = checker.text("check", values::command);
    let check_leader = checker.text("check_leader", values::command);
    let check_interval = checker.duration("check_interval", CHECK);
    let check_timeout = checker.duration("check_timeout", CHECK);
    let check_thresholds = checker.check_thresholds();
    election.check = check.as_ref().map(|_| check_thresholds);
    election.check_leader = check_leader.as_ref().map(|_| check_thresholds);
    let key_file = checker.text("key_file", values::path);
    let key_mode = checker.text("key_mode", values::choice(values::KEY_MODES));
    if key_mode.is_some() && key_file.is_none() {
        checker.refuse("key_mode", "has no effect without key_file; set that too, or remove it");
    }
    election.key_mode = key_file.as_ref().map(|_| key_mode.unwrap_or_default());
    let state_dir = checker.text("state_dir", values::path);
    let socket = checker
        .text("socket", values::socket_path)
        .or_else(|| group.as_ref().map(default_socket))
        .unwrap_or_default();
    let socket_group = checker.text("socket_group", values::unix_group);
    if hook_socket.as_ref() == Some(&socket) {
        checker.refuse("hook_socket", "is the same path as socket; give each a path of its own");
    }
    match (group, node_id) {
        (Some(group), Some(node_id)) if checker.problems.is_empty() => Ok(Config {
            group,
            node_id,
            interfaces,
            multicast,
            port,
            peers: peers.unwrap_or_default(),
            election,
            hook,
            hook_timeout: hook_timeout.unwrap_or(DEFAULT_HOOK_TIMEOUT),
            hook_socket,
            fence,
            check,
            check_leader,
            check_interval: check_interval.unwrap_or(DEFAULT_CHECK),
            check_timeout: check_timeout.unwrap_or(DEFAULT_CHECK),
            check_thresholds,
            key_file,
            state_dir: state_dir.unwrap_or_else(|| PathBuf::from(DEFAULT_STATE_DIR)),
            socket,
            socket_group,
        }),
        _ => Err(checker.problems),
    }
}

/// Reads values by key and collects the problems.
struct Checker<'a> {
    written: &'a Written,
    problems: Vec<Problem>,
}

impl Checker<'_> {
    fn election(&mut self) -> Params {
        let fabric = self.text("preset", values::preset).is_some();
        let quorum = self.quorum();
        let mut params = self.timing(fabric, quorum.is_some());
        set(&mut params.priority, self.integer("priority", 0..=255).map(Priority));
        set(&mut params.candidate, self.boolean("candidate"));
        params.static_role = self.text("static_role", values::choice(values::STATIC_ROLES));
        set(&mut params.min_candidates, self.integer("min_candidates", 1..=1000));
        set(&mut params.preempt, self.boolean("preempt"));
        let on_failure = self.text("on_elected_failure", values::choice(values::ELECTED_FAILURES));
        set(&mut params.on_elected_failure, on_failure);
        params.quorum = quorum;
        self.role_conflicts(&params);
        self.quorum_conflicts(&params);
        params
    }

    fn tie_break(&mut self, group: Option<GroupName>, node_id: Option<NodeId>) -> TieBreak {
        let rule = self.text("tie_break", values::choice(values::TIE_BREAKS)).unwrap_or_default();
        let named = group.zip(node_id);
        named.map(|(group, id)| rank::tie_break(rule, &group, &id)).unwrap_or_default()
    }

    fn refresh_interval(&mut self, has_hook: bool) -> Option<Duration> {
        let interval = self.duration("refresh_interval", REFRESH);
        if interval.is_some() && !has_hook {
            self.refuse(
                "refresh_interval",
                "has no effect without hook; set that too, or remove it",
            );
        }
        interval
    }

    fn check_thresholds(&mut self) -> Thresholds {
        let default = Thresholds::default();
        Thresholds {
            fall: self.integer("check_fall", 1..=1000).unwrap_or(default.fall),
            rise: self.integer("check_rise", 1..=1000).unwrap_or(default.rise),
        }
    }

    fn timing(&mut self, fabric: bool, in_quorum_mode: bool) -> Params {
        let heartbeat = self.duration("heartbeat_interval", HEARTBEAT);
        let mut params = if fabric {
            fabric_preset(heartbeat)
        } else {
            heartbeat.map_or_else(Params::default, Params::new)
        };
        for (key, bounds, value) in [
            ("leader_alive_threshold", WAIT, &mut params.leader_alive_threshold),
            ("leader_election_duration", WAIT, &mut params.leader_election_duration),
            ("startup_grace_period", WAIT, &mut params.startup_grace_period),
            ("membership_sample_interval", WAIT, &mut params.membership_sample_interval),
            ("preempt_delay", PREEMPT_DELAY, &mut params.preempt_delay),
            ("failure_holdoff", HOLDOFF, &mut params.failure_holdoff),
        ] {
            set(value, self.duration(key, bounds));
        }
        self.threshold_leaves_time_to_ask(&params, in_quorum_mode);
        params
    }

    /// Followers probe a silent leader between the end of the interval and the threshold. In quorum
    /// mode the leader also needs the voters' acknowledgements in that time.
    fn threshold_leaves_time_to_ask(&mut self, params: &Params, in_quorum_mode: bool) {
        if self.refused("heartbeat_interval") || self.refused("leader_alive_threshold") {
            return;
        }
        let (least, often) = if in_quorum_mode {
            (params.heartbeat_interval * 3 / 2, "1.5 times")
        } else {
            (params.heartbeat_interval * 11 / 10, "1.1 times")
        };
        if params.leader_alive_threshold < least {
            let message = format!(
                "leader_alive_threshold {} is less than {often} heartbeat_interval {}: there is no \
                 time to probe a silent leader; set leader_alive_threshold to {} or more",
                duration::format(params.leader_alive_threshold),
                duration::format(params.heartbeat_interval),
                duration::format(least),
            );
            // If the threshold comes from the preset, the interval is the value that was set.
            let given = self.written.contains_key("leader_alive_threshold");
            let key = if given { "leader_alive_threshold" } else { "heartbeat_interval" };
            self.refuse(key, &message);
        }
    }

    fn role_conflicts(&mut self, params: &Params) {
        let leads = params.static_role == Some(StaticRole::Leader);
        if params.static_role.is_some() && params.preempt {
            self.refuse("preempt", "has no effect with static_role; remove one of them");
        }
        if leads && !params.candidate {
            self.refuse(
                "static_role",
                "\"leader\" contradicts candidate = false; remove one of them",
            );
        }
        if leads && params.min_candidates > 1 {
            let message = "has no effect with static_role = \"leader\", which always leads; remove \
                           one of them";
            self.refuse("min_candidates", message);
        }
        if params.static_role.is_none() && !params.candidate && params.preempt {
            self.refuse("preempt", "has no effect with candidate = false; remove one of them");
        }
    }

    /// Something must carry the datagrams, and interfaces are those of multicast.
    fn carrier_conflicts(&mut self, has_multicast: bool) {
        if has_multicast {
            return;
        }
        if !self.written.contains_key("peers") {
            self.refuse(
                "multicast",
                "is \"none\", and without peers nothing carries the datagrams; list the hosts of \
                 the group in peers",
            );
        }
        if self.written.contains_key("interface") {
            self.refuse(
                "interface",
                "has no effect with multicast = \"none\": the kernel's routes to the peers decide; \
                 remove one of them",
            );
        }
    }

    /// One or more names; `example` shows how to write several.
    fn names<T>(
        &mut self,
        key: &'static str,
        example: &str,
        parse: impl FnOnce(Vec<String>) -> Result<T, String>,
    ) -> Option<T> {
        self.read(key, |value| {
            let names = match value {
                Value::String(name) if name.contains(',') => return Err(one_name(name)),
                Value::String(name) => Some(vec![name.clone()]),
                Value::Array(names) => {
                    names.iter().map(|name| name.as_str().map(str::to_owned)).collect()
                }
                _ => None,
            };
            parse(names.ok_or_else(|| format!("must be an array of names such as {example}"))?)
        })
    }

    /// The text at `key` through `parse`, or the default; `None` if it is wrong.
    fn text_or<T>(
        &mut self,
        key: &'static str,
        default: impl FnOnce() -> Result<T, String>,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        if self.written.contains_key(key) {
            return self.text(key, parse);
        }
        self.keep(key, default())
    }

    fn text<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        self.read(key, |value| match value {
            Value::String(text) => parse(text),
            other => Err(format!("must be a string in quotes, not {}", kind_of(other))),
        })
    }

    fn duration(
        &mut self,
        key: &'static str,
        bounds: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        self.read(key, |value| {
            let Value::String(text) = value else {
                return Err(format!("must be a string such as \"250ms\", not {}", kind_of(value)));
            };
            let given = duration::parse(text)?;
            if bounds.contains(&given) {
                return Ok(given);
            }
            let [least, most] =
                [bounds.start(), bounds.end()].map(|bound| duration::format(*bound));
            Err(format!("{text:?} is out of range; give {least} to {most}"))
        })
    }

    fn integer<T>(&mut self, key: &'static str, bounds: RangeInclusive<T>) -> Option<T>
    where
        T: TryFrom<i64> + PartialOrd + fmt::Display,
    {
        let range = || format!("a whole number from {} to {}", bounds.start(), bounds.end());
        self.read(key, |value| match value {
            Value::Integer(number) => T::try_from(*number)
                .ok()
                .filter(|number| bounds.contains(number))
                .ok_or_else(|| format!("{number} is out of range; give {}", range())),
            other => Err(format!("must be {}, not {}", range(), kind_of(other))),
        })
    }

    fn boolean(&mut self, key: &'static str) -> Option<bool> {
        self.read(key, |value| match value {
            Value::Boolean(flag) => Ok(*flag),
            other => Err(format!("must be true or false, not {}", kind_of(other))),
        })
    }

    /// The value at `key` through `parse`; `None` if it is not set or wrong.
    fn read<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Option<T> {
        let given = self.written.get(key)?;
        self.keep(key, parse(&given.value))
    }

    fn keep<T>(&mut self, key: &'static str, parsed: Result<T, String>) -> Option<T> {
        parsed.map_err(|message| self.refuse(key, &message)).ok()
    }

    fn refused(&self, key: &str) -> bool {
        self.problems.iter().any(|problem| problem.key.as_deref() == Some(key))
    }

    fn refuse(&mut self, key: &'static str, message: &str) {
        let place = self.written.get(key).map_or(Place::Default, |given| given.place);
        self.problems.push(Problem {
            place,
            key: Some(key.to_owned()),
            message: message.to_owned(),
        });
    }
}

fn set<T>(value: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *value = given;
    }
}

fn fabric_preset(heartbeat: Option<Duration>) -> Params {
    Params {
        leader_alive_threshold: secs(10),
        leader_election_duration: secs(5),
        startup_grace_period: secs(15),
        membership_sample_interval: secs(1),
        ..Params::new(heartbeat.unwrap_or(secs(5)))
    }
}

/// The type of a TOML value, for "must be …, not …".
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a string",
        Value::Integer(_) => "an integer",
        Value::Float(_) => "a float",
        Value::Boolean(_) => "a boolean",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "an array",
        Value::Table(_) => "a table",
    }
}

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

const fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// The error for names that are written as one string.
fn one_name(text: &str) -> String {
    let names: Vec<_> = text.split(',').map(str::trim).collect();
    format!("{text:?} is a single name; write an array: {names:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Config, Vec<Problem>> {
        Config::from_toml(text)
    }

    fn config(text: &str) -> Config {
        load(&format!("node_id = \"n1\"\n{text}")).unwrap()
    }

    #[test]
    fn defaults_match_the_documentation() {
        let config = config("");
        assert_eq!(config.group.as_str(), "default");
        assert_eq!(config.interfaces, [""; 0]);
        assert_eq!(config.multicast_group().unwrap().to_string(), "239.255.76.69:7669");
        assert_eq!(config.peers, []);
        assert_eq!(config.election, Params::default());
        assert_eq!(config.election.heartbeat_interval, millis(350));
        assert_eq!(config.election.leader_alive_threshold, millis(875));
        assert_eq!(config.election.startup_grace_period, millis(5250));
        assert_eq!(config.hook_timeout, secs(30));
        assert_eq!(config.state_dir, PathBuf::from("/var/lib/lanelect"));
        assert_eq!(config.socket, PathBuf::from("/run/lanelect/default.sock"));
        assert_eq!(
            (config.hook, config.hook_socket, config.key_file, config.socket_group),
            (None, None, None, None)
        );
        assert_eq!((config.election.quorum, config.fence), (None, None));
        assert_eq!((config.check, config.election.check), (None, None));
        assert_eq!((config.check_interval, config.check_timeout), (secs(1), secs(1)));
        assert_eq!(config.check_thresholds, Thresholds { fall: 3, rise: 2 });
    }

    #[test]
    fn names_in_one_string_are_rejected_with_the_array() {
        let problems = load("interface = \"eth0, eth1\"").unwrap_err();
        let advice = r#""eth0, eth1" is a single name; write an array: ["eth0", "eth1"]"#;
        assert_eq!(problems.iter().map(|problem| &*problem.message).collect::<Vec<_>>(), [advice]);
    }

    #[test]
    fn quorum_mode_accepts_voters_in_any_order_and_has_a_demote_grace_of_5s() {
        let params = config("mode = \"quorum\"\nvoters = [\"n2\", \"n1\", \"n3\"]").election;
        let voters = ["n1", "n2", "n3"].map(|id| id.parse().unwrap());
        let quorum = params.quorum.unwrap();
        assert_eq!(quorum.voters.ids(), voters);
        assert_eq!(quorum.demote_grace, secs(5));
    }

    #[test]
    fn keys_of_quorum_mode_are_accepted() {
        let text = "mode = \"quorum\"\nvoters = \"n1\"\ndemote_grace = \"0s\"\nhook = \"h\"\n\
                    fence = \"f\"\npreempt = true\nmin_candidates = 1";
        let config = config(text);
        assert_eq!(config.election.demote_grace(), Duration::ZERO);
        assert_eq!(config.fence.as_deref(), Some("f"));
    }

    #[test]
    fn election_has_check_thresholds_only_with_a_check() {
        let text =
            "check_interval = \"5s\"\ncheck_timeout = \"2s\"\ncheck_fall = 1\ncheck_rise = 9";
        assert_eq!(config(text).election.check, None);
        let config = config(&format!("check = \"c\"\n{text}"));
        assert_eq!((config.check_interval, config.check_timeout), (secs(5), secs(2)));
        assert_eq!(config.election.check, Some(Thresholds { fall: 1, rise: 9 }));
    }

    #[test]
    fn node_id_defaults_to_the_hostname() {
        assert_eq!(load("").unwrap().node_id, values::hostname().unwrap());
    }

    #[test]
    fn socket_defaults_to_the_groups_path() {
        assert_eq!(config("group = \"web\"").socket, PathBuf::from("/run/lanelect/web.sock"));
    }

    #[test]
    fn heartbeat_interval_scales_derived_durations_only() {
        let params = config("heartbeat_interval = \"100ms\"").election;
        assert_eq!(params, Params::new(millis(100)));
        let text = "heartbeat_interval = \"100ms\"\nleader_alive_threshold = \"1.5s\"";
        assert_eq!(config(text).election.leader_alive_threshold, millis(1500));
    }

    #[test]
    fn keys_override_the_preset() {
        let fabric = config("preset = \"fabric\"").election;
        assert_eq!(fabric.heartbeat_interval, secs(5));
        assert_eq!(fabric.leader_alive_threshold, secs(10));
        assert_eq!(fabric.leader_election_duration, secs(5));
        assert_eq!(fabric.startup_grace_period, secs(15));
        assert_eq!(fabric.membership_sample_interval, secs(1));
        let text =
            "preset = \"fabric\"\nheartbeat_interval = \"2s\"\nstartup_grace_period = \"3s\"";
        let mixed = config(text).election;
        assert_eq!(mixed.heartbeat_interval, secs(2));
        assert_eq!(mixed.startup_grace_period, secs(3));
        assert_eq!(mixed.leader_alive_threshold, secs(10));
    }

    #[test]
    fn interfaces_are_a_list_or_a_single_name() {
        assert_eq!(config("interface = \"eth0\"").interfaces, ["eth0"]);
        assert_eq!(config("interface = [\"eth0\", \"eth1.7\"]").interfaces, ["eth0", "eth1.7"]);
    }

    #[test]
    fn a_group_may_have_an_ipv6_address() {
        let config = config("multicast = \"[ff02::1]:99\"");
        assert_eq!(config.multicast_group().unwrap().to_string(), "[ff02::1]:99");
    }

    #[test]
    fn group_may_do_without_multicast_if_it_has_peers() {
        let config = config("multicast = \"none:99\"\npeers = [\"10.0.0.1\", \"b:7\"]");
        assert_eq!((config.multicast_group(), config.port), (None, 99));
        assert_eq!(
            config.peers.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["10.0.0.1", "b:7"]
        );
        for (text, key) in [
            ("multicast = \"none\"", "multicast"),
            ("multicast = \"none\"\npeers = \"a\"\ninterface = \"eth0\"", "interface"),
            ("peers = []", "peers"),
            ("peers = 7", "peers"),
        ] {
            let problems = load(text).unwrap_err();
            let keys: Vec<_> = problems.iter().filter_map(|p| p.key.as_deref()).collect();
            assert_eq!(keys, [key], "{text}");
        }
    }

    #[test]
    fn every_problem_is_reported_once_and_at_its_place() {
        let text = "node_id = \"a b\"\npriority = 300\nheartbeat_interval = \"5ms\"\n\
                    leader_alive_threshold = \"100ms\"\ncheck = \"\"";
        let problems = load(text).unwrap_err();
        let mut told: Vec<_> =
            problems.iter().map(|p| (p.place, p.key.as_deref().unwrap_or_default())).collect();
        told.sort_by_key(|(_, key)| *key);
        let expected = [
            (Place::Line(5), "check"),
            (Place::Line(3), "heartbeat_interval"),
            (Place::Line(1), "node_id"),
            (Place::Line(2), "priority"),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn bounds_are_inclusive() {
        for good in [
            "heartbeat_interval = \"10ms\"",
            "heartbeat_interval = \"1m\"",
            "leader_alive_threshold = \"2s\"",
            "priority = 0",
            "priority = 255",
            "min_candidates = 1000",
            "preempt_delay = \"0s\"",
            "interface = \"123456789012345\"",
        ] {
            config(good);
        }
    }
}
