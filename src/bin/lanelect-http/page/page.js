// Follows the daemon and shows what it says.
//
// Transitions come as events. Once a second the page asks for the status besides, because the
// freshness of members is no event, and only while somebody looks.

import { headline, problems, role, span, standing, state } from './judge.js';
import { REACH, clock, group, timeline } from './picture.js';

const ASK_EVERY = 1000;
const PATIENCE = 3000;
const ENTRIES_MAX = 50;

const opened = Date.now();
const byId = (id) => document.getElementById(id);

/** Everything that the page knows. */
const seen = {
    status: null,
    first: null,
    lost: null,
    spans: [],
    runs: [],
    entries: [],
    announced: undefined,
};

// What comes in.

function takeStatus(status) {
    const isNew =
        !seen.first ||
        seen.first.node_id !== status.node_id ||
        status.uptime_ms < (seen.status?.uptime_ms ?? 0);
    // Counters of a daemon that has restarted begin anew.
    if (isNew) seen.first = status;
    seen.status = status;
    seen.lost = null;
    noteLeader(
        status.leader?.node_id ?? null,
        Date.now() - (seen.spans.length ? 0 : Math.min(status.since_ms, REACH)),
    );
    noteRun(status.hook);
    show();
}

function takeTransition(transition) {
    const leader = transition.leader;
    const reason = transition.reason ? ` (${transition.reason})` : '';
    const who = leader ? `${leader} leads` : 'no leader';
    noteLeader(leader, transition.time_ms);
    addEntry(
        transition.time_ms,
        `${who} in term ${transition.term}; this node is ${transition.role}${reason}`,
    );
    ask();
}

function takeLost(why) {
    if (!seen.lost) {
        seen.lost = { since: Date.now(), why };
        addEntry(Date.now(), why);
    }
    show();
}

// What has been.

function noteLeader(leader, time) {
    const last = seen.spans.at(-1);
    if (last && last.leader === leader) return;
    if (last) last.to = time;
    seen.spans.push({ leader, from: time });
    seen.spans = seen.spans.filter((it) => !it.to || it.to > Date.now() - REACH).slice(-200);
}

function noteRun(hook) {
    if (!hook.last_start_ms || hook.last_start_ms < Date.now() - REACH) return;
    let run = seen.runs.find((it) => it.from === hook.last_start_ms);
    if (!run) {
        run = { event: hook.last_event, from: hook.last_start_ms, failed: false };
        seen.runs.push(run);
        seen.runs = seen.runs.filter((it) => it.from > Date.now() - REACH).slice(-200);
        if (run.from >= opened) addEntry(run.from, `hook for ${run.event} starts on this node`);
    }
    const failed = !hook.running && hook.last_exit !== 0;
    if (failed && !run.failed)
        addEntry(Date.now(), `hook for ${run.event} failed, exit ${hook.last_exit}`);
    run.failed = failed;
}

function addEntry(time, text) {
    seen.entries.unshift({ time, text });
    seen.entries.sort((a, b) => b.time - a.time);
    seen.entries.length = Math.min(seen.entries.length, ENTRIES_MAX);
}

// What is shown.

function show() {
    const { status, lost } = seen;
    document.body.classList.toggle('old', Boolean(lost));
    setText(
        'connection',
        lost ? `No news since ${clock(lost.since)}: ${lost.why}. What is below is old.` : '',
    );
    byId('connection').hidden = !lost;
    if (!status) return;
    setText('headline', headline(status));
    setText('standing', standing(status));
    document.title = `${lost ? 'lost: ' : ''}${status.leader ? `${status.leader.node_id} leads` : 'no leader'} · ${status.group}`;
    announce(status.leader?.node_id ?? null);
    const width = byId('picture').clientWidth;
    byId('picture').replaceChildren(group(status, width));
    byId('timeline').replaceChildren(timeline(seen.spans, seen.runs, Date.now(), width));
    showProblems(problems(status, seen.first));
    showHistory();
    showMembers(status);
    showDetails(status);
}

/** A screen reader says each new leader once. */
function announce(leader) {
    if (leader === seen.announced) return;
    if (seen.announced !== undefined)
        setText('announcement', leader ? `${leader} leads now` : 'There is no leader');
    seen.announced = leader;
}

function setText(id, text) {
    const element = byId(id);
    // What has not changed is not touched: it would be read out again, and a selection would be lost.
    if (element.textContent !== text) element.textContent = text;
}

function make(name, content, attributes = {}) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...[content].flat());
    return made;
}

