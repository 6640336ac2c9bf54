//! The output while the run goes on: rows are written and counted as they finish, on a thread of its own.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::dataset::{DatasetError, Rows};
use crate::model::{Header, InputRow, LineEnd, OutputOrder, OutputSettings, Reason, Status};
use crate::output::{OutputError, OutputWriter, Sink, Target};
use crate::policy::StopCause;
use crate::run::driver::GRACE;
use crate::run::error::{RunError, chain};
use crate::run::feed::FinishedRows;
use crate::run::histories::{Histories, PAGE};
use crate::run::join::Join;
use crate::run::joined::Joined;
use crate::run::stop::{LateStop, StopSender, StopSignal};
use crate::store::{Reader, RowHistory};

/// How often signals are looked for while the last rows are written.
const LOOK: Duration = Duration::from_millis(20);

/// What the follower works with.
pub(super) struct FollowPlan {
    pub(super) join: Join,
    pub(super) rows: Rows,
    pub(super) store: Reader,
    pub(super) output: OutputSettings,
    /// Columns of a CSV input, or of a JSONL input that becomes a CSV.
    pub(super) columns: Option<Header>,
    pub(super) line_end: LineEnd,
    pub(super) target: Target,
    /// Rows that earlier executions have finished.
    pub(super) earlier: FinishedRows,
    /// Where a place that cannot be written any more is reported.
    pub(super) stops: StopSender,
}

/// What has been written when the follower ends.
#[derive(Debug, Default)]
pub(super) struct Followed {
    /// Absent where nothing could be begun.
    pub(super) target: Option<Target>,
    /// Absent after an error.
    pub(super) writer: Option<OutputWriter<Sink>>,
    /// What was written.
    pub(super) written: FinishedRows,
    /// What it has become.
    pub(super) joined: Joined,
    /// The rows behind those that were written, if these are all rows before them.
    pub(super) rest: Option<Rest>,
    pub(super) error: Option<OutputError>,
}

/// Rows that are still to be written.
#[derive(Debug)]
pub(super) struct Rest {
    next: Option<InputRow>,
    rows: Rows,
}

impl Iterator for Rest {
    type Item = Result<InputRow, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next.take().map(Ok).or_else(|| self.rows.next())
    }
}

/// What the driver tells the follower.
#[derive(Debug, Clone, Default)]
pub(super) struct Finishing(Arc<(Mutex<News>, Condvar)>);

#[derive(Debug, Default)]
struct News {
    /// Rows whose end is on disk, in the order in which they ended.
    ended: VecDeque<u64>,
    is_over: bool,
    is_given_up: bool,
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

    /// Nobody wants the output any more.
    fn give_up(&self) {
        self.lock().is_given_up = true;
        self.0.1.notify_one();
    }

    fn is_given_up(&self) -> bool {
        self.lock().is_given_up
    }

    fn lock(&self) -> MutexGuard<'_, News> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows that have ended since the last call. Where there are none yet, what is buffered for a stream is put
    /// out, and some are waited for; `None` once no more will come.
    fn next(&self, stream: Option<&mut OutputWriter<Sink>>) -> Result<Option<VecDeque<u64>>, OutputError> {
        let ended = std::mem::take(&mut self.lock().ended);
        if !ended.is_empty() {
            return Ok(Some(ended));
        }
        if let Some(writer) = stream {
            writer.flush()?;
        }
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
    /// Is closed by the end of the thread.
    ended: Receiver<()>,
    is_stream: bool,
}

impl Follow {
    pub(super) fn start(plan: FollowPlan) -> Result<Self, RunError> {
        let finishing = Finishing::default();
        let news = finishing.clone();
        let is_stream = plan.target.is_stream();
        let (ending, ended) = sync_channel(0);
        let thread = thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || {
                let followed = plan.follow(&news);
                drop(ending);
                followed
            })
            .map_err(|source| RunError::Start { what: "the output thread", source })?;
        Ok(Self { finishing, thread, ended, is_stream })
    }

    /// Where the driver tells of rows that have ended.
    pub(super) fn finishing(&self) -> Finishing {
        self.finishing.clone()
    }

    /// No more rows end: waits until all that have ended are written, as far as their order lets them. `cause`: what
    /// has stopped the run.
    ///
    /// Errors: [`RunError::Interrupted`] where a signal comes meanwhile and writing goes on, or where one has stopped the
    /// run and nobody reads what is written.
    pub(super) fn finish(
        self,
        late: &mut LateStop<'_>,
        cause: Option<&StopCause>,
    ) -> Result<Option<Followed>, RunError> {
        self.finishing.end();
        let reader = match cause {
            Some(StopCause::Signal(signal)) if self.is_stream => Some((*signal, late.now().after(GRACE))),
            _ => None,
        };
        while let Err(RecvTimeoutError::Timeout) = self.ended.recv_timeout(LOOK) {
            let patience = match reader {
                Some((signal, until)) if until <= late.now() => Err(RunError::Interrupted(signal)),
                _ => late.look(),
            };
            if let Err(interrupted) = patience {
                self.finishing.give_up();
                // Who writes a file sees that before the next row, and takes the file away. Who waits for a reader
                // ends with the process.
                if !self.is_stream {
                    drop(self.thread.join());
                }
                return Err(interrupted);
            }
        }
        Ok(self.thread.join().ok())
    }
}

