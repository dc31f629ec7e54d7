//! Parses the command line and calls the library.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Parser;
use lanelect::cli::{
    CheckArgs, Cli, Command, DaemonArgs, DoctorArgs, NamedDaemonArgs, QueryArgs, StatusArgs, Switch,
};
use lanelect::client::Target;
use lanelect::commands::{self, CommandError, Exit, Show};
use lanelect::config::{Config, ConfigSource, Overrides, keys};
use lanelect::daemon::post_stop::{self, PostStopError};
use lanelect::daemon::preflight::{self, Findings};
use lanelect::daemon::{self, RunError};
use lanelect::hooks::runner::{self, HookRunnerError};
use lanelect::printable::printable;
use lanelect::types::NodeId;
use lanelect::{announce, demo, doctor, exec, logging};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Exit status for wrong usage, which clap uses too, and for a wrong configuration.
const BAD_CONFIG: u8 = 2;

fn main() -> ExitCode {
    let mut out = io::stdout();
    match Cli::parse().command {
        Command::Run(args) => logged(|| daemon::run(args.into()), RunError::is_config),
        Command::HookRunner { config } => {
            logged(|| runner::run(file_alone(config)), HookRunnerError::is_config)
        }
        Command::PostStop(args) => {
            logged(|| post_stop::run(&args.into()), PostStopError::is_config)
        }
        Command::CheckConfig(args) => check_config(args),
        Command::Status(args) => status(&args, &mut out),
        Command::Doctor(args) => doctor(args, &mut out),
        Command::DiskSync { directory } => print(&doctor::measure(&directory)),
        Command::Watch(QueryArgs { json, daemon }) => watch(&target(&daemon), json, &mut out),
        Command::IsLeader { ready: false, daemon } => asked(commands::is_leader(&target(&daemon))),
        Command::IsLeader { ready: true, daemon } => asked(commands::is_ready(&target(&daemon))),
        Command::Exec { restart: restarts, daemon, command } => {
            let settings = exec::Settings { target: target(&daemon), command, restarts };
            match exec::run(settings) {
                Ok(status) => ExitCode::from(status),
                Err(error) => fail(&error.to_string(), error.status()),
            }
        }
        Command::ExecGuard => match exec::guard() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&format!("cannot guard a command: {error}"), 1),
        },
        Command::Yield { to, failed, wait, daemon } => {
            asked(yield_leadership(&target(&daemon), to, failed, wait.limit, &mut out))
        }
        Command::Maintenance { switch, wait, daemon } => {
            asked(maintenance(&target(&daemon), switch == Switch::On, wait.limit, &mut out))
        }
        Command::Announce { interface, addresses } => match announce::run(&interface, &addresses) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error.to_string(), 1),
        },
        Command::Keygen => keygen(),
        Command::Demo => demo::run(),
    }
}

/// Runs a command that logs. `is_config` says whether an error is in the configuration.
fn logged<E: Display>(
    work: impl FnOnce() -> Result<(), E>,
    is_config: impl FnOnce(&E) -> bool,
) -> ExitCode {
    logging::init();
    let status = match work() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::error!("{error}");
            ExitCode::from(if is_config(&error) { BAD_CONFIG } else { 1 })
        }
    };
    logging::flush();
    status
}

fn status(args: &StatusArgs, out: &mut io::Stdout) -> ExitCode {
    if args.check {
        // Nobody reads which group answers, so no other one may.
        let target = args.daemon.socket_path().map_or_else(commands::default_target, Target::at);
        return ExitCode::from(commands::check(&target, out) as u8);
    }
    let targets = targets(&args.daemon);
    if !args.watch {
        return asked(commands::overview(&targets, args.json, out));
    }
    let show = match (args.json, out.is_terminal()) {
        (true, _) => Show::Json,
        (false, true) => Show::InPlace(terminal_size),
        (false, false) => Show::InTurn,
    };
    until_interrupted(|| commands::live(commands::only(&targets)?, show, out, &io::stdout()))
}

fn doctor(args: DoctorArgs, out: &mut io::Stdout) -> ExitCode {
    let by_file = || args.config.as_deref().and_then(doctor::target_of).map(|target| vec![target]);
    let is_named = args.daemon.socket_path().is_some();
    let by_file = if is_named { None } else { by_file() };
    let targets = by_file.unwrap_or_else(|| targets(&args.daemon));
    let target = match commands::only(&targets) {
        Ok(target) => target,
        Err(error) => return fail(&error.to_string(), error.exit() as u8),
    };
    match doctor::run(target, args.config, args.json, out) {
        Ok(verdict) => ExitCode::from(verdict as u8),
        Err(error) => fail(&format!("cannot print the findings: {error}"), 1),
    }
}

