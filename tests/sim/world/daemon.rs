//! What a daemon does with its election: hand in what happens, carry out what it asks for.

use std::collections::VecDeque;
use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use lanelect::core::Election;
use lanelect::core::election::Setup;
use lanelect::core::hook::HookEvent;
use lanelect::core::output::{Event, Output};
use lanelect::core::status::Status;
use lanelect::time::Time;
use lanelect::types::{Incarnation, KeyMode};
use lanelect::wire::frame::{Decoded, Reject};
use lanelect::wire::message::{Body, Message};

use super::archive::Kept;
use super::host::{CLOCKS_BEGAN_AT, DiskFault, Held};
use super::keys::is_plain_heartbeat;
use super::network::Carrier;
use super::{Action, Came, Sabotage, World, address, nanos, node_id};
use crate::watch::{Decided, Violation, Watch, refuse};

/// Datagrams that wait in a held host's socket; more are dropped, the newest first.
const SOCKET_BUFFER: usize = 256;

impl<W: Watch> World<W> {
    /// Starts a host's daemon with what its disk kept, as soon as the end of the last one has been
    /// cleaned up. None starts on a disk that cannot be read.
    pub fn start(&mut self, index: usize) -> Result<(), Violation> {
        self.watch.disturb(self.now);
        let host = &self.hosts[index];
        if host.busy_until > self.now {
            let action = Action::Start { host: index, life: host.life };
            self.schedule(host.busy_until - self.now, action);
            return Ok(());
        }
        if host.disk.torn {
            self.log(index, || "refuses to start: its state cannot be read".into());
            return Ok(());
        }
        // A voter saves its new life before anything else.
        if host.params.quorum.is_some() && host.disk.fault != DiskFault::None {
            self.log(index, || {
                format!("does not start: its disk has the fault {:?}", host.disk.fault)
            });
            return Ok(());
        }
        self.log(index, || "starts".into());
        let links_up = self.network.is_plugged(index);
        let seed = self.rng.u64(..);
        let incarnation = self.next_incarnation(index);
        let host = &mut self.hosts[index];
        host.life += 1;
        host.wake_at = u64::MAX;
        host.listens_since = self.now;
        host.is_deceived = false;
        host.held = None;
        host.claims_again_at = 0;
        host.lease_seen = None;
        (host.fence_runs, host.lost_takeover, host.untold_end) = (false, false, None);
        (host.incarnation, host.clock_is_back) = (incarnation, false);
        host.disk.begin_life();
        let setup = Setup {
            node_id: host.node_id,
            incarnation,
            persisted: host.disk.kept,
            params: host.params.clone(),
            links_up,
            seed,
        };
        let now = host.local(self.now);
        let mut election = Election::new(setup, now);
        election.handle_check(now, host.healthy);
        host.election = Some(election);
        self.watch.note_start(index, self.now, &self.hosts);
        self.drain(index)
    }

    /// Above every earlier life of this id, also where the disk was lost: a wall clock sees to
    /// that. One that was set back gives a number below them, and another one each time.
    fn next_incarnation(&self, index: usize) -> Incarnation {
        let host = &self.hosts[index];
        if host.clock_is_back {
            let starts = host.life * self.hosts.len() as u64 + index as u64;
            return Incarnation(CLOCKS_BEGAN_AT - 1 - starts);
        }
        let duplicates = self.hosts.iter().filter(|other| other.node_id == host.node_id);
        let last = duplicates.map(|duplicate| duplicate.incarnation).max();
        let wall_micros = CLOCKS_BEGAN_AT + self.now / 1000;
        Incarnation(last.map_or(0, |last| last.0 + 1).max(wall_micros))
    }

    /// Ends a host's daemon without any warning.
    pub fn crash(&mut self, index: usize) -> Result<(), Violation> {
        if !self.hosts[index].is_alive() {
            return Ok(());
        }
        self.log(index, || "crashes".into());
        self.watch.disturb(self.now);
        let host = &mut self.hosts[index];
        host.election = None;
        host.held = None;
        host.life += 1;
        host.disk.forget_writes();
        self.watch.note_crash(index, self.now, &self.hosts);
        self.clean_up_after_crash(index)
    }

    /// Holds a host's daemon, as SIGSTOP does.
    pub fn pause(&mut self, index: usize) {
        if self.hosts[index].is_up() {
            self.log(index, || "is held".into());
            self.watch.disturb(self.now);
            self.watch.note_held(index);
            self.hosts[index].held = Some(Held { since: self.now, ..Held::default() });
        }
    }

