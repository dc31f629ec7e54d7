//! The simulated network: who hears whom, how late, how often, and in which order.

use fastrand::Rng;

/// How datagrams fare on every link that is up. Times in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Weather {
    /// Shortest delay.
    pub delay_min: u64,
    /// Longest delay; the spread reorders.
    pub delay_max: u64,
    /// Probability that a datagram is lost on its way to one host.
    pub loss: f64,
    /// Probability that it arrives twice.
    pub duplication: f64,
    /// Probability that it is under way for very long.
    pub straggling: f64,
    /// For how long at the most.
    pub straggle_max: u64,
    /// Whether delays are so long that answers come too late for what they answer.
    pub is_late: bool,
}

impl Weather {
    /// Nothing is lost, doubled or late.
    pub const CALM: Weather = Weather {
        delay_min: 50_000,
        delay_max: 100_000,
        loss: 0.0,
        duplication: 0.0,
        straggling: 0.0,
        straggle_max: 0,
        is_late: false,
    };

    /// Whether every datagram arrives in time.
    pub fn is_calm(&self) -> bool {
        self.loss == 0.0 && self.is_prompt()
    }

    /// Whether every datagram that arrives does so in time.
    pub fn is_prompt(&self) -> bool {
        self.straggling == 0.0 && !self.is_late
    }
}

/// What carries a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    Multicast,
    Unicast,
}

/// What carries the datagrams of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carriers {
    multicast: bool,
    unicast: bool,
}

impl Carriers {
    /// For hosts of which these have peers. Hosts without peers, and all others beside them, have
    /// multicast. Where all have peers, all, some or none have it.
    fn choose(rng: &mut Rng, have_peers: &[bool]) -> Vec<Self> {
        let all_have_peers = have_peers.iter().all(|has_peers| *has_peers);
        let multicasting = [0.0, 0.0, 0.5, 1.0][rng.usize(0..4)];
        let choose = |unicast: &bool| Carriers {
            multicast: !all_have_peers || rng.f64() < multicasting,
            unicast: *unicast,
        };
        have_peers.iter().map(choose).collect()
    }

    pub const fn has(self, carrier: Carrier) -> bool {
        match carrier {
            Carrier::Multicast => self.multicast,
            Carrier::Unicast => self.unicast,
        }
    }
}

/// Which host hears which.
#[derive(Debug, Clone)]
pub struct Network {
    /// The weather now.
    pub weather: Weather,
    carriers: Vec<Carriers>,
    /// `no_route[from][to]`: no datagram by unicast gets from the one to the other.
    no_route: Vec<Vec<bool>>,
    /// `cut[from][to]`: nothing gets from the one to the other.
    cut: Vec<Vec<bool>>,
    /// Hosts whose interface is down.
    unplugged: Vec<bool>,
    /// How often who hears whom was changed.
    changes: u32,
}

impl Network {
    /// Hosts that all hear each other, of which these have peers.
    pub fn new(rng: &mut Rng, have_peers: &[bool]) -> Self {
        let hosts = have_peers.len();
        Network {
            weather: Weather::CALM,
            carriers: Carriers::choose(rng, have_peers),
            no_route: vec![vec![false; hosts]; hosts],
            cut: vec![vec![false; hosts]; hosts],
            unplugged: vec![false; hosts],
            changes: 0,
        }
    }

    /// Mends everything but unplugged hosts.
    pub fn heal(&mut self) {
        self.changes += 1;
        self.cut.iter_mut().chain(&mut self.no_route).for_each(|row| row.fill(false));
    }

    /// How often who hears whom was changed.
    pub fn changes(&self) -> u32 {
        self.changes
    }

    pub fn carriers(&self, host: usize) -> Carriers {
        self.carriers[host]
    }

    /// A host gets the carriers of another one.
    pub fn copy_carriers(&mut self, from: usize, to: usize) {
        self.changes += 1;
        self.carriers[to] = self.carriers[from];
    }

    /// Removes the route for unicast in one direction.
    pub fn remove_route(&mut self, from: usize, to: usize) {
        self.changes += 1;
        self.no_route[from][to] = from != to;
    }

    /// Cuts one direction.
    pub fn cut_one_way(&mut self, from: usize, to: usize) {
        self.changes += 1;
        self.cut[from][to] = from != to;
    }

    /// Splits the hosts: those with equal colours hear each other, the others do not.
    pub fn partition(&mut self, colours: &[usize]) {
        self.changes += 1;
        for (from, row) in self.cut.iter_mut().enumerate() {
            for (to, cut) in row.iter_mut().enumerate() {
                *cut = colours[from] != colours[to];
            }
        }
    }

    /// Takes a host's interface down, or brings it up.
    pub fn set_unplugged(&mut self, host: usize, unplugged: bool) {
        self.changes += 1;
        self.unplugged[host] = unplugged;
    }

    /// Whether a host's interface is up.
    pub fn is_plugged(&self, host: usize) -> bool {
        !self.unplugged[host]
    }

    /// Whether datagrams to all get from one host to another at all. A host always hears itself.
    pub fn connects(&self, from: usize, to: usize) -> bool {
        let carries = |carrier| self.carries(carrier, from, to);
        from == to || carries(Carrier::Multicast) || carries(Carrier::Unicast)
    }

    /// Whether `carrier` gets datagrams from one host to another. By multicast a host always hears
    /// itself; by unicast it does not send to itself.
    pub fn carries(&self, carrier: Carrier, from: usize, to: usize) -> bool {
        let both_have = self.carriers[from].has(carrier) && self.carriers[to].has(carrier);
        let is_up = !(self.cut[from][to] || self.unplugged[from] || self.unplugged[to]);
        both_have
            && match carrier {
                Carrier::Multicast => from == to || is_up,
                Carrier::Unicast => from != to && is_up && !self.no_route[from][to],
            }
    }

    /// The delays after which a datagram arrives that is carried: none where it is lost, two where
    /// it is doubled.
    pub fn deliveries(&self, rng: &mut Rng, from: usize, to: usize) -> [Option<u64>; 2] {
        let Weather { delay_min, delay_max, loss, duplication, straggling, straggle_max, .. } =
            self.weather;
        if from != to && loss > 0.0 && rng.f64() < loss {
            return [None, None];
        }
        let mut delay = || {
            let straggles = straggling > 0.0 && rng.f64() < straggling;
            let latest = if straggles { straggle_max.max(delay_max) } else { delay_max };
            Some(delay_min + rng.u64(0..=latest - delay_min))
        };
        let (first, second) = (delay(), delay());
        if duplication > 0.0 && rng.f64() < duplication {
            [first.min(second), first.max(second)]
        } else {
            [first, None]
        }
    }

    /// The connected components, where everyone in each hears everyone else; none where some link
    /// works one way only or some path needs a detour.
    pub fn cliques(&self, hosts: &[usize]) -> Option<Vec<Vec<usize>>> {
        let mut components: Vec<Vec<usize>> = Vec::new();
        for &host in hosts {
            let both = |other: &usize| self.connects(host, *other) && self.connects(*other, host);
            let either = |other: &usize| self.connects(host, *other) || self.connects(*other, host);
            let mut touched = components.iter_mut().filter(|c| c.iter().any(either));
            match (touched.next(), touched.next()) {
                (None, _) => components.push(vec![host]),
                (Some(component), None) if component.iter().all(both) => component.push(host),
                _ => return None,
            }
        }
        Some(components)
    }
}
