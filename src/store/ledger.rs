//! The book of a run: what it has spent, what it may have spent, and the lease of an execution under a ceiling.

use rusqlite::{OptionalExtension as _, TransactionBehavior, params};

use crate::base::{AttemptKey, Money, WallTime};
use crate::model::{AttemptRecord, Ending};
use crate::store::record::{INSERT, insert};
use crate::store::{Store, StoreError};

/// What a run has spent and may have spent, over all its executions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Book {
    /// The cost of complete replies.
    pub spent: Money,
    /// The worst case of requests that brought no complete reply, less what was forgiven.
    pub possible: Money,
    /// Requests sent, those of which nothing is known included. What found no connection cost nothing, and was not sent.
    pub calls: u64,
    /// The part of `spent` that is our estimate.
    pub estimated: Money,
    /// Whether the cost of a complete reply is unknown, so that `spent` says too little.
    pub unpriced: bool,
    /// Whether a request brought no complete reply and its worst case is unknown, so that `possible` says too little.
    pub unbounded: bool,
}

/// The lease of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Money that it may have spent, with all before it.
    pub money: Money,
    /// Requests that it may have sent, with all before it.
    pub calls: u64,
    /// The boot of the machine under which it was taken.
    pub boot: String,
}

impl Store {
    /// The book of a run.
    pub fn book(&self, run: u64) -> Result<Book, StoreError> {
        let (low, high) = AttemptKey::rows(run, 0, AttemptKey::MAX_ROW);
        let read = || {
            let (book, possible, calls): (Book, i64, i64) = self.connection.query_row(
                "SELECT COALESCE(SUM(cost), 0), COALESCE(SUM(CASE WHEN estimated THEN cost END), 0), \
                 COALESCE(SUM(possible), 0), COUNT(CASE WHEN http_status IS NOT NULL OR cost IS NOT 0 THEN 1 END), \
                 COALESCE(MAX(cost IS NULL AND input IS NOT NULL), 0), \
                 COALESCE(MAX(cost IS NULL AND http_status IS NULL AND possible IS NULL), 0) \
                 FROM attempts WHERE id BETWEEN ?1 AND ?2",
                [low.as_i64(), high.as_i64()],
                |row| {
                    let money = |at| row.get(at).map(Money::from_pico);
                    let (spent, estimated) = (money(0)?, money(1)?);
                    let (unpriced, unbounded) = (row.get(4)?, row.get(5)?);
                    let book = Book { spent, estimated, unpriced, unbounded, ..Book::default() };
                    Ok((book, row.get(2)?, row.get(3)?))
                },
            )?;
            let (carried, more_calls) = self.carried(run)?;
            Ok(Book {
                possible: Money::from_pico((possible + carried).max(0)),
                calls: u64::try_from(calls + more_calls).unwrap_or(0),
                ..book
            })
        };
        read().map_err(|source| self.sqlite(source))
    }

    /// What a run may have spent, where the sum over its stored attempts is known: [`Book::possible`] without a look at
    /// each of them.
    pub fn possible_with(&self, run: u64, attempts: Money) -> Result<Money, StoreError> {
        let (carried, _) = self.carried(run).map_err(|source| self.sqlite(source))?;
        Ok(Money::from_pico((attempts.pico() + carried).max(0)))
    }

