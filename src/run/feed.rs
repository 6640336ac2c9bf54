//! The thread that reads, renders and looks stored answers up, a batch at a time, as the driver asks for them.

use std::sync::Arc;
use std::thread;

use tokio::sync::mpsc;

use crate::base::{AttemptKey, DigestBuilder, Money, WallTime};
use crate::dataset::Rows;
use crate::model::{Ending, Header, InputRow, Prompt, Reason, RowContent, StoredAnswer};
use crate::policy::{RowPlan, SamplePlan, SampleState};
use crate::prompt::Template;
use crate::provider::{Price, bound};
use crate::run::decisions::Decisions;
use crate::run::error::RunError;
use crate::run::history::{Retry, RowJudge, Sample};
use crate::run::identity::{row_prefix, sample_hash};
use crate::run::seen::SeenRequests;
use crate::store::Reader;

/// How many rows that have ended are passed over in one batch: a snapshot is not held for long.
const MOST_PASSED: u64 = 4_096;

/// One bit a row: which rows of a continued run are finished.
#[derive(Debug, Clone, Default)]
pub(super) struct FinishedRows {
    words: Vec<u64>,
}

impl FinishedRows {
    pub(super) fn insert(&mut self, row: u64) {
        let (word, bit) = Self::place(row);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= bit;
    }

    pub(super) fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    pub(super) fn contains(&self, row: u64) -> bool {
        let (word, bit) = Self::place(row);
        self.words.get(word).is_some_and(|have| have & bit != 0)
    }

    /// The last row of those that follow on `row` and are all in here, at most `most` of them; `row` itself where the
    /// next one is not.
    pub(super) fn unbroken_from(&self, row: u64, most: u64) -> u64 {
        (1..=most).map(|step| row + step).take_while(|&next| self.contains(next)).last().unwrap_or(row)
    }

    fn place(row: u64) -> (usize, u64) {
        (usize::try_from(row / 64).unwrap_or(usize::MAX), 1 << (row % 64))
    }
}

/// What the feed works with.
pub(super) struct FeedPlan {
    pub(super) rows: Rows,
    pub(super) header: Option<Header>,
    pub(super) template: Arc<Template>,
    pub(super) judge: Arc<RowJudge>,
    pub(super) prefix: DigestBuilder,
    pub(super) store: Reader,
    /// Number of the run in the store.
    pub(super) run: u64,
    /// The job's run before this one, whose final failures are taken over.
    pub(super) previous: Option<u64>,
    /// Whether the run has earlier executions.
    pub(super) continued: bool,
    pub(super) finished: FinishedRows,
    /// The price, if it is known, and the bytes that every request carries besides its prompt.
    pub(super) price: Option<Price>,
    pub(super) fixed_bytes: usize,
    /// Output tokens that a request may bring, for its share of a minute's limit.
    pub(super) output_tokens: u64,
    pub(super) retry: Retry,
    /// What people have decided, if there is any of that.
    pub(super) decisions: Option<Decisions>,
    /// How many rows may still be fed; `None` for all.
    pub(super) left: Option<u64>,
    /// When the execution began.
    pub(super) started: WallTime,
    /// What was fed in this execution.
    pub(super) seen: SeenRequests,
}

/// A row that is ready for the scheduler, with what its requests need.
#[derive(Debug)]
pub(super) struct FedRow {
    pub(super) plan: RowPlan,
    pub(super) load: RowLoad,
}

/// What the driver keeps of a loaded row.
#[derive(Debug)]
pub(super) enum RowLoad {
    /// It may ask.
    Ask {
        prompt: Arc<Prompt>,
        /// The request digest of each sample.
        hashes: Vec<[u8; 16]>,
    },
    /// It cannot be asked about, and why.
    Bad(String),
}

/// A batch of rows.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) rows: Vec<FedRow>,
    pub(super) exhausted: bool,
    /// Selected rows that were passed over because they have ended before.
    pub(super) passed: u64,
}

/// The feed's end in the driver.
#[derive(Debug)]
pub(super) struct Feed {
    wanted: Option<mpsc::Sender<usize>>,
    batches: mpsc::Receiver<Result<Batch, RunError>>,
    thread: Option<thread::JoinHandle<()>>,
    awaited: bool,
}

