//! A ceiling that holds, on money and on requests.

use crate::base::Money;

/// What a run may still spend, and what it has spent, over all its executions.
#[derive(Debug, Clone, Copy, Default)]
pub struct BudgetConfig {
    /// The ceiling of money; `None` for none.
    pub max_cost: Option<Money>,
    /// The ceiling of requests; `None` for none.
    pub max_calls: Option<u64>,
    /// What complete replies have cost so far.
    pub spent: Money,
    /// The worst case of requests that were sent and brought no complete reply.
    pub possible: Money,
    /// Requests sent so far.
    pub calls: u64,
}

/// An amount of money and a number of requests: what is claimed for something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// Money.
    pub money: Money,
    /// Requests.
    pub calls: u64,
}

impl Claim {
    /// `count` requests of at most `bound` each.
    pub fn of(bound: Money, count: u64) -> Self {
        Self { money: bound.times(count), calls: count }
    }

    /// Both claims together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { money: self.money + other.money, calls: self.calls.saturating_add(other.calls) }
    }

    /// What of this claim another one does not cover.
    #[must_use]
    pub fn beyond(self, other: Self) -> Self {
        self.minus(other)
    }

    fn minus(self, other: Self) -> Self {
        Self {
            money: Money::from_pico(self.money.pico().saturating_sub(other.money.pico()).max(0)),
            calls: self.calls.saturating_sub(other.calls),
        }
    }
}

/// How a request ended, for the book.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Settlement {
    /// It was never sent.
    #[default]
    NotSent,
    /// A complete reply came, and cost this much.
    Replied(Money),
    /// It was sent, and no complete reply came.
    Lost,
}

/// Which ceiling is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ceiling {
    /// `max_calls`.
    Calls,
    /// `max_cost`.
    Cost,
}

/// The book of a run with a ceiling.
///
/// At any moment spent + possible + under way + unkept + held for admitted rows is at most the ceiling. A request draws
/// on what its row holds, then on what is free. What is drawn lies within a lease that is on disk, so that another
/// execution after a crash knows what may have been spent. That execution knows of a request's end only what the store
/// has kept: until then, what the request has not cost of its bound is not free for others.
#[derive(Debug, Clone)]
pub struct Budget {
    config: BudgetConfig,
    under_way: Claim,
    /// What requests that have ended have not cost of their bounds, while the store does not know of their ends.
    unkept: Claim,
    held: Claim,
    /// What is on disk: spent, possible and under way never exceed it.
    leased: Claim,
    /// The lease that was asked for last.
    asked: Claim,
    chunk: Claim,
}

impl Budget {
    /// A book that goes on where earlier executions stopped. `chunk` is what a lease takes ahead of need.
    pub fn new(config: BudgetConfig, chunk: Claim) -> Self {
        let used = Claim { money: config.spent + config.possible, calls: config.calls };
        let none = Claim::default();
        Self { config, under_way: none, unkept: none, held: none, leased: used, asked: used, chunk }
    }

    fn used(&self) -> Claim {
        Claim { money: self.config.spent + self.config.possible, calls: self.config.calls }
    }

    fn within(&self, wanted: Claim) -> Result<(), Ceiling> {
        if self.config.max_cost.is_some_and(|most| wanted.money > most) {
            return Err(Ceiling::Cost);
        }
        if self.config.max_calls.is_some_and(|most| wanted.calls > most) {
            return Err(Ceiling::Calls);
        }
        Ok(())
    }

    /// Whether `claim` fits beside all that is claimed already.
    ///
    /// # Errors
    /// The ceiling that is in the way.
    pub fn fits(&self, claim: Claim) -> Result<(), Ceiling> {
        self.within(self.claimed().plus(claim))
    }

    /// Holds a claim for a row. The caller has asked whether it fits.
    pub fn hold(&mut self, claim: Claim) {
        self.held = self.held.plus(claim);
    }

    /// Gives back what a row holds and does not need.
    pub fn release(&mut self, claim: Claim) {
        self.held = self.held.minus(claim);
    }

    /// Whether a request of `bound` lies within the lease that is on disk.
    pub fn is_leased(&self, bound: Money) -> bool {
        let wanted = self.at_risk().plus(Claim::of(bound, 1));
        wanted.money <= self.leased.money && wanted.calls <= self.leased.calls
    }

