//! The table of every config key with its help text. The file, the command line and the printed
//! effective configuration share it. `check` reads a key, and `effective` prints it.

/// The type of a key's value, on the command line and in the help text.
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
    /// The type of its value.
    pub kind: Kind,
    /// Its meaning, unit, range and default.
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
        "Name of the election group, 1 to 64 bytes without blanks and '/'; datagrams of other \
         groups are ignored [default: default]";
    "node_id" "node-id" Text
        "Name of this node, unique in the group, 1 to 64 bytes without blanks [default: the \
         hostname]";
    "priority" "priority" Integer
        "Priority of this node, 0 to 255; the highest leads, and tie_break decides between equal ones \
         [default: 100]";
    "tie_break" "tie-break" Text
        "Order of nodes with the same priority, the same rule on every node. \"lowest-id\": the \
         lowest node_id in byte order leads; \"spread\": a hash of group and node_id decides, so \
         several groups spread over the hosts [default: lowest-id]";
    "candidate" "candidate" Boolean
        "Whether this node may lead; false: it only follows, and votes if it is one of the voters \
         [default: true]";
    "interface" "interface" Names
        "Network interface to send and receive on; repeat the flag for each, or separate them by \
         commas, at most 16. A datagram that arrives on several counts once [default: the \
         interface of the kernel's route]";
    "multicast" "multicast" Text
        "Multicast address and port, the same on every node: 239.255.76.69:7669 or \
         [ff02::4c45]:7669; \"none\", or with another port \"none:7670\": peers alone carry the \
         datagrams [default: 239.255.76.69:7669]";
    "peers" "peers" Names
        "Hosts that each datagram is sent to by unicast too, as addresses or names, with a port or \
         without; repeat the flag for each, or separate them by commas, at most 64. Give every \
         host the same list: this host may be in it, and then sends from that address. Of unicast, \
         only datagrams from these hosts count, and those that come by a router only with a key \
         [default: none]";
    "heartbeat_interval" "heartbeat-interval" Duration
        "Time between two declarations of the leader, 10ms to 1m, the same on every node; the next \
         four durations scale with it unless they are set [default: 350ms]";
    "leader_alive_threshold" "leader-alive-threshold" Duration
        "Silence after which a leader that answers no probe has failed; at least 1.1 x \
         heartbeat_interval, in quorum mode 1.5 x, at most 1h. Lower fails over faster, higher \
         tolerates longer stalls [default: 2.5 x heartbeat_interval]";
    "leader_election_duration" "leader-election-duration" Duration
        "Longest time that an election collects proposals, 1ms to 1h \
         [default: heartbeat_interval / 4]";
    "startup_grace_period" "startup-grace-period" Duration
        "Longest time that a starting node waits for a stable membership, 1ms to 1h \
         [default: 15 x heartbeat_interval]";
    "membership_sample_interval" "membership-sample-interval" Duration
        "Time between two samples of the membership at start, 1ms to 1h; two equal samples end the \
         wait [default: 1 x heartbeat_interval]";
    "preset" "preset" Text
        "Preset for the five durations above. \"fabric\": 5s heartbeats, 10s alive threshold, 5s \
         election, 15s grace, 1s sample; keys that are set override it [default: none]";
    "static_role" "static-role" Text
        "Role without any election, \"leader\" or \"follower\" (available mode) [default: none]";
    "mode" "mode" Text
        "Election mode, the same on every node. \"available\": a leader in every partition of the \
         network; \"quorum\": never two leaders, and none without a majority of the voters \
         [default: available]";
    "voters" "voters" Names
        "The node_id of every voter, the same on every node; repeat the flag for each, or separate \
         them by commas, at most 31. Nodes that are not voters only follow [required in \
         quorum mode]";
    "min_candidates" "min-candidates" Integer
        "Minimum number of visible candidates, this node included, 1 to 1000; with fewer, no node \
         leads (available mode) [default: 1]";
    "preempt" "preempt" Boolean
        "Whether this node takes over from a leader that ranks lower [default: false]";
    "preempt_delay" "preempt-delay" Duration
        "Delay before this node takes over from a leader that ranks lower, 0s to 1h [default: 0s]";
    "hook" "hook" Text
        "Command line for /bin/sh -c, run when the leadership of this node changes [default: none]";
    "hook_timeout" "hook-timeout" Duration
        "Time limit for one hook run, 100ms to 1h. When it expires, the hook's process group gets \
         SIGTERM, and SIGKILL 5 s later [default: 30s]";
    "hook_socket" "hook-socket" Path
        "Socket of `lanelect hook-runner`, which then runs hook, checks and fence in place of the \
         daemon [default: none, the daemon runs them]";
    "refresh_interval" "refresh-interval" Duration
        "Time after which a leader runs the hook again, for `reaffirmed` with the reason `refresh`, \
         1s to 24h; also run when this host loses an address. So the hook puts back what others \
         removed [default: none, no refresh]";
    "on_elected_failure" "on-elected-failure" Text
        "Reaction to a hook that fails for `elected`. \"resign\": this node hands over and is out \
         of service for failure_holdoff; \"ignore\": it continues to lead [default: resign]";
    "failure_holdoff" "failure-holdoff" Duration
        "Hold-off time after the hook failed for `elected`, check_leader failed, or \
         `yield --failed` was run, 1ms to 24h, in which this node is not eligible to lead; doubles \
         with every failure in a row, up to 1h if it is shorter [default: 60s]";
    "demote_grace" "demote-grace" Duration
        "Time reserved for the hook for `demoted` after the leader has lost its majority, 0s to \
         10m. No other node leads earlier, and a failover takes that much longer (quorum mode) \
         [default: 5s]";
    "fence" "fence" Text
        "Command line for /bin/sh -c that cuts this host off by force, run if the hook for \
         `demoted` does not succeed within demote_grace (quorum mode) [default: none]";
    "check" "check" Text
        "Health check in every role: command line for /bin/sh -c. If it fails check_fall times in \
         a row, this node is not eligible to lead [default: none]";
    "check_leader" "check-leader" Text
        "Health check of a leader whose hook for `elected` has ended: command line for /bin/sh -c. \
         If it fails check_fall times in a row, the leader hands over and is out of service for \
         failure_holdoff. Failures before the first success count only after hook_timeout \
         [default: none]";
    "check_interval" "check-interval" Duration
        "Time from the start of a check to the next start of the same check, 100ms to 1h; the next \
         run waits for a run in progress [default: 1s]";
    "check_timeout" "check-timeout" Duration
        "Time limit for one check run, 100ms to 1h. When it expires, the check has failed, and its \
         process group gets SIGTERM, and SIGKILL 5 s later [default: 1s]";
    "check_fall" "check-fall" Integer
        "Number of failed checks in a row after which this node hands over and is not eligible to \
         lead, 1 to 1000 [default: 3]";
    "check_rise" "check-rise" Integer
        "Number of passed checks in a row after which this node is eligible again, 1 to 1000; \
         those of check_leader end the doubling of failure_holdoff [default: 2]";
    "key_file" "key-file" Path
        "File of shared keys from `lanelect keygen`, one a line. A node signs with the first and \
         accepts all. Only the owner may have access [default: none, datagrams are not \
         authenticated]";
    "key_mode" "key-mode" Text
        "How the keys are used. accept: sends without a key, accepts both; prefer: sends with the \
         key, accepts both; require: sends with the key, accepts no datagram without one. Go from \
         one to the next on every node to add keys, or to remove them, while the group runs \
         [default: require]";
    "state_dir" "state-dir" Path
        "Directory for the state that survives restarts: term, vote and maintenance \
         [default: /var/lib/lanelect]";
    "socket" "socket" Path
        "Path of the control socket [default: /run/lanelect/GROUP.sock]";
    "socket_group" "socket-group" Text
        "Unix group whose members may command the daemon; everyone may query it [default: none, \
         only root and the daemon's user may command it]";
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
