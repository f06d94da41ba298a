//! A queue with several servers, M/M/n, on the engine's agenda: a known answer to hold the agenda
//! against, and a model that every simulator can be timed with.
//!
//! ```text
//! arrivals (exponential) --> waiting --> n servers (exponential) --> gone
//! ```
//!
//! Not a model of a library.

use std::collections::VecDeque;

use fulgurite_units::{Duration, Instant, Seed};

use crate::engine::Agenda;

/// Customers that arrive at random and are served one after another by equal servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queue {
    /// Servers.
    pub servers: u32,
    /// Arrivals per second over what all servers can serve; below 1.
    pub load: f64,
    /// Customers until the end. One takes a second to be served, on average.
    pub customers: u64,
}

/// What a run of a queue measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queued {
    /// Mean seconds a customer waited before service.
    pub wait_mean: f64,
    /// Events: arrivals and ends of service.
    pub events: u64,
}

#[derive(Clone, Copy, Debug)]
enum Next {
    Arrival,
    Served,
}

impl Queue {
    /// Runs until the last customer is served.
    #[must_use]
    pub fn run(&self, seed: u64) -> Queued {
        let mut random = Seed::new(seed).stream();
        let mut exponential = |mean: f64| -(1.0 - random.unit()).ln() * mean;
        let gap = 1.0 / (f64::from(self.servers) * self.load);
        let mut agenda = Agenda::new();
        let mut waiting: VecDeque<Instant> = VecDeque::new();
        let (mut free, mut arrived, mut events) = (self.servers, 0, 0);
        let mut waited = Duration::ZERO;
        agenda.push(Instant::ZERO, Next::Arrival);
        while let Some((now, next)) = agenda.pop() {
            events += 1;
            match next {
                Next::Arrival => {
                    arrived += 1;
                    waiting.push_back(now);
                    if arrived < self.customers {
                        let gap = Duration::from_secs_f64(exponential(gap));
                        agenda.push(now + gap, Next::Arrival);
                    }
                }
                Next::Served => free += 1,
            }
            if free > 0
                && let Some(since) = waiting.pop_front()
            {
                free -= 1;
                waited = waited + now.since(since);
                agenda.push(now + Duration::from_secs_f64(exponential(1.0)), Next::Served);
            }
        }
        Queued { wait_mean: waited.as_secs_f64() / arrived.max(1) as f64, events }
    }

    /// The mean wait in theory, by Erlang's formula C.
    #[must_use]
    pub fn wait_in_theory(&self) -> f64 {
        let servers = f64::from(self.servers);
        let offered = servers * self.load;
        // Erlang B by its recursion, which cannot overflow; C from it.
        let b = (1..=self.servers).fold(1.0, |b, n| offered * b / (f64::from(n) + offered * b));
        let c = b / (1.0 - self.load * (1.0 - b));
        c / (servers * (1.0 - self.load))
    }
}

#[cfg(test)]
mod tests {
    use super::Queue;

    #[test]
    fn the_mean_wait_is_the_one_of_theory() {
        for (servers, load) in [(1, 0.5), (20, 0.9)] {
            let queue = Queue { servers, load, customers: 400_000 };
            let (found, theory) = (queue.run(1).wait_mean, queue.wait_in_theory());
            assert!((found / theory - 1.0).abs() < 0.06, "{found} for {theory}");
        }
        assert!(
            (Queue { servers: 1, load: 0.5, customers: 1 }.wait_in_theory() - 1.0).abs() < 1e-9
        );
    }
}
