//! A world in which nothing goes wrong any more, where somebody must be elected.

use std::collections::HashMap;

use lanelect::types::Role;

use crate::group::{Action, Breach, Group, State, host_indices};
use crate::schedule;

/// Longer than any election takes, in ticks.
const PATIENCE: u8 = 60;

/// More than may happen in one tick before everybody is at rest.
const ACTIONS_MAX: usize = 10_000;

/// Goes on until time has to, or `reached` says that it is enough.
fn settle(
    group: &mut Group,
    mut state: State,
    reached: &dyn Fn(&Group, &State) -> bool,
) -> Result<State, Breach> {
    for _ in 0..ACTIONS_MAX {
        let action = schedule::expected(group, &state);
        if action == Action::Tick || reached(group, &state) {
            return Ok(state);
        }
        if let Some(next) = group.next(&state, action)? {
            state = next;
        }
    }
    Err(Breach("they keep each other busy".into()))
}

fn pass(group: &mut Group, state: &State) -> Result<State, Breach> {
    group.next(state, Action::Tick)?.ok_or_else(|| Breach("time stands still".into()))
}

/// Goes on, tick by tick, until `reached` says that it is enough.
pub fn run_until(
    group: &mut Group,
    mut state: State,
    reached: &dyn Fn(&Group, &State) -> bool,
) -> Result<State, Breach> {
    let end = state.tick + PATIENCE;
    while state.tick < end {
        state = settle(group, state, reached)?;
        if reached(group, &state) {
            return Ok(state);
        }
        state = pass(group, &state)?;
    }
    Err(Breach("nobody is elected though nothing goes wrong".into()))
}

/// Lets everything happen that is to happen in this tick.
pub fn rest(group: &mut Group, state: State) -> Result<State, Breach> {
    settle(group, state, &|_, _| false)
}

/// Lets nothing get through until somebody stands, and returns the beginning of that tick, from
/// when on everything does.
pub fn silence(group: &mut Group, mut state: State) -> Result<State, Breach> {
    state.cut = u16::MAX;
    for _ in 0..PATIENCE {
        let next = pass(group, &state)?;
        state = rest(group, next.clone())?;
        let stands = |host: u8| {
            let election = group.node(&state, host).election();
            election.is_some_and(|election| election.role() == Role::Candidate)
        };
        if host_indices().any(stands) {
            return Ok(State { cut: 0, ..next });
        }
    }
    Err(Breach("nobody stands though nobody leads".into()))
}

/// How long it takes from a state until somebody is elected, remembered for every state passed.
#[derive(Default)]
pub struct Vacancies {
    /// In ticks.
    known: HashMap<u64, u8>,
}

impl Vacancies {
    /// After how many ticks somebody leads and everyone follows, from `state` on, though all that
    /// is under way is lost.
    pub fn from(&mut self, group: &mut Group, state: &State) -> Result<u8, Breach> {
        let mut state = state.in_peace();
        let mut passed = Vec::new();
        let mut vacancy = loop {
            let fingerprint = state.fingerprint();
            if let Some(known) = self.known.get(&fingerprint) {
                break *known;
            }
            state = rest(group, state)?.in_peace();
            if group.is_led(&state) {
                self.known.insert(fingerprint, 0);
                break 0;
            }
            passed.push(fingerprint);
            if passed.len() > usize::from(PATIENCE) {
                return Err(Breach("nobody is elected though nothing goes wrong".into()));
            }
            state = pass(group, &state)?;
        };
        for fingerprint in passed.into_iter().rev() {
            vacancy += 1;
            self.known.insert(fingerprint, vacancy);
        }
        Ok(vacancy)
    }
}
