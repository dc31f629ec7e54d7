// The group and its last minutes as pictures. Text goes in as text nodes: a name is never markup.

import { role, sentence, span, state } from './judge.js';

const SVG = 'http://www.w3.org/2000/svg';

function element(name, attributes, ...children) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
}

const NODE = { width: 200, height: 74, gap: 20 };
const COLUMNS_MAX = 4;

/** The nodes along the wire, in rows as long as `width`, in CSS pixels, allows. */
export function group(status, width) {
    const members = status.members;
    const fitting = Math.floor((width + NODE.gap) / (NODE.width + NODE.gap));
    const columns = Math.max(1, Math.min(fitting, COLUMNS_MAX, members.length));
    const rows = Math.ceil(members.length / columns);
    const rowHeight = NODE.height + (columns > 1 ? 46 : 12);
    const picture = element('svg', {
        viewBox: `0 0 ${width} ${rows * rowHeight + 6}`,
        role: 'img',
        'aria-label': sentence(status),
    });
    for (let row = 0; row < rows; row++) {
        const inRow = members.slice(row * columns, (row + 1) * columns);
        picture.append(...wire(inRow, status, width, row * rowHeight + 4));
    }
    return picture;
}

/** One row: the wire, and the nodes that hang on it. A node alone in its row needs none. */
function wire(members, status, width, top) {
    const step = NODE.width + NODE.gap;
    const length = members.length * step - NODE.gap;
    const left = Math.max(1, (width - length) / 2);
    const nodes = members.map((member, at) => node(member, status, left + at * step, top));
    if (members.length === 1) return nodes;
    const y = top + NODE.height + 22;
    const drops = members.map((member, at) => {
        const x = left + at * step + NODE.width / 2;
        return element('line', { class: 'wire', x1: x, x2: x, y1: top + NODE.height, y2: y });
    });
    return [
        element('line', { class: 'wire', x1: left, x2: left + length, y1: y, y2: y }),
        ...drops,
        ...nodes,
    ];
}

function node(member, status, x, y) {
    const leads =
        status.leader?.node_id === member.node_id && ['alive', 'suspect'].includes(member.state);
    const kind = member.state === 'left' ? 'gone' : member.state;
    const isSelf = member.node_id === status.node_id;
    const [left, right] = [x + 14, x + NODE.width - 14];
    const made = element(
        'g',
        { class: `${kind}${leads ? ' leads' : ''}` },
        element('rect', { class: 'node', x, y, width: NODE.width, height: NODE.height, rx: 8 }),
        text('name', left, y + 25, shortened(member.node_id)),
        text('quiet', left, y + 43, `${role(member)}, ${state(member)}`),
        text(
            'quiet',
            left,
            y + 60,
            isSelf ? 'this node' : `heard ${span(member.last_heard_ms)} ago`,
        ),
    );
    if (leads) made.append(text('badge', right, y + 25, 'LEADS', 'end'));
    const votes = vote(member, status.quorum);
    if (votes) made.append(text('quiet', right, y + 60, votes, 'end'));
    if (isSelf && status.quorum?.lease_ms) made.append(...lease(status.quorum, x, y));
    return made;
}

function vote(member, quorum) {
    if (!quorum?.voters.includes(member.node_id)) return null;
    return quorum.counting?.includes(member.node_id) ? '✓ vote' : '✗ no vote';
}

/** What is left of the lease. The longest one that was seen is a full bar. */
let longestLease = 0;
function lease(quorum, x, y) {
    longestLease = Math.max(longestLease, quorum.lease_ms);
    const width = NODE.width - 28;
    const bar = { x: x + 14, y: y + NODE.height - 8, height: 3, rx: 1.5 };
    return [
        element('rect', { ...bar, class: 'lease-ground', width }),
        element(
            'rect',
            { ...bar, class: 'lease', width: (width * quorum.lease_ms) / longestLease },
            element('title', {}, `lease: ${span(quorum.lease_ms)} left`),
        ),
    ];
}

function text(kind, x, y, content, anchor = 'start') {
    return element('text', { class: kind, x, y, 'text-anchor': anchor }, content);
}

/** Whole names are in the table. */
function shortened(name) {
    const letters = [...name];
    return letters.length > 16 ? `${letters.slice(0, 15).join('')}…` : name;
}

/** How far the time line reaches, in milliseconds. */
export const REACH = 10 * 60 * 1000;

/**
 * Who led when, and when the hook ran. `spans` are `{ leader, from, to }`, `runs` are
 * `{ event, from, failed }`, in milliseconds since 1970; a span without `to` lasts. `width` is in CSS
 * pixels.
 */
export function timeline(spans, runs, now, width) {
    const at = (time) => width * Math.max(0, 1 - (now - time) / REACH);
    const said = spans.map((it) => `${it.leader ?? 'nobody'} from ${clock(it.from)}`).join(', ');
    const picture = element('svg', {
        viewBox: `0 0 ${width} 74`,
        role: 'img',
        'aria-label': `Who led: ${said}.`,
    });
    for (let minute = 0; minute <= 10; minute += 2) {
        const x = at(now - minute * 60000);
        picture.append(element('line', { class: 'tick', x1: x, x2: x, y1: 4, y2: 56 }));
        if (minute > 0) picture.append(text('quiet', x + 3, 70, `−${minute} min`));
    }
    for (const { leader, from, to } of spans) {
        const [left, right] = [at(from), at(to ?? now)];
        const bar = {
            class: leader ? 'span' : 'span none',
            x: left,
            y: 8,
            width: Math.max(1, right - left),
            height: 26,
        };
        picture.append(
            element(
                'rect',
                bar,
                element('title', {}, `${leader ?? 'no leader'} from ${clock(from)}`),
            ),
        );
        if (right - left > 60)
            picture.append(text('name', left + 6, 26, shortened(leader ?? 'no leader')));
    }
    for (const { event, from, failed } of runs) {
        const mark = element(
            'circle',
            { class: `run${failed ? ' failed' : ''}`, cx: at(from), cy: 46, r: failed ? 5 : 3.5 },
            element('title', {}, `hook for ${event} at ${clock(from)}${failed ? ', failed' : ''}`),
        );
        picture.append(mark);
    }
    return picture;
}

/** The time of day, as the reader writes it. */
export function clock(time) {
    return new Date(time).toLocaleTimeString();
}
