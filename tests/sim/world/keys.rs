//! Datagrams as bytes: of two releases, and sealed where a host's mode of the keys says so.
//!
//! In most groups all hosts use keys alike. Nobody forges anything there, so the authenticator is
//! left out, for speed. In the others the hosts are on their way to keys, or away from them: their
//! modes differ by one step at the most, as the documented procedure has it. An attacker without
//! the key may send there, and real authenticators decide what counts.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::rc::Rc;

use fastrand::Rng;
use lanelect::core::params::Params;
use lanelect::core::status::Ineligible;
use lanelect::types::{KeyMode, Role};
use lanelect::wire::auth::Keyring;
use lanelect::wire::frame::{Codec, Decoded, Reject};
use lanelect::wire::message::{Body, Message};

use super::{Action, Came, Kept, World, address};
use crate::watch::{Violation, Watch};

/// The steps of the procedure, in their order.
pub const STEPS: [Option<KeyMode>; 4] =
    [None, Some(KeyMode::Accept), Some(KeyMode::Prefer), Some(KeyMode::Require)];

/// What a later release appends to each datagram, and a kind of body that only it knows.
const EXTENSION: &[u8] = b"later";
const LATER_KIND: u8 = 100;

const SEALED: u8 = 1;

/// How many of the last datagrams need not be decoded again: most come to all hosts at once.
const REMEMBERED: usize = 8;

/// What a host on one step makes of a datagram.
struct Read {
    datagram: Rc<[u8]>,
    step: usize,
    source: IpAddr,
    made: Result<Decoded, Reject>,
}

/// Which step a mode is.
fn step_of(mode: Option<KeyMode>) -> usize {
    STEPS.iter().position(|step| *step == mode).unwrap_or_default()
}

/// The modes of a group's hosts: all alike, or on two neighbouring steps.
pub fn choose_modes(rng: &mut Rng, hosts: usize) -> Vec<Option<KeyMode>> {
    let step = match rng.u8(0..6) {
        0..=1 => return vec![None; hosts],
        2..=3 => return vec![Some(KeyMode::Require); hosts],
        _ => rng.usize(0..STEPS.len() - 1),
    };
    let mut modes: Vec<_> = (0..hosts).map(|_| STEPS[step + rng.usize(0..2)]).collect();
    // A group whose hosts are all alike is on its way, too, if they understand both sides.
    modes[0] = STEPS[step.max(1)];
    modes
}

/// Encodes and decodes.
pub(super) struct Wire {
    /// Without authenticators.
    plain: Codec,
    /// By step; none where all hosts use keys alike.
    steps: Option<[Codec; STEPS.len()]>,
    keyring: Keyring,
    /// The last datagrams that were decoded.
    last: VecDeque<Read>,
}

impl Wire {
    pub(super) fn new(modes: &[Option<KeyMode>]) -> Wire {
        let keyring = || Keyring::parse(&"1".repeat(64)).expect("a valid key");
        let group = "sim".parse().expect("a valid name");
        let codec =
            |mode: Option<KeyMode>| Codec::new(group, mode.map(|mode| keyring().with_mode(mode)));
        let alike = [None, Some(KeyMode::Require)].contains(&modes[0])
            && modes.iter().all(|mode| *mode == modes[0]);
        let steps = (!alike).then(|| STEPS.map(codec));
        Wire { plain: codec(None), steps, keyring: keyring(), last: VecDeque::new() }
    }

    /// A datagram of a host with this mode, by a later release or by this one. A later one may have
    /// a kind of its own in its place.
    pub(super) fn encode(
        &self,
        mode: Option<KeyMode>,
        source: IpAddr,
        message: &Message,
        is_later: bool,
        is_replaced: bool,
    ) -> Result<Vec<u8>, Violation> {
        let body = if is_replaced { Body::Inquiry } else { message.body };
        let mut datagram = Vec::new();
        let encoded = self.plain.encode(source, &Message { body, ..*message }, &mut datagram);
        encoded.map_err(|error| Violation::new(format!("a message does not encode: {error}")))?;
        if let Some(kind) = datagram.last_mut().filter(|_| is_replaced) {
            // An inquiry has no more than its kind.
            *kind = LATER_KIND;
        }
        if is_later {
            datagram.extend_from_slice(EXTENSION);
        }
        if self.steps.is_some() && mode.is_some_and(KeyMode::seals) {
            datagram[1] = SEALED;
            let tag = self.keyring.tag(source, &datagram);
            datagram.extend_from_slice(&tag);
        }
        Ok(datagram)
    }

