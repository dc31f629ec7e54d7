"""A node, written from docs/protocol.md and docs/election.md alone: it follows, stands and leads.

In quorum mode it only votes: see voter.py. It has no hooks, checks and commands.
"""

import collections
import random
from dataclasses import dataclass

import wire
from liveness import Liveness
from voter import Voter

MICROS = 1_000_000
ABSURD, ABSURD_STEP = 2**32, 2**16
MEMBERS_MAX = 8192
FORGOTTEN_AFTER = 600
# The longest intervals that a member can announce.
DECLARATION_MAX, HEARTBEAT_MAX = 60, 600
# A kind of body and an extension that this release does not know.
KIND_OF_RELEASE_2, EXTENSION_OF_RELEASE_2 = 100, b"release 2"


@dataclass
class Member:
    """What this node knows of another."""

    incarnation: int
    since: float
    sequence: int = 0
    heard: float = 0.0
    interval: float = 0.0
    role: int = wire.STARTING
    priority: int = 0
    tie_break: int = 0
    flags: int = 0
    voters: bytes = None
    has_left: bool = False
    is_proven: bool = True


def rank(name, node):
    """What is lower is better."""
    eligible, static = node.flags & wire.ELIGIBLE, node.flags & wire.STATIC
    return (not eligible, not static, -node.priority, node.tie_break, name.encode())


