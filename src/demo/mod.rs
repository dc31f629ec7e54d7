//! `lanelect demo`: a whole election on one machine, with real daemons and nothing to set up.
//!
//! Five processes of this very binary elect a leader over multicast on the loopback. The demo kills
//! the leader, asks the next one to yield, brings the killed one back, and tells as it goes what
//! the control sockets and the hooks show. It succeeds only where all of it was seen to happen.
//!
//! `play` is what happens, act by act; `stage` does and watches it. Nothing outlives the demo:
//! whatever ends it, `node` ends the daemons, the kernel does so even where the demo itself is
//! killed (`launch`), and `scratch` removes their files. Only SIGKILL leaves those behind, in
//! the temporary directory.

mod launch;
mod node;
mod scratch;
mod stage;
mod story;
mod timeline;

use std::io::{self, Write};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use crate::client::ClientError;
use crate::demo::node::Reign;
use crate::demo::stage::Stage;
use crate::demo::story::StoryError;

/// Between the leader's declarations.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(200);

/// Silence after which the leader counts as gone. Short, so that a failover is quick, and wider
/// than what follows from the interval, so that a busy machine makes no leader silent that was not
/// killed.
const ALIVE_THRESHOLD: Duration = Duration::from_secs(1);

/// How long the best candidate is waited for, which a busy machine may hold up as well.
const ELECTION_DURATION: Duration = Duration::from_millis(500);

