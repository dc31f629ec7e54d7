//! The election as a pure state machine.
//!
//! [`Election`] is one node's side of it. It owns no socket, file, process, clock or source of
//! randomness. Its inputs are the time, a seed, datagrams and the results of hook runs. Its outputs
//! are what to send, persist, run and report, and when to wake it next.
//!
//! # The calling contract
//!
//! After every `handle_*` call or command, take [`poll_output`](Election::poll_output) until it is
//! empty, and carry out each output in order. Then sleep until
//! [`poll_timeout`](Election::poll_timeout) at the latest. *Persist before send*: the election
//! holds a datagram back until [`handle_persisted`](Election::handle_persisted) reports that the
//! state it depends on is on disk. Apart from datagrams, only the hooks for
//! `elected` and `reaffirmed` wait for the disk.
//!
//! A program that embeds the core carries out [`Persist`](output::Output::Persist) and
//! [`Transmit`](output::Output::Transmit), and answers [`RunHook`](output::Output::RunHook): for
//! `elected` it starts what only the leader runs, for `demoted` and `started` it stops that. In
//! quorum mode it also answers [`Fence`](output::Output::Fence), with
//! [`NotRun`](hook::HookOutcome::NotRun) if it has no means to fence this host: until then the node
//! neither votes, nor stands, nor stops. The rest it may ignore, with these consequences:
//!
//! | Ignored | Consequence |
//! |---|---|
//! | [`CutHookShort`](output::Output::CutHookShort) | A slow `elected` delays the `demoted` after it. |
//! | [`UpdateCrashPlan`](output::Output::UpdateCrashPlan) | A leader that crashes is replaced when it times out, not at once. |
//! | [`Notify`](output::Output::Notify) | What happened is not reported. |
//! | [`Stopped`](output::Output::Stopped) | The program does not know that it may end, or that another node has its id. |
//!
//! In quorum mode a lease can expire between a call and its outputs. So read the clock again before
//! you transmit a message in the role of the leader, or start what `elected` is for. If
//! [`lease_end`](Election::lease_end) is not later than that, drop the message, and report the hook
//! as [`NotRun`](hook::HookOutcome::NotRun).
//!
//! Waking early is harmless. Hand in waiting datagrams before a timeout: otherwise a daemon that
//! was stopped for a while mistakes its own pause for the silence of the others.

mod back_off;
mod disk;
pub mod election;
pub mod fencing;
pub mod health;
pub mod hook;
mod hook_schedule;
mod member;
pub mod membership;
mod other_lives;
pub mod output;
pub mod params;
pub mod persist;
pub mod quorum;
pub mod rank;
mod recent;
mod replay;
mod round_trip;
pub mod status;
pub mod timers;

pub use election::{Election, crash_plan};
