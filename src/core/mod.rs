//! The election as a pure state machine.
//!
//! [`Election`] holds one node's side of it. It owns no socket, file, process, clock or source of
//! randomness: time and a seed come in, and so do datagrams and the ends of hook runs; what to
//! send, to persist, to run and to report comes out, and the next time at which it wants to be
//! woken.
//!
//! # The calling contract
//!
//! After every `handle_*` call or command, take [`poll_output`](Election::poll_output) until it is
//! empty, carrying each output out in order. Then sleep until
//! [`poll_timeout`](Election::poll_timeout) at the latest. *What must be on disk is there before
//! the datagrams that rest on it leave*: the election itself holds those back until
//! [`handle_persisted`](Election::handle_persisted) says so, which may be later, and nothing else
//! waits for the disk meanwhile.
//!
//! A program that embeds the core carries out [`Persist`](output::Output::Persist) and
//! [`Transmit`](output::Output::Transmit), and answers [`RunHook`](output::Output::RunHook): for
//! `elected` it starts what only the leader runs, for `demoted` and `started` it stops that. The
//! rest it may ignore, with these consequences:
//!
//! | Ignored | Consequence |
//! |---|---|
//! | [`CutHookShort`](output::Output::CutHookShort) | A slow `elected` delays the `demoted` after it. |
//! | [`Fence`](output::Output::Fence), quorum mode only | Nothing helps where `demoted` takes longer than `demote_grace`. |
//! | [`UpdateCrashPlan`](output::Output::UpdateCrashPlan) | A leader that crashes is replaced when it times out, not at once. |
//! | [`Notify`](output::Output::Notify) | Nobody reads what happened. |
//! | [`Stopped`](output::Output::Stopped) | The program does not know that it may end, or that another node has its id. |
//!
//! In quorum mode a lease can expire between a call and its outputs. So read the clock again before
//! you transmit a message in the role of the leader, or start what `elected` is for. If
//! [`lease_end`](Election::lease_end) is not later than that, drop the message, and report the hook
//! as [`NotRun`](hook::HookOutcome::NotRun).
//!
//! Waking early is harmless. Datagrams that wait are handed in before a timeout is, so that a
//! daemon which was stopped for a while does not hold its own deafness against the others.

pub mod crash_plan;
mod disk;
pub mod election;
pub mod fencing;
pub mod health;
pub mod hook;
mod hook_schedule;
mod member;
pub mod membership;
pub mod output;
pub mod params;
pub mod persist;
pub mod quorum;
pub mod rank;
mod replay;
pub mod status;
pub mod timers;

pub use election::Election;