/// How long everything together may take. What is missing then has not happened.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Performs the demo on stdout. Fails where not everything was seen that belongs to it, and then
/// says on stderr what was not.
pub fn run() -> ExitCode {
    if let Some(demo) = launch::parent() {
        return launch::become_daemon(&demo);
    }
    match perform(io::stdout(), &mut io::stderr()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where even stderr is gone, the exit status still tells.
            let _ = writeln!(io::stderr(), "lanelect demo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Why the demo did not come to its good end.
#[derive(Debug, thiserror::Error)]
enum DemoError {
    /// A signal asked it to stop.
    #[error("stopped by {0}; the daemons have ended and their files are removed")]
    Interrupted(&'static str),
    /// Something did not happen in time.
    #[error(
        "{what} was not seen within {} s of the start. The daemons' logs above may say why; on a \
         very busy machine, try again. Last seen:{seen}",
        TIME_LIMIT.as_secs()
    )]
    Missing {
        /// What was waited for.
        what: &'static str,
        /// What the daemons said last, a line each.
        seen: String,
    },
    /// A daemon ended that should have gone on, or did not end well.
    #[error("the daemon of {node} ended with {status}; its log above says why")]
    DaemonEnded {
        /// Which one.
        node: &'static str,
        /// How.
        status: ExitStatus,
    },
    /// The hooks of a node did not alternate.
    #[error("the hooks of {node} ran in the wrong order: {source}")]
    Hooks {
        /// Which one.
        node: &'static str,
        /// What is wrong.
        source: StoryError,
    },
    /// The leader did not yield.
    #[error("{node} was asked to yield and did not: {source}")]
    Yield {
        /// Which one.
        node: &'static str,
        /// What it answered.
        source: ClientError,
    },
    /// The temporary directory's path is too long to hold sockets.
    #[error(
        "the temporary directory's path leaves no room for a socket's: {0} is longer than {max} \
         bytes; set TMPDIR to a shorter one, such as /tmp",
        max = node::SOCKET_PATH_MAX
    )]
    PathTooLong(String),
    /// The system refused something.
    #[error("cannot {doing}: {source}")]
    System {
        /// What, as a verb and its object.
        doing: String,
        /// With what.
        source: io::Error,
    },
    /// Nobody reads the story any more.
    #[error("cannot write to stdout: {0}")]
    Output(#[from] io::Error),
}

impl DemoError {
    fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> DemoError {
        let doing = doing.into();
        move |source| DemoError::System { doing, source }
    }

    /// Whether the daemons' logs may tell more.
    const fn is_in_logs(&self) -> bool {
        !matches!(
            self,
            DemoError::Interrupted(_) | DemoError::Output(_) | DemoError::PathTooLong(_)
        )
    }
}

fn perform(out: impl Write, complaints: &mut impl Write) -> Result<(), DemoError> {
    let mut stage = Stage::set_up(out)?;
    let played = play(&mut stage);
    if played.as_ref().is_err_and(DemoError::is_in_logs) {
        // The error itself is told all the same.
        let _ = stage.write_logs(complaints);
    }
    played
}

/// What the closing summary tells.
struct Times {
    election: Duration,
    takeover: Duration,
    handover: Duration,
    comeback: Duration,
}

fn play(stage: &mut Stage<impl Write>) -> Result<(), DemoError> {
    let (first, election) = elect(stage)?;
    let (second, takeover) = kill(stage, &first)?;
    let (third, handover) = hand_over(stage, &second)?;
    let comeback = come_back(stage, &first, &third)?;
    stop(stage, &third)?;
    conclude(stage, &Times { election, takeover, handover, comeback })
}

fn elect(stage: &mut Stage<impl Write>) -> Result<(Reign, Duration), DemoError> {
    let begun = stage.tell("demo", "starts five daemons on the loopback, which elect a leader")?;
    stage.start_all()?;
    let reign = stage.await_leader("a leader whom all follow and whose hook ran", None)?;
    stage.tell("all", format!("follow {}", stage.name(reign.node)))?;
    Ok((reign, reign.at.since(begun)))
}

fn kill(stage: &mut Stage<impl Write>, old: &Reign) -> Result<(Reign, Duration), DemoError> {
    let what = format!("kills {} (kill -9): no farewell, only silence", stage.name(old.node));
    let killed = stage.tell("demo", what)?;
    stage.kill(old.node)?;
    let new = stage.await_leader("a takeover after the kill", Some(old.node))?;
    let took = new.at.since(killed);
    let what = format!("follow {}; that took {} ms", stage.name(new.node), took.as_millis());
    stage.tell("others", what)?;
    Ok((new, took))
}

fn hand_over(stage: &mut Stage<impl Write>, old: &Reign) -> Result<(Reign, Duration), DemoError> {
    let name = stage.name(old.node);
    let what = format!("asks {name} to yield: its hook ends before the next begins");
    let asked = stage.tell("demo", what)?;
    stage.ask_to_yield(old.node)?;
    let new = stage.await_leader("a handover after the yield", Some(old.node))?;
    let took = new.at.since(asked);
    let what = format!("follow {}; that took {} ms", stage.name(new.node), took.as_millis());
    stage.tell("others", what)?;
    Ok((new, took))
}

fn come_back(
    stage: &mut Stage<impl Write>,
    killed: &Reign,
    leader: &Reign,
) -> Result<Duration, DemoError> {
    let name = stage.name(killed.node);
    let started = stage.tell("demo", format!("starts {name} again"))?;
    stage.start(killed.node)?;
    stage.await_follower("the killed leader back as a follower", killed.node, leader)?;
    let what = format!("follows {}: no takeover without reason", stage.name(leader.node));
    let back = stage.tell(name, what)?;
    Ok(back.since(started))
}

fn stop(stage: &mut Stage<impl Write>, leader: &Reign) -> Result<(), DemoError> {
    let what = format!("stops them all (SIGTERM), {} last", stage.name(leader.node));
    stage.tell("demo", what)?;
    stage.terminate_all_but(leader.node)?;
    stage.await_end("the end of the followers", |node| node != leader.node)?;
    stage.terminate(leader.node)?;
    stage.await_end("the end of the leader, after its hook", |_| true)?;
    stage.tell("all", "ended with status 0")?;
    Ok(())
}

fn conclude(stage: &mut Stage<impl Write>, times: &Times) -> Result<(), DemoError> {
    let silence = ALIVE_THRESHOLD.as_millis();
    let mut text = String::from("\n");
    for (act, took, meaning) in [
        ("election", times.election, "from the start of the daemons to a leader"),
        (
            "takeover",
            times.takeover,
            &format!("from the kill; the leader must be silent for {silence} ms first"),
        ),
        ("handover", times.handover, "from the request to yield to the next leader"),
        ("comeback", times.comeback, "from the restart to following"),
    ] {
        text += &format!("{act}  {:>5} ms  {meaning}\n", took.as_millis());
    }
    text += "\nHooks, which alternate on every node:\n";
    for (name, story) in stage.stories()? {
        text += &format!("  {name:<8} {story}\n");
    }
    text += "\nAll of it was seen to happen. Now on real hosts: lanelect run --help\n";
    Ok(stage.print(&text)?)
}
