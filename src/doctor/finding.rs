//! What a look at one thing found.

use serde::Serialize;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// It cannot be seen from here, or not by this user.
    Unknown,
    /// It may become a fault, or is one that can be lived with.
    Warn,
    /// The node cannot do what it is there for.
    Fail,
}

impl Level {
    /// The word that begins a line.
    pub const fn word(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Unknown => "unknown",
            Level::Warn => "warn",
            Level::Fail => "fail",
        }
    }
}

/// One line of the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// What was looked at.
    pub topic: &'static str,
    /// What was found.
    pub text: String,
    /// What to do; null if there is nothing to do, or if the text says it.
    pub remedy: Option<String>,
}

impl Finding {
    fn new(level: Level, topic: &'static str, text: impl Into<String>) -> Self {
        Finding { level, topic, text: text.into(), remedy: None }
    }

    pub(super) fn ok(topic: &'static str, text: impl Into<String>) -> Self {
        Finding::new(Level::Ok, topic, text)
    }

    pub(super) fn unknown(topic: &'static str, text: impl Into<String>) -> Self {
        Finding::new(Level::Unknown, topic, text)
    }

    pub(super) fn warn(topic: &'static str, text: impl Into<String>) -> Self {
        Finding::new(Level::Warn, topic, text)
    }

    pub(super) fn fail(topic: &'static str, text: impl Into<String>) -> Self {
        Finding::new(Level::Fail, topic, text)
    }

    /// The same, with what to do.
    #[must_use]
    pub(super) fn remedy(self, remedy: impl Into<String>) -> Self {
        Finding { remedy: Some(remedy.into()), ..self }
    }

    /// The finding as one line without a line feed. `width` is that of the longest topic.
    pub(super) fn line(&self, width: usize) -> String {
        let remedy = self.remedy.as_ref().map_or(String::new(), |remedy| format!("; {remedy}"));
        let text = format!("{}{remedy}", self.text);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("{:7}  {:width$}  {text}", self.level.word(), self.topic)
    }
}

/// A time ago, for people.
pub(super) fn ago(ms: u64) -> String {
    match ms / 1000 {
        0 => format!("{ms} ms ago"),
        seconds @ 1..120 => format!("{seconds} s ago"),
        seconds @ 120..7200 => format!("{} min ago", seconds / 60),
        seconds => format!("{} h ago", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finding_is_one_line_with_its_remedy() {
        let finding = Finding::fail("key", "no\nkey").remedy("make one");
        assert_eq!(finding.line(5), "fail     key    no key; make one");
        assert_eq!(Finding::ok("key", "well").line(3), "ok       key  well");
        assert!(Level::Ok < Level::Unknown && Level::Warn < Level::Fail);
    }

    #[test]
    fn times_are_in_their_largest_unit() {
        assert_eq!(
            [900, 1_999, 120_000, 7_200_000].map(ago),
            ["900 ms ago", "1 s ago", "2 min ago", "2 h ago"]
        );
    }
}
