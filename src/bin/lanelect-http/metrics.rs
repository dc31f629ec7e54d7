//! The metrics of a daemon, from its status.

mod hook;
#[cfg(test)]
mod tests;

use lanelect::control_api::{CheckReport, Counters, QuorumReport, StatusReport};
use lanelect::core::params::Mode;
use lanelect::core::status::{HealthState, MemberState};
use lanelect::types::{GroupName, KeyMode, Role};

pub use crate::text_format::Format;
use crate::text_format::{Kind, Page};

/// All metrics of the daemon of this group, where that is known without it. Of a daemon that does
/// not answer, only that it does not.
pub fn render(group: Option<GroupName>, report: Option<&StatusReport>, format: Format) -> String {
    let group = report.map(|report| report.group).or(group);
    let labels = group.as_ref().map(|group| ("group", group.as_str()));
    let mut page = Page::new(format, labels.as_slice());
    page.metric("lanelect_up", Kind::Gauge, "Whether the daemon answers.")
        .truth(&[], report.is_some());
    if let Some(report) = report {
        node(&mut page, report);
        group_of(&mut page, report);
        quorum(&mut page, report.quorum.as_ref());
        checks(&mut page, report);
        configuration(&mut page, report);
        hook::render(&mut page, report);
        counters(&mut page, &report.counters);
    }
    page.finish()
}

/// What this node is and does.
fn node(page: &mut Page, report: &StatusReport) {
    let mode = match report.mode {
        Mode::Available => "available",
        Mode::Quorum => "quorum",
    };
    page.metric("lanelect_build_info", Kind::Gauge, "The daemon's version.")
        .value(&[("version", &report.version)], 1);
    page.metric("lanelect_node_info", Kind::Gauge, "The node's id, and its election mode.")
        .value(&[("node_id", report.node_id.as_str()), ("mode", mode)], 1);
    page.metric("lanelect_leader", Kind::Gauge, "Whether this node leads.")
        .truth(&[], report.role == Role::Leader);
    page.metric("lanelect_ready", Kind::Gauge, "Whether this node leads and its hook succeeded.")
        .truth(&[], report.ready);
    let mut roles = page.metric("lanelect_role", Kind::Gauge, "What this node does.");
    for role in [Role::Starting, Role::Follower, Role::Candidate, Role::Leader] {
        roles.truth(&[("role", &role.to_string())], report.role == role);
    }
    page.metric("lanelect_eligible", Kind::Gauge, "Whether this node can lead now.")
        .truth(&[], report.eligible);
    let mut reasons =
        page.metric("lanelect_ineligible_info", Kind::Gauge, "Why this node cannot lead now.");
    for reason in &report.ineligible_reasons {
        reasons.value(&[("reason", &word(reason))], 1);
    }
    page.metric("lanelect_holdoff_seconds", Kind::Gauge, "Rest of the hold-off, 0 without one.")
        .seconds(&[], report.holdoff_ms.unwrap_or(0));
    page.metric("lanelect_transition_age_seconds", Kind::Gauge, "Since the last change of leader.")
        .seconds(&[], report.since_ms);
    page.metric("lanelect_uptime_seconds", Kind::Gauge, "Since the daemon started.")
        .seconds(&[], report.uptime_ms);
}

/// Who leads, and who is there.
fn group_of(page: &mut Page, report: &StatusReport) {
    page.metric("lanelect_term", Kind::Gauge, "The highest term that this node knows.")
        .value(&[], report.term.0);
    page.metric("lanelect_has_leader", Kind::Gauge, "Whether this node knows a leader.")
        .truth(&[], report.leader.is_some());
    if let Some(leader) = &report.leader {
        page.metric(
            "lanelect_leader_info",
            Kind::Gauge,
            "The leader that this node follows or is.",
        )
        .value(&[("leader_id", leader.node_id.as_str())], 1);
        let help = "Since the leader's last declaration, 0 if this node leads.";
        page.metric("lanelect_leader_heard_seconds", Kind::Gauge, help)
            .seconds(&[], leader.last_heard_ms);
    }
    let mut members = page.metric("lanelect_members", Kind::Gauge, "Members by state.");
    let states = [MemberState::Alive, MemberState::Suspect, MemberState::Left, MemberState::Gone];
    for state in states {
        let count = report.members.iter().filter(|member| member.state == state).count();
        members.value(&[("state", &word(&state))], count as u64);
    }
    let can_lead = report
        .members
        .iter()
        .filter(|member| member.candidate && member.eligible && member.state.is_visible());
    page.metric("lanelect_candidates", Kind::Gauge, "Members that could lead now.")
        .value(&[], can_lead.count() as u64);
    ways(page, report);
    let mut interfaces =
        page.metric("lanelect_interface_up", Kind::Gauge, "Whether it reaches the group.");
    for interface in &report.interfaces {
        interfaces.truth(&[("interface", &interface.name)], interface.up);
    }
    peers(page, report);
    if let Some(duplicate) = &report.duplicate {
        let help = "Since another daemon with this node's id was turned away.";
        page.metric("lanelect_duplicate_heard_seconds", Kind::Gauge, help)
            .seconds(&[], duplicate.last_ms);
    }
}

