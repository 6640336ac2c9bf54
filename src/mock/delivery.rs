//! Knowing when a reply was written whole.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::rt::{Read, ReadBufCursor, Write};

use crate::base::Moment;
use crate::mock::book::Fingerprint;
use crate::mock::desk::Desk;

/// A request that was let in; dropping it takes it out of flight.
#[derive(Debug)]
pub(super) struct Permit(Arc<Desk>);

impl Permit {
    /// A permit of this desk, which has let the request in.
    pub(super) fn new(desk: Arc<Desk>) -> Self {
        Self(desk)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.book().left();
    }
}

/// What to write into the book once a reply has gone out. Dropped before, it was not delivered.
#[derive(Debug)]
pub(super) struct Delivery {
    /// Whose book.
    pub(super) desk: Arc<Desk>,
    /// The status of the reply.
    pub(super) status: u16,
    /// The request's fingerprint.
    pub(super) print: Fingerprint,
    /// Held until the reply is out.
    pub(super) permit: Option<Permit>,
}

/// What a connection and the replies on it share.
#[derive(Debug, Clone, Default)]
pub(super) struct Line(Arc<Mutex<LineState>>);

#[derive(Debug, Default)]
struct LineState {
    under_way: Option<Delivery>,
    told: Option<Moment>,
}

impl Line {
    fn state(&self) -> MutexGuard<'_, LineState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until when the client was told to wait on this connection.
    pub(super) fn told(&self) -> Option<Moment> {
        self.state().told
    }

    /// Notes a wait that a reply on this connection tells of.
    pub(super) fn tell(&self, until: Moment) {
        let mut state = self.state();
        state.told = state.told.max(Some(until));
    }

    fn sent(&self) {
        let Some(delivery) = self.state().under_way.take() else { return };
        delivery.desk.book().delivered(delivery.status, delivery.print);
        drop(delivery.permit);
    }
}

/// The body of a reply: one piece, or its first half and then an error, which closes the connection.
#[derive(Debug)]
pub(super) struct ReplyBody {
    data: Option<Bytes>,
    length: u64,
    ending: Ending,
}

#[derive(Debug)]
enum Ending {
    /// Nothing is noted.
    Plain,
    /// The delivery is noted with the connection.
    Noted(Line, Option<Delivery>),
    /// The rest does not come. The permit is held until then.
    Cut { flushed: bool, _permit: Option<Permit> },
}

impl ReplyBody {
    /// A body that nobody counts.
    pub(super) fn plain(body: impl Into<Bytes>) -> Self {
        Self::new(body.into(), Ending::Plain)
    }

    /// A body that is noted once it is written to its connection.
    pub(super) fn noted(body: impl Into<Bytes>, line: Line, delivery: Delivery) -> Self {
        Self::new(body.into(), Ending::Noted(line, Some(delivery)))
    }

    /// A body that stops in the middle.
    pub(super) fn cut(body: impl Into<Bytes>, permit: Option<Permit>) -> Self {
        Self::new(body.into(), Ending::Cut { flushed: false, _permit: permit })
    }

    fn new(data: Bytes, ending: Ending) -> Self {
        Self { length: data.len() as u64, data: Some(data), ending }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let data = self.data.take();
        match (&mut self.ending, data) {
            (Ending::Cut { .. }, Some(mut data)) => {
                data.truncate(data.len() / 2);
                Poll::Ready(Some(Ok(Frame::data(data))))
            }
            (Ending::Cut { flushed, .. }, None) => {
                // The first half goes out while the body has nothing more to give.
                if std::mem::replace(flushed, true) {
                    return Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into())));
                }
                context.waker().wake_by_ref();
                Poll::Pending
            }
            (Ending::Noted(line, delivery), data) => {
                if let Some(delivery) = delivery.take() {
                    line.state().under_way = Some(delivery);
                }
                Poll::Ready(data.map(|data| Ok(Frame::data(data))))
            }
            (Ending::Plain, data) => Poll::Ready(data.map(|data| Ok(Frame::data(data)))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}

/// A connection that notes a reply as delivered when all of it has been handed to the operating system: the server
/// flushes only what it has written to the last byte.
#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: S,
    line: Line,
}

impl<S> Watched<S> {
    /// Watches a stream.
    pub(super) fn new(stream: S, line: Line) -> Self {
        Self { stream, line }
    }
}

impl<S: Read + Unpin> Read for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: Write + Unpin> Write for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if matches!(flushed, Poll::Ready(Ok(()))) {
            self.line.sent();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }
}

/// The error type of a service that always has a reply.
pub(super) type Never = Infallible;
