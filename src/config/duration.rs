//! Durations in the form that people write.

use std::time::Duration;

/// Longest text that is parsed as a duration, in bytes. A longer text could reach an overflow on
/// which `humantime` panics.
const TEXT_MAX: usize = 20;

/// Units by their length in nanoseconds, longest first.
const UNITS: [(u128, &str); 6] = [
    (3_600_000_000_000, "h"),
    (60_000_000_000, "m"),
    (1_000_000_000, "s"),
    (1_000_000, "ms"),
    (1_000, "us"),
    (1, "ns"),
];

/// Reads `250ms`, `1.5s`, `2m` or `1m 30s`.
///
/// # Errors
///
/// A text that says what is wrong.
pub fn parse(text: &str) -> Result<Duration, String> {
    if text.len() > TEXT_MAX {
        return Err(format!(
            "{text:?} is not a duration: it is longer than {TEXT_MAX} bytes; give one such as \
             \"1.5s\""
        ));
    }
    humantime::parse_duration(text).map_err(|error| {
        format!("{text:?} is not a duration: {error}; give one such as \"250ms\" or \"1.5s\"")
    })
}

/// Formats a duration as a whole number of the longest unit that fits.
pub(super) fn format(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    if nanos == 0 {
        return "0s".to_owned();
    }
    UNITS
        .iter()
        .find(|(unit, _)| nanos % unit == 0)
        .map_or_else(String::new, |(unit, name)| format!("{}{name}", nanos / unit))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn whole_fractional_and_compound_durations_are_read() {
        for (text, millis) in
            [("250ms", 250), ("1.5s", 1500), ("2m", 120_000), ("1m 30s", 90_000), ("0s", 0)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn text_that_is_not_a_duration_is_rejected() {
        for text in ["", "5", "s", "-1s", "1.s", "1,5s", "1 parsec", "0.1ns"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn text_that_would_overflow_the_parser_is_rejected() {
        assert!(parse("18446744073709551615s1000ms").is_err());
    }

    proptest! {
        #[test]
        fn a_written_duration_reads_back(nanos in 0..=86_400_000_000_000_u64) {
            let duration = Duration::from_nanos(nanos);
            prop_assert_eq!(parse(&format(duration)), Ok(duration));
        }

        #[test]
        fn no_text_panics(text in "[0-9]{0,20}[.]?[0-9]{0,9} ?[a-zµ]{0,6} ?[0-9]{0,9}[a-z]{0,3}") {
            let _ = parse(&text);
        }
    }
}