/// Why following stops before the run is over.
enum Stopped {
    /// The input or the store cannot be read: whoever reads them next will say so. Or nobody wants the output any more.
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
        let is_stream = self.target.is_stream();
        let sink = match self.target.begin() {
            Ok(sink) => sink,
            Err(error) => return failed(self.target, &self.stops, Progress::default(), error),
        };
        let columns = self.join.judge.schema_properties();
        let writer = OutputWriter::new(&self.output, self.columns.as_ref(), columns, self.line_end, sink);
        let mut out = Out { join: self.join, writer, is_stream, progress: Progress::default() };
        let (mut rows, earlier) = (self.rows, self.earlier);
        let end = match self.output.order {
            OutputOrder::Input => {
                out.in_order(news, &mut rows, earlier, Histories::new(self.store, out.join.run))
            }
            OutputOrder::Completion => {
                out.by_completion(news, &mut rows, &earlier, self.store).map(|()| None)
            }
        };
        let Out { writer, progress, .. } = out;
        let rest = match end {
            Ok(Some(next)) => Some(Rest { next: Some(next), rows }),
            Ok(None) if self.output.order == OutputOrder::Input => Some(Rest { next: None, rows }),
            Ok(None) | Err(Stopped::Unread) => None,
            Err(Stopped::Output(error)) => return failed(self.target, &self.stops, progress, error),
        };
        let Progress { written, joined } = progress;
        Followed { target: Some(self.target), writer: Some(writer), written, joined, rest, error: None }
    }
}

fn failed(target: Target, stops: &StopSender, progress: Progress, error: OutputError) -> Followed {
    let stop = match &error {
        OutputError::Closed { .. } => StopSignal::ClosedOutput,
        error => StopSignal::Output(chain(error)),
    };
    // A driver that has ended needs no telling.
    let _ = stops.try_send(stop);
    let Progress { written, joined } = progress;
    Followed { target: Some(target), writer: None, written, joined, rest: None, error: Some(error) }
}

/// How far the output has come.
#[derive(Debug, Default)]
struct Progress {
    written: FinishedRows,
    joined: Joined,
}

/// The output that is being written.
struct Out {
    join: Join,
    writer: OutputWriter<Sink>,
    /// Somebody may see rows as they are written.
    is_stream: bool,
    progress: Progress,
}

impl Out {
    fn next(&mut self, news: &Finishing) -> Result<Option<VecDeque<u64>>, OutputError> {
        news.next(self.is_stream.then_some(&mut self.writer))
    }

    /// Writes the rows from the first on, as far as they have ended; one that has not holds all later ones up.
    /// Returns the row that it came to, if there is one.
    fn in_order(
        &mut self,
        news: &Finishing,
        rows: &mut Rows,
        mut ended: FinishedRows,
        mut histories: Histories,
    ) -> Result<Option<InputRow>, Stopped> {
        for row in rows {
            let row = row.map_err(|_| Stopped::Unread)?;
            if news.is_given_up() {
                return Err(Stopped::Unread);
            }
            while !ended.contains(row.number) {
                let Some(more) = self.next(news)? else { return Ok(Some(row)) };
                for row in more {
                    ended.insert(row);
                }
            }
            let ended_to = || ended.unbroken_from(row.number, PAGE as u64);
            let history = histories.of(row.number, ended_to).map_err(|_| Stopped::Unread)?;
            if !self.write(&row, &history)? {
                return Ok(Some(row));
            }
        }
        if self.is_stream {
            self.writer.flush()?;
        }
        Ok(None)
    }

    /// Writes rows in the order in which they end. Rows that were read on the way to a later one wait in memory:
    /// those were loaded and unfinished when it ended, which are not many.
    fn by_completion(
        &mut self,
        news: &Finishing,
        rows: &mut Rows,
        earlier: &FinishedRows,
        mut store: Reader,
    ) -> Result<(), Stopped> {
        let run = self.join.run;
        let mut stored = |row: u64| store.row(run, row).map_err(|_| Stopped::Unread);
        let mut waiting: BTreeMap<u64, InputRow> = BTreeMap::new();
        let mut read_to = 0;
        while let Some(ended) = self.next(news)? {
            for number in ended {
                if news.is_given_up() {
                    return Err(Stopped::Unread);
                }
                while read_to < number {
                    let Some(row) = rows.next() else { break };
                    let row = row.map_err(|_| Stopped::Unread)?;
                    read_to = row.number;
                    if earlier.contains(row.number) {
                        self.write(&row, &stored(row.number)?)?;
                    } else {
                        waiting.insert(row.number, row);
                    }
                }
                if let Some(row) = waiting.remove(&number) {
                    self.write(&row, &stored(number)?)?;
                }
            }
        }
        Ok(())
    }

    /// Writes and counts a row with what the store holds of it; `false` if that is not its end after all.
    fn write(&mut self, row: &InputRow, history: &RowHistory) -> Result<bool, Stopped> {
        let result = self.join.result(row, history, Reason::Stopped).map_err(|_| Stopped::Unread)?;
        if result.status == Status::Skipped {
            return Ok(false);
        }
        self.writer.write(row, &result)?;
        self.progress.written.insert(row.number);
        self.progress.joined.add(history, &result);
        Ok(true)
    }
}