    /// Holds a host's daemon for `duration`. Where a watchdog guards it, it is killed if that is
    /// too long; and it is held again only once its hooks have had the time that they rely on.
    pub fn hold_for(&mut self, index: usize, duration: u64) {
        let host = &self.hosts[index];
        if !host.is_up() {
            return;
        }
        let life = host.life;
        let (lasts, action) = match &self.guard {
            None => (duration, Action::Resume { host: index, life }),
            Some(guard) => {
                if self.now < host.released_at + guard.between_holds {
                    return;
                }
                let patience = host.clock.span(guard.watchdog);
                let last_sign = self.rng.u64(0..=patience / 2);
                if duration < patience - last_sign {
                    (duration, Action::Resume { host: index, life })
                } else {
                    (patience - last_sign, Action::Kill { host: index, life })
                }
            }
        };
        self.pause(index);
        self.hosts[index].released_at = self.now + lasts;
        self.schedule(lasts, action);
    }

    /// Lets a held daemon go on: it finishes what it was at, then reads what has arrived, as the
    /// event loop does, and only then looks at its deadlines.
    pub fn resume(&mut self, index: usize) -> Result<(), Violation> {
        let Some(held) = self.hosts[index].held.take() else { return Ok(()) };
        self.log(index, || "goes on".into());
        self.watch.disturb(self.now);
        self.hosts[index].listens_since = self.now;
        let Held { since, in_hand, mut inbox } = held;
        let was_long = self.now >= since + self.gone_after(index);
        if !was_long {
            self.hosts[index].misled_at = self.now;
        }
        for output in in_hand {
            self.carry_out(index, output)?;
        }
        self.drain(index)?;
        while self.hosts[index].is_up() {
            let Some((kept, came)) = inbox.pop_front() else { break };
            let is_replayed = was_long && came != Came::Forged;
            self.hear(index, kept, if is_replayed { Came::Replayed } else { came })?;
        }
        if let Some(held) = &mut self.hosts[index].held {
            held.inbox.append(&mut inbox);
            return Ok(());
        }
        if let Some((_, outcome)) = self.hosts[index].untold_end.take() {
            self.report_hook_end(index, outcome)?;
        }
        self.tell_kept(index)?;
        self.look_at_links(index)?;
        self.wake(index)
    }

    /// What happened to the interfaces while the daemon was held is noticed afterwards.
    fn look_at_links(&mut self, index: usize) -> Result<(), Violation> {
        let up = self.network.is_plugged(index);
        let host = &mut self.hosts[index];
        let now = host.local(self.now);
        if let Some(election) = host.election.as_mut().filter(|_| host.held.is_none()) {
            election.handle_links(now, up);
        }
        self.drain(index)
    }

    /// The operator has a node yield, to a certain one or to the best.
    pub fn yield_leadership(&mut self, index: usize, to: Option<usize>) -> Result<(), Violation> {
        self.command(index, "yields", |election, now| {
            let _ = match to {
                Some(to) => election.yield_to(now, node_id(to)),
                None => election.yield_leadership(now),
            };
        })
    }

    /// Does something to a running election, as the control socket or a signal would.
    pub fn command(
        &mut self,
        index: usize,
        what: &str,
        act: impl FnOnce(&mut Election, Time),
    ) -> Result<(), Violation> {
        if !self.hosts[index].is_up() {
            return Ok(());
        }
        self.log(index, || what.to_string());
        self.watch.disturb(self.now);
        let now = self.hosts[index].local(self.now);
        if let Some(election) = &mut self.hosts[index].election {
            act(election, now);
        }
        self.drain(index)
    }

    pub(super) fn wake(&mut self, index: usize) -> Result<(), Violation> {
        let host = &mut self.hosts[index];
        if host.held.is_some() {
            return Ok(());
        }
        host.wake_at = u64::MAX;
        let now = host.local(self.now);
        if let Some(election) = &mut host.election {
            election.handle_timeout(now);
        }
        self.drain(index)
    }

    pub(super) fn deliver(&mut self, to: usize, kept: Kept, came: Came) -> Result<(), Violation> {
        if let Some(held) = &mut self.hosts[to].held {
            if held.inbox.len() < SOCKET_BUFFER {
                held.inbox.push_back((kept, came));
            }
            return Ok(());
        }
        self.hear(to, kept, came)
    }

