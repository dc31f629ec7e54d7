// What a status means, in words. Pure functions: a status in, texts out.

/** A duration as people say it: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`, `4 d 3 h`. */
export function span(milliseconds) {
    const seconds = milliseconds / 1000;
    if (seconds < 10) return `${seconds.toFixed(1)} s`;
    if (seconds < 60) return `${Math.floor(seconds)} s`;
    const pairs = [
        [86400, 'd', 3600, 'h'],
        [3600, 'h', 60, 'min'],
        [60, 'min', 1, 's'],
    ];
    const [large, name, small, rest] = pairs.find(([size]) => seconds >= size);
    const count = Math.floor((seconds % large) / small);
    return `${Math.floor(seconds / large)} ${name}` + (count ? ` ${count} ${rest}` : '');
}

/** Who leads, in one line. */
export function headline(status) {
    return status.leader
        ? `${status.leader.node_id} leads ${status.group}`
        : `${status.group} has no leader`;
}

/** What this node has to do with it. */
export function standing(status) {
    const since = `for ${span(status.since_ms)}, term ${status.term}`;
    const seen = `as ${status.node_id} sees it`;
    if (status.leader) return `${since}, ${seen}`;
    const last = status.previous_leader ? `; the last one was ${status.previous_leader}` : '';
    return `${since}, ${seen}${last}`;
}

/** The role of a member; a leader that is gone was one. */
export function role(member) {
    if (member.role === 'leader' && ['gone', 'left'].includes(member.state)) return 'was leader';
    if (member.role === 'follower' && !member.candidate) return 'observer';
    return member.role;
}

/** The state of a member. */
export function state(member) {
    const excluded = member.state === 'alive' && member.candidate && !member.eligible;
    return excluded ? 'alive, not eligible' : member.state;
}

/** The group in a sentence, for those who do not see the picture. */
export function sentence(status) {
    const members = status.members.map((it) => `${it.node_id} is ${state(it)} as ${role(it)}`);
    const quorum = status.quorum
        ? ` ${status.quorum.reachable} of ${status.quorum.voters.length} votes count, ${status.quorum.needed} are needed.`
        : '';
    return `${headline(status)}: ${members.join(', ')}.${quorum}`;
}

const NOT_ELIGIBLE = {
    stopping: 'the daemon is stopping',
    maintenance: 'maintenance is on',
    'interface-down': 'no interface can reach the group, or a peer’s name is not known yet',
    'disk-pending': 'its state is not on disk yet',
    'no-hook-runner': 'the hook-runner has not confirmed its configuration',
    'not-released': 'the hook for started or demoted could not be run, or has not ended well',
    'check-failed': 'a health check failed',
    'check-pending': 'the health check has no result yet',
    'hook-failed': 'the hook failed for elected',
    'service-failed': 'the service failed while this node led',
    yielding: 'it yielded, and waits for another node to lead',
    unenrolled: 'it has no saved votes, and voter recovery is not finished',
    'too-few-candidates': 'fewer than min_candidates candidates are visible',
};

/** The reasons that the hold-off may be for. */
const HELD_OFF = ['check-failed', 'hook-failed', 'service-failed'];

/** Chosen by an administrator, so nothing is wrong. */
const CHOSEN = ['observer', 'static-follower', 'not-voter'];

/** A daemon that was turned away so long ago was corrected, or is not started again. */
const DUPLICATE_RECENT = 600_000;

/**
 * What is wrong: a list of `{ grade, text, command }`, the worst first. `grade` is `fault` or
 * `warning`; `command` mends it, or shows more. `before` is the first status that was seen.
 */
export function problems(status, before) {
    const found = [];
    const option = status.group === 'default' ? '' : ` --group ${status.group}`;
    const journal = `journalctl -u lanelect@${status.group}`;
    const add = (grade, text, command) => found.push({ grade, text, command });
    judgeGroup(status, add, option, journal);
    judgeHook(status, add, journal);
    judgeNode(status, add, option, journal);
    judgePeers(status, add, `lanelect doctor${option}`);
    judgeCounters(status, before, add, journal);
    return found.sort((a, b) => (a.grade === b.grade ? 0 : a.grade === 'fault' ? -1 : 1));
}

/** The check that sees the file as the daemon does: the shipped unit sets the socket by a flag. */
function checkConfig(status) {
    const socket = status.config?.hook_socket;
    const option = socket ? ` --hook-socket ${socket}` : '';
    return `lanelect check-config /etc/lanelect/${status.group}.toml${option}`;
}

function judgeGroup(status, add, option, journal) {
    if (!status.leader && !status.handing_over)
        add('fault', 'No node leads the group.', `lanelect status${option}`);
    const leaders = status.members.filter((it) => it.role === 'leader' && it.state === 'alive');
    if (leaders.length > 1) {
        add(
            'fault',
            `${leaders.map((it) => it.node_id).join(' and ')} both lead: they do not hear each other.`,
            `lanelect doctor${option}`,
        );
    }
    for (const member of status.members) {
        if (member.state === 'suspect')
            add(
                'warning',
                `${member.node_id} has been silent for ${span(member.last_heard_ms)}.`,
                journal,
            );
        if (member.state === 'gone')
            add(
                'fault',
                `${member.node_id} is gone, last heard ${span(member.last_heard_ms)} ago.`,
                `systemctl status lanelect@${status.group}`,
            );
    }
    const quorum = status.quorum;
    if (!quorum) return;
    if (quorum.reachable < quorum.needed) {
        add(
            'fault',
            `Only ${quorum.reachable} votes count, and ${quorum.needed} are needed: nobody can lead.`,
            `lanelect status${option}`,
        );
    } else if (quorum.reachable === quorum.needed && quorum.voters.length > quorum.needed) {
        add(
            'warning',
            `Only ${quorum.reachable} votes count: if one more is lost, nobody can lead.`,
            `lanelect status${option}`,
        );
    }
    for (const voter of quorum.not_counting ?? []) {
        add(
            'warning',
            `The vote of ${voter.node_id} does not count: ${voter.reason}.`,
            `lanelect status${option}`,
        );
    }
    if (quorum.disagreeing?.length) {
        add(
            'fault',
            `${quorum.disagreeing.join(', ')} name other voters. Every node needs the same list.`,
            checkConfig(status),
        );
    }
}

