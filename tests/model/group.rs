//! The group: three hosts, the datagrams between them, and what each thing that happens makes of
//! it.
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
use crate::schedule::Schedule;

/// How many hosts there are; all of them vote.
pub const HOSTS: usize = 3;

/// How much may go wrong on one way through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Budget {
    /// Daemons that crash.
    pub crashes: u8,
    /// Crashes that take the disk along.
    pub lost_disks: u8,
    /// Ticks that a daemon stays down before it is started.
    pub downtime: u8,
    /// Times that links are cut, or all mended again.
    pub cuts: u8,
    /// Other things that go wrong once: a datagram is lost, late or comes twice; a write or a hook
    /// takes until the next tick; a daemon is held until then.
    pub slips: u8,
    /// Times that the operator asks a leader to yield.
    pub yields: u8,
    /// Datagrams that the network has kept, and that come when they are long out of date.
    pub recalls: u8,
}

/// A datagram that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Datagram {
    pub message: u32,
    /// At which tick it was sent.
    pub sent: u8,
    /// Whom it may still reach, one bit a host.
    pub pending: u8,
}

/// What can be put off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Matter {
    /// A datagram's way to a host.
    Delivery(u32, u8),
    /// The writes of a host.
    Disk(u8),
    /// The end of a host's hook.
    Hook(u8),
    /// The waking of a host.
    Wake(u8),
    /// The start of a daemon.
    Start(u8),
    /// All that happens to a host.
    Host(u8),
}

/// For how long something is put off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Delay {
    /// Until everything else has happened that is to happen in this tick.
    Last,
    NextTick,
}

/// One thing that may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Time goes on.
    Tick,
    /// A host is woken.
    Wake(u8),
    /// This datagram reaches that host.
    Deliver(u32, u8),
    /// The same once more, or late.
    Repeat(u32, u8),
    /// This datagram, which the network has kept, reaches that host.
    Recall(u32, u8),
    /// This datagram never reaches that host.
    Lose(u32, u8),
    /// Of what this host wants to be written, that one is on disk.
    Written(u8, u8),
    /// A host's hook ends.
    HookEnds(u8),
    /// The operator asks a leader to yield.
    Yield(u8),
    Crash(u8),
    /// A daemon crashes, and its disk is lost.
    LoseDisk(u8),
    /// A daemon starts.
    Start(u8),
    /// Nothing gets over these links any more; one bit a link.
    Cut(u16),
    /// All links work again.
    Mend,
    PutOff(Matter, Delay),
}

/// One state of the group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub nodes: [u32; HOSTS],
    pub tick: u8,
    pub budget: Budget,
    pub wire: Vec<Datagram>,
    pub put_off: Vec<(Matter, Delay)>,
    /// The links that are cut, one bit each.
    pub cut: u16,
    /// Who has declared itself in each term, from term 1 on; where nobody has, it is `HOSTS`.
    pub leaderships: Vec<u8>,
    /// The highest term with which any hooks took over.
    pub told: u8,
}

/// What must not happen and did.
#[derive(Debug, Clone)]
pub struct Breach(pub String);

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The bit of the link from one host to another.
pub const fn link(from: usize, to: usize) -> u16 {
    1 << (from * HOSTS + to)
}

/// What an input to one state of a host leads to.
#[derive(Debug, Clone)]
struct Outcome {
    node: u32,
    sent: Box<[u32]>,
    /// The term of a declaration among that; 0 where there is none.
    declared: u8,
    /// The term with which the hooks took over; 0 where they did not.
    elected: u8,
    breach: Option<Box<str>>,
}

/// The states that hosts were seen in, and what each makes of its inputs.
pub struct Group {
    hosts: [Host; HOSTS],
    pub schedule: Schedule,
    /// For how many ticks after the one that it was sent in a datagram may come late or again.
    lifetime: u8,
    /// What the network has kept for ever.
    pub kept: Vec<u32>,
    nodes: Vec<Node>,
    node_ids: HashMap<(u8, u64), u32>,
    messages: Vec<Message>,
    message_ids: HashMap<Message, u32>,
    outcomes: HashMap<(u32, u8, Input), Outcome>,
}

