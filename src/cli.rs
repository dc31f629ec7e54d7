//! The command line. The only module that uses clap. `config_flags` makes flags of the config keys.

mod config_flags;

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use self::config_flags::{ConfigFlags, HiddenFlags};
use crate::config::{self, ConfigSource};
use crate::types::{GroupName, NodeId};

/// Elects one leader among the hosts of a LAN and runs a hook when leadership changes.
#[derive(Debug, Parser)]
#[command(name = "lanelect", version, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  lanelect demo                                 show an election on this machine, without a config
  lanelect run --config /etc/lanelect/web.toml  run the daemon in the foreground
  lanelect status --group web                   show the leader and the members
  lanelect is-leader --group web && ./backup    run ./backup on the leader only";

const RUN_HELP: &str = "\
Every config key is also a flag, and a flag overrides the file. The log goes to stderr;
LANELECT_LOG sets its level, such as debug. SIGHUP reloads the file. SIGTERM and SIGINT hand the
leadership over and end the daemon. A SIGINT (Ctrl-C) while it stops ends it at once, as a crash
would.

Exit status: 0 after SIGTERM or SIGINT, 2 for wrong usage or an invalid config, 1 for any other
failure.

Examples:
  lanelect run --config /etc/lanelect/web.toml
  lanelect run --config /etc/lanelect/web.toml --heartbeat-interval 100ms
  lanelect run --group web --interface eth0 --hook '/usr/local/bin/on-change'";

const CHECK_HELP: &str = "\
Prints the effective configuration with every default filled in. Errors and warnings go to stderr.
An error is what the daemon refuses: a wrong key or value, a key_file that it cannot use, an unknown
socket_group. A warning is what an operator may regret, such as a hook that does not exist. Every
flag of `lanelect run` overrides FILE here too. Nothing is sent.

Run it as the user of the daemon or as root: it reads key_file.

Exit status: 0 if the daemon would accept FILE, also with warnings; 2 if it would not.

Examples:
  lanelect check-config /etc/lanelect/web.toml
  lanelect check-config --quiet /etc/lanelect/web.toml --hook-socket /run/lanelect-hook/web.sock &&
    systemctl restart lanelect@web";

const STATUS_HELP: &str = "\
Without --group and --socket it shows the only group of this host, or a line for each of several;
with --check, the group `default`, so that no other group answers for one that is down.

With --watch the table is shown again every second and at each transition, on a terminal in place.
With --json, that is one object a line. A daemon that stops answering is waited for.

With --check it prints one line with performance data, as monitoring plugins do. Critical: no leader
known, no majority of the voters, a hook that failed or is overdue, a daemon that does not run.
Warning: suspect members, an interface or a peer with a problem, a member that is too far away, not
eligible although no operator chose that, configuration that is not in force, state that is not
saved, keys that are not required. Unknown: permission denied, or another version.

Exit status: 0; 3 if no daemon can be reached, or if it refuses. With --watch only at first. With
--check: 0 ok, 1 warning, 2 critical, 3 unknown.

Examples:
  lanelect status
  lanelect status --group web --json
  lanelect status --group web --check";

const DOCTOR_HELP: &str = "\
Looks at the daemon, its config file and units, interfaces, the other members, the hook, the disk
and, in quorum mode, the voters and the clock. Each line says `ok`, `warn` or `fail`, and what to do;
`unknown` is what cannot be seen from here. Run it as root: only root can listen for datagrams that
a firewall drops, which takes 3 s, and read every file. It has the daemon ping the members, and
changes nothing but a small file in state_dir, which it removes.

Exit status: 0 if nothing is wrong, 1 with warnings, 2 with faults, 3 if the daemon cannot be
reached; the lines are printed then too.

Examples:
  sudo lanelect doctor
  sudo lanelect doctor --config /etc/lanelect/web.toml";

