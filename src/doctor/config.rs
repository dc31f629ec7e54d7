//! The config file: what the daemon would refuse, and what of it is not in force.

use std::fs;
use std::io::ErrorKind;
use std::path::{self, Path, PathBuf};

use super::finding::Finding;
use crate::config::keys::KeyFileError;
use crate::config::{Config, ConfigError, ConfigSource, Overrides, SETTINGS};
use crate::control_api::ConfigReport;
use crate::daemon::RunError;
use crate::daemon::preflight::{self, Findings};

const TOPIC: &str = "config";

/// What is known of a config file.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// The file that was read; none if it is not known.
    pub(super) file: Option<PathBuf>,
    /// The configuration, if it is valid.
    pub(super) config: Option<Config>,
    /// Why it is not.
    pub(super) errors: Vec<String>,
    /// What this user may not read of it.
    pub(super) hidden: Vec<String>,
    /// What its operator may regret, without what concerns programs.
    pub(super) warnings: Vec<String>,
    /// What is wrong with the programs that it names.
    pub(super) programs: Vec<String>,
    /// When the file last changed: [`ConfigSource::changed_ms`].
    pub(super) changed_ms: Option<u64>,
}

impl Facts {
    /// Whether the daemon goes by this file as it is now.
    pub(super) fn is_in_force(&self, report: Option<&ConfigReport>) -> bool {
        report.is_some_and(|report| self.is_of(report) && !self.is_newer(report))
    }

    /// Whether it is the daemon's file, perhaps by another name.
    fn is_of(&self, report: &ConfigReport) -> bool {
        let files = self.file.as_deref().zip(report.file.as_ref().map(Path::new));
        files.is_some_and(|(file, daemons)| file == daemons || is_same(file, daemons))
    }

    /// Whether it has changed since the daemon read it. The wall clock may have been set meanwhile,
    /// so which of two times is later does not say.
    fn is_newer(&self, report: &ConfigReport) -> bool {
        let times = self.changed_ms.zip(report.changed_ms);
        times.is_some_and(|(now, then)| now != then)
    }
}

/// Whether both names lead to the same file, by links or `..`.
fn is_same(one: &Path, other: &Path) -> bool {
    let found = fs::canonicalize(one).ok();
    found.is_some() && found == fs::canonicalize(other).ok()
}

/// Reads the file as the daemon would. `hook_socket` is what a flag of the daemon sets.
pub(super) fn gather(file: Option<PathBuf>, hook_socket: Option<String>) -> Facts {
    let Some(file) = file else { return Facts::default() };
    // The daemon names its own from the root.
    let file = path::absolute(&file).unwrap_or(file);
    let mut overrides = Overrides::default();
    let setting = SETTINGS.iter().find(|setting| setting.name == "hook_socket");
    if let Some((socket, setting)) = hook_socket.zip(setting) {
        overrides.set(setting, socket);
    }
    let source = ConfigSource { file: Some(file.clone()), overrides };
    let changed_ms = source.changed_ms();
    if fs::metadata(&file).is_ok_and(|metadata| !metadata.is_file()) {
        // To open a pipe would wait for its writer.
        let errors = vec![format!("{} is not a regular file", file.display())];
        return Facts { file: Some(file), errors, ..Facts::default() };
    }
    let Findings { outcome, warnings } = preflight::examine(&source);
    let mut facts = Facts { file: Some(file), changed_ms, ..Facts::default() };
    match outcome {
        Ok(config) => {
            facts.programs = preflight::program_warnings(&config);
            facts.config = Some(config);
        }
        Err(errors) => {
            for error in errors {
                match hidden(&error) {
                    Some(why) => facts.hidden.push(why),
                    None => facts.errors.push(error.to_string()),
                }
            }
        }
    }
    let is_of_program = |warning: &String| facts.programs.contains(warning);
    facts.warnings = warnings.into_iter().filter(|warning| !is_of_program(warning)).collect();
    facts
}

/// What this user may not read, if the error says only that. The daemon may be another user.
fn hidden(error: &RunError) -> Option<String> {
    match error {
        RunError::Config(ConfigError::Read { source, .. })
        | RunError::Keys(KeyFileError::Read { source, .. }) => {
            (source.kind() == ErrorKind::PermissionDenied).then(|| error.to_string())
        }
        // Its remedy would take the file from the daemon's user.
        RunError::Keys(KeyFileError::Denied { path, user, .. }) => {
            let path = path.display();
            Some(format!("cannot read key_file {path}: the user {user} has no permission"))
        }
        _ => None,
    }
}

