------------------------------ MODULE Quorum -------------------------------
(***************************************************************************)
(* Quorum mode: never two leaders. docs/correctness.md has the promise and *)
(* the argument in prose; this is the protocol in a form that TLC checks.  *)
(*                                                                         *)
(* Read it as you would read a specification of Raft. A voter's `ballot`   *)
(* is Raft's vote. What is new is the pledge (module Voter): with a vote,  *)
(* or with the acknowledgement of a declaration, a voter promises to hold  *)
(* still for a while. A leader acts only under a lease (module Lease) that *)
(* ends before the pledges of a majority do.                               *)
(*                                                                         *)
(* Network. `datagrams` holds every datagram that was ever sent, and any   *)
(* of them may be received at any time. So datagrams are lost, repeated,   *)
(* reordered and kept for ever. The receivers here do not compare sequence *)
(* numbers, as real nodes do: the promise does not rest on that.           *)
(*                                                                         *)
(* Crashes. A step either decides (in memory) or saves and then sends      *)
(* (`Persisted`). So a node may crash between deciding and saving. A crash *)
(* between saving and sending is a datagram that is lost. A write that     *)
(* reached the disk, and was not reported before the crash, is the same.   *)
(* A slow disk does one write at a time, so it may hold an earlier         *)
(* decision than the last one.                                             *)
(*                                                                         *)
(* Left out: proposals and support (the question before a vote request),   *)
(* turns, probes, and whom a follower follows. They decide who stands and  *)
(* when. Here any node may stand whenever its own promises let it, and a   *)
(* voter acknowledges every leader that its pledge lets it. So the         *)
(* specification has all runs of the protocol that matter, and more.       *)
(***************************************************************************)
EXTENDS Lease

CONSTANTS
    Nodes,          \* the ids of all nodes
    NoNode,         \* no id
    SlowSets,       \* the sets of nodes whose clocks may be the slow ones
    Start,          \* where it begins: see `Init`
    MaxTerm,        \* the bounds: the highest term that is stood for,
    MaxDeclarations,\* declarations of one leadership,
    MaxCrashes,     \* crashes of the whole run,
    MaxLostDisks,   \* disks that are lost,
    MaxChanges,     \* changes of the voters,
    MaxResignations,\* resignations that come before their time, or again, or from another daemon,
    Hooks,          \* whether the `elected` and `demoted` hooks are part of it,
    Heartbeats,     \* whether nodes hear terms outside of an election,
    SlowDisk,       \* whether saving is a step of its own,
    Candidates      \* the nodes that may lead; a voter that may not is a witness

VARIABLES
    node,           \* the daemon of each node, and what it keeps on disk
    datagrams,      \* all that were ever sent
    rate,           \* by how many units each clock advances in a tick
    faults,         \* how many crashes, lost disks, changes and resignations there were
    voters,         \* the voters that the operator wants
    won,            \* <<term, life>> for each election that was won
    hookTerm        \* the term of the newest `elected` hook

vars == <<node, datagrams, rate, faults, voters, won, hookTerm>>

----------------------------------------------------------------------------
(* What a node is *)

\* A life of a node is its id, and which life of its daemon it is.
Life(n) == <<n, node[n].incarnation>>

\* `PersistentState`. `ballot` and `pledge` are those of module Voter.
EmptyDisk == [term |-> 0, enrolment |-> "None", ballot |-> NoBallot, pledge |-> NoPledge]
Kept(r) == [term |-> r.term, enrolment |-> r.enrolment, ballot |-> r.ballot, pledge |-> r.pledge]

\* `Disk::has_all`: nothing waits for the disk, and nothing is about to replace what it has.
AllIsKept(r) == r.durable = Kept(r) /\ r.writing = <<>>
\* `Disk::has_promises`: the same for what a voter has promised. A term may wait.
Promises(kept) == <<kept.enrolment, kept.ballot, kept.pledge>>
PromisesAreKept(r) ==
    \A kept \in {r.durable} \cup {r.writing[i] : i \in DOMAIN r.writing} :
        Promises(kept) = Promises(Kept(r))
\* A daemon has one write under way, of what it had decided when the write began.
Writes(r) ==
    IF r.isRunning /\ r.writing = <<>> /\ r.durable /= Kept(r)
    THEN [r EXCEPT !.writing = <<Kept(r)>>] ELSE r

NoRequest == [to |-> Nobody, term |-> 0, number |-> 0]
NoPoll == [isAsked |-> FALSE, left |-> 0, granted |-> {}]
NoAnswer == [memory |-> "Unknown", testifies |-> FALSE]
Unknown == [incarnation |-> 0, wait |-> 0]

\* A daemon that has just begun to run, with this disk. It begins to ask the others if it has no
\* state.
Started(id, incarnation, names, disk, hold, hooks, cover) ==
    [ isRunning      |-> TRUE,
      incarnation    |-> incarnation,
      voters         |-> names,             \* its own setting
      state          |-> "Following",
      term           |-> disk.term,
      enrolment      |-> disk.enrolment,
      ballot         |-> disk.ballot,
      pledge         |-> RestoredPledge(disk.pledge, id),
      pledgedUntil   |-> RestoredHold(disk.pledge, id, hold),
      durable        |-> [disk EXCEPT !.pledge = RestoredPledge(@, id)],
      writing        |-> <<>>,              \* what is being written, if anything is
      owed           |-> NoRequest,         \* the vote that waits for the disk
      acknowledging  |-> NoRequest,         \* the acknowledgement that waits for the disk
      poll           |-> NoPoll,            \* this candidate's vote requests
      lease          |-> [NoLease(Nodes) EXCEPT !.cover = cover],
      \* "let go" or "hold"; "failed" only if a rule is taken away
      hooks          |-> hooks,
      \* the term in which `post-stop` resigns for a dead leader
      plan           |-> 0,
      census         |-> [m \in Nodes |-> NoAnswer],
      known          |-> [m \in Nodes |-> Unknown] ]

\* A daemon that has ended. What remains is its disk, what its hooks hold, and until when they
\* may.
Stopped(r) ==
    LET s == Started(NoNode, r.incarnation, r.voters, EmptyDisk, 0, r.hooks,
                     IF r.hooks = "let go" THEN 0 ELSE r.lease.cover)
        ledSomething == r.state \in {"Leading", "HandingOver"} \/ r.hooks = "hold"
    IN [s EXCEPT !.isRunning = FALSE, !.durable = r.durable,
                 !.plan = IF ledSomething THEN r.durable.term ELSE 0]

Needed(names) == Cardinality(names) \div 2 + IF Keeps("a majority decides") THEN 1 ELSE 0

\* `needed_to_testify`
NeededToTestify(names) ==
    LET size == Cardinality(names)
        all == IF size = 2 THEN 1 ELSE size \div 2 + 1
    IN IF ~Keeps("a majority testifies") THEN all - 1
       ELSE IF ~Keeps("more than half of an even set testify") THEN (size + 1) \div 2
       ELSE all

\* `own_vote_counts`: it is a voter, and knows each vote that it may have given.
OwnVoteCounts(n, r) ==
    n \in r.voters /\ (r.durable.enrolment = "Enrolled" \/ ~Keeps("only enrolled voters vote"))

\* `have_released`
HaveLetGo(r) == r.hooks /= "hold" \/ ~Keeps("no vote while the hooks hold")

\* `may_vote`
MayVote(n, r) == OwnVoteCounts(n, r) /\ HaveLetGo(r)

InOffice(r) == r.state \in {"Leading", "HandingOver"}

\* The daemon acts as leader: `holds_leadership`, asked with a fresh clock.
Leads(n) == node[n].isRunning /\ InOffice(node[n]) /\ LeaseLeft(node[n].lease) > 0

----------------------------------------------------------------------------
(* Datagrams. `voters` stands for the digest. *)

VoteRequest(n, r) ==
    [kind |-> "VoteRequest", from |-> <<n, r.incarnation>>, term |-> r.term, voters |-> r.voters]
Vote(n, r, request) ==
    [kind |-> "Vote", from |-> <<n, r.incarnation>>, to |-> request.to, term |-> request.term,
     voters |-> r.voters]
Declaration(n, r) ==
    [kind |-> "Declaration", from |-> <<n, r.incarnation>>, term |-> r.term,
     number |-> Len(r.lease.outstanding), voters |-> r.voters]
\* A heartbeat that acknowledges a declaration.
Acknowledgement(n, r, request) ==
    [kind |-> "Acknowledgement", from |-> <<n, r.incarnation>>, to |-> request.to,
     term |-> request.term, number |-> request.number, voters |-> r.voters]
\* A farewell does the same.
Resignation(life, term) == [kind |-> "Resignation", from |-> life, term |-> term]
Inquiry(n, r) == [kind |-> "Inquiry", from |-> <<n, r.incarnation>>, voters |-> r.voters]
\* A vote that answers an inquiry.
Answer(n, r, to, testifies) ==
    [kind |-> "Answer", from |-> <<n, r.incarnation>>, to |-> to, term |-> r.durable.term,
     memory |-> r.durable.enrolment, testifies |-> testifies, voters |-> r.voters]

RequestOf(m) == [to |-> m.from, term |-> m.term, number |-> 0]
DeclarationOf(m) == [to |-> m.from, term |-> m.term, number |-> m.number]

----------------------------------------------------------------------------
(* What is done once the disk has it: `send_what_waited` in src/core/election/quorum/mod.rs *)

\* `drop_question`: forgets its question, and is free to vote for others.
DropQuestion(n, r) ==
    LET free == IF r.pledge.to = <<n, r.incarnation>> THEN [r EXCEPT !.pledgedUntil = 0] ELSE r
    IN [free EXCEPT !.poll = NoPoll, !.state = IF @ = "Standing" THEN "Following" ELSE @]

\* `lose_election`: who voted for it is free again, if votes were asked for.
Lost(n, r) == DropQuestion(n, r)
LastWords(n, r) ==
    IF r.poll.isAsked THEN {Resignation(<<n, r.incarnation>>, r.durable.term)} ELSE {}

\* `count_grant` and `win`: what a majority granted counts from when it was asked.
CountsGrant(n, r, voter) ==
    LET granted == [r EXCEPT !.poll.granted = @ \cup {voter}]
        cover == IF Keeps("the lease counts from the sending") THEN r.poll.left ELSE LeaseTerm
        lease == [NoLease(Nodes) EXCEPT !.cover = cover]
    IN IF Cardinality(granted.poll.granted) < Needed(r.voters) THEN granted
       ELSE IF cover = 0 THEN Lost(n, r)
       ELSE [DropQuestion(n, r) EXCEPT !.state = "Leading", !.lease = lease]

\* `pay_vote`: the vote that waits for the disk, unless this voter has since pledged itself to
\* another.
PaysVote(n, r) ==
    IF r.owed /= NoRequest /\ r.ballot.candidate = r.owed.to /\ r.pledge.to = r.owed.to
    THEN {Vote(n, r, r.owed)} ELSE {}

\* `acknowledge`
Acknowledges(n, r) ==
    IF r.acknowledging /= NoRequest THEN {Acknowledgement(n, r, r.acknowledging)} ELSE {}

\* `judge_census`
JudgesCensus(n, r) ==
    LET others == r.voters \ {n}
        testified == Cardinality({m \in Nodes : r.census[m].testifies}) >= NeededToTestify(r.voters)
        all(memories) == \A m \in others : r.census[m].memory \in memories
        enrolled == [r EXCEPT !.enrolment = "Enrolled", !.census = [m \in Nodes |-> NoAnswer]]
    IN IF n \notin r.voters \/ r.enrolment = "Enrolled" THEN r
       \* Whatever it voted for in this term, it does not vote for another node.
       ELSE IF testified THEN Cast(enrolled, r.term, <<n, r.incarnation>>)
       ELSE IF r.durable.enrolment = "None" /\ all({"None", "Founding"})
            THEN [r EXCEPT !.enrolment = "Founding"]
       ELSE IF r.durable.enrolment = "Founding" /\ all({"Founding", "Enrolled"}) THEN enrolled
       ELSE r

\* `ask_once_persisted`: this node's own vote is on disk.
AsksNow(r) == r.state = "Standing" /\ ~r.poll.isAsked /\ r.durable.ballot = r.ballot
Asked(r) == [r EXCEPT !.poll = [isAsked |-> TRUE, left |-> LeaseTerm, granted |-> {}]]

\* What is on the disk of `r` has just come there. Votes and acknowledgements wait for the promises.
Saved(n, r) ==
    LET sent == [r EXCEPT !.owed = NoRequest, !.acknowledging = NoRequest]
        done == IF PromisesAreKept(r) THEN sent ELSE r
    IN IF AsksNow(r) THEN CountsGrant(n, Asked(r), n)
       ELSE IF r.enrolment = "Founding" THEN JudgesCensus(n, done) ELSE done
MaySend(r) == PromisesAreKept(r) \/ ~Keeps("persist before send")
SentOnceSaved(n, r) ==
    IF AsksNow(r) THEN {VoteRequest(n, r)}
    ELSE IF MaySend(r) THEN PaysVote(n, r) \cup Acknowledges(n, r) ELSE {}

\* The daemon of `n` is `r` now, and sends `sent`.
Set(n, r, sent) ==
    /\ node' = [node EXCEPT ![n] = r]
    /\ datagrams' = datagrams \cup sent
    /\ won' = IF r.state = "Leading" /\ node[n].state /= "Leading"
              THEN won \cup {<<r.term, <<n, r.incarnation>>>>} ELSE won

\* The same, where `r` may have decided what has to be saved. A disk that is not slow saves at once.
\* A node that does not persist before it sends does not wait for it.
Becomes(n, r, sent) ==
    LET kept(record) == [record EXCEPT !.durable = Kept(record)]
        saved == Saved(n, kept(r))
        waits == r.isRunning /\ ~AllIsKept(r)
        hasToSend == r.owed /= NoRequest \/ r.acknowledging /= NoRequest
        asIfSaved == [r EXCEPT !.owed = NoRequest, !.acknowledging = NoRequest]
    IN IF r.isRunning /\ hasToSend /\ MaySend(r)
       THEN Set(n, IF SlowDisk \/ ~waits THEN Writes(asIfSaved) ELSE saved,
                sent \cup SentOnceSaved(n, r))
       ELSE IF ~waits \/ SlowDisk THEN Set(n, Writes(r), sent)
       ELSE Set(n, IF AllIsKept(saved) THEN saved ELSE Saved(n, kept(saved)),
                sent \cup SentOnceSaved(n, kept(r)))

\* A resignation that does not have to be, of which there are only so many.
CountsResignation(isEarly) ==
    /\ isEarly => faults.resignations < MaxResignations
    /\ faults' = IF isEarly THEN [faults EXCEPT !.resignations = @ + 1] ELSE faults

\* `n` receives `m`, which another node sent. Nodes that differ in their voters do not count each
\* other.
Receives(n, m, kind) == m.kind = kind /\ node[n].isRunning /\ m.from[1] /= n
Counts(n, m) == m.voters = node[n].voters /\ m.from[1] \in node[n].voters

----------------------------------------------------------------------------
(* Candidates: src/core/election/quorum/candidate.rs *)

\* `learn_term_in_quorum`: a leader takes in no term. A candidate that learns of a higher one has
\* lost.
Learns(n, r, term) ==
    IF InOffice(r) \/ term <= r.term THEN r
    ELSE LET later == [r EXCEPT !.term = term]
         IN IF r.state = "Standing" THEN Lost(n, later) ELSE later
Learned(n, r, term) ==
    IF ~InOffice(r) /\ term > r.term /\ r.state = "Standing" THEN LastWords(n, r) ELSE {}

\* `request_votes`: takes a term and votes for itself in it. The others are asked by `Persisted`.
RequestVotes(n) ==
    LET r == node[n]
        self == Life(n)
        taken == [r EXCEPT !.term = @ + 1, !.state = "Standing", !.poll = NoPoll,
                           !.acknowledging = NoRequest]
    IN /\ n \in Candidates /\ r.isRunning /\ r.state = "Following" /\ r.term < MaxTerm
       /\ MayVote(n, r) /\ ~IsBound(r, self)
       /\ Becomes(n, Give(Cast(taken, taken.term, self), self, taken.term, VoteHold), {})
       /\ UNCHANGED <<rate, faults, voters, hookTerm>>

\* `handle_vote`
HandleVote(n, m) ==
    LET r == node[n]
        isAnswer == m.to = Life(n) /\ r.state = "Standing" /\ r.poll.isAsked /\ m.term = r.term
        after == CountsGrant(n, r, m.from[1])
    IN /\ Receives(n, m, "Vote") /\ isAnswer /\ Counts(n, m)
       /\ Becomes(n, after, IF after.state = "Following" THEN LastWords(n, r) ELSE {})
       /\ UNCHANGED <<rate, faults, voters, hookTerm>>

\* `lose_election`: its patience is over, for votes or for its own disk.
LoseElection(n) ==
    /\ node[n].isRunning /\ node[n].state = "Standing"
    /\ CountsResignation(node[n].poll.left > 0)
    /\ Becomes(n, Lost(n, node[n]), LastWords(n, node[n]))
    /\ UNCHANGED <<rate, voters, hookTerm>>

----------------------------------------------------------------------------
(* Voters: src/core/election/quorum/voting.rs *)

\* `handle_vote_request`
HandleVoteRequest(n, m) ==
    LET r == Learns(n, node[n], m.term)
        given == Give(Cast(DropQuestion(n, r), m.term, m.from), m.from, m.term, VoteHold)
        owes == [given EXCEPT !.owed = RequestOf(m), !.acknowledging = NoRequest]
        may == /\ m.from[1] \in r.voters /\ MayVote(n, r)
               /\ r.state = "Following"
               /\ ~IsBound(r, m.from) \/ ~Keeps("no vote while pledged to another")
               /\ MayCast(r, m.term, m.from)
               /\ m.term >= r.term
        after == IF may /\ m.voters = r.voters THEN owes ELSE r
    IN /\ Receives(n, m, "VoteRequest") /\ m.from[1] \in node[n].voters /\ after /= node[n]
       /\ Becomes(n, after, Learned(n, node[n], m.term))
       /\ UNCHANGED <<rate, faults, voters, hookTerm>>

\* `leave_office`: it follows another leader, and its hooks have what is left of the grace.
LeavesOffice(r) ==
    IF ~InOffice(r) THEN r
    ELSE [r EXCEPT !.state = "Following",
                   !.lease = IF r.hooks = "hold" THEN @ ELSE NoLease(Nodes)]

\* `handle_declaration_in_quorum` and `pledge_to_leader`. A voter that asks for votes itself gives
\* up.
HandleDeclaration(n, m) ==
    LET r == DropQuestion(n, Learns(n, LeavesOffice(node[n]), m.term))
        may == OwnVoteCounts(n, r) /\ ~IsBound(r, m.from)
        pledged == Give(r, m.from, m.term, DeclarationHold)
        given == [pledged EXCEPT !.acknowledging = DeclarationOf(m)]
        after == IF may THEN given ELSE r
    IN /\ Receives(n, m, "Declaration") /\ Counts(n, m) /\ ~Leads(n)
       /\ Becomes(n, after, Learned(n, node[n], m.term))
       /\ UNCHANGED <<rate, faults, voters, hookTerm>>

\* `handle_resignation`. Whose voters differ does not matter.
HandleResignation(n, m) ==
    LET r == Release(node[n], m.from, m.term)
        after == IF m.from[1] \in r.voters THEN Learns(n, r, m.term) ELSE r
    IN /\ Receives(n, m, "Resignation") /\ after /= node[n]
       /\ Becomes(n, after, Learned(n, node[n], m.term))
       /\ UNCHANGED <<rate, faults, voters, hookTerm>>

\* `take_in_for_quorum` in src/core/election/quorum/mod.rs: a heartbeat of a voter tells its term,
\* whichever voters that one names.
HearTerm(n, m) ==
    LET after == Learns(n, node[n], node[m].durable.term)
    IN /\ node[n].isRunning /\ node[m].isRunning /\ m \in node[n].voters
       /\ after /= node[n]
       /\ Becomes(n, after, Learned(n, node[n], node[m].durable.term))
       /\ UNCHANGED <<rate, faults, voters, hookTerm>>

----------------------------------------------------------------------------
(* Leaders: src/core/election/quorum/leader.rs, src/core/election/leadership.rs and handover.rs *)

\* `declare` and `await_acknowledgements`. The leader's own vote acknowledges at once.
Declare(n) ==
    LET r == node[n]
        declared == [r EXCEPT !.lease = NoteDeclared(@)]
        number == Len(declared.lease.outstanding)
        own == IF OwnVoteCounts(n, r)
               THEN NoteAcknowledged(declared.lease, n, number, Needed(r.voters))
               ELSE declared.lease
    IN /\ Leads(n) /\ Len(r.lease.outstanding) < MaxDeclarations
       /\ Becomes(n, [r EXCEPT !.lease = own], {Declaration(n, declared)})
       /\ UNCHANGED <<rate, faults, voters, hookTerm>>

\* `handle_acknowledgement`. It counts only for a declaration of this leadership.
HandleAcknowledgement(n, m) ==
    LET r == node[n]
        isOurs == m.to = Life(n) /\ m.term = r.term /\ m.number <= Len(r.lease.outstanding)
        renewed == NoteAcknowledged(r.lease, m.from[1], m.number, Needed(r.voters))
    IN /\ Receives(n, m, "Acknowledgement") /\ Leads(n) /\ isOurs /\ Counts(n, m)
       /\ Becomes(n, [r EXCEPT !.lease = renewed], {})
       /\ UNCHANGED <<rate, faults, voters, hookTerm>>

\* `resign` and `leave_office`: the hooks have let go, and the voters need not wait.
Resigned(n, r) ==
    Becomes(n, [r EXCEPT !.state = "Following", !.lease = NoLease(Nodes)],
            {Resignation(<<n, r.incarnation>>, r.durable.term)})

\* `hand_over` and `end_lease`: because an operator asks for it, or because the lease has run out.
HandOver(n) ==
    LET r == node[n]
    IN /\ r.isRunning /\ r.state = "Leading"
       /\ CountsResignation(Leads(n))
       /\ IF r.hooks = "hold"
          THEN Becomes(n, [r EXCEPT !.state = "HandingOver"], {})
          ELSE Resigned(n, r)
       /\ UNCHANGED <<rate, voters, hookTerm>>

\* `resign_again`, and the farewell of a node that stops: from a node that leads and asks for
\* nothing.
ResignAgain(n) ==
    LET r == node[n]
    IN /\ r.isRunning /\ r.state = "Following" /\ r.hooks /= "hold"
       /\ CountsResignation(TRUE)
       /\ Becomes(n, r, {Resignation(Life(n), r.durable.term)})
       /\ UNCHANGED <<rate, voters, hookTerm>>

----------------------------------------------------------------------------
(* Hooks: src/core/hook_schedule.rs, core/election/hook_runs.rs, daemon/post_stop.rs     *)

\* The hooks hold from the start of `elected` to the end of a `demoted` that succeeded, or of a
\* fence command that did. `Tick` lets no time pass beyond the grace while they hold: that they let
\* go within `demote_grace` is an assumption.

\* The hooks may take the grace after the lease, whether or not the voters' promises last.
WithGrace(lease) ==
    IF lease.isConfirmed THEN lease
    ELSE [lease EXCEPT !.cover = @ + DemoteGrace, !.isConfirmed = TRUE]

\* `run_elected_hook`: the `elected` hook starts.
Elected(n) ==
    LET r == node[n]
    IN /\ Hooks /\ Leads(n) /\ r.state = "Leading" /\ r.hooks = "let go"
       /\ r.lease.isConfirmed \/ ~Keeps("elected waits for a confirmed lease")
       /\ Becomes(n, [r EXCEPT !.hooks = "hold", !.lease = WithGrace(@)], {})
       /\ hookTerm' = r.term
       /\ UNCHANGED <<rate, faults, voters>>

\* `demoted`, or the fence command, has succeeded. A leader that hands over resigns then.
LetGo(n) ==
    LET r == [node[n] EXCEPT !.hooks = "let go"]
    IN /\ node[n].isRunning /\ node[n].hooks = "hold" /\ r.state /= "Leading"
       /\ IF r.state = "HandingOver" THEN Resigned(n, r) ELSE Becomes(n, r, {})
       /\ UNCHANGED <<rate, faults, voters, hookTerm>>

\* `demoted` has failed. The hooks still hold, and it runs again: nothing changes, unless the rule
\* is taken away.
DemotedFailed(n) ==
    LET r == [node[n] EXCEPT !.hooks = "failed"]
    IN /\ ~Keeps("a failed demoted has not let go")
       /\ node[n].isRunning /\ node[n].hooks = "hold" /\ r.state = "HandingOver"
       /\ Resigned(n, r)
       /\ UNCHANGED <<rate, faults, voters, hookTerm>>

\* `post-stop`: lets go for a daemon that died, and then resigns in its name.
PostStop(n) ==
    LET r == node[n]
    IN /\ ~r.isRunning /\ r.plan > 0
       /\ Becomes(n, [r EXCEPT !.hooks = "let go", !.plan = 0, !.lease = NoLease(Nodes)],
                  {Resignation(Life(n), r.plan)})
       /\ UNCHANGED <<rate, faults, voters, hookTerm>>

----------------------------------------------------------------------------
(* Voters without a state: src/core/election/quorum/enrolment.rs *)

\* Whether `n` may testify later than it might.
TestifiesLater(n) == TRUE

\* `handle_inquiry`. A voter testifies once it has known this life for as long as a pledge may last
\* that an earlier life has given.
HandleInquiry(n, m) ==
    LET r == node[n]
        asker == m.from[1]
        isKnown == r.known[asker].incarnation = m.from[2]
        seen == IF isKnown THEN r ELSE
            [r EXCEPT !.known[asker] = [incarnation |-> m.from[2], wait |-> DeclarationHold]]
        isLong == seen.known[asker].wait = 0 \/ ~Keeps("testimony waits for the pledges")
        mayTestify == r.durable.enrolment /= "None" /\ isLong
    IN /\ Receives(n, m, "Inquiry") /\ Counts(n, m) /\ n \in r.voters
       /\ \E testifies \in {mayTestify} \cup IF TestifiesLater(n) THEN {FALSE} ELSE {} :
            Becomes(n, seen, {Answer(n, r, m.from, testifies)})
       /\ UNCHANGED <<rate, faults, voters, hookTerm>>

\* `note_answer`
HandleAnswer(n, m) ==
    LET r == Learns(n, node[n], m.term)
        answer == [memory |-> m.memory, testifies |-> m.testifies]
        noted == [r EXCEPT !.census[m.from[1]] = answer]
    IN /\ Receives(n, m, "Answer") /\ m.to = Life(n) /\ Counts(n, m)
       /\ node[n].enrolment /= "Enrolled"
       /\ Becomes(n, JudgesCensus(n, noted), {})
       /\ UNCHANGED <<rate, faults, voters, hookTerm>>

\* Nobody answers a voter that is the only one: it judges when it would ask again.
AsksAgain(n) ==
    LET judged == JudgesCensus(n, node[n])
    IN /\ node[n].isRunning /\ judged /= node[n]
       /\ Becomes(n, judged, {})
       /\ UNCHANGED <<rate, faults, voters, hookTerm>>

----------------------------------------------------------------------------
(* The disk: `handle_persisted` in src/core/election/mod.rs *)

\* The daemon is told that the disk has `kept`. Votes and acknowledgements that waited are sent if
\* all promises are on disk. If `kept` is not all that was decided, the next write begins.
SavedAs(n, kept) ==
    LET r == [node[n] EXCEPT !.durable = kept, !.writing = <<>>]
        next == Writes(r)
    IN /\ Set(n, Writes(Saved(n, next)), SentOnceSaved(n, next))
       /\ UNCHANGED <<rate, faults, voters, hookTerm>>

\* It is what was being written, or what was decided since.
Persisted(n) ==
    LET r == node[n]
    IN /\ r.isRunning /\ (r.durable /= Kept(r) \/ r.writing /= <<>>)
       /\ SavedAs(n, Kept(r)) \/ (r.writing /= <<>> /\ SavedAs(n, r.writing[1]))

----------------------------------------------------------------------------
(* What goes wrong *)

\* The daemon dies: `kill -9`, a power failure.
Crash(n) ==
    /\ node[n].isRunning /\ faults.crashes < MaxCrashes
    /\ faults' = [faults EXCEPT !.crashes = @ + 1]
    /\ Becomes(n, Stopped(node[n]), {})
    /\ UNCHANGED <<rate, voters, hookTerm>>

\* The next life of a daemon that died, with the voters that it had or that the operator wants now.
\* Its hooks let go in the `started` hook (`LetGo`).
Restart(n) ==
    \E names \in {node[n].voters, voters} :
        LET r == node[n]
            s == Started(n, r.incarnation + 1, names, r.durable, DeclarationHold, r.hooks,
                         r.lease.cover)
        IN /\ ~r.isRunning
           /\ Becomes(n, s, IF s.enrolment = "Enrolled" THEN {} ELSE {Inquiry(n, s)})
           /\ UNCHANGED <<rate, faults, voters, hookTerm>>

\* A daemon that is down loses its disk. Fewer than half of the voters may be without theirs: an
\* assumption.
WithoutState(names) == {n \in names : node[n].durable.enrolment /= "Enrolled"}
LoseDisk(n) ==
    /\ ~node[n].isRunning /\ faults.disks < MaxLostDisks
    /\ node[n].durable /= EmptyDisk
    /\ \A names \in {voters} \cup {node[m].voters : m \in Nodes} :
           2 * Cardinality(WithoutState(names) \cup {n}) < Cardinality(names)
    /\ faults' = [faults EXCEPT !.disks = @ + 1]
    /\ Becomes(n, [node[n] EXCEPT !.durable = EmptyDisk], {})
    /\ UNCHANGED <<rate, voters, hookTerm>>

\* A second daemon runs under the id of `n`, has heard the newest term, and stops. Others hear that
\* there are two, and do not count its votes: an assumption. So all that it can do is to resign.
DuplicateResigns(n) ==
    LET newest == CHOOSE t \in 0 .. MaxTerm :
            /\ \E m \in Nodes : node[m].durable.term = t
            /\ \A m \in Nodes : node[m].durable.term <= t
    IN /\ CountsResignation(TRUE)
       /\ datagrams' = datagrams \cup {Resignation(<<n, node[n].incarnation + 100>>, newest)}
       /\ UNCHANGED <<node, rate, voters, won, hookTerm>>

\* The operator decides that the voters are to be others: one more, or one fewer. Nodes take that up
\* when they restart.
ChangeIsComplete == \A n \in Nodes : node[n].isRunning => node[n].voters = voters
OneChanges(names) ==
    LET differ == Cardinality((names \ voters) \cup (voters \ names))
    IN IF Keeps("one voter is changed at a time") THEN differ = 1 ELSE differ = 2
ChangeVoters ==
    /\ faults.changes < MaxChanges /\ ChangeIsComplete
    /\ \A n \in voters : node[n].isRunning /\ node[n].durable.enrolment = "Enrolled"
    /\ \E names \in (SUBSET Nodes) \ {{}} : OneChanges(names) /\ voters' = names
    /\ faults' = [faults EXCEPT !.changes = @ + 1]
    /\ UNCHANGED <<node, datagrams, rate, won, hookTerm>>

\* An orderly restart for the new voters. It is a crash and a restart.
TakeUpVoters(n) ==
    LET r == Stopped(node[n])
        s == Started(n, r.incarnation + 1, voters, r.durable, DeclarationHold, r.hooks,
                     r.lease.cover)
    IN /\ node[n].isRunning /\ node[n].voters /= voters
       /\ Becomes(n, s, IF s.enrolment = "Enrolled" THEN {} ELSE {Inquiry(n, s)})
       /\ UNCHANGED <<rate, faults, voters, hookTerm>>

----------------------------------------------------------------------------
(* Time *)

\* `units` of the clock of `n` pass.
Aged(n, units) ==
    LET r == node[n]
        old(known) == [known EXCEPT !.wait = Max(0, @ - units)]
    IN [r EXCEPT !.pledgedUntil = Max(0, @ - units),
                 !.poll.left = Max(0, @ - units),
                 !.lease = Age(@, units),
                 !.known = [m \in Nodes |-> old(@[m])]]

\* One tick of true time. It is not before the hooks have let go that have to: an assumption.
Tick ==
    /\ \A n \in Nodes : node[n].hooks = "hold" => node[n].lease.cover > rate[n]
    /\ node' = [n \in Nodes |-> Aged(n, rate[n])]
    /\ UNCHANGED <<datagrams, rate, faults, voters, won, hookTerm>>

----------------------------------------------------------------------------
(* All of it *)

\* Where a run begins. `Start` is a record:
\*   group     "enrolled": the voters have their state and know no term; or "new": none has one
\*   removed   the nodes that are no voters at first
\*   electors  these have voted for `leader` in term 2, and the others know of term 1; none if empty
\*   lost      these have lost their disks
Enrolled(term, ballot) ==
    [EmptyDisk EXCEPT !.enrolment = "Enrolled", !.term = term, !.ballot = ballot]
FirstVoters == Nodes \ Start.removed
FirstDisk(n) ==
    CASE Start.group = "new" \/ n \in Start.lost -> EmptyDisk
      [] Start.electors = {} -> IF n \in FirstVoters THEN Enrolled(0, NoBallot) ELSE EmptyDisk
      [] n \in Start.electors ->
            Enrolled(2, [term |-> 2, candidate |-> <<Start.leader, 1>>])
      [] OTHER -> Enrolled(1, NoBallot)
FirstNode(n) == Started(n, 1, FirstVoters, FirstDisk(n), 0, "let go", 0)

Init ==
    /\ node = [n \in Nodes |->
                  IF Start.electors /= {} /\ n \in Start.removed
                  THEN Stopped(FirstNode(n)) ELSE FirstNode(n)]
    /\ datagrams = {Inquiry(n, node[n]) : n \in {m \in Nodes : node[m].enrolment /= "Enrolled"}}
    /\ \E slow \in SlowSets : rate = [n \in Nodes |-> IF n \in slow THEN 1 ELSE Fast]
    /\ faults = [crashes |-> 0, disks |-> 0, changes |-> 0, resignations |-> 0]
    /\ voters = FirstVoters
    /\ won = IF Start.electors = {} THEN {} ELSE {<<2, <<Start.leader, 1>>>>}
    /\ hookTerm = IF Start.electors = {} THEN 0 ELSE 2

\* Everything that a daemon does by itself, and that its host does for it.
Acts(n) ==
    \/ RequestVotes(n) \/ LoseElection(n) \/ AsksAgain(n)
    \/ Declare(n) \/ HandOver(n) \/ ResignAgain(n)
    \/ Elected(n) \/ LetGo(n) \/ DemotedFailed(n) \/ PostStop(n)
    \/ Persisted(n)

Handles(n, m) ==
    \/ HandleVoteRequest(n, m) \/ HandleVote(n, m)
    \/ HandleDeclaration(n, m) \/ HandleAcknowledgement(n, m)
    \/ HandleResignation(n, m)
    \/ HandleInquiry(n, m) \/ HandleAnswer(n, m)

Fails(n) == Crash(n) \/ Restart(n) \/ LoseDisk(n) \/ DuplicateResigns(n) \/ TakeUpVoters(n)

Next ==
    \/ \E n \in Nodes : Acts(n) \/ Fails(n)
    \/ \E n \in Nodes, m \in datagrams : Handles(n, m)
    \/ Heartbeats /\ \E n, m \in Nodes : HearTerm(n, m)
    \/ ChangeVoters
    \/ Tick

Spec == Init /\ [][Next]_vars

----------------------------------------------------------------------------
(* What is promised *)

NeverTwoLeaders == \A a, b \in Nodes : Leads(a) /\ Leads(b) => a = b

HooksNeverOverlap ==
    \A a, b \in Nodes : node[a].hooks /= "let go" /\ node[b].hooks /= "let go" => a = b

OneWinnerATerm == \A x, y \in won : x[1] = y[1] => x = y

\* No hook gets a term that is not above the last one. A leader has one `elected` hook for its term.
TermsOfHooksGrow == [][hookTerm' /= hookTerm => hookTerm' > hookTerm]_hookTerm

\* What a datagram tells is on its sender's disk when it is sent.
IsBacked(m, disk) ==
    CASE m.kind = "Vote" ->
            /\ disk.ballot = [term |-> m.term, candidate |-> m.to]
            /\ disk.pledge.to = m.to /\ disk.pledge.term >= m.term
      [] m.kind = "Acknowledgement" -> disk.pledge.to = m.to /\ disk.pledge.term >= m.term
      [] m.kind = "VoteRequest" -> disk.ballot = [term |-> m.term, candidate |-> m.from]
      [] m.kind \in {"Declaration", "Answer"} -> disk.term >= m.term
      [] OTHER -> TRUE
WhatIsToldIsOnDisk ==
    [][\A m \in datagrams' : m \in datagrams \/ IsBacked(m, node'[m.from[1]].durable)]_datagrams

\* A mistake of the specification itself would show here.
TypeOK ==
    \A n \in Nodes :
        LET r == node[n]
        IN /\ r.isRunning \in BOOLEAN /\ r.voters \subseteq Nodes
           /\ r.state \in {"Following", "Standing", "Leading", "HandingOver"}
           /\ r.enrolment \in {"None", "Founding", "Enrolled"}
           /\ r.hooks \in {"let go", "hold", "failed"}
           /\ r.term \in 0 .. MaxTerm
           /\ r.isRunning => r.durable.term <= r.term
           /\ r.pledgedUntil \in 0 .. (LeaseTerm + DemoteGrace) * Fast
           /\ r.lease.cover \in 0 .. LeaseTerm + DemoteGrace

=============================================================================
