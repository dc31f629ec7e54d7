//! The table of every config key, with its help text, for the file, the command line and the
//! printed effective configuration alike. `check` reads a key, and `effective` prints it.

/// What a key's value looks like, on the command line and in the help text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text; in TOML a string.
    Text,
    /// A duration such as `250ms`; in TOML a string.
    Duration,
    /// A path; in TOML a string.
    Path,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// One or more names: an array of strings or one string in TOML, a flag that may be repeated
    /// on the command line.
    Names,
}

/// One config key.
#[derive(Debug, PartialEq, Eq)]
pub struct Setting {
    /// The key in the file.
    pub name: &'static str,
    /// The flag, without its two dashes: the key with dashes for underscores.
    pub flag: &'static str,
    /// What its value looks like.
    pub kind: Kind,
    /// What it means, its relation to other keys, its range and its default.
    pub help: &'static str,
}

/// Every key, in the order in which help and the effective configuration list them.
pub const SETTINGS: &[Setting] = &[
    setting(
        "group",
        "group",
        Kind::Text,
        "Election group; datagrams of other groups are ignored [default: default]",
    ),
    setting(
        "node_id",
        "node-id",
        Kind::Text,
        "This node's name, unique in the group: 1 to 64 bytes without blanks \
         [default: the hostname]",
    ),
    setting(
        "priority",
        "priority",
        Kind::Integer,
        "0 to 255; the highest leads, ties go to the lowest node_id in byte order [default: 100]",
    ),
    setting(
        "candidate",
        "candidate",
        Kind::Boolean,
        "false: this node follows, and votes where it is one of the voters, but never leads \
         [default: true]",
    ),
    setting(
        "interface",
        "interface",
        Kind::Names,
        "Network interface to send and listen on; repeat the flag for several. Duplicates are \
         recognised [default: the kernel's route to the group]",
    ),
    setting(
        "multicast",
        "multicast",
        Kind::Text,
        "Group address and port, the same on every node: 239.255.76.69:7669 or [ff02::4c45]:7669 \
         [default: 239.255.76.69:7669]",
    ),
    setting(
        "heartbeat_interval",
        "heartbeat-interval",
        Kind::Duration,
        "Between a leader's declarations, 10ms to 1m, the same on every node; the durations below \
         that are not given follow it [default: 1s]",
    ),
    setting(
        "leader_alive_threshold",
        "leader-alive-threshold",
        Kind::Duration,
        "Silence after which the leader counts as gone, though it was asked, at least 1.1 heartbeat \
         intervals, in quorum mode 1.5 [default: 1.25 x heartbeat_interval; in quorum mode 2 x]",
    ),
    setting(
        "leader_election_duration",
        "leader-election-duration",
        Kind::Duration,
        "How long an election collects proposals at the most [default: heartbeat_interval / 4]",
    ),
    setting(
        "startup_grace_period",
        "startup-grace-period",
        Kind::Duration,
        "Longest wait for a stable membership at start [default: 15 x heartbeat_interval]",
    ),
    setting(
        "membership_sample_interval",
        "membership-sample-interval",
        Kind::Duration,
        "How often start-up samples the membership; two equal samples end it \
         [default: 1 x heartbeat_interval]",
    ),
    setting(
        "preset",
        "preset",
        Kind::Text,
        "\"fabric\": 5s heartbeats, 10s alive threshold, 5s election, 15s grace, 1s sample; keys \
         given beside it win [default: none]",
    ),
    setting(
        "static_role",
        "static-role",
        Kind::Text,
        "\"leader\" or \"follower\": a role set by hand, without any election (available mode) \
         [default: none]",
    ),
    setting(
        "mode",
        "mode",
        Kind::Text,
        "\"available\": a leader in every partition of the network; \"quorum\": never two leaders, \
         and none without a majority of voters. The same on every node [default: available]",
    ),
    setting(
        "voters",
        "voters",
        Kind::Names,
        "The node_id of every voter, the same on every node; repeat the flag for each. Other nodes \
         follow only [required in quorum mode]",
    ),
    setting(
        "min_candidates",
        "min-candidates",
        Kind::Integer,
        "1 to 1000; no leader unless this many candidates, this node included, are visible \
         (available mode) [default: 1]",
    ),
    setting(
        "preempt",
        "preempt",
        Kind::Boolean,
        "true: this node takes over from a worse leader [default: false]",
    ),
    setting(
        "preempt_delay",
        "preempt-delay",
        Kind::Duration,
        "How long a worse leader must have been seen before it is taken over from [default: 0s]",
    ),
    setting(
        "hook",
        "hook",
        Kind::Text,
        "Command line for /bin/sh -c, run whenever this node's leadership changes [default: none]",
    ),
    setting(
        "hook_timeout",
        "hook-timeout",
        Kind::Duration,
        "Then the hook's process group gets TERM, and KILL 5 s later [default: 30s]",
    ),
    setting(
        "hook_socket",
        "hook-socket",
        Kind::Path,
        "Socket of `lanelect hook-runner`, which then runs the hook in the daemon's place \
         [default: none, the daemon runs it]",
    ),
    setting(
        "on_elected_failure",
        "on-elected-failure",
        Kind::Text,
        "\"resign\" or \"ignore\" where the hook fails for `elected` [default: resign]",
    ),
    setting(
        "failure_holdoff",
        "failure-holdoff",
        Kind::Duration,
        "How long this node stays out after that; doubles with every failure in a row \
         [default: 60s]",
    ),
    setting(
        "demote_grace",
        "demote-grace",
        Kind::Duration,
        "How long the hook may take for `demoted` after the leader has lost its majority, before \
         anyone else may lead, 0s to 10m; a failover takes that much longer (quorum mode) \
         [default: 5s]",
    ),
    setting(
        "fence",
        "fence",
        Kind::Text,
        "Command line for /bin/sh -c, run where the hook has not let go within demote_grace, to cut \
         this host off by force (quorum mode) [default: none]",
    ),
    setting(
        "check",
        "check",
        Kind::Text,
        "Command line for /bin/sh -c that says by its exit status whether this node may lead \
         [default: none]",
    ),
    setting(
        "check_interval",
        "check-interval",
        Kind::Duration,
        "From the start of one check to that of the next, 100ms to 1h; one that still runs is waited \
         for [default: 1s]",
    ),
    setting(
        "check_timeout",
        "check-timeout",
        Kind::Duration,
        "Then the check has failed: its process group gets TERM, and KILL 5 s later [default: 1s]",
    ),
    setting(
        "check_fall",
        "check-fall",
        Kind::Integer,
        "1 to 1000; so many failures in a row make this node hand over and stay out [default: 3]",
    ),
    setting(
        "check_rise",
        "check-rise",
        Kind::Integer,
        "1 to 1000; so many successes in a row let it stand again [default: 2]",
    ),
    setting(
        "key_file",
        "key-file",
        Kind::Path,
        "File of shared keys as `lanelect keygen` prints them, one a line; the first signs, all \
         verify. Only its owner may read it [default: none, datagrams are not authenticated]",
    ),
    setting(
        "state_dir",
        "state-dir",
        Kind::Path,
        "Directory that keeps term, vote and maintenance over restarts \
         [default: /var/lib/lanelect]",
    ),
    setting("socket", "socket", Kind::Path, "Control socket [default: /run/lanelect/GROUP.sock]"),
    setting(
        "socket_group",
        "socket-group",
        Kind::Text,
        "Unix group whose members may command the daemon, not only query it [default: none]",
    ),
];

/// The setting of that name.
pub(super) fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

const fn setting(
    name: &'static str,
    flag: &'static str,
    kind: Kind,
    help: &'static str,
) -> Setting {
    Setting { name, flag, kind, help }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_its_key_with_dashes() {
        for setting in SETTINGS {
            assert_eq!(setting.flag, setting.name.replace('_', "-"));
        }
    }

    #[test]
    fn no_key_is_listed_twice() {
        let mut names: Vec<_> = SETTINGS.iter().map(|setting| setting.name).collect();
        let listed = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), listed);
    }
}
