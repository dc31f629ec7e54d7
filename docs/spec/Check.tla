------------------------------- MODULE Check -------------------------------
(* What the configurations name that a .cfg file has no words for. *)
EXTENDS Quorum, TLC

\* Any clock may be slow, and any fast.
AnySlow == SUBSET Nodes

\* Nodes of which none differs from another may be exchanged.
Symmetry == Permutations(Nodes)

EnrolledGroup == [group |-> "enrolled", removed |-> {}, electors |-> {}, leader |-> NoNode]
NewGroup == [EnrolledGroup EXCEPT !.group = "new"]

=============================================================================
