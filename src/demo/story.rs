//! What a node's hooks saw, and whether that is what hooks are promised.

use std::fmt;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as UnknownEvent;

use crate::core::hook::HookEvent;
use crate::types::Term;

/// A run of a hook, as the hook itself wrote it down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HookLine {
    /// `LANELECT_EVENT`.
    pub(super) event: HookEvent,
    /// `LANELECT_REASON`.
    pub(super) reason: String,
    /// `LANELECT_TERM`.
    pub(super) term: Term,
}

impl HookLine {
    /// Reads `EVENT REASON TERM`; none where the line is anything else.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ').map(str::to_owned);
        let event = words.next()?.into_deserializer();
        let event = HookEvent::deserialize(event).map_err(|_: UnknownEvent| ()).ok()?;
        let (reason, term) = (words.next()?, Term(words.next()?.parse().ok()?));
        words.next().is_none().then_some(HookLine { event, reason, term })
    }
}

/// One thing that happened to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chapter {
    /// Its hook ran.
    Hook(HookEvent),
    /// It was killed.
    Killed,
}

impl fmt::Display for Chapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Chapter::Hook(event) => event.fmt(f),
            Chapter::Killed => f.write_str("(killed)"),
        }
    }
}

/// All that happened to a node, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Story(Vec<Chapter>);

/// A hook ran that must not run there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{event} must not follow here: {story}")]
pub(super) struct StoryError {
    event: HookEvent,
    story: Story,
}

impl Story {
    pub(super) fn push(&mut self, chapter: Chapter) {
        self.0.push(chapter);
    }

    /// Whether the hooks have put this host on the leader's side; none where no hook has run since
    /// the daemon was started or killed.
    pub(super) fn leads(&self) -> Option<bool> {
        match self.0.last()? {
            Chapter::Hook(HookEvent::Elected | HookEvent::Reaffirmed) => Some(true),
            Chapter::Hook(HookEvent::Demoted | HookEvent::Started) => Some(false),
            Chapter::Killed => None,
        }
    }

    /// Whether this is not the daemon's first life.
    pub(super) fn was_killed(&self) -> bool {
        self.0.contains(&Chapter::Killed)
    }

    /// Checks that `elected`, any number of `reaffirmed`, and `demoted` alternate, and that
    /// `started` comes only first in a life.
    pub(super) fn check(&self) -> Result<(), StoryError> {
        let (mut leads, mut newborn) = (false, true);
        for (index, chapter) in self.0.iter().enumerate() {
            let Chapter::Hook(event) = *chapter else {
                (leads, newborn) = (false, true);
                continue;
            };
            let allowed = match event {
                HookEvent::Started => newborn,
                HookEvent::Elected => !leads,
                HookEvent::Reaffirmed | HookEvent::Demoted => leads,
            };
            if !allowed {
                let story = Story(self.0.iter().take(index + 1).copied().collect());
                return Err(StoryError { event, story });
            }
            leads = matches!(event, HookEvent::Elected | HookEvent::Reaffirmed);
            newborn = false;
        }
        Ok(())
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, chapter) in self.0.iter().enumerate() {
            f.write_str(if n == 0 { "" } else { ", " })?;
            chapter.fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use HookEvent::{Demoted, Elected, Reaffirmed, Started};

    const KILLED: Chapter = Chapter::Killed;

    fn story(chapters: &[Chapter]) -> Story {
        Story(chapters.to_vec())
    }

    fn hooks(events: &[HookEvent]) -> Story {
        Story(events.iter().copied().map(Chapter::Hook).collect())
    }

    #[test]
    fn hooks_alternate_and_begin_with_started() {
        for good in [
            &[][..],
            &[Started],
            &[Elected],
            &[Started, Elected, Demoted, Elected, Reaffirmed, Reaffirmed, Demoted],
        ] {
            assert_eq!(hooks(good).check(), Ok(()), "{good:?}");
        }
        for bad in [
            &[Demoted][..],
            &[Reaffirmed],
            &[Started, Started],
            &[Started, Demoted],
            &[Elected, Elected],
            &[Elected, Started],
            &[Elected, Demoted, Demoted],
            &[Elected, Demoted, Started],
            &[Elected, Demoted, Reaffirmed],
            &[Elected, Reaffirmed, Elected],
        ] {
            let wrong = hooks(bad).check().unwrap_err();
            assert_eq!(wrong, StoryError { event: *bad.last().unwrap(), story: hooks(bad) });
        }
    }

    #[test]
    fn a_killed_node_begins_anew() {
        let (started, elected) = (Chapter::Hook(Started), Chapter::Hook(Elected));
        let demoted = Chapter::Hook(Demoted);
        for good in [&[elected, KILLED, started][..], &[elected, KILLED, elected, demoted]] {
            assert_eq!(story(good).check(), Ok(()), "{good:?}");
        }
        assert!(story(&[elected, KILLED, demoted]).check().is_err());
        assert!(story(&[elected, KILLED, started, started]).check().is_err());
    }

    #[test]
    fn the_last_hook_says_which_side_the_host_is_on() {
        assert_eq!(story(&[]).leads(), None);
        assert_eq!(hooks(&[Elected]).leads(), Some(true));
        assert_eq!(hooks(&[Elected, Reaffirmed]).leads(), Some(true));
        assert_eq!(hooks(&[Elected, Demoted]).leads(), Some(false));
        assert_eq!(hooks(&[Started]).leads(), Some(false));
        assert_eq!(story(&[Chapter::Hook(Elected), KILLED]).leads(), None);
    }

    #[test]
    fn a_story_reads_as_one() {
        let told = story(&[Chapter::Hook(Elected), KILLED, Chapter::Hook(Started)]);
        assert_eq!(told.to_string(), "elected, (killed), started");
    }

    #[test]
    fn a_line_has_exactly_three_words_and_a_known_event() {
        let line = HookLine { event: Elected, reason: "election".into(), term: Term(7) };
        assert_eq!(HookLine::parse("elected election 7"), Some(line));
        for bad in [
            "",
            "elected",
            "elected election",
            "crowned election 7",
            "elected a b",
            "elected a 7 b",
        ] {
            assert_eq!(HookLine::parse(bad), None, "{bad:?}");
        }
    }
}
