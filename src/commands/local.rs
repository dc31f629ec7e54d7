//! The groups of this host: one control socket each, where daemons have theirs by default.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use serde_json::json;

use super::{CommandError, Exit, finish, status};
use crate::client::{ClientError, Target};
use crate::control_api::{DEFAULT_GROUP, SOCKET_DIR, StatusReport, group_of_socket};
use crate::core::status::MemberState;
use crate::types::Role;

/// Most directory entries that are looked at.
const ENTRIES_MAX: usize = 1000;

/// Most groups that are listed.
const GROUPS_MAX: usize = 64;

/// The daemons of this host, by group; without any, the one of the default group.
pub fn targets() -> Vec<Target> {
    let found = targets_in(Path::new(SOCKET_DIR));
    if found.is_empty() { vec![default_target()] } else { found }
}

/// The daemon of the default group.
pub fn default_target() -> Target {
    Target::at(Path::new(SOCKET_DIR).join(format!("{DEFAULT_GROUP}.sock")))
}

fn targets_in(directory: &Path) -> Vec<Target> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut sockets: Vec<_> = entries
        .take(ENTRIES_MAX)
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()))
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sock"))
        .collect();
    sockets.sort();
    sockets.truncate(GROUPS_MAX);
    sockets.into_iter().map(Target::at).collect()
}

/// The only one of these daemons.
///
/// # Errors
///
/// [`CommandError::Ambiguous`] if there are several.
pub fn only(targets: &[Target]) -> Result<&Target, CommandError> {
    match targets {
        [target] => Ok(target),
        _ => Err(CommandError::Ambiguous(targets.iter().map(name).collect::<Vec<_>>().join(", "))),
    }
}

/// `lanelect status` without a group: the status of the only daemon of this host, or a line for
/// each of several.
///
/// # Errors
///
/// [`CommandError`] where the only daemon does not answer, or the answer cannot be printed.
pub fn overview(
    targets: &[Target],
    json: bool,
    out: &mut impl Write,
) -> Result<Exit, CommandError> {
    if let [target] = targets {
        return status(target, json, out);
    }
    let answers: Vec<_> = targets.iter().map(|target| (name(target), target.status())).collect();
    let text = if json { json_lines(&answers)? } else { table(&answers) };
    finish(out, &text)?;
    let any = answers.iter().any(|(_, answer)| answer.is_ok());
    Ok(if any { Exit::Success } else { Exit::NoAnswer })
}

type Answer = (String, Result<StatusReport, ClientError>);

/// The group, if the socket is named after one.
fn name(target: &Target) -> String {
    let socket = target.socket();
    group_of_socket(socket).map_or_else(|| socket.display().to_string(), |group| group.to_string())
}

fn json_lines(answers: &[Answer]) -> Result<String, CommandError> {
    let line = |(group, answer): &Answer| match answer {
        Ok(report) => serde_json::to_string(report),
        Err(error) => serde_json::to_string(&json!({"group": group, "error": error.to_string()})),
    };
    let lines: Result<Vec<_>, _> = answers.iter().map(line).collect();
    Ok(lines.map_err(std::io::Error::from)?.join("\n") + "\n")
}

const COLUMNS: usize = 5;

fn table(answers: &[Answer]) -> String {
    let titles = ["GROUP", "ROLE", "LEADER", "TERM", "MEMBERS"].map(str::to_owned);
    let rows: Vec<_> = answers.iter().map(|(group, answer)| row(group, answer)).collect();
    let mut widths = [0; COLUMNS];
    let whole = rows.iter().filter_map(|row| row.as_ref().ok());
    for row in whole.chain([&titles]) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let width = answers.iter().map(|(group, _)| group.chars().count()).max().unwrap_or(0);
    widths[0] = widths[0].max(width);
    let lines = rows.iter().map(|row| match row {
        Ok(cells) => aligned(cells, widths),
        Err([group, why]) => format!("{group:0$}  {why}\n", widths[0]),
    });
    [aligned(&titles, widths)].into_iter().chain(lines).collect()
}

/// What a group's line shows, or that its daemon does not answer.
fn row(
    group: &str,
    answer: &Result<StatusReport, ClientError>,
) -> Result<[String; COLUMNS], [String; 2]> {
    let report = match answer {
        Ok(report) => report,
        Err(error) => return Err([group.to_owned(), format!("no answer: {error}")]),
    };
    let leader = match (&report.leader, report.role) {
        (Some(leader), _) => leader.node_id.to_string(),
        (None, Role::Leader) => report.node_id.to_string(),
        (None, _) => "-".to_owned(),
    };
    let alive = report.members.iter().filter(|member| member.state == MemberState::Alive);
    Ok([
        group.to_owned(),
        report.role.to_string(),
        leader,
        report.term.to_string(),
        format!("{} of {} alive", alive.count(), report.members.len()),
    ])
}

fn aligned(row: &[String; COLUMNS], widths: [usize; COLUMNS]) -> String {
    let [group, role, leader, term, members] = row;
    let [w_group, w_role, w_leader, w_term, _] = widths;
    format!("{group:w_group$}  {role:w_role$}  {leader:w_leader$}  {term:>w_term$}  {members}\n")
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::super::status::tests::follower;
    use super::*;

    #[test]
    fn groups_of_a_host_are_its_sockets_by_name() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        let _sockets = ["web.sock", "db.sock", "other"].map(|name| UnixListener::bind(path(name)));
        fs::write(path("web.crash-plan"), "").unwrap();
        fs::write(path("file.sock"), "").unwrap();
        let expected = ["db.sock", "web.sock"].map(|name| Target::at(path(name)));
        assert_eq!(targets_in(home.path()), expected);
        assert_eq!(targets_in(&path("missing")), []);
        assert!(only(&expected).unwrap_err().to_string().contains("db.sock, "));
        assert_eq!(only(&expected[..1]).unwrap(), &expected[0]);
        assert_eq!(default_target(), Target::of_group(&DEFAULT_GROUP.parse().unwrap()));
    }

    #[test]
    fn group_whose_daemon_does_not_answer_has_a_line_that_says_so() {
        let stale = ClientError::Stale("/run/lanelect/database.sock".into());
        let answers = [("database".to_owned(), Err(stale)), ("web".to_owned(), Ok(follower()))];
        let text = table(&answers);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "GROUP     ROLE      LEADER  TERM  MEMBERS");
        assert!(lines[1].starts_with("database  no answer: cannot reach"), "{text}");
        assert_eq!(lines[2], "web       follower  web0       7  2 of 3 alive");
        let json = json_lines(&answers).unwrap();
        assert!(json.starts_with("{\"error\":\"cannot reach") && json.lines().count() == 2);
    }
}
