//! The group: three hosts, the datagrams between them, and all that may happen next.
//!
//! What happens to a host depends on that host alone. So each host's states are numbered as they
//! turn up, and what a state makes of an input is computed once; a state of the group is three such
//! numbers, the datagrams under way, and what may still go wrong.

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use lanelect::time::Time;
use lanelect::types::Term;
use lanelect::wire::message::{Body, Message};

use crate::node::{Effects, Host, Input, Node};

pub const HOSTS: usize = 3;

/// How much may go wrong on one way through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Daemons that crash.
    pub crashes: u8,
    /// Crashes that take the disk along.
    pub lost_disks: u8,
    /// Ticks for which a host is not woken though it is due.
    pub pauses: u8,
    /// Times that the operator asks a leader to yield.
    pub yields: u8,
}

/// A datagram that was sent. It may reach everyone else, in any order with others, for as long as it
/// lives; that it reaches nobody is one of the ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Datagram {
    message: u32,
    sent: u8,
    /// Whom it would be news to, one bit a host.
    pending: u8,
}

/// One state of the group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    nodes: [u32; HOSTS],
    pub tick: u8,
    pub budget: Budget,
    wire: Vec<Datagram>,
    /// Who has declared itself in each term, from term 1 on; none is `HOSTS`.
    reigns: Vec<u8>,
    /// The highest term that any scripts took over with.
    told: u8,
}

impl State {
    /// Identifies it.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    /// The same with another budget.
    pub fn with_budget(self, budget: Budget) -> State {
        State { budget, ..self }
    }

    /// The same with nothing under way, no past, and another budget.
    pub fn without_datagrams(&self, budget: Budget) -> State {
        State { budget, wire: Vec::new(), reigns: Vec::new(), told: 0, ..self.clone() }
    }

    /// Identifies what the hosts are, whatever is under way.
    pub const fn nodes(&self) -> [u32; HOSTS] {
        self.nodes
    }
}

/// One thing that may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Time goes on.
    Tick,
    Wake(u8),
    /// This datagram reaches that host.
    Deliver(u32, u8),
    /// That write of this host is done.
    Written(u8, u8),
    HookEnds(u8),
    Yield(u8),
    Crash(u8),
    LoseDisk(u8),
    Start(u8),
}

/// What an input to one state of a host leads to.
#[derive(Debug, Clone)]
struct Outcome {
    node: u32,
    sent: Box<[u32]>,
    declared: u8,
    elected: u8,
    breach: Option<Box<str>>,
}

/// The states that hosts were seen in, and what each makes of its inputs.
pub struct Group {
    hosts: [Host; HOSTS],
    /// For how many ticks after the one that it was sent in a datagram may arrive.
    lifetime: u8,
    nodes: Vec<Node>,
    node_ids: HashMap<(u8, u64), u32>,
    messages: Vec<Message>,
    message_ids: HashMap<Message, u32>,
    outcomes: HashMap<(u32, u8, Action), Outcome>,
}

impl Group {
    pub fn new(hosts: [Host; HOSTS], lifetime: u8) -> Self {
        Group {
            hosts,
            lifetime,
            nodes: Vec::new(),
            node_ids: HashMap::new(),
            messages: Vec::new(),
            message_ids: HashMap::new(),
            outcomes: HashMap::new(),
        }
    }

    /// Everyone switched off, with what `disk` makes of each.
    pub fn all_off(&mut self, budget: Budget, node: &Node) -> State {
        let nodes = [0, 1, 2].map(|host| self.number_node(host, node.clone()));
        State { nodes, tick: 0, budget, wire: Vec::new(), reigns: Vec::new(), told: 0 }
    }