    fn hear(&mut self, to: usize, kept: Kept, came: Came) -> Result<(), Violation> {
        let Kept { from, sent_at, datagram } = kept;
        let address = address(from);
        let read = self.wire.decode(self.mode_of(to), address, &datagram);
        if self.is_for_another(to, &read) {
            return Ok(());
        }
        match came {
            Came::Again if self.is_to_mean_nothing(to, sent_at, &read) => {
                let before = self.summary(to);
                self.hand_in(to, address, read)?;
                let after = self.summary(to);
                refuse(before != after, || {
                    format!(
                        "a duplicate changed {}: {before:?} → {after:?}: {read:?}",
                        self.label(to)
                    )
                })
            }
            Came::Replayed if self.is_old(to, sent_at) => {
                let before = self.status_by_now(to);
                self.hand_in(to, address, read)?;
                let changed = before != self.status(to);
                refuse(changed, || {
                    format!("what was replayed changed {}: {read:?}", self.label(to))
                })
            }
            Came::Forged => self.hand_in_forged(to, address, read),
            Came::First | Came::Again | Came::Replayed => {
                self.note_age(to, came, sent_at);
                self.hand_in(to, address, read)
            }
        }
    }

    /// Whether a duplicate must change nothing. A ping that came before its sender was a member was
    /// ignored, so a copy of it may be the first that is answered.
    fn is_to_mean_nothing(&self, to: usize, sent_at: u64, read: &Result<Decoded, Reject>) -> bool {
        W::DUPLICATES_MEAN_NOTHING
            && self.has_heard(to, sent_at)
            && !read.is_ok_and(|decoded| is_measuring(&decoded.message))
    }

    /// Whether a host has taken in what was sent at `sent_at`, if that has arrived.
    fn has_heard(&self, index: usize, sent_at: u64) -> bool {
        let host = &self.hosts[index];
        host.listens_since <= sent_at && !host.is_deceived
    }

    /// What arrives late can make a host believe for a while that its sender is there, if only that
    /// its own last life is.
    fn note_age(&mut self, index: usize, came: Came, sent_at: u64) {
        let host = &self.hosts[index];
        if !host.is_alive() {
            return;
        }
        let age = self.now - sent_at;
        if came == Came::Replayed || age > nanos(host.params.leader_alive_threshold) {
            self.watch.note_late(self.now);
        }
        if age > self.gone_after(index) / 8 {
            self.hosts[index].misled_at = self.now;
        }
    }

    /// Whether what was sent at `sent_at` must mean nothing to a host: it may have been on its way
    /// no longer than members are believed to be there without being heard, and not since the host
    /// was held, unless for longer than that, or heard something late. A broken one numbers its
    /// datagrams otherwise than it knows, so an old echo of them is new to it.
    fn is_old(&self, index: usize, sent_at: u64) -> bool {
        let host = &self.hosts[index];
        let authenticated = host.election.as_ref().is_some_and(|e| e.params().demands_proof());
        let holds = authenticated && !self.is_broken(index);
        holds && self.now >= sent_at.max(host.misled_at) + self.gone_after(index)
    }

    /// For how long a host may believe a silent one to be there, in true time.
    fn gone_after(&self, index: usize) -> u64 {
        self.hosts[index].clock.span(self.gone_after)
    }

    /// What a replayed datagram must leave as it is: a host's status once it has looked at the
    /// time, as it does before whatever it hears. A leader that was held, or one that hands over,
    /// may then find its lease over.
    fn status_by_now(&self, index: usize) -> Option<Status> {
        let host = &self.hosts[index];
        let now = host.local(self.now);
        let lease_is_over =
            |election: &&Election| election.lease_end().is_some_and(|end| end <= now);
        let election = host.election.as_ref().filter(lease_is_over);
        let looked = election.zip(host.last_sent).map(|(election, own)| {
            let mut election = election.clone();
            election.handle_datagram(now, address(index), &own);
            election
        });
        status_of_others(looked.as_ref().or(host.election.as_ref()), now)
    }

    /// What a replayed datagram must not change: nothing but what the host's own vote decides,
    /// which does not count until a duplicate has had the time to answer, and which of its own
    /// pings were lost, because it may ping along with what it answers.
    fn status(&self, index: usize) -> Option<Status> {
        let host = &self.hosts[index];
        status_of_others(host.election.as_ref(), host.local(self.now))
    }