/// `reload` is what makes the daemon read its file, `restart` what restarts it.
pub(super) fn judge(
    facts: &Facts,
    report: Option<&ConfigReport>,
    [reload, restart]: [&str; 2],
) -> Vec<Finding> {
    let mut findings = file(facts, report);
    findings.extend(
        facts.errors.iter().map(|error| {
            Finding::fail(TOPIC, format!("the daemon would refuse to start: {error}"))
        }),
    );
    findings.extend(
        facts
            .hidden
            .iter()
            .map(|why| Finding::unknown(TOPIC, why.clone()).remedy("run the doctor as root")),
    );
    findings.extend(facts.warnings.iter().map(|warning| Finding::warn(TOPIC, warning.clone())));
    if let Some(report) = report {
        findings.extend(in_force(facts, report, reload, restart));
    }
    if findings.is_empty() {
        let name = facts.file.as_ref().map_or(String::new(), |file| file.display().to_string());
        let in_force = if report.is_some() { " and in force" } else { "" };
        findings.push(Finding::ok(TOPIC, format!("{name} is valid{in_force}")));
    }
    findings
}

/// Whether the file is known, and is the daemon's.
fn file(facts: &Facts, report: Option<&ConfigReport>) -> Vec<Finding> {
    let daemons = report.and_then(|report| report.file.as_deref());
    match (&facts.file, daemons) {
        (None, _) if report.is_some() => {
            vec![Finding::ok(TOPIC, "the daemon runs without a config file")]
        }
        (None, _) => vec![
            Finding::unknown(TOPIC, "the config file is not known").remedy("name it with --config"),
        ],
        (Some(file), _) if report.is_some_and(|report| !facts.is_of(report)) => {
            let file = file.display();
            let runs = match daemons {
                Some(daemons) => format!("with {daemons}"),
                None => "without a config file".to_owned(),
            };
            vec![Finding::warn(TOPIC, format!("the daemon runs {runs}, and not with {file}"))]
        }
        _ => Vec::new(),
    }
}