    /// A larger lease to put on disk, if less than half a chunk is left of the one that was asked for last. It never
    /// exceeds the ceiling.
    pub fn wants_lease(&mut self, bound: Money) -> Option<Claim> {
        let used = self.at_risk();
        let chunk = Claim {
            money: self.chunk.money.max(bound.times(self.chunk.calls.max(1))),
            calls: self.chunk.calls.max(1),
        };
        let half = Claim { money: Money::from_pico(chunk.money.pico() / 2), calls: chunk.calls / 2 };
        let low = used.plus(half).plus(Claim::of(bound, 1));
        if low.money <= self.asked.money && low.calls <= self.asked.calls {
            return None;
        }
        let mut next = used.plus(chunk).plus(Claim::of(bound, 1));
        next.money =
            self.config.max_cost.map_or(next.money, |most| next.money.min(most)).max(self.asked.money);
        next.calls =
            self.config.max_calls.map_or(next.calls, |most| next.calls.min(most)).max(self.asked.calls);
        if next == self.asked {
            return None;
        }
        self.asked = next;
        Some(next)
    }

    /// The lease is on disk.
    pub fn on_lease(&mut self, lease: Claim) {
        self.leased.money = self.leased.money.max(lease.money);
        self.leased.calls = self.leased.calls.max(lease.calls);
    }

    /// A request of `bound` goes. It draws on what its row holds, as far as that goes, and returns what is left there.
    pub fn draw(&mut self, bound: Money, held: Claim) -> Claim {
        let claim = Claim::of(bound, 1);
        let from_row = Claim { money: claim.money.min(held.money), calls: claim.calls.min(held.calls) };
        self.held = self.held.minus(from_row);
        self.under_way = self.under_way.plus(claim);
        held.minus(from_row)
    }

    /// A request of `bound` has ended. Whether the provider has billed more than was reserved.
    pub fn settle(&mut self, bound: Money, settlement: Settlement) -> bool {
        self.under_way = self.under_way.minus(Claim::of(bound, 1));
        match settlement {
            Settlement::NotSent => false,
            Settlement::Replied(cost) => {
                self.config.calls += 1;
                self.config.spent += cost;
                self.config.max_cost.is_some() && cost > bound
            }
            Settlement::Lost => {
                self.config.calls += 1;
                self.config.possible += bound;
                false
            }
        }
    }

    /// What a request of `bound` that has ended has not cost of it.
    pub fn unspent(bound: Money, settlement: Settlement) -> Claim {
        match settlement {
            Settlement::NotSent => Claim::of(bound, 1),
            Settlement::Replied(cost) => {
                Claim { money: bound, calls: 0 }.minus(Claim { money: cost, calls: 0 })
            }
            Settlement::Lost => Claim::default(),
        }
    }

    /// A request has ended of which the store does not know yet; `claim` is what it has not cost.
    pub fn keep_back(&mut self, claim: Claim) {
        self.unkept = self.unkept.plus(claim);
    }

    /// The store knows of the end of a request that had not cost `claim`.
    pub fn on_kept(&mut self, claim: Claim) {
        self.unkept = self.unkept.minus(claim);
    }

    /// What is left for a claim.
    pub fn left(&self) -> Claim {
        let claimed = self.claimed();
        Claim {
            money: self
                .config
                .max_cost
                .map_or(Money::ZERO, |most| Claim { money: most, calls: 0 }.minus(claimed).money),
            calls: self.config.max_calls.map_or(0, |most| most.saturating_sub(claimed.calls)),
        }
    }

    /// Spent and possible.
    pub fn book(&self) -> (Money, Money) {
        (self.config.spent, self.config.possible)
    }

    /// All that is claimed: what the ceiling is held against.
    pub fn claimed(&self) -> Claim {
        self.at_risk().plus(self.held)
    }

    /// What a kill at this moment would leave to be accounted for: it lies within the lease.
    pub fn at_risk(&self) -> Claim {
        self.used().plus(self.under_way).plus(self.unkept)
    }

