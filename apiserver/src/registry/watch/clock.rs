//! When a watch does something by itself: bookmarks, and its end.

use std::future::Future;
use std::pin::Pin;
use std::task::{self, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// Time between bookmarks, as upstream.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// A watch sends its last bookmark so long before its time-out.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// When something happens by itself. One timer, which is set anew only when it has fired: an event
/// costs no timer.
pub(super) struct Clock {
    timer: Pin<Box<Sleep>>,
    /// The next bookmark, unless none are wanted.
    bookmark: Option<Instant>,
    /// The bookmark just before the end.
    last_bookmark: Option<Instant>,
    ends: Instant,
}

/// What the clock says.
pub(super) enum Tick {
    Bookmark,
    End,
}

// === impl Clock ===

impl Clock {
    pub(super) fn new(now: Instant, length: Duration, bookmarks: bool) -> Self {
        let ends = now + length;
        let last = ends.checked_sub(LAST_BOOKMARK).filter(|last| bookmarks && *last > now);
        let bookmark = bookmarks.then(|| now + BOOKMARK_INTERVAL).filter(|first| *first < ends);
        let timer = Box::pin(tokio::time::sleep_until(ends));
        let mut clock = Self { timer, bookmark, last_bookmark: last, ends };
        clock.set();
        clock
    }

    fn set(&mut self) {
        let times = [self.bookmark, self.last_bookmark, Some(self.ends)];
        let next = times.into_iter().flatten().min().unwrap_or(self.ends);
        self.timer.as_mut().reset(next);
    }

    pub(super) fn poll(&mut self, cx: &mut task::Context<'_>) -> Poll<Tick> {
        ready!(self.timer.as_mut().poll(cx));
        let now = self.timer.deadline();
        if now >= self.ends {
            return Poll::Ready(Tick::End);
        }
        if self.last_bookmark.is_some_and(|last| last <= now) {
            (self.last_bookmark, self.bookmark) = (None, None);
        } else {
            let next = Instant::now() + BOOKMARK_INTERVAL;
            self.bookmark = Some(next).filter(|next| *next < self.ends);
        }
        self.set();
        Poll::Ready(Tick::Bookmark)
    }
}
