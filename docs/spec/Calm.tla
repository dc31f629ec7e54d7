-------------------------------- MODULE Calm --------------------------------
(***************************************************************************)
(* Without further faults, an election comes.                              *)
(*                                                                         *)
(* Anything that `Quorum` allows may happen first. At some point all is    *)
(* mended: daemons that are down start, hooks let go, and what is sent     *)
(* arrives before time goes on. From then on only the best candidate       *)
(* stands, once no pledge is in its way: that is what proposals and turns  *)
(* are for, which the specification leaves out. Then a leader must come    *)
(* that a majority has acknowledged.                                       *)
(***************************************************************************)
EXTENDS Check

CONSTANTS
    Best,           \* the best candidate
    TroubleTerm     \* the highest term before all is mended; `MaxTerm` must be above it

VARIABLE isCalm

calmVars == <<vars, isCalm>>

IsOver == \A n \in Nodes : node[n].state = "Following" /\ node[n].hooks = "let go"
PledgesAreOver == \A n \in Nodes : node[n].pledgedUntil = 0
\* What the best candidate asks now. What it asked before is not repeated any more.
IsOfBest(m) ==
    /\ m.from = Life(Best)
    /\ \/ m.kind = "VoteRequest" /\ node[Best].state = "Standing"
       \/ m.kind = "Declaration" /\ node[Best].state = "Leading"
    /\ m.term = node[Best].term

\* What the daemons and their hosts do at once.
Mends ==
    \/ \E n \in Nodes :
        \/ Persisted(n) \/ Restart(n) \/ LetGo(n)
        \/ HandOver(n) /\ ~Leads(n)
        \/ LoseElection(n) /\ (n /= Best \/ node[n].poll.left = 0)
        \/ \E m \in Nodes : HearTerm(n, m)
Answers ==
    \E n \in Nodes, m \in datagrams :
        \/ HandleAnswer(n, m) /\ node'[n] /= node[n]
        \/ HandleInquiry(n, m) /\ m.from = Life(m.from[1]) /\ vars' /= vars
Elects ==
    \/ RequestVotes(Best) /\ IsOver /\ PledgesAreOver
    \/ Declare(Best)
    \/ \E n \in Nodes, m \in datagrams :
        \/ IsOfBest(m) /\ (HandleVoteRequest(n, m) \/ HandleDeclaration(n, m)) /\ vars' /= vars
        \/ n = Best /\ (HandleVote(n, m) \/ HandleAcknowledgement(n, m)) /\ vars' /= vars

Progress == Mends \/ Answers \/ Elects
CalmNext == IF ENABLED Progress THEN Progress ELSE Tick

Troubled == ~isCalm /\ Next /\ (\A n \in Nodes : node'[n].term <= TroubleTerm) /\ UNCHANGED isCalm
BecomesCalm == ~isCalm /\ isCalm' = TRUE /\ UNCHANGED vars

IsElected == Leads(Best) /\ node[Best].lease.isConfirmed
\* A run ends with the election.
ElectsInCalm == isCalm /\ ~IsElected /\ CalmNext /\ UNCHANGED isCalm

CalmSpec ==
    /\ Init /\ isCalm = FALSE
    /\ [][Troubled \/ BecomesCalm \/ ElectsInCalm]_calmVars
    /\ WF_calmVars(ElectsInCalm)

AnElectionComes == isCalm ~> IsElected

=============================================================================
