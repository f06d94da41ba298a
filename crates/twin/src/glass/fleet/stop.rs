//! Runs that end before their last read, as soon as the result is certain enough.
//!
//! ```text
//!   part arrives -------- limit plus the error ---------> due: not ended by now? then it is late
//!                                                              more late than allowed: stop
//! ```
//!
//! Each library counts by itself: if it alone has more late reads than a fleet may have, that is
//! too many for the fleet as well. So the result of one library never depends on the progress of
//! another.

use fulgurite_units::{Duration, Instant};

use super::split::Share;

/// How far a fleet is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// To the end of the last read.
    #[default]
    Never,
    /// Until the 99.9th percentile of the measured reads is certain to be above this limit, if they
    /// can be answered at all; otherwise to the end.
    Above(Duration),
    /// To the end of the measured window. The work of the drives is known by then; the ends of
    /// reads are not.
    WindowEnd,
}

impl Stop {
    /// Returns the time after which a read counts as late. The histogram of completion times is off
    /// by a thousandth: a read is late when its bucket is, too.
    fn late_after(self) -> Option<Duration> {
        let Self::Above(limit) = self else { return None };
        Some(limit + Duration::from_nanos(limit.as_nanos() / 256))
    }
}

/// Decides when one library has run long enough.
#[derive(Debug)]
pub(super) struct Stopper<'a> {
    share: &'a Share,
    stop: Stop,
    /// Measured reads arrive from the first time on, and before the second.
    window: [Instant; 2],
    /// Maximum number of late reads of the whole fleet.
    late_max: u64,
    late: u64,
    /// Whether each part has ended; empty if runs are never stopped.
    ended: Vec<bool>,
    /// The oldest part that is not due; its multipart read, or the next one; and the last late one.
    due: usize,
    due_multipart: usize,
    late_multipart: Option<u32>,
    pub(super) stopped_at: Option<Instant>,
}

impl<'a> Stopper<'a> {
    pub(super) fn new(share: &'a Share, stop: Stop, window: [Instant; 2], late_max: u64) -> Self {
        let tracked = if stop == Stop::Never { 0 } else { share.parts.len() };
        Self {
            share,
            stop,
            window,
            late_max,
            late: 0,
            ended: vec![false; tracked],
            due: 0,
            due_multipart: 0,
            late_multipart: None,
            stopped_at: None,
        }
    }

    /// Records that a part ended or was unavailable.
    pub(super) fn ended(&mut self, part: u32) {
        if let Some(ended) = self.ended.get_mut(part as usize) {
            *ended = true;
        }
    }

    /// Advances time.
    pub(super) fn passed(&mut self, now: Instant) {
        if self.stop == Stop::WindowEnd && now >= self.window[1] {
            self.stopped_at = Some(now);
        }
        let Some(after) = self.stop.late_after() else { return };
        while self.share.parts.get(self.due).is_some_and(|part| part.at + after < now) {
            self.fall_due();
        }
        if self.late > self.late_max {
            self.stopped_at.get_or_insert(now);
        }
    }

    /// Handles the next due part. The parts of a read follow each other, and it counts as late
    /// once.
    fn fall_due(&mut self) {
        let (number, at) = (self.due, self.share.parts[self.due].at);
        self.due += 1;
        let multipart_read = self.share.multipart_reads.get(self.due_multipart);
        let multipart_read = multipart_read
            .filter(|(part, _)| *part as usize == number)
            .map(|(_, multipart_read)| *multipart_read);
        self.due_multipart += usize::from(multipart_read.is_some());
        let counted = multipart_read.is_some() && multipart_read == self.late_multipart;
        let measured = self.window[0] <= at && at < self.window[1];
        if measured && !self.ended[number] && !counted {
            self.late += 1;
            self.late_multipart = multipart_read.or(self.late_multipart);
        }
    }

    /// Returns the parts that arrived but did not end before the run did.
    pub(super) fn pending(&self) -> impl Iterator<Item = u32> + use<'_> {
        let until = self.stopped_at.unwrap_or(Instant::ZERO);
        let came = self.share.parts.iter().zip(&self.ended).zip(0u32..);
        came.filter(move |((part, ended), _)| part.at <= until && !**ended)
            .map(|(_, number)| number)
    }
}