fn in_force(facts: &Facts, report: &ConfigReport, reload: &str, restart: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(report.reload_failure.as_ref().map(|why| {
        Finding::fail(TOPIC, format!("the last reload was refused: {why}"))
            .remedy(format!("correct the file, and {reload}"))
    }));
    if !report.restart_needed.is_empty() {
        let keys = report.restart_needed.join(", ");
        let text = format!("not in force until the daemon restarts: {keys}");
        findings.push(Finding::warn(TOPIC, text).remedy(restart));
    }
    if facts.is_of(report) && facts.is_newer(report) && report.reload_failure.is_none() {
        let text = "the file was changed after the daemon had read it";
        findings.push(Finding::warn(TOPIC, text).remedy(reload));
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::io::ErrorKind::{NotFound, PermissionDenied};
    use std::os::unix::fs::PermissionsExt;

    use nix::unistd::geteuid;

    use super::*;

    const COMMANDS: [&str; 2] = ["reload it", "restart it"];

    fn facts() -> Facts {
        Facts {
            file: Some("/etc/lanelect/web.toml".into()),
            changed_ms: Some(5),
            ..Facts::default()
        }
    }

    fn report() -> ConfigReport {
        let file = Some("/etc/lanelect/web.toml".to_owned());
        ConfigReport { file, changed_ms: Some(5), ..ConfigReport::default() }
    }

    fn line(facts: &Facts, report: Option<&ConfigReport>) -> String {
        let findings = judge(facts, report, COMMANDS);
        assert_eq!(findings.len(), 1, "{findings:?}");
        findings[0].line(0)
    }

    #[test]
    fn file_that_is_in_force_is_well() {
        let expected = "ok       config  /etc/lanelect/web.toml is valid and in force";
        assert_eq!(line(&facts(), Some(&report())), expected);
        let unused = "ok       config  /etc/lanelect/web.toml is valid";
        assert_eq!(line(&facts(), None), unused);
    }

    #[test]
    fn what_is_not_in_force_is_named_with_the_command() {
        assert!(facts().is_in_force(Some(&report())));
        // Its time may also be earlier: the clock was set back.
        for changed_ms in [4, 6] {
            let changed = Facts { changed_ms: Some(changed_ms), ..facts() };
            let told = line(&changed, Some(&report()));
            assert!(told.starts_with("warn     config  the file was changed after"), "{told}");
            assert!(told.ends_with("; reload it"), "{told}");
            assert!(!changed.is_in_force(Some(&report())));
        }
        let early = ConfigReport { read_ms: 1, ..report() };
        assert!(facts().is_in_force(Some(&early)), "it was read before the clock was set");
        let keys = ConfigReport { restart_needed: vec!["group".to_owned()], ..report() };
        let told = line(&facts(), Some(&keys));
        assert!(told.ends_with("until the daemon restarts: group; restart it"), "{told}");
        let refused = ConfigReport { reload_failure: Some("/c:1: x".to_owned()), ..report() };
        assert!(line(&facts(), Some(&refused)).starts_with("fail     config  the last reload was"));
    }

    #[test]
    fn file_that_the_daemon_would_refuse_is_a_fault() {
        let broken = Facts { errors: vec!["/c:1: x: unknown key".to_owned()], ..facts() };
        let told = line(&broken, Some(&report()));
        assert!(told.starts_with("fail     config  the daemon would refuse to start: /c:1"));
        let hidden = Facts { hidden: vec!["no permission".to_owned()], ..facts() };
        assert!(line(&hidden, None).starts_with("unknown  config  no permission; run the doctor"));
    }

    #[test]
    fn file_that_others_can_write_is_a_fault_if_there_is_a_hook_runner() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("web.toml");
        fs::write(&file, "node_id = \"a\"\n").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
        let gathered = |socket: Option<&str>| gather(Some(file.clone()), socket.map(str::to_owned));
        let exposed = |text: &String| text.contains("other users") && text.contains("chmod go-w");
        let without = gathered(None);
        assert!(without.errors.is_empty() && without.warnings.iter().any(exposed), "{without:?}");
        let with = gathered(Some("/run/lanelect-hook/web.sock"));
        assert!(with.errors.iter().any(exposed), "{with:?}");
    }

    #[test]
    fn what_this_user_may_not_read_is_no_fault() {
        let (path, source) = (PathBuf::from("/etc/lanelect/keys/web"), PermissionDenied.into());
        let unreadable = KeyFileError::Read { path: path.clone(), source };
        assert!(hidden(&unreadable.into()).is_some());
        let [user, remedy] = ["web", "chown web /etc/lanelect/keys/web"].map(str::to_owned);
        let why = hidden(&KeyFileError::Denied { path: path.clone(), user, remedy }.into());
        assert!(why.unwrap().ends_with("keys/web: the user web has no permission"));
        let source = NotFound.into();
        assert_eq!(hidden(&KeyFileError::Read { path, source }.into()), None);
    }

    #[test]
    fn programs_that_a_hook_runner_runs_are_seen_by_root_alone() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("web.toml");
        fs::write(&file, "node_id = \"a\"\nhook = \"/no/such/hook\"\n").unwrap();
        let socket = Some("/run/lanelect-hook/web.sock".to_owned());
        let facts = gather(Some(file), socket);
        assert_eq!(facts.programs.is_empty(), !geteuid().is_root(), "{facts:?}");
        assert!(!facts.warnings.iter().any(|warning| warning.starts_with("hook")), "{facts:?}");
    }

    #[test]
    fn another_file_and_a_missing_one_are_named() {
        let other = ConfigReport { file: Some("/x.toml".to_owned()), ..report() };
        assert!(line(&facts(), Some(&other)).contains("runs with /x.toml, and not with /etc"));
        assert!(!facts().is_in_force(Some(&other)));
        assert!(line(&Facts::default(), None).contains("name it with --config"));
        let without = ConfigReport::default();
        assert!(line(&Facts::default(), Some(&without)).starts_with("ok "));
        let told = line(&facts(), Some(&without));
        assert!(
            told.starts_with("warn     config  the daemon runs without a config file"),
            "{told}"
        );
        assert!(told.ends_with("and not with /etc/lanelect/web.toml"), "{told}");
    }

    #[test]
    fn relative_path_and_link_are_the_daemons_file() {
        // Tests run in the directory of the package.
        let relative = Path::new("Cargo.toml");
        let absolute = path::absolute(relative).unwrap();
        let of = |file: &Path| ConfigReport { file: Some(file.display().to_string()), ..report() };
        let by_path = gather(Some(relative.to_owned()), None);
        assert_eq!(by_path.file.as_ref(), Some(&absolute));
        assert!(by_path.is_of(&of(&absolute)));
        let home = tempfile::tempdir().unwrap();
        let link = home.path().join("web.toml");
        std::os::unix::fs::symlink(&absolute, &link).unwrap();
        assert!(gather(Some(link.clone()), None).is_of(&of(&absolute)));
        assert!(by_path.is_of(&of(&link)));
        assert!(!by_path.is_of(&of(home.path())));
        assert!(!by_path.is_of(&of(&home.path().join("missing.toml"))));
    }

    #[test]
    fn file_is_read_as_the_daemon_reads_it() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("web.toml");
        fs::write(&file, "node_id = \"a\"\ncolour = 1\n").unwrap();
        let directory = gather(Some(home.path().to_owned()), None);
        assert!(directory.errors[0].ends_with("is not a regular file"), "{directory:?}");
        let broken = gather(Some(file.clone()), None);
        assert!(broken.errors[0].contains("colour: unknown key"), "{broken:?}");
        fs::write(&file, "node_id = \"a\"\nhook = \"/no/such/hook\"\n").unwrap();
        let valid = gather(Some(file), None);
        assert!(valid.config.is_some() && valid.changed_ms > Some(0));
        assert!(valid.programs[0].starts_with("hook: cannot find /no/such/hook"), "{valid:?}");
        assert!(valid.warnings.iter().any(|warning| warning.starts_with("key_file is not set")));
        assert!(!valid.warnings.iter().any(|warning| warning.starts_with("hook")));
    }
}