/// What it is.
impl Group {
    pub fn new(hosts: [Host; HOSTS], schedule: Schedule, lifetime: u8) -> Self {
        Group {
            hosts,
            schedule,
            lifetime,
            kept: Vec::new(),
            nodes: Vec::new(),
            node_ids: HashMap::new(),
            messages: Vec::new(),
            message_ids: HashMap::new(),
            outcomes: HashMap::new(),
        }
    }

    /// Every host like `node`, at tick 0.
    pub fn all(&mut self, node: &Node) -> State {
        let nodes = [0, 1, 2].map(|host| self.number_node(host, node.clone()));
        State::at_peace(nodes, 0)
    }

    /// How many states of single hosts have turned up.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    pub fn node(&self, state: &State, host: u8) -> &Node {
        &self.nodes[state.nodes[usize::from(host)] as usize]
    }

    /// Keeps what a life said that led and then resigned: the last declaration of that term, and
    /// the resignation.
    pub fn keep_first_leadership(&mut self) {
        let number = |at: usize| at as u32;
        let resigns = |message: &Message| matches!(message.body, Body::Resignation { .. });
        let Some(end) = self.messages.iter().position(resigns) else { return };
        let resignation = self.messages[end];
        let declares = |message: &Message| {
            matches!(message.body, Body::Declaration { .. })
                && message.life() == resignation.life()
                && message.term == resignation.term
        };
        let declaration = self.messages.iter().rposition(declares);
        self.kept = declaration.into_iter().chain([end]).map(number).collect();
    }

    pub fn message(&self, message: u32) -> &Message {
        &self.messages[message as usize]
    }

    pub fn host(&self, host: u8) -> &Host {
        &self.hosts[usize::from(host)]
    }

    /// What a host's clock shows.
    pub fn local(&self, state: &State, host: u8) -> Time {
        self.host(host).clock.at(state.tick)
    }

    /// Whether somebody leads, has told its hooks so, and is followed by everyone else.
    pub fn is_led(&self, state: &State) -> bool {
        let leader = host_indices().find(|host| {
            self.node(state, *host).leaderships(self.host(*host), self.local(state, *host))
        });
        leader.is_some_and(|leader| {
            let leader = Some(self.host(leader).node_id);
            host_indices().all(|host| {
                let election = self.node(state, host).election();
                election.is_some_and(|election| election.leader() == leader)
            })
        })
    }

    /// How many hosts are wanting to be woken.
    pub fn due(&self, state: &State) -> u8 {
        let due = |host: &u8| self.node(state, *host).is_due(self.local(state, *host));
        host_indices().filter(due).count() as u8
    }
}

/// What happens to it.
impl Group {
    /// What `action` makes of `state`, or what must not be and then is; none where nothing changes.
    pub fn next(&mut self, state: &State, action: Action) -> Result<Option<State>, Breach> {
        let mut next = state.clone();
        next.budget.spend(action);
        match action {
            Action::Tick => self.pass(&mut next),
            Action::Lose(message, host) => next.take_off(message, 1 << host),
            Action::Cut(links) => next.cut |= links,
            Action::Mend => next.cut = 0,
            Action::PutOff(matter, delay) => next.put_off(matter, delay),
            Action::Wake(host) => self.put_in(&mut next, host, Input::Wake)?,
            Action::Deliver(message, host)
            | Action::Repeat(message, host)
            | Action::Recall(message, host) => {
                self.deliver(&mut next, message, host)?;
            }
            Action::Written(host, index) => {
                self.put_in(&mut next, host, Input::Written(index.into()))?;
            }
            Action::HookEnds(host) => self.put_in(&mut next, host, Input::HookEnds)?,
            Action::Yield(host) => self.put_in(&mut next, host, Input::Yield)?,
            Action::Crash(host) => self.crash(&mut next, host, Input::Crash)?,
            Action::LoseDisk(host) => self.crash(&mut next, host, Input::LoseDisk)?,
            Action::Start(host) => self.start(&mut next, host)?,
        }
        if let Some(matter) = action.matter() {
            next.put_off.retain(|(other, _)| *other != matter);
        }
        let may_come_again = self.may_come_again(&next);
        next.wire.retain(|datagram| datagram.pending != 0 || may_come_again);
        if next.nodes == state.nodes && next.wire == state.wire && !action.is_circumstance() {
            return Ok(None);
        }
        self.check(&next)?;
        Ok(Some(next))
    }

