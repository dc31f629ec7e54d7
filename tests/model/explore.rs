//! Visits every state that can be reached, the nearest first, and none twice.

use std::collections::HashSet;
use std::fmt;

use crate::fair;
use crate::group::{Action, Breach, Group, State};
use crate::schedule;
use crate::words::InWords;

/// What an exploration has seen.
#[derive(Debug, Default)]
pub struct Tally {
    pub states: usize,
    /// Ways from one state to another, ways back to a known one counted.
    pub transitions: usize,
    /// Actions on the longest of the shortest ways.
    pub depth: usize,
    /// States of single hosts.
    pub nodes: usize,
    /// States at the last tick that differ in their hosts; from each of them somebody was elected.
    pub ends: usize,
    /// Ticks until then, at the most.
    pub vacancy: u8,
}

/// What must not happen and did, with the way to it.
pub struct Failure {
    pub breach: Breach,
    pub way: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.way.iter().try_for_each(|step| writeln!(f, "  {step}"))?;
        write!(f, "  {}", self.breach)
    }
}

/// Everything that `group` can come to from one state until the clock shows the last tick.
pub struct Exploration {
    group: Group,
    root: State,
    last_tick: u8,
    visited: HashSet<u64>,
    /// How each visited state was reached first: from which one, and by what.
    origins: Vec<(u32, Action)>,
}

impl Exploration {
    pub fn new(group: Group, root: State, last_tick: u8) -> Self {
        Exploration { group, root, last_tick, visited: HashSet::new(), origins: Vec::new() }
    }

    /// Explores, and demands that nothing forbidden happens and that from wherever time runs out,
    /// somebody can be elected. No more than `states_max` states are visited.
    pub fn run(mut self, states_max: usize) -> Result<Tally, Failure> {
        let mut tally = Tally::default();
        let mut last = Vec::new();
        let mut layer = vec![(0, self.root.clone())];
        self.visited.insert(self.root.fingerprint());
        self.origins.push((0, Action::Tick));
        while !layer.is_empty() {
            let mut next_layer = Vec::new();
            for (id, state) in &layer {
                if state.tick == self.last_tick {
                    last.push((*id, state.clone()));
                }
                tally.transitions += self.expand(*id, state, &mut next_layer)?;
            }
            if self.visited.len() > states_max {
                let breach = Breach(format!("more than {states_max} states"));
                return Err(Failure { breach, way: Vec::new() });
            }
            tally.depth += usize::from(!next_layer.is_empty());
            layer = next_layer;
        }
        tally.states = self.visited.len();
        self.demand_election(&last, &mut tally)?;
        tally.nodes = self.group.node_count();
        Ok(tally)
    }

    /// Takes every step from `state`; adds where that has not been yet. Returns how many steps.
    fn expand(
        &mut self,
        id: u32,
        state: &State,
        found: &mut Vec<(u32, State)>,
    ) -> Result<usize, Failure> {
        let mut steps = 0;
        for action in schedule::actions(&self.group, state, self.last_tick) {
            let next = self.group.next(state, action);
            let next = next.map_err(|breach| self.explain(breach, id, Some(action)))?;
            let Some(next) = next else { continue };
            steps += 1;
            if self.visited.insert(next.fingerprint()) {
                found.push((self.origins.len() as u32, next));
                self.origins.push((id, action));
            }
        }
        Ok(steps)
    }

    /// Demands that from each of these states somebody is elected where nothing goes wrong any
    /// more.
    fn demand_election(&mut self, last: &[(u32, State)], tally: &mut Tally) -> Result<(), Failure> {
        let mut distinct = HashSet::new();
        let mut vacancies = fair::Vacancies::default();
        for (id, state) in last {
            if !distinct.insert(state.nodes) {
                continue;
            }
            let vacancy = vacancies.from(&mut self.group, state);
            let vacancy = vacancy.map_err(|breach| self.explain(breach, *id, None))?;
            tally.vacancy = tally.vacancy.max(vacancy);
        }
        tally.ends = distinct.len();
        Ok(())
    }

    /// The way to where `breach` showed: to the state `id`, and on by `action`.
    fn explain(&mut self, breach: Breach, id: u32, action: Option<Action>) -> Failure {
        let mut actions: Vec<_> = action.into_iter().collect();
        let mut at = id;
        while at != 0 {
            let (from, action) = self.origins[at as usize];
            actions.push(action);
            at = from;
        }
        let mut state = self.root.clone();
        let mut way = Vec::new();
        for action in actions.into_iter().rev() {
            way.push(InWords(&self.group, &state, action).to_string());
            if let Ok(Some(next)) = self.group.next(&state, action) {
                state = next;
            }
        }
        Failure { breach, way }
    }
}