    /// How many states of single hosts have turned up.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    pub fn node(&self, state: &State, host: usize) -> &Node {
        &self.nodes[state.nodes[host] as usize]
    }

    pub fn message(&self, message: u32) -> &Message {
        &self.messages[message as usize]
    }

    pub fn host(&self, host: usize) -> &Host {
        &self.hosts[host]
    }

    pub fn local(&self, state: &State, host: usize) -> Time {
        self.hosts[host].clock.at(state.tick)
    }

    /// Whether somebody leads, has told its scripts so, and is followed by everyone else that runs.
    pub fn is_led(&self, state: &State) -> bool {
        let leader = (0..HOSTS)
            .find(|host| self.node(state, *host).reigns(&self.hosts[*host], self.local(state, *host)));
        leader.is_some_and(|leader| {
            let leader = Some(self.hosts[leader].node_id);
            (0..HOSTS).all(|host| {
                self.node(state, host).election().is_some_and(|election| election.leader() == leader)
            })
        })
    }

    /// All that may happen in `state`, but for the passing of time.
    pub fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.clear();
        for datagram in &state.wire {
            for host in 0..HOSTS as u8 {
                if datagram.pending & (1 << host) != 0 {
                    actions.push(Action::Deliver(datagram.message, host));
                }
            }
        }
        for host in 0..HOSTS as u8 {
            self.actions_of(state, host, actions);
        }
    }

    fn actions_of(&self, state: &State, host: u8, actions: &mut Vec<Action>) {
        let node = self.node(state, host.into());
        let Some(election) = node.election() else {
            actions.push(Action::Start(host));
            return;
        };
        actions.extend((0..node.writes() as u8).map(|index| Action::Written(host, index)));
        if node.hook_runs() {
            actions.push(Action::HookEnds(host));
        }
        if node.is_due(self.local(state, host.into())) {
            actions.push(Action::Wake(host));
        }
        if state.budget.yields > 0 && election.is_leader() {
            actions.push(Action::Yield(host));
        }
        if state.budget.crashes > 0 {
            actions.push(Action::Crash(host));
        }
        if state.budget.lost_disks > 0 {
            actions.push(Action::LoseDisk(host));
        }
    }

    /// What `action` makes of `state`, or what must not be in it; none where it changes nothing, or
    /// more would go wrong than may.
    pub fn next(&mut self, state: &State, action: Action) -> Result<Option<State>, Breach> {
        let (host, spent) = match action {
            Action::Tick => return self.pass(state),
            Action::Wake(host)
            | Action::Deliver(_, host)
            | Action::Written(host, _)
            | Action::HookEnds(host)
            | Action::Start(host) => (host, state.budget),
            Action::Yield(host) => {
                (host, Budget { yields: state.budget.yields - 1, ..state.budget })
            }
            Action::Crash(host) => {
                (host, Budget { crashes: state.budget.crashes - 1, ..state.budget })
            }
            Action::LoseDisk(host) => {
                (host, Budget { lost_disks: state.budget.lost_disks - 1, ..state.budget })
            }
        };
        let outcome = self.outcome(state.nodes[usize::from(host)], state.tick, host, action);
        if let Some(breach) = outcome.breach {
            return Err(Breach(breach.into()));
        }
        let mut next = State { budget: spent, ..state.clone() };
        next.nodes[usize::from(host)] = outcome.node;
        self.update_wire(&mut next, host, action, &outcome.sent);
        next.note_reign(host, outcome.declared, outcome.elected)?;
        if next == *state {
            return Ok(None);
        }
        self.check(&next)?;
        Ok(Some(next))
    }

    /// Time goes on by a tick. Whoever was to be woken and was not is held.
    fn pass(&mut self, state: &State) -> Result<Option<State>, Breach> {
        let held = (0..HOSTS)
            .filter(|host| self.node(state, *host).is_due(self.local(state, *host)))
            .count() as u8;
        if held > state.budget.pauses {
            return Ok(None);
        }
        let mut next = state.clone();
        next.tick += 1;
        next.budget.pauses -= held;
        next.wire.retain(|datagram| next.tick - datagram.sent <= self.lifetime);
        self.check(&next)?;
        Ok(Some(next))
    }

    fn outcome(&mut self, node: u32, tick: u8, host: u8, action: Action) -> Outcome {
        let key = (node, tick, action);
        if let Some(outcome) = self.outcomes.get(&key) {
            return outcome.clone();
        }
        let input = match action {
            Action::Tick | Action::Wake(_) => Input::Wake,
            Action::Deliver(message, _) => Input::Hear(*self.message(message)),
            Action::Written(_, index) => Input::Written(index.into()),
            Action::HookEnds(_) => Input::HookEnds,
            Action::Yield(_) => Input::Yield,
            Action::Crash(_) => Input::Crash,
            Action::LoseDisk(_) => Input::LoseDisk,
            Action::Start(_) => Input::Start,
        };
        let of_host = &self.hosts[usize::from(host)];
        let mut next = self.nodes[node as usize].clone();
        let effects = next.take(of_host, of_host.clock.at(tick), input);
        let outcome = self.record(host, next, effects);
        self.outcomes.insert(key, outcome.clone());
        outcome
    }

    fn record(&mut self, host: u8, node: Node, effects: Effects) -> Outcome {
        let small = |term: Option<Term>| term.map_or(0, |term| term.0 as u8);
        Outcome {
            node: self.number_node(host, node),
            sent: effects.sent.iter().map(|message| self.number_message(*message)).collect(),
            declared: small(effects.declared),
            elected: small(effects.elected),
            breach: effects.breach.map(Into::into),
        }
    }

    fn number_node(&mut self, host: u8, node: Node) -> u32 {
        let fingerprint = node.fingerprint(self.hosts[usize::from(host)].clock);
        let nodes = &mut self.nodes;
        *self.node_ids.entry((host, fingerprint)).or_insert_with(|| {
            nodes.push(node);
            (nodes.len() - 1) as u32
        })
    }

    fn number_message(&mut self, message: Message) -> u32 {
        let messages = &mut self.messages;
        *self.message_ids.entry(message).or_insert_with(|| {
            messages.push(message);
            (messages.len() - 1) as u32
        })
    }

    /// Notes what is news to whom now: nothing is that the receiver has taken in, or a later one of
    /// the same life of its sender; everything is to a life that has just begun.
    fn update_wire(&self, state: &mut State, host: u8, action: Action, sent: &[u32]) {
        let bit = 1 << host;
        match action {
            Action::Deliver(message, _) => {
                let newest = self.message(message);
                for datagram in &mut state.wire {
                    let other = self.message(datagram.message);
                    let of_same_life = (other.sender, other.incarnation)
                        == (newest.sender, newest.incarnation);
                    if of_same_life && other.sequence <= newest.sequence {
                        datagram.pending &= !bit;
                    }
                }
            }
            Action::Crash(_) | Action::LoseDisk(_) => {
                state.wire.iter_mut().for_each(|datagram| datagram.pending &= !bit);
            }
            Action::Start(_) => {
                state.wire.iter_mut().for_each(|datagram| datagram.pending |= bit);
            }
            _ => {}
        }
        let running = (0..HOSTS as u8).filter(|other| {
            *other != host && self.node(state, (*other).into()).election().is_some()
        });
        let pending = running.fold(0, |bits, other| bits | 1 << other);
        let sent = sent.iter().map(|message| Datagram { message: *message, sent: state.tick, pending });
        state.wire.extend(sent);
        let may_restart = state.budget.crashes + state.budget.lost_disks > 0
            || (0..HOSTS).any(|host| self.node(state, host).election().is_none());
        state.wire.retain(|datagram| may_restart || datagram.pending != 0);
        state.wire.sort_unstable_by_key(|datagram| datagram.message);
    }

    /// What must hold in every state.
    fn check(&self, state: &State) -> Result<(), Breach> {
        let count = |what: &dyn Fn(&Node, &Host, Time) -> bool| {
            (0..HOSTS)
                .filter(|host| {
                    let now = self.local(state, *host);
                    what(self.node(state, *host), &self.hosts[*host], now)
                })
                .count()
        };
        if count(&|node, host, now| node.leads(host, now)) > 1 {
            return Err(Breach("two nodes lead".into()));
        }
        if count(&|node, _, now| node.holds(now)) > 1 {
            return Err(Breach("two nodes' scripts hold".into()));
        }
        Ok(())
    }
}

