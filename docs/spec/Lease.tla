------------------------------- MODULE Lease -------------------------------
(***************************************************************************)
(* How long a leader may act, and how long the voters' promises to it last.*)
(*                                                                         *)
(* Implemented in src/core/quorum/lease.rs.                                *)
(*                                                                         *)
(* Time is discrete. Every duration is a number of units of some node's    *)
(* clock, and every deadline is the number of units that are left of it.   *)
(* In one tick of true time a slow clock advances by one unit, and a fast  *)
(* one by `Fast` units. The argument uses the ratio of the two rates only, *)
(* which is 101/99 in the code. Here it is `Fast`, so that the difference  *)
(* shows within a few ticks.                                               *)
(***************************************************************************)
EXTENDS Voter, FiniteSets, Sequences

CONSTANTS
    LeaseTerm,      \* L: `leader_alive_threshold`
    DemoteGrace,    \* G: `demote_grace`
    Fast            \* units that a fast clock advances by in a tick; a slow one advances by 1

\* `hold_for`: how long a voter holds still for a node that relies on it for `reliance`.
HoldFor(reliance) == IF Keeps("drift margin") THEN reliance * Fast ELSE reliance

VoteHold == HoldFor(LeaseTerm)
DeclarationHold ==
    HoldFor(IF Keeps("the pledge covers the grace") THEN LeaseTerm + DemoteGrace ELSE LeaseTerm)

(***************************************************************************)
(* The lease of a leader:                                                  *)
(*                                                                         *)
(*   cover         what is left until the hooks must have let go. Before   *)
(*                 the lease is confirmed this is the lease itself.        *)
(*   isConfirmed   whether a majority has acknowledged a declaration       *)
(*   outstanding   the cover of each declaration of this leadership        *)
(*   acknowledged  the newest declaration that each voter has acknowledged *)
(***************************************************************************)
NoLease(nodes) == [cover |-> 0, isConfirmed |-> FALSE, outstanding |-> <<>>,
                   acknowledged |-> [n \in nodes |-> 0]]

\* `Lease::end`: what is left of the lease.
LeaseLeft(lease) == Max(0, lease.cover - IF lease.isConfirmed THEN DemoteGrace ELSE 0)

\* `note_declared`: a declaration is sent now.
NoteDeclared(lease) ==
    [lease EXCEPT !.outstanding = Append(@, LeaseTerm + DemoteGrace)]

\* `covered_by`: the newest declaration that at least `needed` voters cover.
CoveredBy(lease, needed) ==
    LET covers(k) == Cardinality({v \in DOMAIN lease.acknowledged : lease.acknowledged[v] >= k})
        told == {lease.acknowledged[v] : v \in DOMAIN lease.acknowledged} \ {0}
        enough == {k \in told : covers(k) >= needed}
    IN IF enough = {} THEN 0 ELSE CHOOSE k \in enough : \A other \in enough : other <= k

\* `note_acknowledged`: `voter` acknowledges declaration `number`. An acknowledgement whose lease
\* would be over changes nothing.
NoteAcknowledged(lease, voter, number, needed) ==
    LET noted == [lease EXCEPT !.acknowledged[voter] = Max(@, number)]
        newest == CoveredBy(noted, needed)
        sent == IF newest = 0 THEN 0 ELSE noted.outstanding[newest]
        renewed == IF Keeps("the lease counts from the sending") \/ newest = 0
                   THEN sent ELSE LeaseTerm + DemoteGrace
    IN IF renewed <= DemoteGrace THEN noted
       ELSE [noted EXCEPT !.cover = IF noted.isConfirmed THEN Max(@, renewed) ELSE renewed,
                          !.isConfirmed = TRUE]

\* `units` of the leader's clock pass.
Age(lease, units) ==
    [lease EXCEPT !.cover = Max(0, @ - units),
                  !.outstanding = [k \in DOMAIN @ |-> Max(0, @[k] - units)]]

=============================================================================
