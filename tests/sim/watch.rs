//! Who watches a world: told of everything that a host does, and free to call it a violation.

use std::fmt;

use lanelect::core::election::Election;
use lanelect::core::hook::{HookEvent, HookRun};
use lanelect::core::output::Event;
use lanelect::core::persist::PersistentState;
use lanelect::time::Time;
use lanelect::types::Term;
use lanelect::wire::message::Message;

use crate::world::Host;
use crate::world::network::Network;

/// Something that must not happen, and did.
#[derive(Debug, Clone)]
pub struct Violation(String);

impl Violation {
    pub fn new(what: String) -> Self {
        Violation(what)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A violation where `bad`.
pub fn refuse(bad: bool, what: impl FnOnce() -> String) -> Result<(), Violation> {
    if bad { Err(Violation::new(what())) } else { Ok(()) }
}

/// Watches every host at every step. `index` says which host, `now` is true time, `local` the
/// host's own.
pub trait Watch {
    /// Whether a datagram that comes again must never change anything. It may where one that is
    /// very late, of a life that is over, is the first that is heard of its sender for long.
    const DUPLICATES_MEAN_NOTHING: bool = true;

    /// A fault or a command happens.
    fn disturb(&mut self, now: u64);

    /// What a hook run has come to changes which hosts may lead. The group may settle anew.
    fn stir(&mut self, now: u64);

    /// A hook run has failed, was lost, or could not begin.
    fn note_failed_run(&mut self);

    /// A datagram is about to be handed to an election long after it was sent.
    fn note_late(&mut self, now: u64);

    /// A new life begins.
    fn note_start(&mut self, index: usize, now: u64, hosts: &[Host]);

    /// A life has ended in an orderly way.
    fn note_stopped(&mut self, index: usize);

    /// A daemon is held.
    fn note_held(&mut self, _index: usize) {}

    /// A datagram is about to be handed to `election`. Returns whether it is news, as far as
    /// numbers tell.
    fn note_delivery(
        &mut self,
        index: usize,
        local: Time,
        message: &Message,
        election: &Election,
    ) -> bool;

    /// An election has taken in a datagram of another node.
    fn note_taken_in(&mut self, _index: usize, _message: &Message) {}

    /// A daemon has done all that there was to do.
    fn note_turn(&mut self, _index: usize, _now: u64, _hosts: &[Host]) {}

    /// A declaration does not leave, because the lease is over by now.
    fn note_dropped(&mut self, _index: usize, _now: u64, _message: &Message, _host: &Host) {}

    /// A daemon has died without a word.
    fn note_crash(&mut self, _index: usize, _now: u64, _hosts: &[Host]) {}

    /// What remained to be done after a daemon's death is done, and this is sent in its name.
    fn note_cleaned_up(&mut self, _index: usize, _now: u64, _last: &Message, _hosts: &[Host]) {}

    /// A daemon is about to be told that its disk holds this.
    fn note_told_kept(&mut self, _index: usize, _state: &PersistentState) {}

    /// A datagram is about to be handed to an election that cannot know whether it is replayed.
    fn note_unproven(&mut self, _index: usize, _message: &Message) {}

    /// An attacker's datagram is about to be handed to an election that believes it.
    fn note_forged(&mut self, index: usize, now: u64, message: &Message, election: &Election);

    /// From now on nothing counts that an attacker may have told this host. Any number of a life
    /// that it knows is news to it, and so is any leadership.
    fn note_key_required(&mut self, index: usize);

    /// What news have led to.
    fn check_reaction(
        &self,
        _index: usize,
        _message: &Message,
        _election: &Election,
    ) -> Result<(), Violation> {
        Ok(())
    }

    /// The daemon was asked to keep something.
    fn note_asked_to_keep(
        &mut self,
        _index: usize,
        _state: &PersistentState,
    ) -> Result<(), Violation> {
        Ok(())
    }

    /// The disk holds `after` from now on.
    fn note_kept(
        &mut self,
        index: usize,
        before: &PersistentState,
        after: &PersistentState,
    ) -> Result<(), Violation>;

    /// The election has asked to send this, or to run that; the daemon has not done it yet.
    fn note_decided(
        &mut self,
        _index: usize,
        _now: u64,
        _decided: &Decided,
        _hosts: &[Host],
    ) -> Result<(), Violation> {
        Ok(())
    }

    /// A datagram leaves.
    fn note_sent(
        &mut self,
        index: usize,
        now: u64,
        message: &Message,
        hosts: &[Host],
    ) -> Result<(), Violation>;

    /// A datagram is lost between two hosts that reach each other.
    fn note_lost(&mut self, _from: usize, _to: usize) {}

    /// A hook starts.
    fn note_hook_start(
        &mut self,
        index: usize,
        now: u64,
        run: &HookRun,
        hosts: &[Host],
    ) -> Result<(), Violation>;

    /// A hook has ended, though its daemon may not know.
    /// `repeats` says that it is missing, so that it runs again.
    fn note_hook_end(&mut self, index: usize, event: HookEvent, repeats: bool);

    /// The fence command has made a host's hooks let go.
    fn note_fenced(&mut self, _index: usize) {}

    /// The election tells something.
    fn note_event(
        &mut self,
        index: usize,
        now: u64,
        event: &Event,
        host: &Host,
    ) -> Result<(), Violation>;

    /// Something has happened somewhere.
    fn check_step(&mut self, now: u64, hosts: &[Host], network: &Network) -> Result<(), Violation>;
}

/// What an election asks its daemon to do to the world.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::large_enum_variant, reason = "one at a time, on the stack")]
pub enum Decided {
    /// To send this.
    Send(Message),
    /// To keep this.
    Keep(PersistentState),
    /// To run this hook.
    Run(HookRun),
    /// To run the fence command for the leadership of this term.
    Fence(Term),
}
