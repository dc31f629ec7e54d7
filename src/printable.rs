//! Text for a terminal and a log: escapes untrusted text, and writes times.
//!
//! Node ids and group names are validated on input. Other untrusted text is in errors about a
//! peer's data, in answers over a socket, and in paths. Its control characters could move the
//! cursor of a terminal or make it type; formatting characters could reverse a line.

use std::borrow::Cow;
use std::fmt::Write;

use crate::types::is_invisible;

/// Escapes each invisible character in `text` as JSON does. JSON therefore keeps its meaning. Line
/// feeds and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    shown.into()
}

/// The time of day in UTC, with milliseconds.
pub fn time_of_day(since_1970_ms: u64) -> String {
    let (seconds, millis) = (since_1970_ms / 1000, since_1970_ms % 1000);
    let (minutes, second) = (seconds / 60, seconds % 60);
    let (hour, minute) = (minutes / 60 % 24, minutes % 60);
    format!("{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

fn is_hidden(c: char) -> bool {
    !matches!(c, '\n' | '\t') && (c.is_control() || is_invisible(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_seen_stays_as_it_is() {
        for text in ["", "a b\n\tc\n", "é \\ \" 漢"] {
            assert!(matches!(printable(text), Cow::Borrowed(same) if same == text), "{text:?}");
        }
    }

    #[test]
    fn what_cannot_be_seen_is_shown_by_its_number() {
        assert_eq!(printable("\u{1b}[2J\r\u{9b}x\u{7f}\0"), r"\u001b[2J\u000d\u009bx\u007f\u0000");
        assert_eq!(printable("a\u{202e}b\u{feff}"), r"a\u202eb\ufeff");
        assert_eq!(printable("\u{e0041}"), r"\udb40\udc41");
    }

    #[test]
    fn json_says_the_same_afterwards() {
        let text = "a\u{9b}\u{202e}\u{e0041}\u{7f}é\n";
        let json = serde_json::to_string(text).unwrap();
        let shown = printable(&json);
        assert!(!shown.contains(is_hidden), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
    }

    #[test]
    fn a_time_of_day_is_in_utc_and_never_out_of_range() {
        assert_eq!(time_of_day(0), "00:00:00.000Z");
        assert_eq!(time_of_day(86_399_999), "23:59:59.999Z");
        assert_eq!(time_of_day(86_400_000), "00:00:00.000Z");
        assert_eq!(time_of_day(u64::MAX), "14:25:51.615Z");
    }
}
