//! A world in which nothing goes wrong: datagrams arrive in their order and at once, disks write and
//! hooks end at once, daemons that are down are started, and everybody is woken in time.

use std::collections::HashMap;

use crate::group::{Action, Breach, Budget, Group, State};

/// Longer than any election takes, in ticks.
const PATIENCE: u8 = 60;

/// More than may happen in one tick before everybody is at rest.
const ACTIONS_MAX: usize = 10_000;

/// Nothing goes wrong any more.
pub const NOTHING: Budget = Budget { crashes: 0, lost_disks: 0, pauses: 0, yields: 0 };

/// Takes the next step, or none where all are at rest until time goes on.
pub fn step(group: &mut Group, state: &State) -> Result<Option<State>, Breach> {
    let mut actions = Vec::new();
    group.actions(state, &mut actions);
    actions.sort_by_key(|action| match *action {
        Action::Start(_) => (0, 0),
        Action::Written(_, index) => (1, 0 - i64::from(index)),
        Action::HookEnds(_) => (2, 0),
        Action::Deliver(message, _) => (3, group.message(message).sequence.0 as i64),
        _ => (4, 0),
    });
    for action in actions {
        let next = group.next(state, action)?;
        if next.is_some() {
            return Ok(next);
        }
    }
    Ok(None)
}

/// Goes on until all are at rest, or `reached` says that it is enough.
pub fn settle(
    group: &mut Group,
    mut state: State,
    reached: &dyn Fn(&Group, &State) -> bool,
) -> Result<State, Breach> {
    for _ in 0..ACTIONS_MAX {
        if reached(group, &state) {
            return Ok(state);
        }
        match step(group, &state)? {
            Some(next) => state = next,
            None => return Ok(state),
        }
    }
    Err(Breach("they keep each other busy".into()))
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
        match group.next(&state, Action::Tick)? {
            Some(next) => state = next,
            None => return Err(Breach("time stands still".into())),
        }
    }
    Err(Breach("nobody is elected though nothing goes wrong".into()))
}

/// Finds out whether somebody is elected from a state on, and remembers it of every state passed.
#[derive(Default)]
pub struct Elects {
    /// After how many ticks.
    known: HashMap<u64, u8>,
}

impl Elects {
    /// After how many ticks somebody leads and everyone follows, from `state` on, all datagrams that
    /// are under way being lost.
    pub fn within(&mut self, group: &mut Group, state: &State) -> Result<u8, Breach> {
        let mut state = state.without_datagrams(NOTHING);
        let mut passed = Vec::new();
        let rest = loop {
            let fingerprint = state.fingerprint();
            if let Some(rest) = self.known.get(&fingerprint) {
                break *rest;
            }
            if passed.len() > usize::from(PATIENCE) {
                return Err(Breach("nobody is elected though nothing goes wrong".into()));
            }
            state = settle(group, state, &|_, _| false)?;
            passed.push(fingerprint);
            if group.is_led(&state) {
                self.known.insert(fingerprint, 0);
                break 0;
            }
            state = match group.next(&state, Action::Tick)? {
                Some(next) => next,
                None => return Err(Breach("time stands still".into())),
            };
        };
        let mut vacancy = rest;
        for fingerprint in passed.into_iter().rev() {
            vacancy = self.known.get(&fingerprint).map_or(vacancy + 1, |known| *known);
            self.known.insert(fingerprint, vacancy);
        }
        Ok(vacancy)
    }
}
