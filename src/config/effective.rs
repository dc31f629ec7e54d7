//! The effective configuration, written as a file that would read back to the same.

use std::fmt;

use toml::Value;

use super::{Config, SETTINGS, duration};
use crate::core::params::{OnElectedFailure, StaticRole};

impl Config {
    /// The configuration as TOML with every default filled in, one key a line. A key without any
    /// value is a comment. Holds no secrets: `key_file` is a path.
    pub fn to_toml(&self) -> String {
        self.to_string()
    }

    /// The value of a key; none where it has none. A preset is spelled out in the keys it sets.
    fn value_of(&self, key: &str) -> Option<Value> {
        let election = &self.election;
        let time = |value| Some(Value::from(duration::format(value)));
        let text = |value: &str| Some(Value::from(value));
        let path = |value: &std::path::Path| Some(Value::from(value.to_string_lossy().as_ref()));
        match key {
            "group" => text(self.group.as_str()),
            "node_id" => text(self.node_id.as_str()),
            "priority" => Some(Value::from(election.priority.0)),
            "candidate" => Some(Value::from(election.candidate)),
            "interface" if self.interfaces.is_empty() => None,
            "interface" => Some(Value::from(self.interfaces.clone())),
            "multicast" => text(&self.multicast.to_string()),
            "heartbeat_interval" => time(election.heartbeat_interval),
            "leader_alive_threshold" => time(election.leader_alive_threshold),
            "leader_election_duration" => time(election.leader_election_duration),
            "startup_grace_period" => time(election.startup_grace_period),
            "membership_sample_interval" => time(election.membership_sample_interval),
            "static_role" => election.static_role.map(|role| Value::from(role_word(role))),
            "mode" => text("available"),
            "min_candidates" => Some(Value::from(u32::from(election.min_candidates))),
            "preempt" => Some(Value::from(election.preempt)),
            "preempt_delay" => time(election.preempt_delay),
            "hook" => self.hook.as_deref().and_then(text),
            "hook_timeout" => time(self.hook_timeout),
            "hook_socket" => self.hook_socket.as_deref().and_then(path),
            "on_elected_failure" => text(failure_word(election.on_elected_failure)),
            "failure_holdoff" => time(election.failure_holdoff),
            "key_file" => self.key_file.as_deref().and_then(path),
            "state_dir" => path(&self.state_dir),
            "socket" => path(&self.socket),
            "socket_group" => self.socket_group.as_deref().and_then(text),
            _ => None,
        }
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for setting in SETTINGS.iter().filter(|setting| setting.name != "preset") {
            match self.value_of(setting.name) {
                Some(value) => writeln!(f, "{} = {value}", setting.name)?,
                None => writeln!(f, "# {} is not set", setting.name)?,
            }
        }
        Ok(())
    }
}

const fn role_word(role: StaticRole) -> &'static str {
    match role {
        StaticRole::Leader => "leader",
        StaticRole::Follower => "follower",
    }
}

const fn failure_word(action: OnElectedFailure) -> &'static str {
    match action {
        OnElectedFailure::Resign => "resign",
        OnElectedFailure::Ignore => "ignore",
    }
}