    fn pass(&self, state: &mut State) {
        let (tick, in_any_order) = (state.tick + 1, self.schedule == Schedule::AnyOrder);
        if in_any_order {
            // Whoever wants to be woken sleeps through this tick.
            state.budget.slips -= self.due(state);
        }
        state.tick = tick;
        state.put_off.clear();
        state.wire.retain(|datagram| {
            tick - datagram.sent <= self.lifetime || (datagram.pending != 0 && !in_any_order)
        });
    }

    /// Whether a datagram that everybody has got may reach somebody once more.
    fn may_come_again(&self, state: &State) -> bool {
        match self.schedule {
            Schedule::WithSlips => state.budget.slips > 0,
            Schedule::AnyOrder => {
                let is_down = |host: u8| self.node(state, host).election().is_none();
                state.budget.crashes + state.budget.lost_disks > 0 || host_indices().any(is_down)
            }
        }
    }

    /// To a life that has just begun everything is news that is still under way.
    fn start(&mut self, state: &mut State, host: u8) -> Result<(), Breach> {
        if self.schedule == Schedule::AnyOrder {
            state.wire.iter_mut().for_each(|datagram| datagram.pending |= 1 << host);
        }
        self.put_in(state, host, Input::Start)
    }

    fn deliver(&mut self, state: &mut State, message: u32, host: u8) -> Result<(), Breach> {
        let heard = *self.message(message);
        self.put_in(state, host, Input::Hear(message))?;
        // What the same life has sent before is old news from now on.
        for datagram in &mut state.wire {
            let other = &self.messages[datagram.message as usize];
            let same_life = (other.sender, other.incarnation) == (heard.sender, heard.incarnation);
            if same_life && other.sequence <= heard.sequence {
                datagram.pending &= !(1 << host);
            }
        }
        Ok(())
    }

    fn crash(&mut self, state: &mut State, host: u8, how: Input) -> Result<(), Breach> {
        state.wire.iter_mut().for_each(|datagram| datagram.pending &= !(1 << host));
        self.put_in(state, host, how)
    }

    fn put_in(&mut self, state: &mut State, host: u8, input: Input) -> Result<(), Breach> {
        let Outcome { node, sent, declared, elected, breach } =
            self.outcome(state.nodes[usize::from(host)], state.tick, host, input);
        if let Some(breach) = breach {
            return Err(Breach(format!("{}: {breach}", self.host(host).node_id)));
        }
        state.nodes[usize::from(host)] = node;
        let pending = host_indices()
            .filter(|to| *to != host && self.node(state, *to).election().is_some())
            .filter(|to| state.cut & link(host.into(), (*to).into()) == 0)
            .fold(0, |bits, to| bits | 1 << to);
        let sent_at = state.tick;
        let datagram = |message: &u32| Datagram { message: *message, sent: sent_at, pending };
        state.wire.extend(sent.iter().map(datagram));
        state.wire.sort_unstable_by_key(|datagram| datagram.message);
        state.note_leadership(host, declared, elected)
    }

