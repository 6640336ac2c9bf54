//! The output while the run goes on: rows are written as they finish, on a thread of its own.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::dataset::{Rows, Source};
use crate::model::{Header, InputRow, LineEnd, OutputOrder, OutputSettings, Reason, Status};
use crate::output::{OutputError, OutputWriter, Sink, Target};
use crate::run::decisions::Decisions;
use crate::run::error::{RunError, chain};
use crate::run::feed::FinishedRows;
use crate::run::history::RowJudge;
use crate::run::result::RowFacts;
use crate::run::stop::{StopSender, StopSignal};
use crate::store::Reader;

/// What the follower works with.
pub(super) struct FollowPlan {
    pub(super) source: Source,
    pub(super) rows: Rows,
    pub(super) header: Option<Header>,
    pub(super) judge: Arc<RowJudge>,
    /// Number of the run in the store.
    pub(super) run: u64,
    pub(super) model: Option<String>,
    pub(super) store: Reader,
    pub(super) output: OutputSettings,
    /// Columns of a CSV input, or of a JSONL input that becomes a CSV.
    pub(super) columns: Option<Header>,
    pub(super) line_end: LineEnd,
    pub(super) target: Target,
    /// Rows that earlier executions have finished.
    pub(super) earlier: FinishedRows,
    /// What people have decided, if the store holds any of that.
    pub(super) decisions: Option<Decisions>,
    /// Where a place that cannot be written any more is reported.
    pub(super) stops: StopSender,
}

/// What has been written when the follower ends.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) target: Target,
    /// Absent after an error.
    pub(super) writer: Option<OutputWriter<Sink>>,
    pub(super) written: FinishedRows,
    pub(super) error: Option<OutputError>,
}

/// What the driver tells the follower.
#[derive(Debug, Clone, Default)]
pub(super) struct Finishing(Arc<(Mutex<News>, Condvar)>);

#[derive(Debug, Default)]
struct News {
    /// Rows whose end is on disk, in the order in which they ended.
    ended: VecDeque<u64>,
    is_over: bool,
}

impl Finishing {
    /// A row has ended and is on disk.
    pub(super) fn add(&self, row: u64) {
        self.lock().ended.push_back(row);
        self.0.1.notify_one();
    }

    fn end(&self) {
        self.lock().is_over = true;
        self.0.1.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, News> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows that have ended since the last call. Where there are none yet, what is buffered is put out, and some
    /// are waited for; `None` once no more will come.
    fn next(&self, writer: &mut OutputWriter<Sink>) -> Result<Option<VecDeque<u64>>, OutputError> {
        let ended = std::mem::take(&mut self.lock().ended);
        if !ended.is_empty() {
            return Ok(Some(ended));
        }
        writer.flush()?;
        let is_idle = |news: &mut News| news.ended.is_empty() && !news.is_over;
        let mut news = self.0.1.wait_while(self.lock(), is_idle).unwrap_or_else(PoisonError::into_inner);
        let ended = std::mem::take(&mut news.ended);
        Ok((!ended.is_empty()).then_some(ended))
    }
}

/// A follower that is at work.
#[derive(Debug)]
pub(super) struct Follow {
    finishing: Finishing,
    thread: JoinHandle<Followed>,
}

impl Follow {
    pub(super) fn start(plan: FollowPlan) -> Result<Self, RunError> {
        let finishing = Finishing::default();
        let news = finishing.clone();
        let thread = thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || plan.follow(&news))
            .map_err(|source| RunError::Start { what: "the output thread", source })?;
        Ok(Self { finishing, thread })
    }

    /// Where the driver tells of rows that have ended.
    pub(super) fn finishing(&self) -> Finishing {
        self.finishing.clone()
    }

    /// No more rows end: waits until all that have ended are written, as far as their order lets them.
    pub(super) fn finish(self) -> Option<Followed> {
        self.finishing.end();
        self.thread.join().ok()
    }
}

/// Why following stops before the run is over.
enum Stopped {
    /// The input or the store cannot be read: whoever reads them next will say so.
    Unread,
    Output(OutputError),
}