/** Whether its last run failed. One that did not begin, or is lost, has no exit status. */
function hookFailed(hook) {
    return hook.last_event !== null && !hook.running && hook.last_exit !== 0;
}

function judgeHook(status, add, journal) {
    const hook = status.hook;
    const hookJournal = `journalctl -u lanelect-hook@${status.group}`;
    if (hook.overdue_term !== null && hook.overdue_term !== undefined) {
        add(
            'fault',
            `The hook has not released what term ${hook.overdue_term} holds.`,
            hookJournal,
        );
    } else if (hookFailed(hook)) {
        const exit = hook.last_exit === null ? 'no exit status' : `exit ${hook.last_exit}`;
        add('fault', `The hook failed for ${hook.last_event}, ${exit}.`, hookJournal);
    }
    if (status.fence && !status.fence.succeeded)
        add('fault', 'The fence command failed.', hookJournal);
    if (status.role === 'leader' && !status.ready && !hook.running && !hookFailed(hook)) {
        add('warning', 'This node leads, and its hook has not succeeded yet.', journal);
    }
    for (const [name, check] of [
        ['check', status.check],
        ['check_leader', status.check_leader],
    ]) {
        if (check?.state === 'failing')
            add('fault', `${name} fails: ${check.failures} times in a row.`, journal);
    }
}

function judgeNode(status, add, option, journal) {
    const heldOff = status.ineligible_reasons.findLast((it) => HELD_OFF.includes(it));
    for (const reason of status.ineligible_reasons.filter((it) => !CHOSEN.includes(it))) {
        const why = NOT_ELIGIBLE[reason] ?? reason;
        const isHeldOff = status.holdoff_ms && reason === heldOff;
        const left = isHeldOff ? `, ${span(status.holdoff_ms)} left` : '';
        const command = reason === 'maintenance' ? `lanelect maintenance off${option}` : journal;
        add('warning', `This node is not eligible: ${why}${left}.`, command);
    }
    for (const it of status.interfaces.filter((it) => !it.up)) {
        add(
            'fault',
            `${it.name} is down${it.problem ? `: ${it.problem}` : ''}.`,
            `ip link show ${it.name}`,
        );
    }
    const duplicate = status.duplicate;
    if (duplicate && duplicate.last_ms <= DUPLICATE_RECENT) {
        add(
            'fault',
            `Another daemon with node_id ${status.node_id} was started at ${duplicate.address}, ${span(duplicate.last_ms)} ago, and turned away.`,
            `lanelect doctor${option}`,
        );
    }
    if (status.state_failure)
        add('fault', `The state cannot be saved: ${status.state_failure}.`, 'df /var/lib/lanelect');
    if (status.config?.reload_failure) {
        add(
            'fault',
            `The last reload was refused: ${status.config.reload_failure}`,
            checkConfig(status),
        );
    }
    if (status.config?.restart_needed?.length) {
        add(
            'warning',
            `A restart is needed for ${status.config.restart_needed.join(', ')}.`,
            `systemctl restart lanelect@${status.group}`,
        );
    }
    if (status.key_mode && status.key_mode !== 'require') {
        add(
            'warning',
            `Datagrams without a key are accepted (key_mode is ${status.key_mode}).`,
            'man lanelect.toml',
        );
    } else if (status.quorum && !status.key_mode) {
        add(
            'warning',
            'The group has no key: any host on the LAN can send as a voter.',
            'lanelect keygen',
        );
    }
}

/** The hosts that are sent to by unicast. */
function judgePeers(status, add, doctor) {
    for (const it of status.peers) {
        if (it.problem) add('fault', `The peer ${it.peer}: ${it.problem}.`, doctor);
        else if (!it.is_self && !isMember(it, status))
            add('warning', `The peer ${it.peer} is sent to, and not heard.`, doctor);
    }
    const most = status.round_trip_max_us;
    const far = status.members
        .filter((it) => it.state === 'alive' && it.round_trip_us > most)
        .sort((a, b) => b.round_trip_us - a.round_trip_us)[0];
    if (most && far) {
        const time = (microseconds) => `${(microseconds / 1000).toFixed(1)} ms`;
        add(
            'warning',
            `A datagram to ${far.node_id} and back takes ${time(far.round_trip_us)}, and the settings suit ${time(most)}.`,
            doctor,
        );
    }
}

/** Whether it was heard in the last ten minutes. One that is gone is named as a member. */
function isMember(peer, status) {
    const others = status.members.filter((it) => it.node_id !== status.node_id);
    return others.some((it) => peer.addresses.includes(it.address));
}

/** Only what grows while one looks. */
function judgeCounters(status, before, add, journal) {
    const grown = (of) => of(status.counters) - of(before.counters);
    const auth = grown((it) => it.rejected.auth);
    if (auth > 0) add('warning', `${auth} datagrams were dropped for their key.`, journal);
    const hops = grown((it) => it.rejected.hops);
    if (hops > 0)
        add('warning', `${hops} datagrams came through a router and were dropped.`, journal);
    const errors = grown((it) => it.send_errors);
    if (errors > 0) add('fault', `${errors} datagrams could not be sent.`, journal);
}