const IS_LEADER_HELP: &str = "\
Prints nothing. With --ready, a leader whose hook has not succeeded for elected, or has failed for
the last reaffirmed, prints that on stderr. Without a hook, every leader is ready.

Exit status: 0 if this node leads, 1 if it does not or is not ready, 3 if the daemon cannot be
reached, or refuses.

Examples:
  lanelect is-leader --group web && systemctl start nightly-backup
  lanelect is-leader --ready --group web && curl http://10.0.0.100/warm-up";

const WATCH_HELP: &str = "\
Exit status: 0 when interrupted, or when the reader of its output is gone; 3 if the daemon cannot be
reached, or refuses, or stops.

Example:
  lanelect watch --json";

const EXEC_HELP: &str = "\
COMMAND starts when this node leads and its hook has succeeded for elected. It gets LANELECT_TERM,
LANELECT_GROUP and LANELECT_NODE_ID. When this node steps down, or the daemon ends or hangs, its
process group gets SIGTERM, and SIGKILL 5 s later, in quorum mode after half of demote_grace if that
is less. The hook for demoted begins, and the node resigns, only when COMMAND has ended. What
COMMAND leaves running in its process group is killed. If this process is killed, so is COMMAND.

COMMAND cannot read from the terminal. SIGTERM, SIGINT and SIGHUP end it in the same way, a second
one kills it.

With --restart, this waits for a daemon that does not run, and COMMAND runs again in the next
leadership. It is not run again if it ends by itself.

Exit status: that of COMMAND, or 128 and the signal that ended it; 3 if the daemon cannot be
reached (without --restart), or refuses; 126 if COMMAND cannot be executed, 127 if it is not found;
1 for any other failure.

Examples:
  lanelect exec --group web -- /usr/local/bin/report-worker
  lanelect exec --group web --restart -- sh -c 'exec ./worker --epoch $LANELECT_TERM'";

const YIELD_HELP: &str = "\
Afterwards this node is not eligible to lead until another node leads. If no other node leads
within 6 x leader_alive_threshold, this node is eligible again.

With --failed, this node is not eligible for failure_holdoff either, if another node can take over.
The next node that fails finds it out of the way, so each node is tried. lanelect-yield@.service
runs this for a unit that has failed. If this node is already handing over, no hold-off begins.

With --to, NODE must be another member that is alive and eligible to lead, in quorum mode a voter.
If NODE fails before it has taken over, another node leads. If a better node than NODE has preempt,
it takes over from NODE afterwards.

With --wait, the command returns when another node leads and the hook for demoted has ended on this
one. Without DURATION it waits for at most 60s. If it gives up, the handover continues.

Exit status: 0 if the node hands over, or was already doing so, with --wait if that is complete; 1
if it does not lead, leads by static_role, or cannot hand over to NODE; 3 if the daemon cannot be
reached, or refuses; 4 if the time limit of --wait expired, this node leads again, or another node
than NODE leads.

Examples:
  lanelect yield --group web
  lanelect yield --to web2 --wait --group web";

const MAINTENANCE_HELP: &str = "\
If this node leads, it hands over first. A node in maintenance is not eligible to lead until
maintenance is off, even after a restart.

With --wait, `on` returns when this node leads nothing and its hook has ended, and `off` when this
node is eligible. Without DURATION it waits for at most 60s. Maintenance stays on, or off, also if
that fails.

Exit status: 0; 3 if the daemon cannot be reached, or refuses; 4 if the time limit of --wait
expired, or if the configuration never lets this node lead.

Examples:
  lanelect maintenance on --wait --group web
  lanelect maintenance off --group web";

const HOOK_RUNNER_HELP: &str = "\
Listens on hook_socket and runs the commands of hook, checks and fence. The daemon then needs no
privileges. If the daemon has another configuration, the hook-runner reads the file again.

Exit status: 0 after SIGTERM or SIGINT, 2 for wrong usage or an invalid config, 1 for any other
failure.

Example:
  lanelect hook-runner --config /etc/lanelect/web.toml";