class Node:
    """One life of a node."""

    def __init__(self, settings, codec, disk, transmit, now):
        self.settings, self.codec, self.disk, self.transmit = settings, codec, disk, transmit
        self.random = random.Random()
        self.interval, self.threshold = settings["interval"], settings["threshold"]
        self.election, self.sample = settings["election"], settings["sample"]
        self.members, self.rejected = {}, collections.Counter()
        self.state = disk.load()
        self.term = self.state.get("term", 0)
        self.incarnation = max(self.state.get("life", 0) + 1, settings["life"])
        self.sequence, self.role, self.leader = 0, wire.STARTING, None
        # The leadership that this node follows, and the term that its leader must reach.
        self.leader_term, self.must_reach = 0, self.term
        self.successor_until = self.duplicate_until = self.objected = 0
        self.resignations, self.stand_at = [], None
        self.voter = Voter(self, self.state, now) if settings["voters"] else None
        self.liveness = Liveness(self)
        self.grace_over, self.hello_due, self.sampled = now + settings["startup"], now, None
        self.heartbeat_due = self.heartbeats = 0
        self.probes, self.next_probe, self.reply_at = 0, None, None
        self.probed_by = collections.Counter()
        self.ping, self.pong_due = None, None
        self.save()

    # What it sends.

    def save(self):
        self.state.update(term=self.term, life=self.incarnation)
        self.disk.save(self.state)

    def flags(self):
        eligible = wire.IS_CANDIDATE | wire.ELIGIBLE if self.settings["candidate"] else 0
        return eligible | (self.voter.flags() if self.voter else 0)

    def send(self, kind, now, echoes=None, role=None, **body):
        if self.state["term"] < self.term:
            self.save()
        self.sequence += 1
        datagram = wire.Datagram(
            self.settings["node_id"], self.incarnation, self.sequence, self.term,
            self.role if role is None else role, self.settings["priority"], self.flags(), kind,
            body, voters=self.voter.digest if self.voter else None,
            echoes=self.liveness.echoes() if echoes is None else echoes)
        if self.settings["release"] == 2:
            datagram.extension = EXTENSION_OF_RELEASE_2
        self.liveness.sent(datagram, now)
        self.transmit(self.codec.encode(self.settings["address"], datagram))
        return datagram

    def report_interval(self, now):
        if self.voter or self.must_reach > self.leader_term:
            return self.interval
        return max(2 * self.interval, 2.0, len(self.visible(now)) / 32 * self.interval)

    def send_heartbeat(self, now, acknowledged=None, echoes=None):
        every = self.report_interval(now)
        self.heartbeat_due = now + every * self.random.uniform(1, 1.1)
        self.heartbeats += 1
        if self.settings["release"] == 2 and self.heartbeats % 2 == 0 and not acknowledged:
            self.send(KIND_OF_RELEASE_2, now)
            return
        conceded = self.must_reach if self.leader and self.must_reach > self.leader_term else None
        self.send(wire.HEARTBEAT, now, echoes=echoes, interval=round(every * 1.1 * MICROS),
                  leader=self.leader, conceded=None if self.voter else conceded,
                  acknowledged=acknowledged)

    def declare(self, now, echoes=None, extra=0):
        """Declares, but not twice within the declaration gap."""
        if now < self.declared + self.interval / 40 and not extra and not echoes:
            self.declaration_due = min(self.declaration_due, self.declared + self.interval / 40)
            return
        self.declared, self.declaration_due = now, now + 0.8 * self.interval
        for _ in range(1 + extra):
            self.send(wire.DECLARATION, now, echoes=echoes, role=wire.LEADER,
                      interval=round(self.interval * MICROS), hold=0)

    def present(self, echoes, now):
        """Responds to a challenge."""
        if self.role == wire.LEADER:
            self.declare(now, echoes=echoes)
        elif self.role == wire.CANDIDATE:
            self.send(wire.PROPOSAL, now, echoes=echoes)
        else:
            self.send_heartbeat(now, echoes=echoes)

    # Whom it sees.

    def is_visible(self, member, now):
        return not member.has_left and now - member.heard <= max(5 * member.interval,
                                                                 self.threshold)

    def visible(self, now):
        return {name: m for name, m in self.members.items() if self.is_visible(m, now)}

    def own_rank(self):
        own = Member(self.incarnation, 0, priority=self.settings["priority"], flags=self.flags())
        return rank(self.settings["node_id"], own)

    def is_better(self, name, now):
        """Whether a candidate is better than this node, eligible and alive."""
        member = self.members[name]
        alive = now - member.heard <= max(2.5 * member.interval, self.threshold)
        eligible = member.flags & wire.ELIGIBLE and not member.has_left
        return alive and eligible and rank(name, member) < self.own_rank()

    def better_ones(self, now):
        return [name for name in self.visible(now) if self.is_better(name, now)]

    def has_duplicate(self, now):
        return now < self.duplicate_until

    # What it receives.

    def receive(self, source, data, now):
        try:
            self.take(self.codec.decode(source, data), now)
        except wire.Rejected as reason:
            self.rejected[str(reason)] += 1

    def take(self, datagram, now):
        is_mine = datagram.sender == self.settings["node_id"]
        if is_mine and datagram.incarnation == self.incarnation:
            return
        if not self.liveness.believes(datagram, now):
            raise wire.Rejected("unproven")
        self.check_term(datagram)
        if is_mine:
            self.handle_duplicate(datagram, now)
            return
        self.count(datagram, now)
        if self.voter:
            if not self.voter.is_voter(datagram) and datagram.kind != wire.FAREWELL:
                return
        self.learn_term(datagram)
        self.notice_fall(datagram, now)
        handler = HANDLERS.get(datagram.kind)
        if handler:
            handler(self, datagram, now)

    def handle_duplicate(self, datagram, now):
        if datagram.kind == wire.OBJECTION and datagram.body["newcomer"] == self.incarnation:
            raise SystemExit("another node has this id")
        self.duplicate_until = now + max(self.threshold, 2.5 * self.interval)
        if self.role != wire.STARTING and now >= self.objected + self.interval / 10:
            self.objected = now
            self.send(wire.OBJECTION, now, newcomer=datagram.incarnation)

    def check_term(self, datagram):
        term = max(datagram.term, datagram.body.get("conceded") or 0)
        if term > ABSURD and term > self.term + ABSURD_STEP:
            raise wire.Rejected("absurd_term")

    def count(self, datagram, now):
        """Notes what a datagram says of its sender, unless it is old."""
        member = self.members.get(datagram.sender)
        if member and self.is_visible(member, now):
            if datagram.id <= (member.incarnation, member.sequence):
                raise wire.Rejected("replayed")
            if datagram.incarnation > member.incarnation and datagram.role == wire.STARTING:
                self.handle_hello(now)
                raise wire.Rejected("newcomer")
        if member is None and len(self.visible(now)) >= MEMBERS_MAX:
            raise wire.Rejected("table_full")
        if member is None or member.incarnation != datagram.incarnation:
            member = self.members[datagram.sender] = Member(datagram.incarnation, since=now)
        member.sequence, member.heard, member.role = datagram.sequence, now, datagram.role
        member.priority, member.flags = datagram.priority, datagram.flags
        member.tie_break = datagram.tie_break
        member.voters, member.has_left, member.is_proven = datagram.voters, False, True

    def learn_term(self, datagram):
        if self.role != wire.LEADER:
            self.term = max(self.term, datagram.term)

    def handle_heartbeat(self, datagram, now):
        member = self.members[datagram.sender]
        member.interval = min(datagram.body["interval"] / MICROS, HEARTBEAT_MAX)
        if datagram.role == wire.STARTING:
            self.handle_hello(now)
        conceded = datagram.body["conceded"] or 0
        is_mine = datagram.body["leader"] == self.settings["node_id"]
        if self.role == wire.LEADER and is_mine and conceded > self.term:
            self.wanted_term = max(self.wanted_term, conceded + 1)

    def notice_fall(self, datagram, now):
        """A leader that sends with another role leads no more."""
        ends = datagram.kind in (wire.RESIGNATION, wire.FAREWELL)
        if self.leader == datagram.sender and datagram.role != wire.LEADER and not ends:
            self.lose_leader(now)

    def handle_hello(self, now):
        if self.role == wire.LEADER:
            self.declare(now)

    def handle_proposal(self, datagram, now):
        if self.voter:
            self.voter.handle_proposal(datagram, now)
        elif self.role == wire.LEADER:
            self.declare(now)
        elif self.leader or self.role == wire.STARTING:
            return
        elif rank(datagram.sender, datagram) < self.own_rank():
            self.role, self.stand_at = wire.FOLLOWER, now + 2 * self.election
        elif self.role == wire.CANDIDATE:
            self.propose_again(now)
        elif self.settings["candidate"]:
            self.stand_at = now

    def handle_declaration(self, datagram, now):
        member = self.members[datagram.sender]
        member.interval = min(datagram.body["interval"] / MICROS, DECLARATION_MAX)
        theirs = rank(datagram.sender, datagram)
        if self.role == wire.LEADER and theirs > self.own_rank():
            self.outbid(datagram, now)
        elif self.role == wire.LEADER:
            self.must_reach = max(self.term, datagram.term) + 1
            self.follow(datagram, now)
        elif self.prefers(datagram, theirs):
            self.follow(datagram, now)

    def prefers(self, datagram, theirs):
        """Whether this node follows the sender of a declaration."""
        if self.leader in (None, datagram.sender):
            return True
        if self.voter:
            return datagram.term > self.leader_term
        leader = self.members[self.leader]
        return theirs < rank(self.leader, leader)

    def outbid(self, datagram, now):
        """Two leaders meet, and the other one is worse."""
        if self.met.get(datagram.sender) != datagram.term:
            self.met[datagram.sender] = datagram.term
            self.wanted_term = max(self.wanted_term, self.term + 1, datagram.term + 1)
        self.declare(now)

    def follow(self, datagram, now):
        if self.leader == datagram.sender and datagram.term < self.leader_term:
            self.must_reach = max(self.must_reach, self.leader_term)
        elif self.leader not in (None, datagram.sender):
            self.must_reach = max(self.must_reach, self.leader_term)
        is_new = self.leader != datagram.sender
        self.term = max(self.term, self.must_reach, datagram.term)
        self.role, self.leader, self.leader_term = (wire.FOLLOWER, datagram.sender, datagram.term)
        self.resignations, self.stand_at = [], None
        self.newest, self.reported = datagram.id, None
        self.hear_of_leader(now)
        if self.voter and self.voter.acknowledges(datagram, now):
            self.send_heartbeat(now, acknowledged=datagram.id)
        elif is_new:
            self.send_heartbeat(now)

    def hear_of_leader(self, now):
        self.leader_seen, self.probes, self.next_probe = now, 0, None
        if not any(count > 1 for count in self.probed_by.values()):
            self.reply_at = None

    def lose_leader(self, now):
        self.must_reach = max(self.must_reach, self.leader_term)
        self.leader, self.leader_term = None, 0
        self.await_turn(now)

    def await_turn(self, now, after=0.0):
        turn = min(len(self.better_ones(now)), 8) * self.election / 8
        self.stand_at = now + turn + after

    def handle_resignation(self, datagram, now):
        if self.voter:
            self.voter.handle_resignation(datagram)
        if self.leader != datagram.sender:
            return
        self.lose_leader(now)
        successor = datagram.body["successor"]
        if successor == self.settings["node_id"] and self.settings["candidate"]:
            self.lead(now)
        elif successor:
            self.await_turn(now, after=self.election)

    def handle_farewell(self, datagram, now):
        self.members[datagram.sender].has_left = True
        if self.leader == datagram.sender:
            self.lose_leader(now)

    def handle_claim(self, datagram, now):
        is_best = rank(datagram.sender, datagram) < self.own_rank()
        if self.role == wire.LEADER and is_best and datagram.has(wire.ELIGIBLE):
            self.hand_over(datagram.sender, now)

    def handle_probe(self, datagram, now):
        leader = datagram.body["leader"]
        if self.role == wire.LEADER:
            self.declare(now, extra=2 if leader == self.settings["node_id"] else 0)
        elif self.leader == leader and self.is_overdue(now):
            self.probes += 1
            self.next_probe = now + self.probe_gap() + self.probe_turn(now)
        elif self.leader == leader:
            self.probed_by[datagram.sender] += 1
            self.reply_at = self.reply_at or now + self.probe_turn(now)

    def handle_probe_reply(self, datagram, now):
        if self.leader != datagram.body["leader"]:
            return
        self.reply_at = None
        if datagram.body["newest"] > self.newest and datagram.body["newest"] != self.reported:
            self.reported = datagram.body["newest"]
            self.hear_of_leader(now)

    def handle_ping(self, datagram, now):
        node = datagram.body["node"]
        if node == self.settings["node_id"]:
            self.send(wire.PONG, now, asker=datagram.sender, ping=datagram.id)
        elif node is None and not self.ping:
            self.ping = {"asker": datagram.sender, "ping": datagram.id}
            self.pong_due = now + self.report_interval(now) * self.random.uniform(0.5, 1)

    def answer_ping(self, now):
        if self.ping and now >= self.pong_due:
            self.send(wire.PONG, now, **self.ping)
            self.ping = None

    def handle_challenge(self, datagram, now):
        if self.liveness.demands:
            self.liveness.handle_challenge(datagram, now)

    # What it does as time passes.

    def tick(self, now):
        self.liveness.tick(now)
        self.forget(now)
        self.repeat_resignation(now)
        self.answer_ping(now)
        if self.role == wire.STARTING:
            self.start_up(now)
        elif self.role == wire.LEADER:
            self.keep_leading(now)
        elif self.leader:
            self.keep_following(now)
        else:
            self.find_leader(now)
        if self.voter:
            self.voter.tick(now)

    def forget(self, now):
        for name, member in list(self.members.items()):
            is_silent = now - member.heard > FORGOTTEN_AFTER
            if is_silent and not self.is_visible(member, now) and name != self.leader:
                del self.members[name]

    def start_up(self, now):
        if now < self.hello_due:
            return
        self.hello_due = now + self.sample
        found = set(self.visible(now))
        better_starts = any(self.members[name].role == wire.STARTING
                            for name in self.better_ones(now))
        if now >= self.grace_over or (found == self.sampled and not better_starts):
            self.role = wire.FOLLOWER
            self.await_turn(now)
        self.sampled = found
        self.send_heartbeat(now)

    def keep_leading(self, now):
        if self.wanted_term > self.term and now >= self.term_taken + self.interval:
            self.take_term(self.wanted_term, now)
            self.declaration_due = now
        if now >= self.declaration_due:
            self.declare(now)

    def take_term(self, term, now):
        self.term, self.term_taken = term, now
        self.save()

    def is_overdue(self, now):
        return now > self.leader_seen + self.members[self.leader].interval

    def probe_gap(self):
        return (self.threshold - self.interval) / 8

    def probe_turn(self, now):
        better = [name for name in self.better_ones(now) if name != self.leader]
        return min(len(better), 8) * self.probe_gap() / 8

    def keep_following(self, now):
        if now >= self.heartbeat_due:
            self.send_heartbeat(now)
        if self.reply_at and now >= self.reply_at and not self.is_overdue(now):
            self.reply_at = None
            self.probed_by.clear()
            if self.reported is None:
                self.send(wire.PROBE_REPLY, now, leader=self.leader, newest=self.newest)
        if not self.is_overdue(now):
            return
        if self.next_probe is None:
            self.next_probe = now + self.probe_turn(now)
        if now < self.next_probe:
            return
        if self.probes >= 3 and now >= self.leader_seen + self.threshold:
            self.lose_leader(now)
        else:
            self.probes, self.next_probe = self.probes + 1, now + self.probe_gap()
            self.send(wire.PROBE, now, leader=self.leader)

    def find_leader(self, now):
        if now >= self.heartbeat_due:
            self.send_heartbeat(now)
        if self.voter or not self.settings["candidate"]:
            return
        if self.role == wire.CANDIDATE:
            self.collect(now)
        elif self.stand_at is not None and now >= self.stand_at:
            self.stand(now)

    def stand(self, now):
        self.role, self.stood, self.proposed, self.repeated = wire.CANDIDATE, now, 0, False
        self.propose_again(now)
        if not self.visible(now):
            self.lead(now)

    def propose_again(self, now):
        if now >= self.proposed + self.election / 4:
            self.proposed = now
            self.send(wire.PROPOSAL, now)

    def collect(self, now):
        if now < self.stood + self.election / 4:
            return
        if not self.better_ones(now) or now >= self.stood + self.election:
            self.lead(now)
        elif not self.repeated:
            self.repeated = True
            self.propose_again(now)

    def lead(self, now):
        self.role, self.leader, self.met = wire.LEADER, None, {}
        self.take_term(max(self.term, self.must_reach) + 1, now)
        self.wanted_term, self.declared, self.resignations = self.term, 0, []
        self.declare(now)

    # Handing over.

    def hand_over(self, successor, now):
        self.role, self.leader, self.leader_term = wire.FOLLOWER, None, 0
        self.must_reach = max(self.must_reach, self.term)
        self.send(wire.RESIGNATION, now, successor=successor)
        pauses = [self.interval / 10 * 2**n for n in range(16)]
        times = [now + sum(pauses[:n + 1]) for n in range(16)]
        self.resignations = [at for at in times if at < now + self.threshold]
        self.await_turn(now, after=self.election)

    def repeat_resignation(self, now):
        if self.resignations and now >= self.resignations[0]:
            self.resignations.pop(0)
            self.send(wire.RESIGNATION, now, successor=None)

    def best_successor(self, now):
        eligible = [name for name, m in self.visible(now).items() if m.flags & wire.ELIGIBLE]
        key = lambda name: rank(name, self.members[name])
        return min(eligible, key=key, default=None)

    def stop(self, now):
        if self.role == wire.LEADER:
            self.hand_over(self.best_successor(now), now)
        self.send(wire.FAREWELL, now)

    def status(self):
        names = ["starting", "follower", "candidate", "leader"]
        enrolled = self.voter and self.state["enrolled"]
        return {"role": names[self.role], "leader": self.leader, "term": self.term,
                "enrolled": enrolled, "rejected": dict(self.rejected)}


HANDLERS = {
    wire.HEARTBEAT: Node.handle_heartbeat,
    wire.PROPOSAL: Node.handle_proposal,
    wire.DECLARATION: Node.handle_declaration,
    wire.RESIGNATION: Node.handle_resignation,
    wire.FAREWELL: Node.handle_farewell,
    wire.CLAIM: Node.handle_claim,
    wire.VOTE_REQUEST: lambda node, *rest: node.voter and node.voter.handle_vote_request(*rest),
    wire.VOTE: lambda node, vote, _: node.voter and node.voter.handle_vote(vote),
    wire.INQUIRY: lambda node, *rest: node.voter and node.voter.handle_inquiry(*rest),
    wire.PROBE: Node.handle_probe,
    wire.PROBE_REPLY: Node.handle_probe_reply,
    wire.CHALLENGE: Node.handle_challenge,
    wire.PING: Node.handle_ping,
}
