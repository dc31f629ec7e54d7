------------------------------- MODULE Trace -------------------------------
(***************************************************************************)
(* Holds the code against the specification: each trace is a run of the    *)
(* simulator, which drives the very core of the daemon, and TLC looks for  *)
(* a behaviour of `Quorum` that shows the same at every line.              *)
(*                                                                         *)
(* `Traces`, which `tests/spec/traces` writes, has the runs. A line says   *)
(* what a daemon did: what it heard, decided to send and to keep, was told *)
(* to be on its disk, and what it shows afterwards. One line may take      *)
(* several steps of the specification. Time passes between lines, by each  *)
(* node's own clock, in microseconds.                                      *)
(*                                                                         *)
(* The code may do less than the specification allows. It may not do more. *)
(***************************************************************************)
EXTENDS Quorum, TLC, Traces

CONSTANT MostSteps  \* that a line may take

VARIABLES
    trace,      \* which of the runs
    line,       \* where in it
    steps,      \* of this line so far
    handled,    \* whether what was heard has been taken in
    before,     \* what the line's node was to keep when the line began
    platter     \* what is on each node's disk, told to its daemon or not

traceVars == <<vars, trace, line, steps, handled, before, platter>>

Here == Traces[trace][line]
Self == Here.node

NoFaults == [crashes |-> 0, disks |-> 0, changes |-> 0, resignations |-> 0]

\* What a calculation in whole microseconds may be off by.
Slack == 3
Near(x, y) == x - y <= Slack /\ y - x <= Slack

\* In place of what `Lease` and `Voter` say of two rates and whole units.
DriftingHold(reliance) == (reliance * 101 + 98) \div 99
BoundForLong(r, life) == r.pledge.to /= life /\ r.pledgedUntil > Slack

----------------------------------------------------------------------------
(* What a line shows in another way than the specification *)

\* It takes in a term that it has heard at some time: in `Quorum` the datagram comes again. It may
\* stand in the next one in the same line.
LearnsTerm(n) ==
    \E term \in {Here.memory.term, Here.memory.term - 1} :
       /\ Here.hasMemory /\ term > node[n].term /\ term <= Here.hearsTerm
       /\ Becomes(n, Learns(n, node[n], term), Learned(n, node[n], term))
       /\ UNCHANGED <<rate, faults, voters, hookTerm>>

\* A new life is on disk before it says anything. `Quorum` counts lives without a disk.
Unsaved == [to |-> Nobody, term |-> -1]
StartsWith(n, names) ==
    LET r == node[n]
        s == Started(n, r.incarnation + 1, names, platter[n], DeclarationHold, r.hooks,
                     r.lease.cover)
    IN /\ ~r.isRunning
       /\ Becomes(n, [s EXCEPT !.durable.pledge = Unsaved], {})
       /\ UNCHANGED <<rate, faults, voters, hookTerm>>

\* A leader may have named this node as its successor: a candidate stands at once in a later term.
MayBeNamed == Here.hears.kind = "Resignation"

\* A candidate that may not lead any more, or that is named, gives up without a word. In `Quorum`
\* its last words are lost.
Withdraws(n) ==
    /\ ~Here.stands \/ MayBeNamed
    /\ \A m \in Here.sends : m.kind /= "Resignation"
    /\ node[n].state = "Standing" /\ node[n].poll.isAsked
    /\ Becomes(n, Lost(n, node[n]), {})
    /\ UNCHANGED <<rate, faults, voters, hookTerm>>

\* Another daemon may run under its id, so its own vote does not renew its lease. In `Quorum` it
\* always does: a shorter lease allows less.
DeclaresInDoubt(n) ==
    LET declared == [node[n] EXCEPT !.lease = NoteDeclared(@)]
    IN /\ Leads(n) /\ Becomes(n, declared, {Declaration(n, declared)})
       /\ UNCHANGED <<rate, faults, voters, hookTerm>>

\* The daemon ends. What has reached the disk is there.
Ends(n) ==
    /\ node[n].isRunning
    /\ Becomes(n, [Stopped(node[n]) EXCEPT !.durable = platter[n]], {})
    /\ UNCHANGED <<rate, faults, voters, hookTerm>>

LosesDisk(n) ==
    /\ ~node[n].isRunning
    /\ Becomes(n, [node[n] EXCEPT !.durable = EmptyDisk], {})
    /\ UNCHANGED <<rate, faults, voters, hookTerm>>

----------------------------------------------------------------------------
(* A line *)

\* What the code takes in without a sign of it the specification has to take in, too. So there is
\* one behaviour to follow, and not one for every choice.
HasToTakeIn(n, m) ==
    \/ Here.counts /\ (HandleVote(n, m) \/ HandleAcknowledgement(n, m))
    \/ Here.heeds /\ HandleAnswer(n, m)
\* A leader that hands over resigns as soon as it is told.
MayLetGo(n) ==
    ~Here.holds /\ (node[n].state = "HandingOver" => \E m \in Here.sends : m.kind = "Resignation")
\* A candidate that has not asked for votes yet asks in the same line, gives up, or is named.
MayLose(n) == node[n].poll.isAsked \/ MayBeNamed \/ (Here.stands => Here.canvasses)
IsMissing(n) ==
    \/ ~handled /\ Here.hears.kind /= "None" /\ ENABLED HasToTakeIn(n, Here.hears)
    \/ MayLetGo(n) /\ ENABLED LetGo(n)

TakesIn(n, m) ==
    \/ HasToTakeIn(n, m)
    \/ HandleVoteRequest(n, m) \/ HandleDeclaration(n, m) \/ HandleResignation(n, m)
    \/ HandleInquiry(n, m)

DoesMore(n) ==
    \/ RequestVotes(n) \/ LearnsTerm(n) \/ AsksAgain(n) \/ Withdraws(n)
    \/ MayLose(n) /\ LoseElection(n)
    \/ Declare(n) \/ DeclaresInDoubt(n) \/ HandOver(n) \/ ResignAgain(n)
    \/ Here.elected > 0 /\ hookTerm /= Here.elected /\ Elected(n)
    \/ MayLetGo(n) /\ LetGo(n)
    \/ \E told \in Here.toldKept :
        (told /= node[n].durable \/ node[n].writing /= <<>>) /\ SavedAs(n, told)

Steps(n) ==
    CASE Here.does = "starts" /\ ~node[n].isRunning ->
            StartsWith(n, Here.voters) /\ UNCHANGED handled
      [] Here.does = "ends" -> Ends(n) /\ UNCHANGED handled
      [] Here.does = "loses its disk" -> LosesDisk(n) /\ UNCHANGED handled
      [] Here.does = "is cleaned up after" -> PostStop(n) /\ UNCHANGED handled
      [] OTHER ->
            \/ ~handled /\ Here.hears.kind /= "None" /\ TakesIn(n, Here.hears) /\ handled' = TRUE
            \/ DoesMore(n) /\ UNCHANGED handled

\* What waits for the voter's promises on disk. An acknowledgement is only for a leader that it still
\* follows. The code sends both later than `Quorum`, or never. There they are under way meanwhile.
Waits(m) == m.kind \in {"Acknowledgement", "Vote"}
IsUnsaid(m) ==
    LET asked == [m EXCEPT !.from = m.to]
    IN /\ Waits(m) /\ m \notin Here.sends
       /\ (IF m.kind = "Vote" THEN RequestOf(asked) ELSE DeclarationOf(asked)) \in Here.unanswered

\* What the specification sent in this line or before, without what is said again and again.
SaysTheSame == Here.news \subseteq datagrams
SaysNoMore ==
    \A m \in datagrams' \ datagrams : m.kind = "Inquiry" \/ m \in Here.sends \/ IsUnsaid(m)
StaysUnderWay(m) == IF m.from[1] = Self THEN IsUnsaid(m) ELSE Waits(m)

ShowsTheSame ==
    LET r == node[Self]
        wasToldAll == Here.toldKept = {} \/ r.durable = Here.lastTold
        left == IF InOffice(r) THEN LeaseLeft(r.lease) ELSE 0
    IN CASE Here.does = "ends" -> ~r.isRunning
         [] Here.does = "loses its disk" -> r.durable = EmptyDisk
         [] Here.does = "is cleaned up after" -> r.plan = 0
         \* It shows nothing any more.
         [] Here.does = "stops" -> r.isRunning
         [] OTHER ->
              /\ r.isRunning
              /\ Kept(r) = IF Here.hasMemory THEN Here.memory ELSE before
              /\ wasToldAll
              /\ Here.elected > 0 => hookTerm = Here.elected
              /\ Here.leads <=> r.state = "Leading"
              /\ r.state = "Standing" => Here.stands
              /\ Near(left, Here.lease)
              \* What a node has promised to itself it does not show.
              /\ r.pledge.to[1] /= Self => Near(r.pledgedUntil, Here.pledged)

Step ==
    /\ steps < MostSteps
    /\ Steps(Self) /\ SaysNoMore
    /\ steps' = steps + 1
    /\ UNCHANGED <<trace, line, before, platter>>

\* From when it first hears of a life a voter knows it.
Knows(r, life) ==
    IF life[1] \notin Nodes \/ r.known[life[1]].incarnation >= life[2] THEN r
    ELSE [r EXCEPT !.known[life[1]] = [incarnation |-> life[2], wait |-> DeclarationHold - Slack]]

Reaches(next) ==
    LET there == Traces[trace][next]
        aged == [n \in Nodes |-> Aged(n, there.passed[n])]
    IN /\ line' = next /\ steps' = 0 /\ handled' = FALSE
       /\ datagrams' = {m \in datagrams : StaysUnderWay(m)}
       /\ node' = [aged EXCEPT ![there.node] = Knows(@, there.hearsFrom)]
       /\ before' = Kept(node[there.node])
       /\ platter' = IF there.hasDisk THEN [platter EXCEPT ![there.node] = there.disk] ELSE platter
       \* How many faults there were does not matter here, and must not make two states of one.
       /\ faults' = NoFaults
       /\ UNCHANGED <<trace, rate, voters, won, hookTerm>>

Advance ==
    /\ SaysTheSame /\ ShowsTheSame
    /\ Here.does = "acts" => ~IsMissing(Self)
    /\ line > TLCGet(trace) =>
        TLCSet(trace, line) /\ PrintT(<<"followed", trace, line>>)
    /\ line < Len(Traces[trace]) /\ Reaches(line + 1)

Off == Stopped(Started(NoNode, 0, {}, EmptyDisk, 0, "let go", 0))

TraceInit ==
    /\ node = [n \in Nodes |-> Off]
    /\ datagrams = {} /\ rate = [n \in Nodes |-> 1]
    /\ faults = NoFaults
    /\ voters = {} /\ won = {} /\ hookTerm = 0
    /\ trace \in 1 .. Len(Traces) /\ line = 1 /\ steps = 0 /\ handled = FALSE
    /\ before = EmptyDisk
    /\ platter = [n \in Nodes |-> EmptyDisk]
    /\ TLCSet(trace, 0)

TraceSpec == TraceInit /\ [][Step \/ Advance]_traceVars

=============================================================================
