------------------------------- MODULE Check -------------------------------
(* What the configurations name that a .cfg file has no words for. *)
EXTENDS Quorum, TLC

CONSTANTS a, b, c, d, e

\* Any clock may be slow, and any fast.
AnySlow == SUBSET Nodes

\* Nodes of which none differs from another may be exchanged.
Symmetry == Permutations(Candidates) \cup Permutations(Nodes \ Candidates)

EnrolledGroup == [group |-> "enrolled", removed |-> {}, electors |-> {}, leader |-> NoNode,
                  lost |-> {}]
NewGroup == [EnrolledGroup EXCEPT !.group = "new"]

\* In place of an action that a configuration does without.
Never == FALSE
NeverDoes(n) == FALSE

\* Two voters, and a third node that may become one.
TwoOfThree == [EnrolledGroup EXCEPT !.removed = {c}]

\* Of five voters `a d e` have elected `d` in term 2. Then `d` was removed, and `a` has lost its
\* disk.
FourOfFive ==
    [EnrolledGroup EXCEPT !.removed = {d}, !.electors = {a, d, e}, !.leader = d, !.lost = {a}]

=============================================================================
