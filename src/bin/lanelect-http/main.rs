//! `lanelect-http`: what load balancers, Prometheus and people with a browser ask of a daemon.
//!
//! A process of its own, without any privilege: it reaches the daemon through the control socket
//! alone, as every local user can, and the daemon does not know of it. Everything is bounded: the
//! connections here, what they may send, how long they may take, and how much is asked of the
//! daemon at the same time.

mod daemon;
mod events;
mod metrics;
mod page;
mod reply;
mod routes;
mod server;
#[cfg(test)]
mod testing;
mod text_format;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use lanelect::client::Target;
use lanelect::control_api::DEFAULT_GROUP;
use lanelect::printable::printable;
use lanelect::types::GroupName;
use tokio::signal::unix::{SignalKind, signal};

use crate::daemon::Daemon;
use crate::server::Server;

/// Answers load balancers, Prometheus and browsers about the node of this host
#[derive(Debug, Parser)]
#[command(name = "lanelect-http", version)]
struct Args {
    /// Group of the daemon, at its default control socket
    #[arg(long, value_name = "NAME", default_value = DEFAULT_GROUP, conflicts_with = "socket")]
    group: GroupName,

    /// Control socket of the daemon
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// Address and port to listen on; can be given several times
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7680")]
    listen: Vec<SocketAddr>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    start_log();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(run(args)),
        Err(error) => Err(format!("cannot start: {error}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            log::error!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Lines on stderr, where the service manager reads them.
fn start_log() {
    let level = env_logger::Env::default().default_filter_or("info");
    env_logger::Builder::from_env(level)
        .format(|out, record| {
            writeln!(out, "{}: {}", record.level(), printable(&record.args().to_string()))
        })
        .init();
}

/// Serves until the service manager or the user ends it.
async fn run(args: Args) -> Result<(), String> {
    // Before anybody can know that this runs: a signal that comes while its handler is being set up
    // is lost.
    let ended = |error| format!("cannot receive signals: {error}");
    let mut terminate = signal(SignalKind::terminate()).map_err(ended)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ended)?;
    let target = args.socket.map_or_else(|| Target::of_group(&args.group), Target::at);
    let server = Server::new(Daemon::new(target));
    for address in args.listen {
        let listening = server.listen(address).await;
        listening.map_err(|error| format!("cannot listen on {address}: {error}"))?;
        log::info!("listening on {address}");
    }
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
