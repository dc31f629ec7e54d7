//! Metrics as text: OpenMetrics 1.0, or the older text format of Prometheus, in which `promtool`
//! reads it.

use std::fmt::Write as _;

/// Which text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The text format 0.0.4.
    Text,
}

impl Format {
    /// OpenMetrics for whoever accepts it.
    pub fn preferred(accepted: &str) -> Self {
        match accepted.contains("application/openmetrics-text") {
            true => Format::OpenMetrics,
            false => Format::Text,
        }
    }

    /// Its content type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// What kind of number a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It rises and falls.
    Gauge,
    /// It only grows, from zero at the daemon's start.
    Counter,
    /// How often values fell between bounds.
    Histogram,
}

/// Names of labels and their values.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

/// Text that grows metric by metric. Every sample has the common labels.
#[derive(Debug)]
pub struct Page {
    format: Format,
    common: Vec<(String, String)>,
    text: String,
}

impl Page {
    /// Without any metric yet.
    pub fn new(format: Format, common: Labels<'_>) -> Self {
        let common = common.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Page { format, common: common.collect(), text: String::new() }
    }

    /// Begins a metric. Its samples have to follow.
    pub fn metric(&mut self, name: &'static str, kind: Kind, help: &str) -> Samples<'_> {
        let kind_name = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        };
        // In OpenMetrics `_total` belongs to the samples, in the older format to the name.
        let full_name = match (kind, self.format) {
            (Kind::Counter, Format::Text) => format!("{name}_total"),
            _ => name.to_owned(),
        };
        let _ = writeln!(self.text, "# TYPE {full_name} {kind_name}");
        if self.format == Format::OpenMetrics && name.ends_with("_seconds") {
            let _ = writeln!(self.text, "# UNIT {full_name} seconds");
        }
        let _ = writeln!(self.text, "# HELP {full_name} {}", escaped(help));
        Samples { page: self, name, kind }
    }

    /// The whole text.
    pub fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    fn sample(&mut self, name: &str, suffix: &str, labels: Labels<'_>, value: &str) {
        let common = self.common.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let labels: Vec<String> = common
            .chain(labels.iter().copied())
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        let _ = writeln!(self.text, "{name}{suffix}{{{}}} {value}", labels.join(","));
    }
}

/// The samples of one metric.
#[derive(Debug)]
pub struct Samples<'a> {
    page: &'a mut Page,
    name: &'static str,
    kind: Kind,
}

impl Samples<'_> {
    /// A gauge's or a counter's value.
    pub fn value(&mut self, labels: Labels<'_>, value: u64) -> &mut Self {
        self.raw(labels, &value.to_string())
    }

    /// A gauge that is 1 or 0.
    pub fn truth(&mut self, labels: Labels<'_>, value: bool) -> &mut Self {
        self.value(labels, value.into())
    }

    /// A gauge in seconds.
    pub fn seconds(&mut self, labels: Labels<'_>, milliseconds: u64) -> &mut Self {
        self.raw(labels, &in_seconds(milliseconds))
    }

    /// A gauge in seconds, of so many microseconds.
    pub fn microseconds(&mut self, labels: Labels<'_>, microseconds: u64) -> &mut Self {
        self.raw(labels, &decimal(microseconds, 6))
    }

    /// A gauge between 0 and 1, of so many in a hundred.
    pub fn percent(&mut self, labels: Labels<'_>, percent: u8) -> &mut Self {
        self.raw(labels, &decimal(percent.into(), 2))
    }

    /// A histogram of durations: how many were above the bound before and up to each bound, then
    /// how many above the last one, and their sum.
    pub fn histogram(
        &mut self,
        labels: Labels<'_>,
        bounds_ms: &[u64],
        counts: &[u64],
        sum_ms: u64,
    ) -> &mut Self {
        let bounds = bounds_ms.iter().map(|bound| in_seconds(*bound)).chain(["+Inf".to_owned()]);
        let mut count = 0;
        for (bound, within) in bounds.zip(counts) {
            count += within;
            let labels = [labels, &[("le", bound.as_str())]].concat();
            self.page.sample(self.name, "_bucket", &labels, &count.to_string());
        }
        self.page.sample(self.name, "_sum", labels, &in_seconds(sum_ms));
        self.page.sample(self.name, "_count", labels, &count.to_string());
        self
    }

    fn raw(&mut self, labels: Labels<'_>, value: &str) -> &mut Self {
        let suffix = if self.kind == Kind::Counter { "_total" } else { "" };
        self.page.sample(self.name, suffix, labels, value);
        self
    }
}