    /// What the ledger holds of a run beside its attempts: possible money less what was forgiven, and requests.
    fn carried(&self, run: u64) -> rusqlite::Result<(i64, i64)> {
        let sql = "SELECT possible - forgiven, calls FROM ledger WHERE run = ?1";
        let carried =
            self.connection.query_row(sql, [signed(run)], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        Ok(carried.unwrap_or_default())
    }

    /// The lease that an execution has left behind by dying, if one has.
    pub fn lease(&self, run: u64) -> Result<Option<Lease>, StoreError> {
        self.connection
            .query_row("SELECT money, calls, boot FROM leases WHERE run = ?1", [signed(run)], |row| {
                let calls: i64 = row.get(1)?;
                Ok(Lease {
                    money: Money::from_pico(row.get(0)?),
                    calls: u64::try_from(calls).unwrap_or(0),
                    boot: row.get(2)?,
                })
            })
            .optional()
            .map_err(|source| self.sqlite(source))
    }

    /// Whether an attempt is stored.
    pub fn has_attempt(&self, key: AttemptKey) -> Result<bool, StoreError> {
        self.connection
            .query_row("SELECT EXISTS (SELECT 1 FROM attempts WHERE id = ?1)", [key.as_i64()], |row| {
                row.get(0)
            })
            .map_err(|source| self.sqlite(source))
    }

    /// Takes over what a dead execution may have spent, and ends its lease in the same step. Each request of `lost`,
    /// with what it may have cost, becomes an attempt that was given up, so that nobody gets its number again.
    /// `beyond` is what may have been spent on requests of which not even that is known, and how many they are.
    pub fn carry_over(
        &self,
        run: u64,
        lost: &[(AttemptKey, Money)],
        beyond: (Money, u64),
        now: WallTime,
    ) -> Result<(), StoreError> {
        let (possible, calls) = beyond;
        let write = || {
            let transaction =
                rusqlite::Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
            {
                let mut statement = transaction.prepare(INSERT)?;
                for (key, bound) in lost {
                    // Nobody has written down which key it had.
                    insert(&mut statement, *key, &lost_attempt(*key, *bound, now), 0, false)?;
                }
            }
            if possible > Money::ZERO || calls > 0 {
                transaction.execute(
                    "INSERT INTO ledger (run, possible, calls, forgiven) VALUES (?1, ?2, ?3, 0) \
                     ON CONFLICT (run) DO UPDATE \
                     SET possible = possible + excluded.possible, calls = calls + excluded.calls",
                    params![signed(run), possible.pico(), signed(calls)],
                )?;
            }
            transaction.execute("DELETE FROM leases WHERE run = ?1", [signed(run)])?;
            transaction.commit()
        };
        write().map_err(|source| self.sqlite(source))
    }

    /// Forgives all that the run may have spent so far without a complete reply. Returns how much.
    pub fn forgive_possible(&self, run: u64) -> Result<Money, StoreError> {
        let amount = self.book(run)?.possible;
        self.connection
            .execute(
                "INSERT INTO ledger (run, possible, calls, forgiven) VALUES (?1, 0, 0, ?2) \
                 ON CONFLICT (run) DO UPDATE SET forgiven = forgiven + excluded.forgiven",
                params![signed(run), amount.pico()],
            )
            .map_err(|source| self.sqlite(source))?;
        Ok(amount)
    }

    /// Begins the lease of an execution: nothing may be spent yet beyond what the book holds.
    pub fn begin_lease(&self, run: u64, so_far: Book, boot: &str) -> Result<(), StoreError> {
        self.connection
            .execute(
                "INSERT OR REPLACE INTO leases (run, money, calls, boot) VALUES (?1, ?2, ?3, ?4)",
                params![signed(run), (so_far.spent + so_far.possible).pico(), signed(so_far.calls), boot],
            )
            .map(|_| ())
            .map_err(|source| self.sqlite(source))
    }

    /// Ends the lease of an execution whose draws are all settled.
    pub fn end_lease(&self, run: u64) -> Result<(), StoreError> {
        self.connection
            .execute("DELETE FROM leases WHERE run = ?1", [signed(run)])
            .map(|_| ())
            .map_err(|source| self.sqlite(source))
    }
}

/// A request whose process died before its reply was stored.
fn lost_attempt(key: AttemptKey, bound: Money, found: WallTime) -> AttemptRecord {
    AttemptRecord {
        ticket: key.ticket(),
        ending: Ending::Abandoned,
        hash: [0; 16],
        key_label: String::new(),
        http_status: None,
        started: found,
        millis: 0,
        usage: None,
        estimated: false,
        cost: None,
        // Without a price nothing is known of it.
        possible: (bound > Money::ZERO).then_some(bound),
        repair: false,
        request_id: None,
        answer: None,
        extracted: false,
        error: Some("the process died before a reply was kept".to_owned()),
        raw: bytes::Bytes::new(),
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