impl Feed {
    pub(super) fn start(mut plan: FeedPlan) -> Result<Self, RunError> {
        let (wanted, mut wants) = mpsc::channel::<usize>(1);
        let (sender, batches) = mpsc::channel(1);
        let thread = thread::Builder::new()
            .name("feed".to_owned())
            .spawn(move || {
                while let Some(count) = wants.blocking_recv() {
                    let batch = plan.batch(count);
                    let ended = batch.as_ref().map_or(true, |batch| batch.exhausted);
                    if sender.blocking_send(batch).is_err() || ended {
                        return;
                    }
                }
            })
            .map_err(|source| RunError::Start { what: "the feed thread", source })?;
        Ok(Self { wanted: Some(wanted), batches, thread: Some(thread), awaited: false })
    }

    /// Asks for so many rows; they come through [`Feed::next`].
    pub(super) fn ask(&mut self, count: usize) {
        self.awaited = true;
        if let Some(wanted) = &self.wanted {
            // The scheduler has one load outstanding at most, so there is room.
            let _ = wanted.try_send(count);
        }
    }

    /// The next batch; `None` once the feed has ended.
    pub(super) async fn next(&mut self) -> Option<Result<Batch, RunError>> {
        let batch = self.batches.recv().await;
        self.awaited = false;
        batch
    }