    /// What a duplicate must not change. Where datagrams are authenticated one of an earlier life
    /// may be met with a challenge.
    fn summary(&self, index: usize) -> impl PartialEq + fmt::Debug + use<W> {
        let election = self.hosts[index].election.as_ref();
        let sent = election.filter(|e| !e.params().demands_proof()).map(|_| self.sent);
        (election.map(|e| (e.role(), e.leader(), e.term())), sent)
    }

    fn hand_in(
        &mut self,
        to: usize,
        from: IpAddr,
        read: Result<Decoded, Reject>,
    ) -> Result<(), Violation> {
        // It was under way while the hosts took steps with their keys, or is as old as that.
        if matches!(read, Err(Reject::Unsealed | Reject::Sealed)) && self.mixes_modes() {
            return Ok(());
        }
        let Decoded { message, is_sealed, .. } = read
            .map_err(|error| Violation::new(format!("an own datagram does not decode: {error}")))?;
        let is_open = self.mixes_modes() && !is_sealed;
        let is_told_by_broken = self.is_told_by_broken(&message);
        let host = &mut self.hosts[to];
        let is_deceived = host.is_deceived;
        let Some(election) = &mut host.election else { return Ok(()) };
        if self.sabotage == Some(Sabotage::IgnoreBetterLeaders)
            && matches!(message.body, Body::Declaration { .. })
            && election.is_leader()
            && message.sender < election.node_id()
        {
            return Ok(());
        }
        let now = host.clock.show(self.now);
        let is_proven = election.is_proven(now, &message);
        let is_measuring = is_measuring(&message);
        if !is_proven && !is_measuring {
            self.watch.note_unproven(to, &message);
        }
        let is_news =
            is_proven && !is_measuring && self.watch.note_delivery(to, now, &message, election);
        let ignored = election.ignored();
        if is_open {
            election.handle_open_datagram(now, from, &message);
        } else {
            election.handle_datagram(now, from, &message);
        }
        if message.sender != election.node_id() && election.ignored() == ignored {
            self.watch.note_taken_in(to, &message);
        }
        // What tells of an absurd term is refused, and only one that is broken tells of it.
        let is_refused = is_told_by_broken && election.ignored().absurd_term > ignored.absurd_term;
        if is_news && !is_deceived && !is_refused {
            self.watch.check_reaction(to, &message, election)?;
        }
        self.drain(to)
    }

    /// A host that requires a key refuses what an attacker without it has made up. Another one
    /// believes it, so that no more is promised of what comes of it than of any other datagram.
    fn hand_in_forged(
        &mut self,
        to: usize,
        from: IpAddr,
        read: Result<Decoded, Reject>,
    ) -> Result<(), Violation> {
        let counts = self.mode_of(to) == Some(KeyMode::Require) && read.is_ok();
        refuse(counts, || format!("{} accepts a forgery", self.label(to)))?;
        let host = &mut self.hosts[to];
        let (Some(election), Ok(Decoded { message, .. })) = (&mut host.election, read) else {
            return Ok(());
        };
        host.is_deceived = true;
        let now = host.clock.show(self.now);
        self.watch.note_forged(to, self.now, &message, election);
        election.handle_open_datagram(now, from, &message);
        self.drain(to)
    }

    /// Carries out what the election asks for, in order, and schedules its next wake.
    pub(super) fn drain(&mut self, index: usize) -> Result<(), Violation> {
        let mut outputs = VecDeque::new();
        loop {
            self.note_lease(index);
            while let Some(output) =
                self.hosts[index].election.as_mut().and_then(Election::poll_output)
            {
                self.note_decided(index, &output)?;
                outputs.push_back(output);
            }
            let Some(output) = outputs.pop_front() else { break };
            self.hiccup(index);
            if let Some(held) = &mut self.hosts[index].held {
                outputs.push_front(output);
                held.in_hand = outputs;
                self.watch.note_turn(index, self.now, &self.hosts);
                return Ok(());
            }
            self.carry_out(index, output)?;
        }
        self.watch.note_turn(index, self.now, &self.hosts);
        self.schedule_wake(index);
        Ok(())
    }

    /// A daemon may be held, or killed, between two things that it does.
    fn hiccup(&mut self, index: usize) {
        if self.hiccups.chance > 0.0 && self.rng.f64() < self.hiccups.chance {
            let duration = self.rng.u64(0..=self.hiccups.longest);
            self.hold_for(index, duration);
        }
    }

    fn note_lease(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        let lease = host.election.as_ref().and_then(Election::lease_end);
        host.lease_seen = lease.or(host.lease_seen);
    }