    /// The lease that is on disk.
    pub fn leased(&self) -> Claim {
        self.leased
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Dice;

    fn usd(milli: i64) -> Money {
        Money::from_pico(milli * 1_000_000_000)
    }

    #[test]
    fn a_ceiling_holds_whatever_happens() {
        for seed in 0..300 {
            let mut dice = Dice::new(seed, &[]);
            let ceiling = usd(40 + i64::try_from(dice.below(100)).unwrap());
            let calls = 10 + dice.below(50);
            let config =
                BudgetConfig { max_cost: Some(ceiling), max_calls: Some(calls), ..BudgetConfig::default() };
            let mut budget = Budget::new(config, Claim::of(usd(3), 4));
            let mut rows: Vec<(Claim, Money)> = Vec::new();
            let mut flying: Vec<Money> = Vec::new();
            for _ in 0..400 {
                let bound = usd(1 + i64::try_from(dice.below(9)).unwrap());
                match dice.below(4) {
                    0 => {
                        let claim = Claim::of(bound, 1 + dice.below(3));
                        if budget.fits(claim).is_ok() {
                            budget.hold(claim);
                            rows.push((claim, bound));
                        }
                    }
                    1 => {
                        if let Some(lease) = budget.wants_lease(bound) {
                            assert!(lease.money <= ceiling && lease.calls <= calls);
                            budget.on_lease(lease);
                        }
                        if let Some((held, bound)) = rows.pop() {
                            let own = held.money >= bound && held.calls > 0;
                            if budget.is_leased(bound) && (own || budget.fits(Claim::of(bound, 1)).is_ok()) {
                                let left = budget.draw(bound, held);
                                flying.push(bound);
                                rows.push((left, bound));
                            } else {
                                rows.push((held, bound));
                            }
                        }
                    }
                    2 => {
                        if let Some(bound) = flying.pop() {
                            let cost = Money::from_pico(bound.pico() / 2);
                            let how = [Settlement::Replied(cost), Settlement::Lost, Settlement::NotSent];
                            assert!(!budget.settle(bound, how[usize::try_from(dice.below(3)).unwrap()]));
                        }
                    }
                    _ => {
                        if let Some((held, _)) = rows.pop() {
                            budget.release(held);
                        }
                    }
                }
                let (claimed, risk, lease) = (budget.claimed(), budget.at_risk(), budget.leased());
                assert!(claimed.money <= ceiling && claimed.calls <= calls, "{seed}: {claimed:?}");
                assert!(risk.money <= lease.money && risk.calls <= lease.calls, "{seed}: {risk:?} {lease:?}");
            }
        }
    }

    /// What the death of an execution leaves.
    #[derive(Debug, Default)]
    struct Disk {
        spent: Money,
        possible: Money,
        calls: u64,
        lease: Claim,
        /// Draws, each noted before its request goes; a power cut takes them away.
        notes: Vec<(u64, Money)>,
        /// Draws whose ends are kept, and ends that are not kept yet.
        kept: Vec<u64>,
        pending: Vec<(u64, Money, Settlement)>,
    }

    impl Disk {
        /// Keeps the ends of so many requests.
        fn commit(&mut self, count: usize, budget: &mut Budget) {
            for (id, bound, settlement) in self.pending.drain(..count) {
                budget.on_kept(Budget::unspent(bound, settlement));
                self.calls += u64::from(settlement != Settlement::NotSent);
                self.kept.push(id);
                match settlement {
                    Settlement::Replied(cost) => self.spent += cost,
                    Settlement::Lost => self.possible += bound,
                    Settlement::NotSent => {}
                }
            }
        }

        /// What the next execution makes of it.
        fn take_over(&mut self, is_power_cut: bool) {
            if is_power_cut {
                self.possible =
                    Claim { money: self.lease.money, calls: 0 }.minus(Claim::of(self.spent, 1)).money;
                self.calls = self.lease.calls;
            } else {
                for (_, bound) in self.notes.iter().filter(|(id, _)| !self.kept.contains(id)) {
                    self.possible += *bound;
                    self.calls += 1;
                }
            }
            self.lease = Claim { money: self.spent + self.possible, calls: self.calls };
            self.notes.clear();
            self.kept.clear();
            self.pending.clear();
        }

        fn config(&self, max_cost: Money, max_calls: u64) -> BudgetConfig {
            let (spent, possible, calls) = (self.spent, self.possible, self.calls);
            BudgetConfig { max_cost: Some(max_cost), max_calls: Some(max_calls), spent, possible, calls }
        }
    }

    #[test]
    fn a_ceiling_holds_over_crashes_at_any_moment() {
        let (mut crashes, mut full) = (0, 0);
        for seed in 0..400 {
            let mut dice = Dice::new(seed, &[7]);
            let mut ceiling = usd(60 + i64::try_from(dice.below(100)).unwrap());
            let mut most = 20 + dice.below(50);
            let mut disk = Disk::default();
            let mut budget = Budget::new(disk.config(ceiling, most), Claim::of(usd(3), 4));
            let mut rows: Vec<Claim> = Vec::new();
            let mut flying: Vec<(u64, Money, Settlement)> = Vec::new();
            // By the provider's own book, which bills what arrives, whoever is alive to hear of it.
            let (mut billed, mut sent, mut granted) = (Money::ZERO, 0, None);
            for id in 0..600 {
                let bound = usd(1 + i64::try_from(dice.below(9)).unwrap());
                match dice.below(40) {
                    0..10 => {
                        let claim = Claim::of(bound, 1 + dice.below(3));
                        if budget.fits(claim).is_ok() {
                            budget.hold(claim);
                            rows.push(claim);
                        }
                    }
                    10..14 => {
                        if let Some(lease) = budget.wants_lease(bound) {
                            disk.lease = lease;
                            granted = Some(lease);
                        }
                    }
                    14..18 => granted.take().into_iter().for_each(|lease| budget.on_lease(lease)),
                    18..28 => {
                        if let Some(held) = rows.pop() {
                            let own = held.money >= bound && held.calls > 0;
                            if !budget.is_leased(bound) || !own && budget.fits(Claim::of(bound, 1)).is_err() {
                                rows.push(held);
                                continue;
                            }
                            rows.push(budget.draw(bound, held));
                            disk.notes.push((id, bound));
                            let cost =
                                Money::from_pico(bound.pico() * i64::try_from(dice.below(5)).unwrap() / 4);
                            let end = match dice.below(4) {
                                0 => Settlement::NotSent,
                                1 => Settlement::Lost,
                                _ => Settlement::Replied(cost),
                            };
                            if end != Settlement::NotSent {
                                (billed, sent) = (billed + cost, sent + 1);
                            }
                            flying.push((id, bound, end));
                        }
                    }
                    28..35 => {
                        if let Some((id, bound, end)) = flying.pop() {
                            assert!(!budget.settle(bound, end));
                            budget.keep_back(Budget::unspent(bound, end));
                            disk.pending.push((id, bound, end));
                        }
                    }
                    35 => disk.commit(disk.pending.len(), &mut budget),
                    36 => disk.commit(disk.pending.len() / 2, &mut budget),
                    37 => {
                        if let Some(held) = rows.pop() {
                            budget.release(held);
                        }
                    }
                    _ => {
                        crashes += 1;
                        disk.take_over(dice.below(3) == 0);
                        (ceiling, most) = (ceiling + usd(2), most + 1);
                        budget = Budget::new(disk.config(ceiling, most), Claim::of(usd(3), 4));
                        (rows, flying, granted) = (Vec::new(), Vec::new(), None);
                        assert!(
                            billed <= disk.spent + disk.possible && sent <= disk.calls,
                            "{seed}: {disk:?}"
                        );
                    }
                }
                let (claimed, risk) = (budget.claimed(), budget.at_risk());
                assert!(claimed.money <= ceiling && claimed.calls <= most, "{seed}: {claimed:?} {disk:?}");
                assert!(risk.money <= disk.lease.money && risk.calls <= disk.lease.calls, "{seed}: {disk:?}");
                assert!(billed <= ceiling && sent <= most, "{seed}: {billed} billed for {sent}");
            }
            full += u64::from(budget.left().money < usd(10));
        }
        assert!(crashes > 1_000 && full > 100, "{crashes} crashes, {full} ceilings reached");
    }

    #[test]
    fn a_bill_above_the_reservation_is_told() {
        let config = BudgetConfig { max_cost: Some(usd(10)), ..BudgetConfig::default() };
        let mut budget = Budget::new(config, Claim::of(usd(1), 1));
        budget.draw(usd(2), Claim::default());
        assert!(budget.settle(usd(2), Settlement::Replied(usd(3))));
    }
}
