------------------------------- MODULE Voter -------------------------------
(***************************************************************************)
(* What a voter has promised, to which life, and until when.               *)
(*                                                                         *)
(* Implemented in src/core/quorum/voter.rs and src/core/persist.rs. The    *)
(* operators have the names of the functions there. Each takes the record  *)
(* of a node and returns it changed. Of that record they use               *)
(*                                                                         *)
(*   ballot        the last vote: [term, candidate]                        *)
(*   pledge        the last pledge: [to, term]                             *)
(*   pledgedUntil  how much longer the pledge holds, by the voter's clock  *)
(*                                                                         *)
(* A pledge on disk has a length, too: the longest hold that was asked     *)
(* for. The voter remembers at least the hold of a declaration, and here   *)
(* all nodes have the same settings. So that length is a constant.         *)
(***************************************************************************)
EXTENDS Integers

CONSTANTS
    Without     \* the rules that are taken away: none, or the name of one, to show what it is for

Keeps(rule) == rule \notin Without

Max(a, b) == IF a >= b THEN a ELSE b

\* Of no life: nothing is at stake.
Nobody == <<"nobody", 0>>
NoBallot == [term |-> 0, candidate |-> Nobody]
NoPledge == [to |-> Nobody, term |-> 0]

\* `bound_until`: whether the voter is pledged to another life than `life`.
IsBound(r, life) == r.pledge.to /= life /\ r.pledgedUntil > 0

\* `may_cast`: whether the earlier votes leave it free to vote. The same vote may be given again.
MayCast(r, term, candidate) ==
    \/ r.ballot.term < term
    \/ r.ballot.term = term /\ (r.ballot.candidate = candidate \/ ~Keeps("one vote a term"))

\* `cast`: votes.
Cast(r, term, candidate) == [r EXCEPT !.ballot = [term |-> term, candidate |-> candidate]]

\* `give`: promises nothing to any life but `to`, for as long as `hold`; it leads or stands in
\* `term`.
\* Within one life of its holder a pledge only grows.
Give(r, to, term, hold) ==
    LET isRenewed == r.pledge.to = to
        grown == IF isRenewed /\ Keeps("a pledge's term only grows")
                 THEN Max(r.pledge.term, term) ELSE term
    IN [r EXCEPT !.pledge = [to |-> to, term |-> grown],
                 !.pledgedUntil = IF isRenewed THEN Max(r.pledgedUntil, hold) ELSE hold]

\* `release`: `holder` has ended whatever it led or stood for up to `term`.
Release(r, holder, term) ==
    LET isHolder == IF Keeps("resignation of this life")
                    THEN r.pledge.to = holder ELSE r.pledge.to[1] = holder[1]
        isOver == r.pledge.term <= term \/ ~Keeps("resignation of this term or a later one")
    IN IF isHolder /\ isOver THEN [r EXCEPT !.pledgedUntil = 0] ELSE r

\* `restored`: a pledge to another node counts anew, for its whole length. What the node promised
\* to itself ended with the life that led or stood.
RestoredPledge(pledge, id) == IF pledge.to[1] = id THEN NoPledge ELSE pledge
RestoredHold(pledge, id, hold) ==
    IF RestoredPledge(pledge, id) = NoPledge \/ ~Keeps("a restart keeps the pledge")
    THEN 0 ELSE hold

=============================================================================