/// Columns and rows of the terminal; those of the first ones if it does not say.
fn terminal_size() -> (usize, usize) {
    let size = terminal_size::terminal_size_of(io::stdout());
    size.map_or((80, 24), |(width, height)| (width.0.into(), height.0.into()))
}

fn watch(target: &Target, json: bool, out: &mut io::Stdout) -> ExitCode {
    until_interrupted(|| commands::watch(target, json, out, &io::stdout()))
}

/// Runs a command that an interrupt ends, which is its normal end.
fn until_interrupted(command: impl FnOnce() -> Result<Exit, CommandError>) -> ExitCode {
    for signal in [SIGINT, SIGTERM] {
        let always = Arc::new(AtomicBool::new(true));
        if let Err(error) = flag::register_conditional_shutdown(signal, 0, always) {
            return fail(&format!("cannot install signal handlers: {error}"), 1);
        }
    }
    asked(command())
}

fn yield_leadership(
    target: &Target,
    to: Option<NodeId>,
    has_failed: bool,
    limit: Option<Duration>,
    out: &mut io::Stdout,
) -> Result<Exit, CommandError> {
    let exit = if has_failed {
        commands::yield_failed(target, out)?
    } else {
        commands::yield_leadership(target, to, out)?
    };
    limit.map_or(Ok(exit), |limit| commands::await_successor(target, to, limit, out))
}

fn maintenance(
    target: &Target,
    on: bool,
    limit: Option<Duration>,
    out: &mut io::Stdout,
) -> Result<Exit, CommandError> {
    let exit = commands::maintenance(target, on, out)?;
    limit.map_or(Ok(exit), |limit| commands::await_maintenance(target, on, limit, out))
}

/// The daemon that is named, or else those of this host.
fn targets(daemon: &NamedDaemonArgs) -> Vec<Target> {
    daemon.socket_path().map_or_else(commands::targets, |socket| vec![Target::at(socket)])
}

/// The daemon of a command.
fn target(daemon: &DaemonArgs) -> Target {
    Target::at(daemon.socket_path())
}

/// The exit status of a client command.
fn asked(outcome: Result<Exit, CommandError>) -> ExitCode {
    match outcome {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(error) => fail(&error.to_string(), error.exit() as u8),
    }
}

fn check_config(args: CheckArgs) -> ExitCode {
    let is_quiet = args.quiet;
    let Findings { outcome, warnings } = preflight::examine(&args.into());
    let too_far = outcome.as_ref().ok().and_then(too_far);
    for warning in warnings.into_iter().chain(too_far) {
        let _ = writeln!(io::stderr(), "warning: {}", printable(&warning));
    }
    match outcome {
        Ok(_) if is_quiet => ExitCode::SUCCESS,
        Ok(config) => print(&config.to_toml()),
        Err(errors) => {
            errors.iter().for_each(|error| {
                fail(&error.to_string(), BAD_CONFIG);
            });
            ExitCode::from(BAD_CONFIG)
        }
    }
}

/// The daemon that runs knows how far away its peers are.
fn too_far(config: &Config) -> Option<String> {
    let report = Target::at(&config.socket).status().ok()?;
    report.too_far(config.election.round_trip_max()).map(|far| far.to_string())
}

fn keygen() -> ExitCode {
    match keys::generate() {
        Ok(key) => print(&format!("{}\n", *key.to_hex())),
        Err(error) => {
            fail(&format!("cannot generate a key: the system provides no random bytes: {error}"), 1)
        }
    }
}

fn file_alone(file: PathBuf) -> ConfigSource {
    ConfigSource { file: Some(file), overrides: Overrides::default() }
}

/// Prints to stdout. Unlike `print!` this does not panic if stdout is closed.
fn print(text: &str) -> ExitCode {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("cannot write to stdout: {error}"), 1),
    }
}

fn fail(message: &str, status: u8) -> ExitCode {
    // Where even stderr is gone, the exit status still tells.
    let _ = writeln!(io::stderr(), "{}", printable(message));
    ExitCode::from(status)
}
