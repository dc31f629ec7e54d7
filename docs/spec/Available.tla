----------------------------- MODULE Available -----------------------------
(***************************************************************************)
(* Available mode: each part of the network gets a leader, and only one.   *)
(* docs/election.md has the rules in prose.                                *)
(*                                                                         *)
(* A run begins in any state: with several leaders, with candidates, with  *)
(* followers of nodes that do not lead or that they cannot hear. A network *)
(* that loses, repeats and reorders datagrams, and nodes that crash, leave *)
(* such states behind. From then on the network is calm: a node hears what *)
(* the nodes around it send.                                               *)
(*                                                                         *)
(* There is no time. A step is a datagram that arrives, or a timer that    *)
(* fires. A datagram says what its sender is when it arrives: one that     *)
(* comes late is left out. Two rules stand for the timers. A follower      *)
(* gives a leader up only if that one does not lead or cannot be heard. A  *)
(* candidate wins once each proposal and each declaration between it and   *)
(* the others has arrived. The steps come in any order, and the only       *)
(* fairness is that the run goes on.                                       *)
(*                                                                         *)
(* Left out: what is only a matter of time (probes, turns, the interval    *)
(* between two terms, the disk), `Starting`, hooks and the time they take, *)
(* static roles, observers, and the reasons to stay out of service.        *)
(***************************************************************************)
EXTENDS Integers

CONSTANTS
    Nodes,          \* the ids of all nodes, which are numbers
    NoNode,         \* no id
    Priority,       \* the priority of each node
    LinkSets,       \* which nodes hear each other: one of these sets of pairs
    FirstTerm,      \* the highest term in which a run begins,
    MaxTerm,        \* and the highest one that any run reaches: nothing is cut off there
    MaxCrashes,     \* crashes of the whole run
    Preempt,        \* `preempt`, of every node
    Without         \* the rules that are taken away: none, or the name of one

VARIABLES
    node,           \* the daemon of each node, and what it keeps on disk
    settled,        \* <<n, m>>: `n` has met the present leadership of `m` while it led itself
    links,          \* the pairs of nodes that hear each other, in both directions
    crashes         \* how many crashes there were

vars == <<node, settled, links, crashes>>

Keeps(rule) == rule \notin Without
Max(x, y) == IF x >= y THEN x ELSE y

\* src/core/rank.rs: the higher priority wins, then the lower id.
Better(n, m) == Priority[n] > Priority[m] \/ (Priority[n] = Priority[m] /\ n < m)

(***************************************************************************)
(* A node:                                                                 *)
(*                                                                         *)
(*   state     "Down", "Following", "Standing", or "Leading"               *)
(*   term      the highest term that it knows. In the code a leader keeps  *)
(*             what it hears in `Conflicts::heard`, until it has more      *)
(*   leader    whom it follows, or itself                                  *)
(*   current   the term that this leader has declared; 0 if it has none    *)
(*   conceded  a leader has to reach this term; 0 if it has                *)
(*   ended     what `conceded` is if no rule is taken away                 *)
(***************************************************************************)
Is(n, state) == node[n].state = state
IsUp(n) == ~Is(n, "Down")
Hears(n, m) == {n, m} \in links /\ n /= m /\ IsUp(n) /\ IsUp(m)
IsLeaderless(n) == Is(n, "Following") /\ node[n].leader = NoNode

----------------------------------------------------------------------------
(* Steps of a node. Each takes its record, and returns it changed. *)

\* `learn_term`
Learns(r, term) == [r EXCEPT !.term = Max(@, term)]

\* `note_led`: the next leader has to reach this term.
Ended(r, term, rule) ==
    [r EXCEPT !.ended = Max(@, term), !.conceded = IF Keeps(rule) THEN Max(@, term) ELSE @]

\* `concession`. What the leader has reached is forgotten.
Reached(r) ==
    [r EXCEPT !.ended = IF @ > r.current THEN @ ELSE 0,
              !.conceded = IF @ > r.current THEN @ ELSE 0]
Concedes(r) == r.leader /= NoNode /\ r.conceded > r.current

\* `lose_leader`
Loses(r) ==
    [Ended(r, r.current, "a lost leader's term is conceded")
        EXCEPT !.state = "Following", !.leader = NoNode, !.current = 0]

\* `note_current_term` and `follow`: `leader` has declared in `term`.
Follows(r, leader, term) ==
    Reached([Learns(Loses(r), term) EXCEPT !.leader = leader, !.current = term])