    fn is_sick(&self, index: usize) -> bool {
        let host = &self.hosts[index];
        let is_checked = host.election.as_ref().is_some_and(|e| e.params().check.is_some());
        is_checked && !host.healthy
    }

    fn note_decided(&mut self, index: usize, output: &Output) -> Result<(), Violation> {
        let decided = match output {
            Output::Transmit(message) => Decided::Send(*message),
            Output::Persist(state) => Decided::Keep(*state),
            Output::RunHook(run) if run.event == HookEvent::Elected && self.is_sick(index) => {
                let label = self.label(index);
                return Err(Violation::new(format!("{label} is elected though its check fails")));
            }
            Output::RunHook(run) => Decided::Run(*run),
            Output::Fence { term } => Decided::Fence(*term),
            _ => return Ok(()),
        };
        self.watch.note_decided(index, self.now, &decided, &self.hosts)
    }

    fn carry_out(&mut self, index: usize, output: Output) -> Result<(), Violation> {
        match output {
            Output::Persist(state) => self.save(index, state),
            Output::Transmit(message) => self.transmit(index, message),
            Output::RunHook(run) => self.run_hook(index, run),
            Output::CutHookShort { by } => {
                self.cut_hook_short(index, by);
                Ok(())
            }
            Output::Fence { term } => {
                self.log(index, || format!("fences term {term}"));
                self.run_fence(index)
            }
            Output::UpdateCrashPlan => {
                let host = &mut self.hosts[index];
                host.plan = host.election.as_ref().and_then(Election::crash_plan);
                Ok(())
            }
            Output::Notify(event) => self.note_event(index, event),
            Output::Stopped(cause) => {
                self.log(index, || format!("stopped: {cause:?}"));
                self.watch.note_stopped(index);
                self.check_that_it_is_over(index)?;
                self.save_the_rest(index)?;
                self.hosts[index].election = None;
                self.hosts[index].life += 1;
                self.speak_after_stop(index)
            }
        }
    }

    /// Whatever is done to an election that has stopped, nothing comes of it.
    fn check_that_it_is_over(&mut self, index: usize) -> Result<(), Violation> {
        let now = self.hosts[index].local(self.now);
        let label = self.label(index);
        let Some(election) = &mut self.hosts[index].election else { return Ok(()) };
        let maintenance = election.in_maintenance();
        election.set_maintenance(now, !maintenance);
        election.handle_links(now, false);
        election.handle_links(now, true);
        election.handle_check(now, false);
        election.handle_leader_check(now, false);
        election.handle_timeout(now);
        if election.poll_output().is_none() && election.poll_timeout().is_none() {
            return Ok(());
        }
        Err(Violation::new(format!("{label} goes on after it stopped")))
    }

    fn speak_after_stop(&mut self, index: usize) -> Result<(), Violation> {
        match self.hosts[index].last_sent {
            Some(mut last) if self.sabotage == Some(Sabotage::SpeakAfterStop) => {
                last.sequence.0 += 1;
                self.transmit(index, last)
            }
            _ => Ok(()),
        }
    }

    /// Sends a datagram, unless it declares a leadership that is over by now.
    fn transmit(&mut self, index: usize, message: Message) -> Result<(), Violation> {
        if self.is_outdated(index, &message) {
            self.log(index, || "drops a declaration: its lease is over".into());
            self.watch.note_dropped(index, self.now, &message, &self.hosts[index]);
            return Ok(());
        }
        self.watch.note_sent(index, self.now, &message, &self.hosts)?;
        self.hosts[index].last_sent = Some(message);
        self.send(index, &message)
    }