fn in_seconds(milliseconds: u64) -> String {
    decimal(milliseconds, 3)
}

/// A number whose last `places` digits are behind the point, as OpenMetrics writes numbers that
/// need not be whole: `0.01`, `1.0`.
fn decimal(value: u64, places: u32) -> String {
    let unit = 10_u64.pow(places);
    let fraction = format!("{:0width$}", value % unit, width = places as usize);
    let fraction = fraction.trim_end_matches('0');
    format!("{}.{}", value / unit, if fraction.is_empty() { "0" } else { fraction })
}

/// A text between quotes, or after HELP.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_a_point_and_no_zeros_at_the_end() {
        let mut page = Page::new(Format::Text, &[]);
        let mut way = page.metric("way", Kind::Gauge, "The way.");
        way.microseconds(&[], 80_120)
            .microseconds(&[], 2_000_000)
            .percent(&[], 5)
            .percent(&[], 100);
        let numbers = page.finish();
        let numbers: Vec<_> =
            numbers.lines().filter_map(|line| line.strip_prefix("way{} ")).collect();
        assert_eq!(numbers, ["0.08012", "2.0", "0.05", "1.0"]);
    }

    fn page(format: Format) -> String {
        let mut page = Page::new(format, &[("group", "a \"b\" \\c\n")]);
        page.metric("x_seconds", Kind::Gauge, "How long.").seconds(&[], 1_250);
        page.metric("things", Kind::Counter, "How many.").value(&[("why", "so")], 7);
        let mut took = page.metric("took_seconds", Kind::Histogram, "How long each took.");
        took.histogram(&[], &[10, 1_000], &[2, 1, 4], 90_000);
        page.finish()
    }

    #[test]
    fn openmetrics_has_units_and_an_end() {
        let group = r#"group="a \"b\" \\c\n""#;
        let expected = format!(
            "# TYPE x_seconds gauge\n# UNIT x_seconds seconds\n# HELP x_seconds How long.\n\
             x_seconds{{{group}}} 1.25\n\
             # TYPE things counter\n# HELP things How many.\nthings_total{{{group},why=\"so\"}} 7\n\
             # TYPE took_seconds histogram\n# UNIT took_seconds seconds\n\
             # HELP took_seconds How long each took.\n\
             took_seconds_bucket{{{group},le=\"0.01\"}} 2\n\
             took_seconds_bucket{{{group},le=\"1.0\"}} 3\n\
             took_seconds_bucket{{{group},le=\"+Inf\"}} 7\n\
             took_seconds_sum{{{group}}} 90.0\ntook_seconds_count{{{group}}} 7\n# EOF\n"
        );
        assert_eq!(page(Format::OpenMetrics), expected);
    }

    #[test]
    fn older_format_names_counters_by_their_samples() {
        let text = page(Format::Text);
        assert!(text.contains("# TYPE things_total counter\n# HELP things_total How many.\n"));
        assert!(!text.contains("# UNIT") && !text.contains("# EOF"), "{text}");
    }

    #[test]
    fn openmetrics_is_for_those_that_accept_it() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3";
        assert_eq!(Format::preferred(prometheus), Format::OpenMetrics);
        assert_eq!(Format::preferred("*/*"), Format::Text);
    }

    #[test]
    fn seconds_are_exact() {
        let written = [0, 1, 10, 300, 1_000, 60_010].map(in_seconds);
        assert_eq!(written, ["0.0", "0.001", "0.01", "0.3", "1.0", "60.01"]);
    }
}