\* `become_leader`, and `reaffirm`: leads in a term above every one that it knows.
Leads(r, n, term) ==
    [r EXCEPT !.state = "Leading", !.leader = n, !.term = term, !.current = term,
              !.conceded = 0, !.ended = 0]
BecomesLeader(r, n) == Leads(r, n, r.term + 1)
Outdoes(r, n, term) ==
    IF Keeps("the winner's term is above both")
    THEN Leads(r, n, Max(r.term, term) + 1) ELSE Leads(r, n, r.current + 1)

\* `step_down` and `concede`
StepsDown(r, leader, term) ==
    LET above == Max(r.term, term) + 1
        follows == [Follows(r, leader, term) EXCEPT !.term = above]
    IN Ended(follows, above, "the loser of a conflict concedes")

\* The nodes become `next`, and have met `met`. A leadership that goes on in a higher term has to be
\* met again, and a restart forgets what was met.
Go(next, met) ==
    /\ node' = next
    /\ settled' = {p \in settled \cup met :
                       /\ next[p[2]].state = "Leading" /\ next[p[2]].current = node[p[2]].current
                       /\ next[p[1]].state /= "Down"}
    /\ UNCHANGED links
BecomesAnd(n, r, met) == Go([node EXCEPT ![n] = r], met) /\ UNCHANGED crashes
Becomes(n, r) == BecomesAnd(n, r, {})

----------------------------------------------------------------------------
(* Datagrams: src/core/election/datagrams.rs, available/mod.rs *)

\* `handle_declaration` of a node that leads: available/conflicts.rs.
MeetLeader(n, m) ==
    LET r == node[n]
        term == node[m].current
        isNews == <<n, m>> \notin settled \/ ~Keeps("a worse leader is outdone once")
    IN /\ Hears(n, m) /\ Is(n, "Leading") /\ Is(m, "Leading")
       /\ IF Better(m, n)
          THEN /\ Keeps("a worse leader steps down")
               /\ Becomes(n, StepsDown(r, m, term))
          ELSE isNews /\ BecomesAnd(n, Outdoes(r, n, term), {<<n, m>>})

\* `handle_declaration` and `follow_the_best` of the others: following.rs.
HandleDeclaration(n, m) ==
    LET r == node[n]
        learns == Learns(r, node[m].current)
        isBest == r.leader = NoNode \/ r.leader = m \/ Better(m, r.leader)
                  \/ ~Keeps("the best leader is followed")
        ignores == r.state = "Standing" /\ ~Keeps("a candidate follows a leader that it hears")
        after == IF isBest /\ ~ignores THEN Follows(r, m, node[m].current) ELSE learns
    IN /\ Hears(n, m) /\ ~Is(n, "Leading") /\ Is(m, "Leading")
       /\ after /= r
       /\ Becomes(n, after)

\* `learn_term` and `handle_concession`: any datagram tells a term. A leader takes a higher one only
\* if a node that follows it concedes one.
HandleHeartbeat(n, m) ==
    LET r == Learns(node[n], node[m].term)
        conceded == IF node[m].leader = n /\ Concedes(node[m]) THEN node[m].conceded ELSE 0
        heard == IF Keeps("followers alone move a leader") THEN conceded ELSE node[m].term
        after == IF r.state = "Leading" /\ heard > r.current THEN Outdoes(r, n, heard) ELSE r
    IN /\ Hears(n, m) /\ ~Is(m, "Leading")
       /\ after /= node[n]
       /\ Becomes(n, after)

\* No better node stands that this one hears: it would wait until that one has won (`deference`).
IsItsTurn(n) ==
    \/ \A m \in Nodes : Hears(n, m) /\ Is(m, "Standing") => Better(n, m)
    \/ ~Keeps("a candidate defers to a better one")

\* `handle_proposal`: candidacy.rs. A candidate leaves the leadership to a better one. A better node
\* without a leader stands as well.
HandleProposal(n, m) ==
    /\ Hears(n, m) /\ Is(m, "Standing")
    /\ \/ /\ Is(n, "Standing") /\ Better(m, n) /\ Keeps("a candidate defers to a better one")
          /\ Becomes(n, [node[n] EXCEPT !.state = "Following"])
       \/ /\ IsLeaderless(n) /\ Better(n, m) /\ Keeps("a better node answers a proposal")
          /\ IsItsTurn(n)
          /\ Becomes(n, [node[n] EXCEPT !.state = "Standing"])