/** Replaces the children only if that shows. */
function replace(id, children) {
    const parent = byId(id);
    const markup = (nodes) => [...nodes].map((it) => it.outerHTML).join('');
    if (markup(parent.children) !== markup(children)) parent.replaceChildren(...children);
}

function showProblems(found) {
    const item = ({ grade, text, command }) =>
        make(
            'li',
            [
                make('strong', grade === 'fault' ? 'Fault:' : 'Warning:'),
                `${text} `,
                make('code', command),
            ],
            { class: grade },
        );
    replace('problems', found.length ? found.map(item) : [make('li', 'Nothing.')]);
}

function showHistory() {
    const item = ({ time, text }) =>
        make('li', [make('time', clock(time), { datetime: new Date(time).toISOString() }), text]);
    replace(
        'history',
        seen.entries.length ? seen.entries.map(item) : [make('li', 'No change so far.')],
    );
}

function showMembers(status) {
    const row = (it) => {
        const isSelf = it.node_id === status.node_id;
        const heard = isSelf ? 'this node' : `${span(it.last_heard_ms)} ago`;
        const cells = [
            ['Node', it.node_id],
            ['Role', role(it)],
            ['Address', it.address ?? '–'],
            ['Priority', `${it.priority}`],
            ['State', state(it)],
            ['Heard', heard],
        ];
        const made = cells.map(([label, value]) => make('td', value, { 'data-label': label, role: 'cell' }));
        const kind = it.node_id === status.leader?.node_id ? 'leads' : '';
        // The roles: cards on a phone would be no table for a screen reader.
        return make('tr', made, { class: kind, role: 'row' });
    };
    replace('members', status.members.map(row));
}

function showDetails(status) {
    const { hook, quorum } = status;
    const lines = [
        ['Version', status.version],
        ['Running for', span(status.uptime_ms)],
        ['Mode', status.mode],
        ['Multicast', status.multicast],
        [
            'Interfaces',
            status.interfaces.map((it) => `${it.name} ${it.up ? 'up' : 'down'}`).join(', '),
        ],
        ['Key', status.key_mode ? `${status.key_fingerprint}, ${status.key_mode}` : 'none'],
        [
            'Voters',
            quorum &&
                `${quorum.voters.join(', ')}; ${quorum.reachable} count, ${quorum.needed} needed`,
        ],
        [
            'Promised to',
            quorum?.pledged_to &&
                `${quorum.pledged_to.node_id}, for ${span(quorum.pledged_to.left_ms)}`,
        ],
        [
            'Hook',
            hook.last_event &&
                `${hook.last_event}${hook.running ? ', running' : `, exit ${hook.last_exit}, ${hook.last_ms} ms`}`,
        ],
        ['Its output', hook.output],
        ['Check', status.check?.state],
        ['Check of the leader', status.check_leader?.state],
        [
            'Datagrams',
            `${status.counters.datagrams_sent} sent, ${status.counters.datagrams_received} received`,
        ],
        [
            'Dropped',
            Object.entries(status.counters.rejected)
                .filter(([, count]) => count)
                .map(([why, count]) => `${count} ${why}`)
                .join(', '),
        ],
        ['Changes of role', `${status.counters.transitions}`],
    ];
    const shown = lines.filter(([, value]) => value);
    replace(
        'details',
        shown.flatMap(([name, value]) => [make('dt', name), make('dd', `${value}`)]),
    );
}

// Where it comes from.

let asking = false;

/** Asks for the status, unless an answer is still to come. */
async function ask() {
    if (asking || document.hidden) return;
    asking = true;
    try {
        const answer = await fetch('/status', { signal: AbortSignal.timeout(PATIENCE) });
        const body = await answer.json();
        if (answer.ok) takeStatus(body);
        else takeLost(body.error);
    } catch {
        takeLost('the web server does not answer');
    } finally {
        asking = false;
    }
}

function follow() {
    const events = new EventSource('/events');
    events.addEventListener('status', (event) => takeStatus(JSON.parse(event.data)));
    events.addEventListener('transition', (event) => takeTransition(JSON.parse(event.data)));
    events.addEventListener('lost', (event) => takeLost(JSON.parse(event.data).error));
    // The browser connects again by itself, but not after a refusal.
    events.addEventListener('error', () => {
        if (events.readyState === EventSource.CLOSED) setTimeout(follow, 5000);
    });
}

byId('opened').textContent = clock(opened);
byId('opened').dateTime = new Date(opened).toISOString();
follow();
ask();
setInterval(ask, ASK_EVERY);
document.addEventListener('visibilitychange', ask);
window.addEventListener('resize', show);