    fn outcome(&mut self, node: u32, tick: u8, host: u8, input: Input) -> Outcome {
        let key = (node, tick, input);
        if let Some(outcome) = self.outcomes.get(&key) {
            return outcome.clone();
        }
        let of_host = &self.hosts[usize::from(host)];
        let mut next = self.nodes[node as usize].clone();
        let effects = next.take(of_host, of_host.clock.at(tick), input, &self.messages);
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
        let fingerprint = node.fingerprint(self.host(host).clock);
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

    /// What must hold in every state.
    fn check(&self, state: &State) -> Result<(), Breach> {
        let leads =
            |host: &u8| self.node(state, *host).leads(self.host(*host), self.local(state, *host));
        if host_indices().filter(leads).count() > 1 {
            return Err(Breach("two nodes lead".into()));
        }
        let holds = |host: &u8| self.node(state, *host).holds(self.local(state, *host));
        if host_indices().filter(holds).count() > 1 {
            return Err(Breach("the hooks of two nodes hold what is for one".into()));
        }
        Ok(())
    }
}

impl State {
    /// Identifies it.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    /// Hosts with nothing under way, nothing wrong, and no past.
    fn at_peace(nodes: [u32; HOSTS], tick: u8) -> Self {
        State {
            nodes,
            tick,
            budget: Budget::default(),
            wire: Vec::new(),
            put_off: Vec::new(),
            cut: 0,
            leaderships: Vec::new(),
            told: 0,
        }
    }

    /// The same hosts, at peace.
    pub fn in_peace(&self) -> State {
        State::at_peace(self.nodes, self.tick)
    }

    fn put_off(&mut self, matter: Matter, delay: Delay) {
        self.put_off.push((matter, delay));
        self.put_off.sort_unstable();
        self.put_off.dedup();
    }

    fn take_off(&mut self, message: u32, receivers: u8) {
        for datagram in self.wire.iter_mut().filter(|datagram| datagram.message == message) {
            datagram.pending &= !receivers;
        }
    }

    fn note_leadership(&mut self, host: u8, declared: u8, elected: u8) -> Result<(), Breach> {
        if declared > 0 {
            let index = usize::from(declared) - 1;
            let length = self.leaderships.len().max(index + 1);
            self.leaderships.resize(length, HOSTS as u8);
            let leader = std::mem::replace(&mut self.leaderships[index], host);
            if leader != HOSTS as u8 && leader != host {
                return Err(Breach(format!("two leaders in term {declared}")));
            }
        }
        if elected > 0 && std::mem::replace(&mut self.told, elected) >= elected {
            return Err(Breach(format!("hooks take over with term {elected}, which is no news")));
        }
        Ok(())
    }
}

impl Budget {
    fn spend(&mut self, action: Action) {
        match action {
            Action::Crash(_) => self.crashes -= 1,
            Action::LoseDisk(_) => self.lost_disks -= 1,
            Action::Yield(_) => self.yields -= 1,
            Action::Cut(_) | Action::Mend => self.cuts -= 1,
            Action::Lose(..) | Action::Repeat(..) => self.slips -= 1,
            Action::Recall(..) => self.recalls -= 1,
            Action::PutOff(Matter::Start(_), _) => self.downtime -= 1,
            Action::PutOff(..) => self.slips -= 1,
            Action::Tick
            | Action::Wake(_)
            | Action::Deliver(..)
            | Action::Written(..)
            | Action::HookEnds(_)
            | Action::Start(_) => {}
        }
    }
}

impl Action {
    /// What it is that happens; none where that cannot be put off.
    pub const fn matter(self) -> Option<Matter> {
        match self {
            Action::Deliver(message, host) => Some(Matter::Delivery(message, host)),
            Action::Wake(host) => Some(Matter::Wake(host)),
            Action::Written(host, _) => Some(Matter::Disk(host)),
            Action::HookEnds(host) => Some(Matter::Hook(host)),
            Action::Start(host) => Some(Matter::Start(host)),
            _ => None,
        }
    }

    /// Whether it changes what goes on around the hosts, and is no waste where it changes nothing
    /// else.
    const fn is_circumstance(self) -> bool {
        matches!(self, Action::Tick | Action::Cut(_) | Action::Mend | Action::PutOff(..))
    }
}

impl Matter {
    /// Which host it is about.
    pub const fn host(self) -> u8 {
        match self {
            Matter::Delivery(_, host)
            | Matter::Disk(host)
            | Matter::Hook(host)
            | Matter::Wake(host)
            | Matter::Start(host)
            | Matter::Host(host) => host,
        }
    }
}

/// Every host.
pub fn host_indices() -> impl Iterator<Item = u8> {
    0..HOSTS as u8
}
