//! What may happen next: anything, or the expected with a bounded number of exceptions.

use crate::group::{Action, Delay, Group, HOSTS, Matter, State, host_indices, link};

/// Which of the things that can happen are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// All of them at every moment: whatever was asked for is done now, later or never, datagrams
    /// reach their receivers in any order or not at all, as long as they live, and time goes on
    /// whenever it likes. Only crashes, and ticks through which somebody sleeps who wanted to be
    /// woken, are counted.
    AnyOrder,
    /// The expected, in which everything is done at once and in its order, and whatever differs
    /// from it as often as the budget allows, in every combination.
    WithSlips,
}

/// Everything that may happen in `state`, but that time goes on beyond `last_tick`.
pub fn actions(group: &Group, state: &State, last_tick: u8) -> Vec<Action> {
    let mut actions = match group.schedule {
        Schedule::AnyOrder => any_order(group, state),
        Schedule::WithSlips => with_slips(group, state),
    };
    actions.retain(|action| *action != Action::Tick || state.tick < last_tick);
    actions
}

/// What happens next where nothing goes wrong: the first of what is not put off, or else of what
/// was to come last, or else time goes on.
pub fn expected(group: &Group, state: &State) -> Action {
    let mut open = Vec::new();
    open_actions(group, state, &mut open);
    open.sort_by_key(|action| match *action {
        Action::Start(_) => (0, 0),
        Action::Written(_, index) => (1, -i64::from(index)),
        Action::HookEnds(_) => (2, 0),
        Action::Deliver(message, _) => (3, group.message(message).sequence.0 as i64),
        _ => (4, 0),
    });
    let waits = |action: &&Action, least: Delay| {
        state.put_off.iter().any(|(matter, delay)| {
            let about_it = action
                .matter()
                .is_some_and(|own| own == *matter || *matter == Matter::Host(own.host()));
            about_it && *delay >= least
        })
    };
    let first = open.iter().find(|action| !waits(action, Delay::Last));
    let last = || open.iter().find(|action| !waits(action, Delay::NextTick));
    first.or_else(last).copied().unwrap_or(Action::Tick)
}

/// What was asked for and can be done.
fn open_actions(group: &Group, state: &State, actions: &mut Vec<Action>) {
    for datagram in &state.wire {
        let receivers = host_indices().filter(|host| datagram.pending & (1 << host) != 0);
        actions.extend(receivers.map(|host| Action::Deliver(datagram.message, host)));
    }
    for host in host_indices() {
        let node = group.node(state, host);
        if node.election().is_none() {
            actions.push(Action::Start(host));
            continue;
        }
        actions.extend((0..node.writes() as u8).map(|index| Action::Written(host, index)));
        if node.hook_runs() {
            actions.push(Action::HookEnds(host));
        }
        if node.is_due(group.local(state, host)) {
            actions.push(Action::Wake(host));
        }
    }
}

fn any_order(group: &Group, state: &State) -> Vec<Action> {
    let mut actions = Vec::new();
    open_actions(group, state, &mut actions);
    for host in host_indices() {
        blows(group, state, host, &mut actions);
    }
    if group.due(state) <= state.budget.slips {
        actions.push(Action::Tick);
    }
    actions
}

fn with_slips(group: &Group, state: &State) -> Vec<Action> {
    let expected = expected(group, state);
    let mut actions = vec![expected];
    let Some(matter) = expected.matter() else {
        turns_of_the_tick(group, state, &mut actions);
        return actions;
    };
    blows(group, state, matter.host(), &mut actions);
    if let Action::Start(_) = expected {
        if state.budget.downtime > 0 {
            actions.push(Action::PutOff(matter, Delay::NextTick));
        }
    } else if state.budget.slips > 0 {
        slips(state, expected, matter, &mut actions);
    }
    actions
}

/// What may happen instead of `expected` at the cost of a slip.
fn slips(state: &State, expected: Action, matter: Matter, actions: &mut Vec<Action>) {
    if !state.put_off.contains(&(matter, Delay::Last)) {
        actions.push(Action::PutOff(matter, Delay::Last));
    }
    actions.push(Action::PutOff(matter, Delay::NextTick));
    actions.push(Action::PutOff(Matter::Host(matter.host()), Delay::NextTick));
    if let Action::Deliver(message, host) = expected {
        actions.push(Action::Lose(message, host));
    }
}

/// What may happen when everything is done and time is about to go on.
fn turns_of_the_tick(group: &Group, state: &State, actions: &mut Vec<Action>) {
    for host in host_indices() {
        blows(group, state, host, actions);
    }
    if state.budget.cuts > 0 {
        actions.push(Action::Mend);
        for host in 0..HOSTS {
            let others = (0..HOSTS).filter(|other| *other != host);
            let all = others.clone().fold(0, |bits, to| bits | link(host, to) | link(to, host));
            actions.push(Action::Cut(all));
            actions.extend(others.map(|to| Action::Cut(link(host, to))));
        }
    }
    if state.budget.slips > 0 {
        for datagram in &state.wire {
            actions.extend(host_indices().map(|host| Action::Repeat(datagram.message, host)));
        }
    }
}

/// What may happen to a running daemon at any moment.
fn blows(group: &Group, state: &State, host: u8, actions: &mut Vec<Action>) {
    let Some(election) = group.node(state, host).election() else { return };
    if state.budget.yields > 0 && election.is_leader() {
        actions.push(Action::Yield(host));
    }
    if state.budget.crashes > 0 {
        actions.push(Action::Crash(host));
    }
    if state.budget.recalls > 0 {
        actions.extend(group.kept.iter().map(|message| Action::Recall(*message, host)));
    }
    if state.budget.lost_disks > 0 {
        actions.push(Action::LoseDisk(host));
    }
}
