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

/// A table of settings: key, flag and kind, and below them the help.
macro_rules! settings {
    ($($name:literal $flag:literal $kind:ident $help:literal;)*) => {
        &[$(Setting { name: $name, flag: $flag, kind: Kind::$kind, help: $help }),*]
    };
}

/// Every key, in the order in which help and the effective configuration list them.
pub const SETTINGS: &[Setting] = settings! {
    "group" "group" Text
        "Election group; datagrams of other groups are ignored [default: default]";
    "node_id" "node-id" Text
        "This node's name, unique in the group: 1 to 64 bytes without blanks \
         [default: the hostname]";
    "priority" "priority" Integer
        "0 to 255; the highest leads, ties go to the lowest node_id in byte order [default: 100]";
    "candidate" "candidate" Boolean
        "false: this node follows, and votes where it is one of the voters, but never leads \
         [default: true]";
    "interface" "interface" Names
        "Network interface to send and listen on; repeat the flag for several. Duplicates are \
         recognised [default: the kernel's route to the group]";
    "multicast" "multicast" Text
        "Group address and port, the same on every node: 239.255.76.69:7669 or [ff02::4c45]:7669 \
         [default: 239.255.76.69:7669]";
    "heartbeat_interval" "heartbeat-interval" Duration
        "Between a leader's declarations, 10ms to 1m, the same on every node; the durations below \
         that are not given follow it [default: 1s]";
    "leader_alive_threshold" "leader-alive-threshold" Duration
        "Silence after which the leader counts as gone, though it was asked, at least 1.1 heartbeat \
         intervals, in quorum mode 1.5 [default: 1.25 x heartbeat_interval; in quorum mode 2 x]";
    "leader_election_duration" "leader-election-duration" Duration
        "How long an election collects proposals at the most [default: heartbeat_interval / 4]";
    "startup_grace_period" "startup-grace-period" Duration
        "Longest wait for a stable membership at start [default: 15 x heartbeat_interval]";
    "membership_sample_interval" "membership-sample-interval" Duration
        "How often start-up samples the membership; two equal samples end it \
         [default: 1 x heartbeat_interval]";
    "preset" "preset" Text
        "\"fabric\": 5s heartbeats, 10s alive threshold, 5s election, 15s grace, 1s sample; keys \
         given beside it win [default: none]";
    "static_role" "static-role" Text
        "\"leader\" or \"follower\": a role set by hand, without any election (available mode) \
         [default: none]";
    "mode" "mode" Text
        "\"available\": a leader in every partition of the network; \"quorum\": never two leaders, \
         and none without a majority of voters. The same on every node [default: available]";
    "voters" "voters" Names
        "The node_id of every voter, the same on every node; repeat the flag for each. Other nodes \
         follow only [required in quorum mode]";
    "min_candidates" "min-candidates" Integer
        "1 to 1000; no leader unless this many candidates, this node included, are visible \
         (available mode) [default: 1]";
    "preempt" "preempt" Boolean
        "true: this node takes over from a worse leader [default: false]";
    "preempt_delay" "preempt-delay" Duration
        "How long a worse leader must have been seen before it is taken over from [default: 0s]";
    "hook" "hook" Text
        "Command line for /bin/sh -c, run whenever this node's leadership changes [default: none]";
    "hook_timeout" "hook-timeout" Duration
        "Then the hook's process group gets TERM, and KILL 5 s later [default: 30s]";
    "hook_socket" "hook-socket" Path
        "Socket of `lanelect hook-runner`, which then runs the hook in the daemon's place \
         [default: none, the daemon runs it]";
    "on_elected_failure" "on-elected-failure" Text
        "\"resign\" or \"ignore\" where the hook fails for `elected` [default: resign]";
    "failure_holdoff" "failure-holdoff" Duration
        "How long this node stays out after that; doubles with every failure in a row \
         [default: 60s]";
    "demote_grace" "demote-grace" Duration
        "How long the hook may take for `demoted` after the leader has lost its majority, before \
         anyone else may lead, 0s to 10m; a failover takes that much longer (quorum mode) \
         [default: 5s]";
    "fence" "fence" Text
        "Command line for /bin/sh -c, run where the hook has not let go within demote_grace, to cut \
         this host off by force (quorum mode) [default: none]";
    "check" "check" Text
        "Command line for /bin/sh -c that says by its exit status whether this node may lead \
         [default: none]";
    "check_interval" "check-interval" Duration
        "From the start of one check to that of the next, 100ms to 1h; one that still runs is waited \
         for [default: 1s]";
    "check_timeout" "check-timeout" Duration
        "Then the check has failed: its process group gets TERM, and KILL 5 s later [default: 1s]";
    "check_fall" "check-fall" Integer
        "1 to 1000; so many failures in a row make this node hand over and stay out [default: 3]";
    "check_rise" "check-rise" Integer
        "1 to 1000; so many successes in a row let it stand again [default: 2]";
    "key_file" "key-file" Path
        "File of shared keys as `lanelect keygen` prints them, one a line; the first signs, all \
         verify. Only its owner may read it [default: none, datagrams are not authenticated]";
    "state_dir" "state-dir" Path
        "Directory that keeps term, vote and maintenance over restarts \
         [default: /var/lib/lanelect]";
    "socket" "socket" Path
        "Control socket [default: /run/lanelect/GROUP.sock]";
    "socket_group" "socket-group" Text
        "Unix group whose members may command the daemon, not only query it [default: none]";
};

/// The setting of that name.
pub(super) fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
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
