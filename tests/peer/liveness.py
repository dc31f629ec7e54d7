"""Proof of liveness: the section "Replay protection" of docs/protocol.md."""

import wire

# Repeated challenges of one unproven node.
FIRST_PAUSE = 1 / 40
# For how many intervals a datagram is recent.
RECENT = 3


class Unproven:
    """A node that may be replayed."""

    def __init__(self, datagram, due):
        self.latest, self.due, self.pause = datagram.id, due, None


class Liveness:
    """Whom this node believes, and what it echoes; without a key it believes everyone."""

    def __init__(self, node):
        self.node = node
        self.demands = node.codec.key is not None
        self.recent = {}
        self.unproven = {}
        self.received = {}
        self.responded = 0
        self.response = None
        self.ticked = None

    def sent(self, datagram, now):
        self.recent[datagram.sender, datagram.id] = now

    def echoes(self):
        """What this node echoes in whatever it sends."""
        if not self.demands or self.node.role == wire.LEADER:
            return {}
        if self.node.leader:
            return {self.node.leader: self.received[self.node.leader]}
        return dict(list(self.received.items())[-wire.ECHOES_MAX:])

    def believes(self, datagram, now):
        """Takes in a datagram whose tag is right."""
        if not self.demands:
            return True
        self.keep_received(datagram)
        if not self.is_proven(datagram, now) and not self.proves(datagram, now):
            self.meet(datagram, now)
            return False
        self.unproven.pop(datagram.sender, None)
        self.recent[datagram.sender, datagram.id] = now
        return True

    def keep_received(self, datagram):
        self.received.pop(datagram.sender, None)
        self.received[datagram.sender] = datagram.id

    def is_proven(self, datagram, now):
        member = self.node.members.get(datagram.sender)
        is_member = member and member.is_proven and self.node.is_visible(member, now)
        return is_member and datagram.incarnation == member.incarnation

    def proves(self, datagram, now):
        own = self.node.settings["node_id"]
        return any((name, id) in self.recent for name, id in datagram.echoes.items()
                   if name == own or self.is_member_life(name, id, now))

    def is_member_life(self, name, id, now):
        member = self.node.members.get(name)
        return member and self.node.is_visible(member, now) and member.incarnation == id[0]

    def meet(self, datagram, now):
        """Notes an unproven node, whose turn to be challenged comes."""
        known = self.unproven.get(datagram.sender)
        if known is None:
            self.unproven[datagram.sender] = Unproven(datagram, now + self.wait())
            return
        known.latest = max(known.latest, datagram.id)
        if known.due is None:
            known.due = known.last + known.pause

    def wait(self):
        node, random = self.node, self.node.random
        if node.role == wire.LEADER:
            return 0
        if node.role == wire.STARTING:
            return random.uniform(0, node.sample / 4)
        slot = node.election / 8
        return random.uniform(slot, 2 * slot) if node.leader else random.uniform(0, slot)

    def handle_challenge(self, datagram, now):
        """A proven node challenges the nodes that it echoes."""
        node = self.node
        own = datagram.echoes.get(node.settings["node_id"])
        if own and own[0] == node.incarnation:
            both_start = node.role == datagram.role == wire.STARTING
            wait = node.random.uniform(0, node.sample / 4) if both_start else 0
            self.response = max(now + wait, self.responded + node.interval / 40), datagram
        for name in datagram.echoes:
            if name in self.unproven:
                self.challenged(self.unproven[name], now)

    def challenged(self, unproven, now):
        interval = self.node.interval
        pause = unproven.pause
        unproven.pause = interval * FIRST_PAUSE if pause is None else min(2 * pause, interval)
        unproven.last, unproven.due = now, None

    def tick(self, now):
        if not self.demands:
            return
        self.notice_pause(now)
        horizon = now - RECENT * self.node.interval
        self.recent = {key: at for key, at in self.recent.items() if at > horizon}
        if self.response and now >= self.response[0]:
            self.respond(now)
        due = [name for name, node in self.unproven.items() if node.due and now >= node.due]
        if due:
            self.challenge(due[:wire.ECHOES_MAX], now)

    def notice_pause(self, now):
        """After a pause nothing is recent, and nobody is proven."""
        if self.ticked is not None and now - self.ticked > RECENT * self.node.interval:
            self.recent.clear()
            for member in self.node.members.values():
                member.is_proven = False
        self.ticked = now

    def respond(self, now):
        challenge, self.response, self.responded = self.response[1], None, now
        self.node.present({challenge.sender: challenge.id}, now)

    def challenge(self, names, now):
        echoes = {name: self.unproven[name].latest for name in names}
        for name in names:
            self.challenged(self.unproven[name], now)
        self.node.send(wire.CHALLENGE, now, echoes=echoes)