const POST_STOP_HELP: &str = "\
For ExecStopPost= in the daemon's unit. If the daemon died as leader, post-stop runs the demote hook
with LANELECT_REASON=crashed, and then resigns for the daemon. If the daemon ended normally,
post-stop does nothing. If the daemon still runs, post-stop fails.

Exit status: 0; 2 for wrong usage or an invalid config; 1 if the daemon still runs, or if the demote
hook or the resignation failed.

Example:
  lanelect post-stop --config /etc/lanelect/web.toml";

const ANNOUNCE_HELP: &str = "\
Sends gratuitous ARP for IPv4 and unsolicited neighbour advertisements for IPv6. Neighbours and
switches then send to this host at once. For use in hooks; needs CAP_NET_RAW.

Exit status: 0; 1 if the interface does not have one of the addresses, or if sending fails.

Example:
  lanelect announce eth0 10.0.0.100 2001:db8::100";

const KEYGEN_HELP: &str = "\
Every node of a group needs the same keys. A node signs with the first key in key_file, and accepts
datagrams that are signed with any of them.

Exit status: 0; 1 if the system provides no random bytes.

Example:
  lanelect keygen | sudo install -m 600 -o lanelect /dev/stdin /etc/lanelect/web.key";

const DEMO_HELP: &str = "\
Starts daemons on the loopback interface, kills the leader, and shows the failover. Needs no
configuration and no privileges, and removes its files.

Exit status: 0; 1 if the demo failed.";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs the daemon in the foreground
    #[command(after_help = RUN_HELP)]
    Run(RunArgs),
    /// Validates a config file and prints the effective configuration
    #[command(after_help = CHECK_HELP)]
    CheckConfig(CheckArgs),
    /// Shows the role of this node, the leader, the term and the members
    #[command(after_help = STATUS_HELP)]
    Status(StatusArgs),
    /// Looks for what is wrong on this host and with its group, and says what mends it
    #[command(after_help = DOCTOR_HELP)]
    Doctor(DoctorArgs),
    /// Measures a sync in DIRECTORY; started by `lanelect doctor` alone
    #[command(hide = true)]
    DiskSync {
        /// Directory in which a small file is created and removed
        directory: PathBuf,
    },
    /// Exits with status 0 if this node leads
    #[command(after_help = IS_LEADER_HELP)]
    IsLeader {
        /// Exit with 0 only if this node leads and its hook has succeeded for elected
        #[arg(long)]
        ready: bool,
        /// The daemon.
        #[command(flatten)]
        daemon: DaemonArgs,
    },
    /// Prints a line for each change of leader or role, until interrupted
    #[command(after_help = WATCH_HELP)]
    Watch(QueryArgs),
    /// Runs COMMAND while this node leads
    #[command(after_help = EXEC_HELP)]
    Exec {
        /// Run COMMAND again in the next leadership, when this one is lost
        #[arg(long)]
        restart: bool,
        /// The daemon.
        #[command(flatten)]
        daemon: DaemonArgs,
        /// Program and its arguments
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Kills the command of `lanelect exec` in time; started by `lanelect exec` alone
    #[command(hide = true)]
    ExecGuard,
    /// Hands the leadership of this node over to another node
    #[command(after_help = YIELD_HELP)]
    Yield {
        /// Member that takes over, instead of the best eligible one
        #[arg(long, value_name = "NODE")]
        to: Option<NodeId>,
        /// Reports that the service of the leader has failed on this host: if another node can take
        /// over, this one is not eligible for failure_holdoff
        #[arg(long, conflicts_with = "to")]
        failed: bool,
        /// Whether to wait.
        #[command(flatten)]
        wait: WaitArgs,
        /// The daemon.
        #[command(flatten)]
        daemon: DaemonArgs,
    },
    /// Takes this node out of service, or puts it back
    #[command(after_help = MAINTENANCE_HELP)]
    Maintenance {
        /// Whether this node is out of service
        switch: Switch,
        /// Whether to wait.
        #[command(flatten)]
        wait: WaitArgs,
        /// The daemon.
        #[command(flatten)]
        daemon: DaemonArgs,
    },
    /// Runs hook, checks and fence for a daemon without privileges
    #[command(after_help = HOOK_RUNNER_HELP)]
    HookRunner {
        /// Config file of the daemon; only root and the hook-runner's user may write it
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Cleans up after a daemon that died as leader
    #[command(after_help = POST_STOP_HELP)]
    PostStop(RunArgs),
    /// Announces to the LAN that this host has an address now
    #[command(after_help = ANNOUNCE_HELP)]
    Announce {
        /// Interface that has the addresses
        interface: String,
        /// IPv4 or IPv6 addresses, without a prefix length
        #[arg(required = true, value_name = "ADDRESS")]
        addresses: Vec<IpAddr>,
    },
    /// Prints a new random key for key_file
    #[command(after_help = KEYGEN_HELP)]
    Keygen,
    /// Shows an election and a failover on this machine
    #[command(after_help = DEMO_HELP)]
    Demo,
}

/// The sources of the configuration of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Config file; without one, only flags and defaults apply
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    flags: ConfigFlags,
}