    pub(super) fn send(&mut self, index: usize, message: &Message) -> Result<(), Violation> {
        let told = self.as_told(index, message);
        self.log(index, || format!("sends {:?} term {}", told.body, told.term));
        self.sent += 1;
        // Every other host runs a later release.
        let is_later = index % 2 == 1;
        let is_replaced = is_later && self.is_every_other_heartbeat(index, &told);
        let mode = self.mode_of(index);
        let datagram = self.wire.encode(mode, address(index), &told, is_later, is_replaced)?;
        let datagram = Rc::from(datagram);
        let kept = Kept { from: index, sent_at: self.now, datagram };
        if self.keeps_datagrams {
            self.archive.note(&told, kept.clone());
        }
        let is_broken = self.is_broken(index);
        let addressee = self.addressee(index, message);
        for to in (0..self.hosts.len()).filter(|to| !is_broken || *to != index) {
            let is_meant = addressee.is_none_or(|addressee| addressee == to);
            let carriers = [Carrier::Multicast, Carrier::Unicast].into_iter().filter(|carrier| {
                (*carrier == Carrier::Multicast || is_meant)
                    && self.network.carries(*carrier, index, to)
            });
            let carriers = carriers.count();
            let rng = &mut self.rng;
            let each = (0..carriers).flat_map(|_| self.network.deliveries(rng, index, to));
            let mut delays: Vec<_> = each.flatten().collect();
            delays.sort_unstable();
            if delays.is_empty() && carriers > 0 {
                self.watch.note_lost(index, to);
            }
            for (copy, delay) in delays.into_iter().enumerate() {
                let came = if copy > 0 { Came::Again } else { Came::First };
                self.schedule(delay, Action::Deliver { to, kept: kept.clone(), came });
            }
        }
        if self.broken.is_empty() { Ok(()) } else { self.provoke(index, &told.body) }
    }

    fn is_every_other_heartbeat(&mut self, index: usize, message: &Message) -> bool {
        let heartbeats = &mut self.hosts[index].plain_heartbeats;
        *heartbeats += u64::from(is_plain_heartbeat(message));
        is_plain_heartbeat(message) && *heartbeats % 2 == 0
    }

    /// The host that alone gets a datagram by unicast: the one at the address that its addressee
    /// was last heard from. Without peers that does not matter.
    fn addressee(&self, index: usize, message: &Message) -> Option<usize> {
        let node_id = message.body.addressee()?;
        let heard_from = self.hosts[index].election.as_ref()?.address_of(&node_id)?;
        (0..self.hosts.len()).find(|host| address(*host) == heard_from)
    }

    /// Whether a host that hears no multicast drops what concerns only another one.
    fn is_for_another(&self, to: usize, read: &Result<Decoded, Reject>) -> bool {
        if self.network.carriers(to).has(Carrier::Multicast) {
            return false;
        }
        let addressee = read.ok().and_then(|decoded| decoded.message.body.addressee());
        addressee.is_some_and(|addressee| addressee != self.hosts[to].node_id)
    }

    /// A declaration of a leader whose lease has run out since it decided to declare.
    fn is_outdated(&self, index: usize, message: &Message) -> bool {
        let host = &self.hosts[index];
        if host.params.quorum.is_none()
            || !matches!(message.body, Body::Declaration { .. })
            || self.sabotage == Some(Sabotage::SendDeadDeclarations)
        {
            return false;
        }
        let lease_end = host.election.as_ref().and_then(Election::lease_end);
        lease_end.is_none_or(|end| end <= host.local(self.now))
    }

    fn note_event(&mut self, index: usize, event: Event) -> Result<(), Violation> {
        self.log(index, || format!("{event:?}"));
        if let Event::ClaimFailed { pause } = event {
            let host = &mut self.hosts[index];
            host.claims_again_at = self.now + host.clock.span(nanos(pause));
        }
        self.watch.note_event(index, self.now, &event, &self.hosts[index])
    }

    fn schedule_wake(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        let deadline = host.election.as_ref().and_then(Election::poll_timeout);
        let Some(deadline) = deadline else { return };
        let at = host.clock.true_time(deadline.at).max(self.now);
        if at != host.wake_at {
            host.wake_at = at;
            let action = Action::Wake { host: index, life: host.life };
            self.schedule(at - self.now, action);
        }
    }
}

/// Whether a datagram is a ping or a pong. The election takes no notice of them and their order.
fn is_measuring(message: &Message) -> bool {
    matches!(message.body, Body::Ping { .. } | Body::Pong { .. })
}

/// An election's status without what its own vote decides, and without the loss of its own pings.
/// The vote decides whether it counts, and how long a lease lasts that needs no other vote. Such a
/// leader renews its lease with whatever it sends, and it answers a replayed challenge of a later
/// life of its own.
fn status_of_others(election: Option<&Election>, now: Time) -> Option<Status> {
    let election = election?;
    let mut status = election.status(now);
    status.members.iter_mut().for_each(|member| member.loss_percent = None);
    if let Some(quorum) = &mut status.quorum {
        quorum.voters.retain(|voter| voter.node_id != election.node_id());
        if quorum.needed == 1 {
            quorum.lease = quorum.lease.map(|_| Duration::ZERO);
        }
    }
    Some(status)
}
