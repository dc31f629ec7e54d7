//! The command line. The only module that knows clap.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::builder::{BoolValueParser, RangedI64ValueParser, StringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, Parser, Subcommand, ValueEnum};
use toml::Value;

use crate::config::{self, ConfigSource, Kind, Overrides, SETTINGS, Setting};
use crate::types::GroupName;

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
  lanelect demo                                 a whole election on this machine, loopback only
  lanelect run --config /etc/lanelect/web.toml  the daemon, in the foreground
  lanelect status --group web                   who leads
  lanelect is-leader --group web && ./backup    only where this node leads";

const RUN_HELP: &str = "\
Every config key is also a flag, and a flag wins over the file. Logs go to stderr; LANELECT_LOG
sets what is logged, such as debug. HUP reads the file again, TERM and INT hand leadership over and
end the daemon.

Exit status: 0 after TERM or INT, 2 for wrong usage or config, 1 for anything else.

Examples:
  lanelect run --config /etc/lanelect/web.toml
  lanelect run --config /etc/lanelect/web.toml --heartbeat-interval 100ms
  lanelect run --group web --interface eth0 --hook '/usr/local/bin/on-change'";

const CHECK_HELP: &str = "\
Prints the effective config with every default filled in, and sends nothing.

Exit status: 0 where FILE is valid, 2 where it is not.

Example:
  lanelect check-config /etc/lanelect/web.toml";

const STATUS_HELP: &str = "\
Exit status: 0, or 3 where the daemon cannot be reached.

Examples:
  lanelect status
  lanelect status --group web --json";

const IS_LEADER_HELP: &str = "\
Exit status: 0 where this node leads, 1 where it does not, 3 where the daemon cannot be reached.

Example:
  lanelect is-leader --group web && systemctl start nightly-backup";

const WATCH_HELP: &str = "\
Exit status: 0 where interrupted, 3 where the daemon cannot be reached.

Example:
  lanelect watch --json";

const YIELD_HELP: &str = "\
The node stays out until another one leads, or for 6 x leader_alive_threshold where none does.

Exit status: 0 if it is done or was being done already, 1 if this node does not lead or leads by
static_role, 3 if the daemon cannot be reached.

Example:
  lanelect yield --group web";

const MAINTENANCE_HELP: &str = "\
A node in maintenance hands over where it leads, and does not stand until maintenance is off, even
after a restart.

Exit status: 0, or 3 where the daemon cannot be reached.

Examples:
  lanelect maintenance on --group web
  lanelect maintenance off --group web";

const HOOK_RUNNER_HELP: &str = "\
Listens on the config's hook_socket and runs its hook, fence and check, so that the daemon needs no
privileges. When the daemon runs by another configuration, it reads the file again.

Exit status: 0 after TERM or INT, 2 for wrong usage or config, 1 for anything else.

Example:
  lanelect hook-runner --config /etc/lanelect/web.toml";

const POST_STOP_HELP: &str = "\
For ExecStopPost= of the daemon's unit. If the daemon died as the leader, it runs the demote hook
with LANELECT_REASON=crashed, and then sends the resignation. It does nothing after a daemon that
ended in an orderly way, and refuses if the daemon still runs.

Exit status: 0, 2 for wrong usage or config, 1 where something could not be done.

Example:
  lanelect post-stop --config /etc/lanelect/web.toml";

const ANNOUNCE_HELP: &str = "\
By gratuitous ARP or unsolicited neighbour advertisements, so that neighbours and switches know at
once that an address has moved. For hooks; it takes CAP_NET_RAW.

Exit status: 0, or 1 where the interface does not hold an address or nothing can be sent.

Example:
  lanelect announce eth0 10.0.0.100 2001:db8::100";

const KEYGEN_HELP: &str = "\
Every node of a group needs the same keys. The first one in key_file signs, all of them verify.

Exit status: 0, or 1 where the system gives no random bytes.

Example:
  (umask 077 && lanelect keygen > /etc/lanelect/web.key)";

const DEMO_HELP: &str = "\
Needs no configuration and no privileges, and leaves nothing behind.

Exit status: 0, or 1 where it failed.";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs the daemon, in the foreground
    #[command(after_help = RUN_HELP)]
    Run(RunArgs),
    /// Checks a config file and prints what it comes to
    #[command(after_help = CHECK_HELP)]
    CheckConfig {
        /// The config file.
        file: PathBuf,
    },
    /// Shows role, leader, term and members
    #[command(after_help = STATUS_HELP)]
    Status(QueryArgs),
    /// Tells by its exit status whether this node leads
    #[command(after_help = IS_LEADER_HELP)]
    IsLeader(DaemonArgs),
    /// Prints a line for each transition from now on
    #[command(after_help = WATCH_HELP)]
    Watch(QueryArgs),
    /// Makes this node give up leadership
    #[command(after_help = YIELD_HELP)]
    Yield(DaemonArgs),
    /// Takes this node out of service, or back in
    #[command(after_help = MAINTENANCE_HELP)]
    Maintenance {
        /// Out of service, or back in.
        switch: Switch,
        /// The daemon.
        #[command(flatten)]
        daemon: DaemonArgs,
    },
    /// Runs the hook for a daemon without privileges
    #[command(after_help = HOOK_RUNNER_HELP)]
    HookRunner {
        /// The daemon's config file.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Cleans up after a daemon that died as the leader
    #[command(after_help = POST_STOP_HELP)]
    PostStop(RunArgs),
    /// Tells the neighbours that addresses are here now
    #[command(after_help = ANNOUNCE_HELP)]
    Announce {
        /// The interface that holds the addresses
        interface: String,
        /// The addresses, IPv4 or IPv6, without a prefix length
        #[arg(required = true, value_name = "ADDRESS")]
        addresses: Vec<IpAddr>,
    },
    /// Prints a fresh key for key_file
    #[command(after_help = KEYGEN_HELP)]
    Keygen,
    /// Shows a whole election and a failover on this machine, loopback only
    #[command(after_help = DEMO_HELP)]
    Demo,
}