----------------------------------------------------------------------------
(* Timers *)

\* `give_leader_up`: probing.rs, following.rs; and `notice_fall`: datagrams.rs. The leader does not
\* answer, or is heard in another role.
GiveLeaderUp(n) ==
    LET leader == node[n].leader
        answers == Hears(n, leader) /\ Is(leader, "Leading")
    IN /\ Is(n, "Following") /\ leader /= NoNode
       /\ ~answers \/ ~Keeps("a leader that answers is not given up")
       /\ Becomes(n, Loses(node[n]))

\* `stand`: candidacy.rs
Stand(n) ==
    /\ IsLeaderless(n) /\ IsItsTurn(n)
    /\ Becomes(n, [node[n] EXCEPT !.state = "Standing"])

\* `declare_if_certain`: available/mod.rs. `end_election`: mode.rs. Each node has had the time to
\* answer.
Win(n) ==
    /\ Is(n, "Standing")
    /\ \A m \in Nodes :
        /\ ~ENABLED HandleDeclaration(n, m)
        /\ ~ENABLED HandleProposal(n, m) /\ ~ENABLED HandleProposal(m, n)
    /\ Becomes(n, BecomesLeader(node[n], n))

\* `claim`: claims.rs; `handle_claim`, `resign`, `succeed`: handover.rs. With `preempt` a leader,
\* `m`, resigns in favour of a better node that follows it.
HandOver(m, n) ==
    LET resigns == Loses(node[m])
        succeeds == BecomesLeader(Learns(Loses(node[n]), node[m].current), n)
    IN /\ Preempt /\ Keeps("a better follower claims the leadership")
       /\ Hears(n, m) /\ Is(m, "Leading")
       /\ Is(n, "Following") /\ node[n].leader = m /\ Better(n, m)
       /\ Go([node EXCEPT ![m] = resigns, ![n] = succeeds], {}) /\ UNCHANGED crashes

----------------------------------------------------------------------------
(* What goes wrong *)

DownWith(term) ==
    [state |-> "Down", term |-> term, leader |-> NoNode, current |-> 0, conceded |-> 0, ended |-> 0]

\* A leader's term is on disk before it declares. What it has only heard of is not.
Crash(n) ==
    /\ IsUp(n) /\ crashes < MaxCrashes
    /\ crashes' = crashes + 1
    /\ LET term == IF Is(n, "Leading") THEN node[n].current ELSE node[n].term
       IN Go([node EXCEPT ![n] = DownWith(term)], {})

\* `Election::new`: mod.rs. It may have led in the term that it has saved.
Restart(n) ==
    LET r == [node[n] EXCEPT !.state = "Following"]
    IN /\ Is(n, "Down")
       /\ Becomes(n, Ended(r, r.term, "a restarted node concedes"))

----------------------------------------------------------------------------
(* All of it *)

\* What any daemon may know: its own terms make sense, whatever the others are and do.
IsSensible(r) ==
    /\ r.current <= r.term /\ r.conceded <= r.term /\ r.ended = r.conceded
    /\ r.conceded > r.current \/ r.conceded = 0
    /\ (r.leader = NoNode) = (r.current = 0)
    /\ CASE r.state = "Following" -> TRUE
         [] r.state = "Standing" -> r.leader = NoNode
         [] r.state = "Leading" -> r.leader /= NoNode /\ r.conceded = 0
         [] r.state = "Down" -> r.leader = NoNode /\ r.conceded = 0
AnyNode ==
    LET terms == 0 .. FirstTerm
    IN {r \in [state : {"Following", "Standing", "Leading", "Down"}, leader : Nodes \cup {NoNode},
                term : terms, current : terms, conceded : terms, ended : terms] : IsSensible(r)}
LeadsItself(n) == Is(n, "Leading") <=> node[n].leader = n

HasMet(n, m) ==
    /\ Better(n, m) /\ {n, m} \in links /\ Is(n, "Leading") /\ Is(m, "Leading")
    /\ node[n].current > node[m].current

Init ==
    /\ links \in LinkSets
    /\ node \in [Nodes -> AnyNode] /\ \A n \in Nodes : LeadsItself(n)
    /\ settled \in SUBSET {p \in Nodes \X Nodes : HasMet(p[1], p[2])}
    /\ crashes = 0

