//! What happens, in words.

use std::fmt;

use lanelect::wire::message::{Body, Message};

use crate::group::{Action, Group, State};

/// One action, in the state before it.
pub struct InWords<'a>(pub &'a Group, pub &'a State, pub Action);

impl fmt::Display for InWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InWords(group, state, action) = self;
        let name = |host: u8| group.host(host).node_id;
        let said = |message: u32| Said(group.message(message));
        write!(f, "{:2}  ", state.tick)?;
        match *action {
            Action::Tick => write!(f, "time goes on"),
            Action::Wake(host) => {
                let election = group.node(state, host).election();
                let next = election.and_then(|election| election.poll_timeout());
                write!(f, "{} is woken for {:?}", name(host), next.map(|next| next.timer))
            }
            Action::Deliver(message, host) => write!(f, "{} hears {}", name(host), said(message)),
            Action::Repeat(message, host) => {
                write!(f, "{} hears again or late {}", name(host), said(message))
            }
            Action::Recall(message, host) => {
                write!(f, "{} hears long after {}", name(host), said(message))
            }
            Action::Lose(message, host) => write!(f, "{} misses {}", name(host), said(message)),
            Action::Written(host, _) => write!(f, "{}'s disk has written", name(host)),
            Action::HookEnds(host) => write!(f, "{}'s hook ends", name(host)),
            Action::Yield(host) => write!(f, "{} is asked to yield", name(host)),
            Action::Crash(host) => write!(f, "{} crashes", name(host)),
            Action::LoseDisk(host) => write!(f, "{} crashes and loses its disk", name(host)),
            Action::Start(host) => write!(f, "{} starts", name(host)),
            Action::Cut(links) => write!(f, "links are cut: {links:09b}"),
            Action::Mend => write!(f, "all links are mended"),
            Action::PutOff(matter, delay) => write!(f, "put off to {delay:?}: {matter:?}"),
        }
    }
}

struct Said<'a>(&'a Message);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Message { sender, incarnation, sequence, term, standing, echoes: _, body } = self.0;
        write!(f, "{sender} {}.{} ({}, {term}): ", incarnation.0, sequence.0, standing.role)?;
        match body {
            Body::Vote { candidate, request, granted } => {
                let number = (request.incarnation.0, request.sequence.0);
                write!(f, "vote for {candidate} {}.{}: {granted}", number.0, number.1)
            }
            Body::Heartbeat { leader, acknowledged: Some(declaration), .. } => {
                let number = (declaration.incarnation.0, declaration.sequence.0);
                write!(f, "heartbeat to {leader:?}, acknowledges {}.{}", number.0, number.1)
            }
            Body::Heartbeat { leader, .. } => write!(f, "heartbeat, leader {leader:?}"),
            other => write!(f, "{other:?}"),
        }
    }
}
