//! Quorum mode: whether the clock since boot runs at the right rate.

use std::fs;
use std::path::Path;

use super::chrony;
use super::finding::Finding;

const TOPIC: &str = "clock";

/// The kernel's source of time.
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Where distributions have chrony's settings.
const CHRONY: [&str; 2] = ["/etc/chrony/chrony.conf", "/etc/chrony.conf"];

/// What `maxslewrate` is unless it is set, in millionths.
const SLEW_DEFAULT: f64 = 83_333.333;

/// What the election allows: 1 %, of which half is for the quartz and the rest.
const SLEW_MAX: f64 = 5_000.0;

/// Sources that the kernel takes if the processor's own counter is not stable.
const LAST_RESORTS: [&str; 5] = ["hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"];

/// Most processes that are looked at.
const PROCESSES_MAX: usize = 10_000;

/// What is known of the clock.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// None if the kernel does not say.
    pub(super) source: Option<String>,
    /// By how many millionths chrony may change the rate; none if it does not run.
    pub(super) slew: Option<f64>,
}

pub(super) fn gather() -> Facts {
    let source = fs::read_to_string(SOURCE).ok().map(|text| text.trim().to_owned());
    let slew = runs("chronyd").then(|| {
        let file = CHRONY.iter().map(Path::new).find(|file| file.exists());
        file.and_then(chrony::slew_rate).unwrap_or(SLEW_DEFAULT)
    });
    Facts { source, slew }
}

fn runs(program: &str) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else { return false };
    processes.take(PROCESSES_MAX).flatten().any(|process| {
        fs::read_to_string(process.path().join("comm")).is_ok_and(|name| name.trim() == program)
    })
}

/// Only quorum mode depends on it.
pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    vec![source(facts), slew(facts)]
}

fn source(facts: &Facts) -> Finding {
    match facts.source.as_deref() {
        None => Finding::unknown(TOPIC, "the kernel does not name its clock source"),
        Some(source) if LAST_RESORTS.contains(&source) => {
            let text = format!(
                "the clock source is {source}: the kernel did not find the processor's counter \
                 stable, and the clock may drift by more than the 1 % that the election allows"
            );
            Finding::warn(TOPIC, text).remedy("see `dmesg | grep clocksource`")
        }
        Some(source) => Finding::ok(TOPIC, format!("the clock source is {source}")),
    }
}

fn slew(facts: &Facts) -> Finding {
    match facts.slew {
        Some(rate) if rate > SLEW_MAX => {
            let percent = rate / 10_000.0;
            let text = format!(
                "chrony may change the clock's rate by {percent:.1} %, and the election allows 1 %"
            );
            Finding::warn(TOPIC, text).remedy("set maxslewrate 5000 in chrony.conf")
        }
        Some(rate) => Finding::ok(TOPIC, format!("chrony's maxslewrate is {rate}")),
        None => Finding::ok(TOPIC, "chrony does not run here"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_that_may_drift_has_a_warning() {
        let lines = |source: &str, slew| {
            let facts = Facts { source: Some(source.to_owned()), slew };
            judge(&facts).iter().map(|finding| finding.line(0)).collect::<Vec<_>>()
        };
        assert!(lines("tsc", None).iter().all(|line| line.starts_with("ok ")));
        assert!(lines("tsc", Some(5_000.0)).iter().all(|line| line.starts_with("ok ")));
        assert!(
            lines("acpi_pm", None)[0].starts_with("warn     clock  the clock source is acpi_pm")
        );
        let fast = &lines("tsc", Some(SLEW_DEFAULT))[1];
        assert!(fast.starts_with("warn     clock  chrony may change the clock's rate by 8.3 %"));
        assert!(judge(&Facts::default())[0].line(0).starts_with("unknown"));
    }
}
