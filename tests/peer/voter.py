"""One voter of quorum mode: it votes, acknowledges, and is enrolled. It never stands."""

import wire

# The largest difference of two clocks.
DRIFT = 101 / 99
# Longest hold, in seconds.
HOLD_MAX = 3600
MICROS = 1_000_000


class Voter:
    """What a voter has promised; each change is on disk before a datagram follows from it."""

    def __init__(self, node, state, now):
        self.node, self.state = node, state
        self.others = set(node.settings["voters"]) - {node.settings["node_id"]}
        self.digest = wire.voters_digest(node.settings["voters"])
        state.setdefault("enrolled", False)
        state.setdefault("founding", False)
        state.setdefault("vote", [0, "", 0])
        state.setdefault("pledge", None)
        # A pledge counts again for its whole length.
        self.pledged_until = now + self.pledge_hold()
        self.inquiry_due = now
        self.inquiries = set()
        # The other voters' answers: their flags, and of those that say yes the term.
        self.answers, self.testimonies = {}, {}
        self.waiting = None

    def pledge_hold(self):
        pledge = self.state["pledge"]
        return pledge["hold"] / MICROS if pledge else 0

    def flags(self):
        enrolled = wire.ENROLLED if self.state["enrolled"] else 0
        return enrolled | (wire.FOUNDING if self.state["founding"] else 0)

    def is_voter(self, datagram):
        return datagram.sender in self.others and datagram.voters == self.digest

    # Promises.

    def is_free_for(self, name, incarnation, now):
        pledge = self.state["pledge"]
        if pledge is None or now >= self.pledged_until:
            return True
        return (pledge["holder"], pledge["life"]) == (name, incarnation)

    def may_promise(self, datagram, now):
        return (self.state["enrolled"] and not self.node.has_duplicate(now)
                and self.is_free_for(datagram.sender, datagram.incarnation, now))

    def promise(self, datagram, now):
        """Pledges itself to the sender; what it adds to the disk is saved by the caller."""
        hold, pledge = datagram.body["hold"], self.state["pledge"]
        until, term = now + hold / MICROS, datagram.term
        if pledge and (pledge["holder"], pledge["life"]) == (datagram.sender,
                                                             datagram.incarnation):
            hold, term = max(hold, pledge["hold"]), max(term, pledge["term"])
            until = max(until, self.pledged_until)
        self.state["pledge"] = {"holder": datagram.sender, "life": datagram.incarnation,
                                "term": term, "hold": hold}
        self.pledged_until = until

    def acknowledges(self, datagram, now):
        """Whether this node acknowledges its leader's declaration."""
        hold = datagram.body["hold"] / MICROS
        if hold > HOLD_MAX or not self.may_promise(datagram, now):
            return False
        self.promise(datagram, now)
        self.node.save()
        return True

    def handle_resignation(self, datagram):
        pledge = self.state["pledge"]
        if (pledge and (pledge["holder"], pledge["life"]) == (datagram.sender,
                                                              datagram.incarnation)
                and datagram.term >= pledge["term"]):
            self.state["pledge"] = None
            self.node.save()

    # Votes.

    def handle_proposal(self, datagram, now):
        if self.node.leader not in (None, datagram.sender):
            return
        granted = self.may_promise(datagram, now)
        self.answer(datagram, granted, now)
        self.waiting = None if granted else datagram

    def answer_who_waits(self, now):
        """Answers yes to the last candidate that asked, once only a pledge prevented that."""
        datagram = self.waiting
        if datagram and self.may_promise(datagram, now):
            self.waiting = None
            if self.node.leader in (None, datagram.sender):
                self.answer(datagram, True, now)

    def handle_vote_request(self, datagram, now):
        if self.node.leader not in (None, datagram.sender):
            return
        granted = self.grants(datagram, now)
        if granted:
            self.promise(datagram, now)
            self.state["vote"] = [datagram.term, datagram.sender, datagram.incarnation]
            self.node.save()
        self.answer(datagram, granted, now)

    def grants(self, datagram, now):
        term, *candidate = self.state["vote"]
        is_other = candidate != [datagram.sender, datagram.incarnation]
        return (datagram.body["hold"] / MICROS <= HOLD_MAX and self.may_promise(datagram, now)
                and datagram.term >= max(self.node.term, term)
                and not (datagram.term == term and is_other))

    def answer(self, datagram, granted, now):
        body = {"candidate": datagram.sender, "request": datagram.id, "granted": int(granted)}
        self.node.send(wire.VOTE, now, **body)

    # Enrolment.

    def handle_inquiry(self, datagram, now):
        known_for = now - self.node.members[datagram.sender].since
        has_state = self.state["enrolled"] or self.state["founding"]
        testifies = has_state and known_for >= max(self.hold(), self.pledge_hold())
        self.answer(datagram, testifies, now)

    def hold(self):
        """A declaration's hold, by this node's own settings."""
        return (self.node.settings["lease"] + self.node.settings["grace"]) * DRIFT

    def handle_vote(self, datagram):
        body, name = datagram.body, datagram.sender
        is_mine = body["candidate"] == self.node.settings["node_id"]
        if not is_mine or body["request"] not in self.inquiries:
            return
        self.answers[name] = datagram.flags
        if body["granted"]:
            self.testimonies[name] = datagram.term

    def tick(self, now):
        if self.state["enrolled"]:
            self.answer_who_waits(now)
            return
        self.found()
        needed = min(len(self.others), (len(self.others) + 1) // 2 + 1)
        if len(self.testimonies) >= needed > 0:
            self.recover()
        elif now >= self.inquiry_due:
            self.inquire(now)

    def found(self):
        """A group that is new: every other voter answers, and none of them is enrolled."""
        if self.answers.keys() < self.others or self.state["enrolled"]:
            return
        flags = self.answers.values()
        if not self.state["founding"] and not any(each & wire.ENROLLED for each in flags):
            self.state["founding"] = True
            self.node.save()
        ready = wire.ENROLLED | wire.FOUNDING
        if self.state["founding"] and all(each & ready for each in flags):
            self.enrol()

    def recover(self):
        self.node.term = max([self.node.term, *self.testimonies.values()])
        self.state["vote"] = [self.node.term, self.node.settings["node_id"],
                              self.node.incarnation]
        self.enrol()

    def enrol(self):
        self.state["enrolled"], self.state["founding"] = True, False
        self.node.save()

    def inquire(self, now):
        self.inquiry_due = now + self.node.interval
        self.inquiries.add(self.node.send(wire.INQUIRY, now).id)