/// A peer has several addresses: it can be up and have a problem with one of them.
fn peers(page: &mut Page, report: &StatusReport) {
    if report.peers.is_empty() {
        return;
    }
    let mut peers = page.metric("lanelect_peer_up", Kind::Gauge, "Whether it has no problem.");
    for peer in &report.peers {
        peers.truth(&[("peer", &peer.peer)], peer.problem.is_none());
    }
}

/// How far away the members are, in a group with peers.
fn ways(page: &mut Page, report: &StatusReport) {
    let visible = || report.members.iter().filter(|member| member.state.is_visible());
    if visible().all(|member| member.round_trip_us.is_none() && member.loss_percent.is_none()) {
        return;
    }
    let help = "The mean time of a datagram to the member and back.";
    let mut round_trips = page.metric("lanelect_member_round_trip_seconds", Kind::Gauge, help);
    for member in visible() {
        if let Some(microseconds) = member.round_trip_us {
            round_trips.microseconds(&[("member", member.node_id.as_str())], microseconds);
        }
    }
    let help = "The part of the last pings to the member, or of their answers, that was lost.";
    let mut losses = page.metric("lanelect_member_loss_ratio", Kind::Gauge, help);
    for member in visible() {
        if let Some(percent) = member.loss_percent {
            losses.percent(&[("member", member.node_id.as_str())], percent);
        }
    }
}

fn quorum(page: &mut Page, quorum: Option<&QuorumReport>) {
    let Some(quorum) = quorum else { return };
    page.metric("lanelect_quorum_voters", Kind::Gauge, "Voters of the group.")
        .value(&[], quorum.voters.len() as u64);
    page.metric("lanelect_quorum_needed", Kind::Gauge, "Votes that make a majority.")
        .value(&[], quorum.needed as u64);
    page.metric("lanelect_quorum_reachable", Kind::Gauge, "Voters whose vote counts now.")
        .value(&[], quorum.reachable as u64);
    page.metric("lanelect_quorum_disagreeing", Kind::Gauge, "Members that name other voters.")
        .value(&[], quorum.disagreeing.len() as u64);
    page.metric("lanelect_lease_seconds", Kind::Gauge, "Rest of this node's lease, 0 without one.")
        .seconds(&[], quorum.lease_ms.unwrap_or(0));
}

fn checks(page: &mut Page, report: &StatusReport) {
    let checks = [("check", report.check), ("check_leader", report.check_leader)];
    let checks: Vec<(&str, CheckReport)> =
        checks.into_iter().filter_map(|(name, check)| Some((name, check?))).collect();
    if checks.is_empty() {
        return;
    }
    let mut states = page.metric("lanelect_check_state", Kind::Gauge, "States of health checks.");
    for (name, check) in checks {
        for state in [HealthState::Pending, HealthState::Healthy, HealthState::Failing] {
            states.truth(&[("check", name), ("state", &word(&state))], check.state == state);
        }
    }
}

/// What an administrator has to do about the daemon.
fn configuration(page: &mut Page, report: &StatusReport) {
    let config = &report.config;
    page.metric("lanelect_config_reload_failed", Kind::Gauge, "Whether the last one was refused.")
        .truth(&[], config.reload_failure.is_some());
    let help = "Whether the file has changes that only a restart applies.";
    page.metric("lanelect_config_restart_needed", Kind::Gauge, help)
        .truth(&[], !config.restart_needed.is_empty());
    page.metric(
        "lanelect_keys_required",
        Kind::Gauge,
        "Whether datagrams without a key are refused.",
    )
    .truth(&[], report.key_mode == Some(KeyMode::Require));
    page.metric("lanelect_state_saved", Kind::Gauge, "Whether the state is on disk.")
        .truth(&[], report.state_failure.is_none());
}

fn counters(page: &mut Page, counters: &Counters) {
    let plain = [
        (
            "lanelect_datagrams_sent",
            "Datagrams sent, once for each interface.",
            counters.datagrams_sent,
        ),
        ("lanelect_datagrams_received", "Datagrams of other nodes.", counters.datagrams_received),
        ("lanelect_datagrams_extended", "Those of later releases.", counters.datagrams_extended),
        ("lanelect_send_errors", "Datagrams that could not be sent.", counters.send_errors),
        ("lanelect_transitions", "Changes of this node's role.", counters.transitions),
        ("lanelect_state_saves", "Writes of the state to the disk.", counters.state_saves),
        ("lanelect_fences", "Hook runs that overran demote_grace.", counters.fences),
    ];
    for (name, help, value) in plain {
        page.metric(name, Kind::Counter, help).value(&[], value);
    }
    let rejected = counters.rejected;
    let by_reason = [
        ("malformed", rejected.malformed),
        ("auth", rejected.auth),
        ("replayed", rejected.replayed),
        ("foreign_group", rejected.foreign_group),
        ("version", rejected.version),
        ("table_full", rejected.table_full),
        ("absurd_term", rejected.absurd_term),
        ("unproven", rejected.unproven),
        ("hops", rejected.hops),
        ("source", rejected.source),
    ];
    let help = "Datagrams that were dropped.";
    let mut samples = page.metric("lanelect_datagrams_rejected", Kind::Counter, help);
    for (reason, count) in by_reason {
        samples.value(&[("reason", reason)], count);
    }
}

/// The word that the status has for it.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}