Progress ==
    \E n \in Nodes :
        \/ GiveLeaderUp(n) \/ Stand(n) \/ Win(n)
        \/ \E m \in Nodes :
            \/ MeetLeader(n, m) \/ HandleDeclaration(n, m) \/ HandleHeartbeat(n, m)
            \/ HandleProposal(n, m) \/ HandOver(n, m)
Next == Progress \/ \E n \in Nodes : Crash(n) \/ Restart(n)

Spec == Init /\ [][Next]_vars /\ WF_vars(Progress)

----------------------------------------------------------------------------
(* What is promised *)

\* The nodes that run and that `n` hears, and itself. They are a component if all of them hear each
\* other and nobody else.
Around(n) == {n} \cup {m \in Nodes : Hears(n, m)}
IsComponent(c) == \A n \in c : IsUp(n) /\ Around(n) = c

\* A component has one leader; with `preempt` it is the best node.
HasOneLeader(c) ==
    \E leader \in c :
        /\ \A n \in c : Is(n, "Leading") <=> n = leader
        /\ Preempt => \A n \in c : n = leader \/ Better(leader, n)

\* Also without components: a node leads and hears no other leader, or it follows the best one that
\* it hears. That leader has reached each term that the node knows to have ended.
IsSettled(n) ==
    LET leaders == {m \in Around(n) : Is(m, "Leading")}
        leader == node[n].leader
    IN /\ leader \in leaders
       /\ \A m \in leaders : m = leader \/ (leader /= n /\ Better(leader, m))
       /\ node[n].current = node[leader].current /\ node[n].ended <= node[n].current

OneLeaderComes ==
    <>[] /\ \A c \in SUBSET Nodes : c /= {} /\ IsComponent(c) => HasOneLeader(c)
         /\ \A n \in Nodes : IsUp(n) => IsSettled(n)

\* A leader that has met a worse one is above it.
TheWinnerIsAbove ==
    \A p \in settled : Is(p[1], "Leading") => node[p[1]].current > node[p[2]].current

\* Of one node, each `elected` or `reaffirmed` hook has a higher term than whatever it knew before.
TermsOfHooksGrow ==
    [][ \A n \in Nodes :
            LET r == node'[n]
                isHook == r.state = "Leading" /\ (~Is(n, "Leading") \/ r.current /= node[n].current)
            IN isHook => r.current > node[n].term ]_node

\* An election is won where nobody leads, by a node to which no better one that hears it objects. A
\* better one that follows a leader, or that leaves the leadership to a still better one, does not.
Objects(m, n) == Better(m, n) /\ (Is(m, "Standing") \/ (IsLeaderless(m) /\ IsItsTurn(m)))
TheBestWins ==
    [][ \A n \in Nodes : Is(n, "Standing") /\ node'[n].state = "Leading" =>
            \A m \in Nodes : Hears(n, m) => ~Is(m, "Leading") /\ ~Objects(m, n) ]_node

\* A leader that runs gives way to a better one alone, and is left for a better one alone.
NothingFlaps ==
    [][ \A n \in Nodes :
            LET leader == node[n].leader
                isHeard == leader = n \/ (Hears(n, leader) /\ Is(leader, "Leading"))
                runOn == node'[n].state /= "Down" /\ node'[leader].state /= "Down"
            IN leader /= NoNode /\ isHeard /\ runOn =>
                \/ node'[n].leader = leader
                \/ \E m \in Nodes : node'[m].state = "Leading" /\ Better(m, leader) ]_node

\* Terms come to rest. No run is cut off at `MaxTerm`.
TermsStop == \A n \in Nodes : node[n].term <= MaxTerm

\* A mistake of the specification itself would show here.
TypeOK == Without = {} => \A n \in Nodes : IsSensible(node[n]) /\ LeadsItself(n)

----------------------------------------------------------------------------
(* What a .cfg file has no words for. Of the nodes 1, 2 and 3 the best is 2, and the worst is 1. *)

SomePriorities == <<50, 100, 100>>
Pairs == {{n, m} : n, m \in Nodes} \ {{n} : n \in Nodes}
AllLinked == {Pairs}
AnyLinks == SUBSET Pairs
\* The worst of three hears both others, and they do not hear each other.
Chain == {{{1, 2}, {1, 3}}}

=============================================================================
