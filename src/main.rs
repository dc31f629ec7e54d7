//! Parses the command line and dispatches; the library does the work.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use lanelect::cli::{Cli, Command, Switch};
use lanelect::config::{ConfigSource, Overrides, keys};
use lanelect::logging;

/// Exit status for wrong usage, which clap uses too, and for a wrong configuration.
const BAD_CONFIG: u8 = 2;

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(args) => {
            logging::init();
            pending::run(args.into())
        }
        Command::HookRunner { config } => {
            logging::init();
            pending::hook_runner(file_alone(config))
        }
        Command::CheckConfig { file } => check_config(file),
        Command::Status(query) => pending::status(query.daemon.socket_path(), query.json),
        Command::Watch(query) => pending::watch(query.daemon.socket_path(), query.json),
        Command::IsLeader(daemon) => pending::is_leader(daemon.socket_path()),
        Command::Yield(daemon) => pending::yield_leadership(daemon.socket_path()),
        Command::Maintenance { switch, daemon } => {
            pending::maintenance(daemon.socket_path(), switch == Switch::On)
        }
        Command::Keygen => keygen(),
        Command::Demo => pending::demo(),
    }
}

fn check_config(file: PathBuf) -> ExitCode {
    match file_alone(file).load() {
        Ok(config) => print(&config.to_toml()),
        Err(error) => fail(&error.to_string(), BAD_CONFIG),
    }
}

fn keygen() -> ExitCode {
    match keys::generate() {
        Ok(key) => print(&format!("{}\n", *key.to_hex())),
        Err(error) => fail(&format!("the system gives no random bytes: {error}"), 1),
    }
}

fn file_alone(file: PathBuf) -> ConfigSource {
    ConfigSource { file: Some(file), overrides: Overrides::default() }
}

/// Prints to stdout. Unlike `print!` this does not panic where the reader has gone.
fn print(text: &str) -> ExitCode {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("cannot write to stdout: {error}"), 1),
    }
}

fn fail(message: &str, status: u8) -> ExitCode {
    // Where even stderr is gone, the exit status still tells.
    let _ = writeln!(io::stderr(), "{message}");
    ExitCode::from(status)
}

// INTEGRATION: each of these becomes the call named beside it; then this module goes away.
mod pending {
    use super::{BAD_CONFIG, ConfigSource, ExitCode, PathBuf, fail};

    /// `lanelect::daemon::run(source)`.
    pub(crate) fn run(source: ConfigSource) -> ExitCode {
        match source.load() {
            Ok(_) => absent(),
            Err(error) => {
                log::error!("{error}");
                ExitCode::from(BAD_CONFIG)
            }
        }
    }

    /// `lanelect::hook_runner::run(source)`.
    pub(crate) fn hook_runner(source: ConfigSource) -> ExitCode {
        run(source)
    }

    /// `lanelect::client::status(socket, json)`.
    pub(crate) fn status(_socket: PathBuf, _json: bool) -> ExitCode {
        absent()
    }

    /// `lanelect::client::watch(socket, json)`.
    pub(crate) fn watch(_socket: PathBuf, _json: bool) -> ExitCode {
        absent()
    }

    /// `lanelect::client::is_leader(socket)`.
    pub(crate) fn is_leader(_socket: PathBuf) -> ExitCode {
        absent()
    }

    /// `lanelect::client::yield_leadership(socket)`.
    pub(crate) fn yield_leadership(_socket: PathBuf) -> ExitCode {
        absent()
    }

    /// `lanelect::client::maintenance(socket, on)`.
    pub(crate) fn maintenance(_socket: PathBuf, _on: bool) -> ExitCode {
        absent()
    }

    /// `lanelect::demo::run()`.
    pub(crate) fn demo() -> ExitCode {
        absent()
    }

    fn absent() -> ExitCode {
        fail("this command is not in this build", 1)
    }
}