impl From<RunArgs> for ConfigSource {
    fn from(args: RunArgs) -> Self {
        ConfigSource { file: args.config, overrides: args.flags.0 }
    }
}

/// What to check, and how much to print.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Config file
    file: PathBuf,
    /// Print errors and warnings only
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    flags: HiddenFlags,
}

impl From<CheckArgs> for ConfigSource {
    fn from(args: CheckArgs) -> Self {
        ConfigSource { file: Some(args.file), overrides: args.flags.0.0 }
    }
}

/// Which daemon to query, and how to print the answer.
#[derive(Debug, Args)]
pub struct QueryArgs {
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// The daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// What of the status to show, and how.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Show the status every second and at each transition, until interrupted
    #[arg(long)]
    pub watch: bool,
    /// Print one line for a monitoring system, whose states are the exit statuses
    #[arg(long, conflicts_with_all = ["json", "watch"])]
    pub check: bool,
    /// The daemon, if one is named.
    #[command(flatten)]
    pub daemon: NamedDaemonArgs,
}

/// What to look at, and how to print the findings.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Config file, if it is not the one of the daemon; without --group and --socket it also says
    /// which daemon to look at
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The daemon, if one is named.
    #[command(flatten)]
    pub daemon: NamedDaemonArgs,
}

/// Which daemon to query, of those of this host.
#[derive(Debug, Args)]
pub struct NamedDaemonArgs {
    /// Control socket of the daemon
    #[arg(long, value_name = "PATH", conflicts_with = "group")]
    socket: Option<PathBuf>,
    /// Group of the daemon, whose socket is /run/lanelect/NAME.sock; to be named if this host has
    /// several
    #[arg(long, value_name = "NAME", value_parser = config::parse_group)]
    group: Option<GroupName>,
}

impl NamedDaemonArgs {
    /// The control socket of the daemon that is named; `None` if none is.
    pub fn socket_path(&self) -> Option<PathBuf> {
        self.socket.clone().or_else(|| self.group.as_ref().map(config::default_socket))
    }
}

/// Which daemon to send the command to.
#[derive(Debug, Args)]
pub struct DaemonArgs {
    /// Control socket of the daemon
    #[arg(long, value_name = "PATH", conflicts_with = "group")]
    socket: Option<PathBuf>,
    /// Group of the daemon, whose socket is /run/lanelect/NAME.sock
    #[arg(long, value_name = "NAME", default_value = config::DEFAULT_GROUP)]
    #[arg(value_parser = config::parse_group)]
    group: GroupName,
}