impl State {
    fn note_reign(&mut self, host: u8, declared: u8, elected: u8) -> Result<(), Breach> {
        if declared > 0 {
            let index = usize::from(declared) - 1;
            if self.reigns.len() <= index {
                self.reigns.resize(index + 1, HOSTS as u8);
            }
            let leader = self.reigns[index];
            if leader != HOSTS as u8 && leader != host {
                return Err(Breach(format!("two leaders in term {declared}")));
            }
            self.reigns[index] = host;
        }
        if elected > 0 {
            if elected <= self.told {
                return Err(Breach(format!(
                    "scripts took over with term {elected} after {}",
                    self.told
                )));
            }
            self.told = elected;
        }
        Ok(())
    }
}

/// What must not happen and did.
#[derive(Debug, Clone)]
pub struct Breach(pub String);

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One action in words, in the state before it.
pub struct InWords<'a>(pub &'a Group, pub &'a State, pub Action);

impl fmt::Display for InWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InWords(group, state, action) = self;
        let name = |host: u8| group.host(host.into()).node_id;
        write!(f, "{:3} ", state.tick)?;
        match *action {
            Action::Tick => write!(f, "time goes on"),
            Action::Wake(host) => {
                let timer = group.node(state, host.into()).election();
                let timer = timer.and_then(|election| election.poll_timeout()).map(|next| next.timer);
                write!(f, "{} is woken for {timer:?}", name(host))
            }
            Action::Deliver(message, host) => {
                let message = group.message(message);
                write!(f, "{} hears {}", name(host), Said(message))
            }
            Action::Written(host, index) => write!(f, "{} has written {index}", name(host)),
            Action::HookEnds(host) => write!(f, "{}'s hook ends", name(host)),
            Action::Yield(host) => write!(f, "{} is asked to yield", name(host)),
            Action::Crash(host) => write!(f, "{} crashes", name(host)),
            Action::LoseDisk(host) => write!(f, "{} crashes and loses its disk", name(host)),
            Action::Start(host) => write!(f, "{} starts", name(host)),
        }
    }
}

struct Said<'a>(&'a Message);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Message { sender, incarnation, sequence, term, standing, body } = self.0;
        write!(
            f,
            "{sender}.{}.{} ({}, term {term}): ",
            incarnation.0, sequence.0, standing.role
        )?;
        match body {
            Body::Vote { candidate, request, granted } => {
                write!(f, "vote for {candidate}.{}: {granted}", request.sequence.0)
            }
            other => write!(f, "{other:?}"),
        }
    }
}
