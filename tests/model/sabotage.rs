//! Ways to break the world, to show that the checks notice.

/// What is wrong with the world on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// Disks keep neither ballot nor pledge over a restart.
    LoseVotes,
    /// Disks keep no pledge over a restart.
    LosePledges,
    /// Disks tell that they have written what they never do.
    ReportWritesEarly,
    /// A host answers that it leads without looking at its clock.
    AnswerWithoutClock,
    /// Clocks are five percent off, each in the worse direction.
    WrongClocks,
}

impl Sabotage {
    /// Each way.
    pub const ALL: [Sabotage; 5] = [
        Sabotage::LoseVotes,
        Sabotage::LosePledges,
        Sabotage::ReportWritesEarly,
        Sabotage::AnswerWithoutClock,
        Sabotage::WrongClocks,
    ];

    /// The scenario that shows it.
    pub const fn scenario(self) -> &'static str {
        match self {
            Sabotage::LoseVotes | Sabotage::LosePledges | Sabotage::ReportWritesEarly => {
                "failover: a crash, a cut"
            }
            Sabotage::AnswerWithoutClock => "grace: a cut, two slips",
            Sabotage::WrongClocks => "election: three slips",
        }
    }
}