impl From<OutputError> for Stopped {
    fn from(error: OutputError) -> Self {
        Self::Output(error)
    }
}

impl FollowPlan {
    fn follow(mut self, news: &Finishing) -> Followed {
        let mut written = FinishedRows::default();
        let sink = match self.target.begin() {
            Ok(sink) => sink,
            Err(error) => return self.failed(written, error),
        };
        let columns = self.judge.schema_properties();
        let mut writer = OutputWriter::new(&self.output, self.columns.as_ref(), columns, self.line_end, sink);
        let end = match self.output.order {
            OutputOrder::Input => self.in_order(news, &mut writer, &mut written),
            OutputOrder::Completion => self.by_completion(news, &mut writer, &mut written),
        };
        match end {
            Err(Stopped::Output(error)) => self.failed(written, error),
            Ok(()) | Err(Stopped::Unread) => {
                Followed { target: self.target, writer: Some(writer), written, error: None }
            }
        }
    }

    fn failed(self, written: FinishedRows, error: OutputError) -> Followed {
        let stop = match &error {
            OutputError::Closed { .. } => StopSignal::ClosedOutput,
            error => StopSignal::Output(chain(error)),
        };
        // A driver that has ended needs no telling.
        let _ = self.stops.try_send(stop);
        Followed { target: self.target, writer: None, written, error: Some(error) }
    }

    /// Writes the rows from the first on, as far as they have ended; one that has not holds all later ones up.
    fn in_order(
        &mut self,
        news: &Finishing,
        writer: &mut OutputWriter<Sink>,
        written: &mut FinishedRows,
    ) -> Result<(), Stopped> {
        while let Some(row) = self.rows.next() {
            let row = row.map_err(|_| Stopped::Unread)?;
            while !self.earlier.contains(row.number) {
                let Some(ended) = news.next(writer)? else { return Ok(()) };
                for row in ended {
                    self.earlier.insert(row);
                }
            }
            if !self.write(&row, writer, written)? {
                return Ok(());
            }
        }
        Ok(writer.flush()?)
    }

    /// Writes rows in the order in which they end. Rows that were read on the way to a later one wait in memory:
    /// those were loaded and unfinished when it ended, which are not many.
    fn by_completion(
        &mut self,
        news: &Finishing,
        writer: &mut OutputWriter<Sink>,
        written: &mut FinishedRows,
    ) -> Result<(), Stopped> {
        let mut waiting: BTreeMap<u64, InputRow> = BTreeMap::new();
        let mut read_to = 0;
        while let Some(ended) = news.next(writer)? {
            for number in ended {
                while read_to < number {
                    let Some(row) = self.rows.next() else { break };
                    let row = row.map_err(|_| Stopped::Unread)?;
                    read_to = row.number;
                    if self.earlier.contains(row.number) {
                        self.write(&row, writer, written)?;
                    } else {
                        waiting.insert(row.number, row);
                    }
                }
                if let Some(row) = waiting.remove(&number) {
                    self.write(&row, writer, written)?;
                }
            }
        }
        Ok(())
    }

    /// Writes a row with what the store holds of it; `false` if that is not its end after all.
    fn write(
        &mut self,
        row: &InputRow,
        writer: &mut OutputWriter<Sink>,
        written: &mut FinishedRows,
    ) -> Result<bool, Stopped> {
        let decided = match &self.decisions {
            Some(decisions) => decisions.on_row(row, self.header.as_ref()).map_err(|_| Stopped::Unread)?,
            None => None,
        };
        let history = self.store.row(self.run, row.number).map_err(|_| Stopped::Unread)?;
        let result = self.judge.result(RowFacts {
            run: self.run,
            row: row.number,
            id: self.source.id_of(row, self.header.as_ref()),
            model: self.model.clone(),
            history: &history,
            skipped: Reason::Stopped,
            decided,
        });
        if result.status == Status::Skipped {
            return Ok(false);
        }
        writer.write(row, &result)?;
        written.insert(row.number);
        Ok(true)
    }
}