impl DaemonArgs {
    /// The control socket that the daemon listens on.
    pub fn socket_path(&self) -> PathBuf {
        self.socket.clone().unwrap_or_else(|| config::default_socket(&self.group))
    }
}

/// Whether to wait until the daemon has finished what was asked.
#[derive(Debug, Args)]
pub struct WaitArgs {
    /// Return only when that is complete, or fail after DURATION
    #[arg(long = "wait", value_name = "DURATION", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "60s", value_parser = config::parse_duration)]
    pub limit: Option<Duration>,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Out of service: not eligible to lead
    On,
    /// Back in service
    Off,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once(&"lanelect").chain(line))
    }

    fn source(line: &[&str]) -> ConfigSource {
        match parse(&[&["run"], line].concat()).unwrap().command {
            Command::Run(args) => args.into(),
            other => panic!("not run: {other:?}"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_reach_the_configuration() {
        let config = source(&[
            "--group=web",
            "--node-id=n1",
            "--priority=7",
            "--candidate=false",
            "--heartbeat-interval=100ms",
            "--interface=a",
            "--interface=b",
        ])
        .load()
        .unwrap();
        assert_eq!(config.group.as_str(), "web");
        assert_eq!(config.node_id.as_str(), "n1");
        assert_eq!(config.election.priority.0, 7);
        assert!(!config.election.candidate);
        assert_eq!(config.election.leader_alive_threshold.as_millis(), 250);
        assert_eq!(config.interfaces, ["a", "b"]);
    }

    #[test]
    fn names_are_flags_that_are_repeated_or_have_commas() {
        for names in [&["--voters=b", "--voters=a", "--voters=c"][..], &["--voters", "b,a,c"]] {
            let line = [&["--node-id=a", "--mode=quorum", "--interface=x,y"], names].concat();
            let config = source(&line).load().unwrap();
            let voters = config.election.quorum.unwrap().voters;
            assert_eq!(voters.ids(), ["a", "b", "c"].map(|id| id.parse().unwrap()));
            assert_eq!(config.interfaces, ["x", "y"]);
        }
    }

    #[test]
    fn error_for_a_wrong_value_names_the_flag() {
        let error = source(&["--node-id=n1", "--priority=-1"]).load().unwrap_err().to_string();
        assert!(error.starts_with("--priority: -1 is out of range"), "{error}");
    }

    #[test]
    fn time_limit_of_a_wait_follows_an_equals_sign_and_is_a_minute_without() {
        let limit = |line: &[&str]| match parse(line).unwrap().command {
            Command::Yield { wait, .. } | Command::Maintenance { wait, .. } => wait.limit,
            other => panic!("nothing to wait for: {other:?}"),
        };
        assert_eq!(limit(&["yield"]), None);
        assert_eq!(limit(&["yield", "--wait"]), Some(Duration::from_secs(60)));
        assert_eq!(limit(&["maintenance", "--wait", "on"]), Some(Duration::from_secs(60)));
        assert_eq!(limit(&["yield", "--wait=1.5s"]), Some(Duration::from_millis(1500)));
        assert!(parse(&["yield", "--wait", "5s"]).is_err());
        assert!(parse(&["yield", "--wait=soon"]).is_err());
    }

    #[test]
    fn the_daemon_is_found_by_socket_or_group() {
        let path = |line: &[&str]| match parse(line).unwrap().command {
            Command::IsLeader { daemon, .. } => daemon.socket_path(),
            other => panic!("not is-leader: {other:?}"),
        };
        assert_eq!(path(&["is-leader"]), PathBuf::from("/run/lanelect/default.sock"));
        assert_eq!(path(&["is-leader", "--group=a"]), PathBuf::from("/run/lanelect/a.sock"));
        assert_eq!(path(&["is-leader", "--socket=/x"]), PathBuf::from("/x"));
        assert!(parse(&["is-leader", "--group=../x"]).is_err());
        assert!(parse(&["is-leader", "--group=a", "--socket=/x"]).is_err());
    }
}