/// Where `run` gets its configuration from.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Config file; without it flags and defaults are all there is
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

/// Which daemon to ask, and how to print what it says.
#[derive(Debug, Args)]
pub struct QueryArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The daemon.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// Which daemon to talk to.
#[derive(Debug, Args)]
pub struct DaemonArgs {
    /// The daemon's control socket
    #[arg(long, value_name = "PATH", conflicts_with = "group")]
    socket: Option<PathBuf>,
    /// The daemon's group, at its default socket /run/lanelect/NAME.sock
    #[arg(long, value_name = "NAME", default_value = config::DEFAULT_GROUP, value_parser = config::parse_group)]
    group: GroupName,
}

impl DaemonArgs {
    /// The control socket that the daemon listens on.
    pub fn socket_path(&self) -> PathBuf {
        self.socket.clone().unwrap_or_else(|| config::default_socket(&self.group))
    }
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Out of service.
    On,
    /// Back in service.
    Off,
}

/// One flag for each of [`SETTINGS`]: there is no second list of keys to keep in step.
#[derive(Debug)]
struct ConfigFlags(Overrides);

impl Args for ConfigFlags {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.next_help_heading("Config keys").args(SETTINGS.iter().map(flag))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ConfigFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = ConfigFlags(Overrides::default());
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for setting in SETTINGS {
            let Some(values) = matches.get_many::<Value>(setting.name) else { continue };
            match setting.kind {
                Kind::Names => self.0.set(setting, values.cloned().collect::<Vec<_>>()),
                _ => values.cloned().for_each(|value| self.0.set(setting, value)),
            }
        }
        Ok(())
    }
}

fn flag(setting: &'static Setting) -> Arg {
    let flag = Arg::new(setting.name).long(setting.flag).help(setting.help);
    let text = || StringValueParser::new().map(Value::from);
    match setting.kind {
        Kind::Text => flag.value_name("TEXT").value_parser(text()),
        Kind::Path => flag.value_name("PATH").value_parser(text()),
        Kind::Duration => flag.value_name("DURATION").value_parser(text()),
        Kind::Names => flag.value_name("NAME").value_parser(text()).action(ArgAction::Append),
        Kind::Boolean => {
            flag.value_name("BOOLEAN").value_parser(BoolValueParser::new().map(Value::from))
        }
        Kind::Integer => flag
            .value_name("NUMBER")
            .value_parser(RangedI64ValueParser::<i64>::new().map(Value::from))
            .allow_negative_numbers(true),
    }
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
        assert_eq!(config.election.leader_alive_threshold.as_millis(), 125);
        assert_eq!(config.interfaces, ["a", "b"]);
    }

    #[test]
    fn voters_are_flags_that_are_repeated() {
        let line = ["--node-id=a", "--mode=quorum", "--voters=b", "--voters=a", "--voters=c"];
        let config = source(&line).load().unwrap();
        let voters = config.election.quorum.unwrap().voters;
        assert_eq!(voters.ids(), ["a", "b", "c"].map(|id| id.parse().unwrap()));
    }

    #[test]
    fn a_wrong_value_is_blamed_on_its_flag() {
        let error = source(&["--node-id=n1", "--priority=-1"]).load().unwrap_err().to_string();
        assert!(error.starts_with("--priority: -1 is out of range"), "{error}");
    }

    #[test]
    fn the_daemon_is_found_by_socket_or_group() {
        let path = |line: &[&str]| match parse(line).unwrap().command {
            Command::IsLeader(daemon) => daemon.socket_path(),
            other => panic!("not is-leader: {other:?}"),
        };
        assert_eq!(path(&["is-leader"]), PathBuf::from("/run/lanelect/default.sock"));
        assert_eq!(path(&["is-leader", "--group=a"]), PathBuf::from("/run/lanelect/a.sock"));
        assert_eq!(path(&["is-leader", "--socket=/x"]), PathBuf::from("/x"));
        assert!(parse(&["is-leader", "--group=../x"]).is_err());
        assert!(parse(&["is-leader", "--group=a", "--socket=/x"]).is_err());
    }
}