    /// What a host with this mode makes of a datagram.
    pub(super) fn decode(
        &mut self,
        mode: Option<KeyMode>,
        source: IpAddr,
        datagram: &Rc<[u8]>,
    ) -> Result<Decoded, Reject> {
        let step = step_of(mode);
        let is_same = |read: &&Read| {
            Rc::ptr_eq(&read.datagram, datagram) && (read.step, read.source) == (step, source)
        };
        if let Some(read) = self.last.iter().find(is_same) {
            return read.made;
        }
        let codec = self.steps.as_ref().map_or(&self.plain, |steps| &steps[step]);
        let made = codec.decode(source, datagram);
        if self.last.len() == REMEMBERED {
            self.last.pop_front();
        }
        self.last.push_back(Read { datagram: Rc::clone(datagram), step, source, made });
        made
    }
}

/// Whether a heartbeat asks, acknowledges and concedes nothing: a later release may have a kind of
/// its own for that.
pub(super) fn is_plain_heartbeat(message: &Message) -> bool {
    let alone = matches!(message.body, Body::Heartbeat { conceded: None, acknowledged: None, .. });
    alone && message.standing.role != Role::Starting
}

impl<W: Watch> World<W> {
    /// Whether the hosts are on their way to keys, or away from them.
    pub fn mixes_modes(&self) -> bool {
        self.wire.steps.is_some()
    }

    /// Whether no host accepts what an attacker without the key can send.
    pub fn all_require_keys(&self) -> bool {
        (0..self.group).all(|host| self.mode_of(host) == Some(KeyMode::Require))
    }

    /// The mode that a host's daemon has, or will have.
    pub(super) fn mode_of(&self, index: usize) -> Option<KeyMode> {
        let host = &self.hosts[index];
        host.election.as_ref().map_or(host.params.key_mode, |election| election.params().key_mode)
    }

    /// A host takes a step, unless that would leave two hosts two steps apart. A daemon that is
    /// held reads no configuration.
    pub fn take_key_step(&mut self, index: usize, towards: bool) -> Result<(), Violation> {
        let step = step_of(self.mode_of(index));
        let next = if towards { step + 1 } else { step.wrapping_sub(1) };
        let fits = |other: usize| other == index || step_of(self.mode_of(other)).abs_diff(next) < 2;
        let is_held = self.hosts[index].held.is_some();
        if !self.mixes_modes() || next >= STEPS.len() || is_held || !(0..self.group).all(fits) {
            return Ok(());
        }
        if self.all_require_keys() {
            // All hosts would have ignored it, so no checker excuses what it would do now.
            self.lose_attacks();
        }
        let host = &mut self.hosts[index];
        host.params.key_mode = STEPS[next];
        // What it ignored before it may count now.
        host.listens_since = self.now;
        let mut params = host.params.clone();
        if let Some(election) = &host.election {
            params = Params { key_mode: STEPS[next], ..election.params().clone() };
        }
        if STEPS[next] == Some(KeyMode::Require) {
            // One that was made to believe that another daemon has its life stops, and is silent.
            let now = host.clock.show(self.now);
            let reason = host.election.as_ref().and_then(|election| election.ineligible(now));
            host.is_deceived &= reason == Some(Ineligible::Stopping);
            self.watch.note_key_required(index);
        }
        self.command(index, "takes a step with its keys", |election, now| {
            election.reconfigure(now, params);
        })
    }

    /// All hosts come to require keys, one step after the other.
    pub fn require_keys(&mut self, pause: u64) -> Result<(), Violation> {
        for _ in 1..STEPS.len() {
            let lowest = (0..self.group).map(|host| step_of(self.mode_of(host))).min();
            for host in 0..self.group {
                if Some(step_of(self.mode_of(host))) == lowest {
                    self.take_key_step(host, true)?;
                }
            }
            self.run_for(pause)?;
        }
        Ok(())
    }

    /// An attacker without the key sends this, under the address of `from`, to `to`.
    pub(super) fn forge(
        &mut self,
        from: usize,
        to: usize,
        message: &Message,
        delay: u64,
    ) -> Result<(), Violation> {
        let datagram = self.wire.encode(None, address(from), message, false, false)?;
        let kept = Kept { from, sent_at: self.now, datagram: datagram.into() };
        self.schedule(delay, Action::Deliver { to, kept, came: Came::Forged });
        Ok(())
    }
}
