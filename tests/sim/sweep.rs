//! Many seeds, one after the other, on every processor. A failing one does not end it, unless that
//! is asked for.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use crate::watch::Violation;

/// Which seeds are to run.
#[derive(Debug, Clone)]
pub struct Seeds {
    /// The seeds, in this order.
    pub range: Range<u64>,
    /// No further seed begins after this.
    pub until: Option<Instant>,
    /// No further seed begins after the first failure.
    pub first: bool,
}

/// What came of them.
#[derive(Debug, Default)]
pub struct Sweep<T> {
    /// The counts of all that passed.
    pub total: T,
    /// How many ran. They are the first ones of the range.
    pub count: u64,
    /// The seeds that failed, in ascending order.
    pub failures: Vec<(u64, Violation)>,
}

/// Runs `run` for each seed. A panic is a violation too.
pub fn sweep<T: Default + Send>(
    seeds: &Seeds,
    run: impl Fn(u64) -> Result<T, Violation> + Sync,
    add: impl Fn(&mut T, &T) + Sync,
) -> Sweep<T> {
    let next = AtomicU64::new(seeds.range.start);
    let failed = AtomicBool::new(false);
    let worker = || {
        let mut done = Sweep::default();
        let ends = || is_over(seeds.until) || (seeds.first && failed.load(Ordering::Relaxed));
        while !ends() {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.range.end {
                break;
            }
            done.count += 1;
            match run_caught(|| run(seed)) {
                Ok(tally) => add(&mut done.total, &tally),
                Err(violation) => {
                    println!("  seed {seed}: {violation}");
                    failed.store(true, Ordering::Relaxed);
                    done.failures.push((seed, violation));
                }
            }
        }
        done
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let mut all = Sweep::default();
        for handle in workers {
            let done = handle.join().expect("a worker panicked");
            add(&mut all.total, &done.total);
            all.count += done.count;
            all.failures.extend(done.failures);
        }
        all.failures.sort_by_key(|(seed, _)| *seed);
        all
    })
}

#[expect(clippy::disallowed_methods, reason = "it ends when the time is up that really passes")]
fn is_over(until: Option<Instant>) -> bool {
    until.is_some_and(|until| Instant::now() >= until)
}

fn run_caught<T>(run: impl FnOnce() -> Result<T, Violation>) -> Result<T, Violation> {
    let panicked = |cause: Box<dyn Any + Send>| {
        let text = cause.downcast_ref::<&str>().copied();
        let text = text.or_else(|| cause.downcast_ref::<String>().map(String::as_str));
        Err(Violation::new(format!("panicked: {}", text.unwrap_or("no message"))))
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(panicked)
}