    /// Whether a batch is under way.
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.wanted = None;
        self.batches.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl FeedPlan {
    /// The next rows, at most so many: all that is looked up for them is looked up in one snapshot.
    pub(super) fn batch(&mut self, count: usize) -> Result<Batch, RunError> {
        self.store.hold()?;
        let batch = self.rows(count);
        self.store.release()?;
        batch
    }

    fn rows(&mut self, count: usize) -> Result<Batch, RunError> {
        let mut batch = Batch { rows: Vec::with_capacity(count), exhausted: false, passed: 0 };
        // Other runs may begin at any time, so it is asked for each batch.
        let others = self.store.has_other_attempts(self.run)?;
        while batch.rows.len() < count && batch.passed < MOST_PASSED {
            let next = if self.left == Some(0) { None } else { self.rows.next() };
            let Some(row) = next else {
                batch.exhausted = true;
                break;
            };
            let row = row?;
            if self.finished.contains(row.number) {
                batch.passed += 1;
                continue;
            }
            match self.plan(&row, others)? {
                Some(fed) => {
                    self.left = self.left.map(|left| left.saturating_sub(1));
                    batch.rows.push(fed);
                }
                None => batch.passed += 1,
            }
        }
        Ok(batch)
    }

    /// What is to be done for a row; `None` if this command is not to ask it. `others`: the store holds attempts of
    /// other runs.
    fn plan(&mut self, row: &InputRow, others: bool) -> Result<Option<FedRow>, RunError> {
        let prompt = match &row.content {
            RowContent::Bad { why, .. } => Err(why.clone()),
            _ => self.template.render(row, self.header.as_ref()).map_err(|error| error.to_string()),
        };
        let prompt = match prompt {
            Ok(prompt) => prompt,
            Err(why) => return Ok(Some(self.bad(row.number, why))),
        };
        let mut samples = if self.continued {
            let history = self.store.row(self.run, row.number)?;
            let samples = self.judge.samples(self.run, &history);
            let was_decided = self.judge.decide(&samples).is_some();
            if !was_decided && !self.retry.includes_skipped() {
                return Ok(None);
            }
            samples
        } else {
            self.judge.blank()
        };
        for sample in &mut samples {
            if let SampleState::Failed(reason) = &sample.state
                && self.retry.reopens(*reason)
            {
                sample.state = SampleState::Open;
                sample.source = None;
            }
        }
        let digest = row_prefix(&self.prefix, &prompt);
        let hashes: Vec<_> =
            (1_u16..).take(samples.len()).map(|sample| sample_hash(&digest, sample)).collect();
        for (at, (sample, hash)) in samples.iter_mut().zip(&hashes).enumerate() {
            if matches!(sample.state, SampleState::Open) {
                let number = u16::try_from(at + 1).unwrap_or(u16::MAX);
                // What this run knows of a request comes from its earlier executions, or was fed in this one.
                let own = self.seen.insert(hash) || self.continued;
                if own || others {
                    self.look_up((row.number, number), hash, own, sample)?;
                }
            }
        }
        let decided = match &self.decisions {
            Some(decisions) => decisions.on_prompt(&prompt)?,
            None => None,
        };
        let plan = RowPlan {
            row: row.number,
            decided,
            tokens: self.tokens(&prompt),
            bound: self.bound(&prompt),
            group: hashes.first().copied(),
            samples: samples
                .into_iter()
                .map(|sample| SamplePlan {
                    state: sample.state,
                    next_attempt: sample.next_attempt,
                    source: sample.source,
                })
                .collect(),
        };
        Ok(Some(FedRow { plan, load: RowLoad::Ask { prompt: Arc::new(prompt), hashes } }))
    }

    /// What a request counts for before its usage is known: a token for four bytes, and all that it may answer.
    fn tokens(&self, prompt: &Prompt) -> u64 {
        let bytes = prompt.user.len() + prompt.system.as_ref().map_or(0, String::len);
        u64::try_from(bytes / 4).unwrap_or(u64::MAX).saturating_add(self.output_tokens)
    }

    /// The most that a request can cost: a token for each byte (no token of a byte-level tokenizer is shorter), 1,024
    /// for what the wire format adds, and the length limit.
    fn bound(&self, prompt: &Prompt) -> Option<Money> {
        let bytes = self.fixed_bytes + prompt.user.len() + prompt.system.as_ref().map_or(0, String::len);
        let input = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_add(1_024);
        self.price.as_ref().map(|price| bound(price, input, self.output_tokens))
    }

    fn bad(&self, row: u64, why: String) -> FedRow {
        let samples = self
            .judge
            .blank()
            .into_iter()
            .map(|_| SamplePlan {
                state: SampleState::Failed(Reason::BadInput),
                next_attempt: 1,
                source: None,
            })
            .collect();
        let plan = RowPlan { row, tokens: 0, bound: None, group: None, samples, decided: None };
        FedRow { plan, load: RowLoad::Bad(why) }
    }

    /// Fills an open sample with a stored answer for its request, with a final failure that a row of this run has
    /// had for the same request, or with the one that this row had in the job's run before. `own`: this run may have
    /// made the request.
    fn look_up(
        &mut self,
        (row, number): (u64, u16),
        hash: &[u8; 16],
        own: bool,
        sample: &mut Sample,
    ) -> Result<(), RunError> {
        if let Some(found) = self.store.lookup(hash)?
            && let Some((_, state)) = self.judge.valid(&found.answer, false)
        {
            sample.state = state;
            sample.source = Some(found.key);
            return Ok(());
        }
        if own && let Some(found) = self.store.lookup_failure(self.run, hash)? {
            // An own failure that is asked again is not taken from itself.
            let own = found.key.ticket();
            if (own.row, own.sample) != (row, number) && !self.is_asked_again(&found)? {
                Self::take_failure(sample, found.ending, found.key);
            }
            return Ok(());
        }
        // What was asked in this run is not answered out of the one before.
        let Some(previous) = self.previous.filter(|_| sample.next_attempt == 1) else { return Ok(()) };
        let history = self.store.row(previous, row)?;
        let last = history.attempts.iter().rev().find(|attempt| {
            attempt.ticket.sample == number
                && attempt.hash == *hash
                && matches!(attempt.ending, Ending::Failed(_))
        });
        if let Some(attempt) = last
            && let Ok(key) = AttemptKey::new(previous, attempt.ticket)
        {
            self.take_over(sample, attempt.ending, key);
            return Ok(());
        }
        let replay = history.replays.into_iter().find(|replay| replay.sample == number);
        if let Some(replay) = replay
            && let Some(source) = replay.source.filter(|source| source.hash == *hash)
        {
            self.take_over(sample, source.ending, replay.from);
        }
        Ok(())
    }

    /// Whether this command asks a failed request again and has not done so yet. Once it has, the failure is shared
    /// like any.
    fn is_asked_again(&mut self, found: &StoredAnswer) -> Result<bool, RunError> {
        let Ending::Failed(reason) = found.ending else { return Ok(false) };
        if !self.retry.reopens(reason) {
            return Ok(false);
        }
        let ticket = found.key.ticket();
        let history = self.store.row(found.key.run(), ticket.row)?;
        let made = history.attempts.iter().find(|attempt| attempt.ticket == ticket);
        Ok(made.is_none_or(|attempt| attempt.started < self.started))
    }

    /// Takes a failure of the run before, unless this command asks for such rows again.
    fn take_over(&self, sample: &mut Sample, ending: Ending, key: AttemptKey) {
        if !matches!(ending, Ending::Failed(reason) if self.retry.reopens(reason)) {
            Self::take_failure(sample, ending, key);
        }
    }

    fn take_failure(sample: &mut Sample, ending: Ending, key: AttemptKey) {
        if let Ending::Failed(reason) = ending
            && !reason.is_operational()
        {
            sample.state = SampleState::Failed(reason);
            sample.source = Some(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_rows_are_bits() {
        let mut finished = FinishedRows::default();
        for row in [1, 64, 65, 1_000_000, 64] {
            finished.insert(row);
        }
        assert!(finished.contains(64) && finished.contains(1_000_000));
        assert!(!finished.contains(63) && !finished.contains(2_000_000));
    }
}
