//! Runs that end before their last read: as soon as whoever asked knows enough.
//!
//! ```text
//!   part arrives ----------- limit and a bit -----------> due: not ended by now? then it is late
//!                                                              more late than may be: enough
//! ```
//!
//! A library counts for itself: more late reads of it than a fleet may have are too many for the
//! fleet as well. So what one library does never depends on how far another is.

use fulgurite_units::{Duration, Instant};

use super::split::Share;

/// Up to where a fleet is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// To the end of the last read.
    #[default]
    Never,
    /// Or until the 99.9th percentile of the measured reads is certain to be above this, if they
    /// can be answered at all.
    Above(Duration),
    /// To where reads are not measured any more. What drives do by then is known; when reads end
    /// is not.
    WindowEnd,
}

impl Stop {
    /// Time after which a read counts as late. The histogram of completion times is off by a
    /// thousandth: a read is late when its bucket is, too.
    fn late_after(self) -> Option<Duration> {
        let Self::Above(limit) = self else { return None };
        Some(limit + Duration::from_nanos(limit.as_nanos() / 256))
    }
}

/// Tells when one library has run long enough.
#[derive(Debug)]
pub(super) struct Stopper<'a> {
    share: &'a Share,
    stop: Stop,
    /// Measured reads arrive from the first on, and before the second.
    window: [Instant; 2],
    /// Late reads of the whole fleet that are not too many.
    late_max: u64,
    late: u64,
    /// Parts that ended; empty if nobody asks.
    ended: Vec<bool>,
    /// The oldest part that is not due, the joint of it or of a later one, and the last late one.
    due: usize,
    due_joint: usize,
    late_joint: Option<u32>,
    pub(super) stopped_at: Option<Instant>,
}

impl<'a> Stopper<'a> {
    pub(super) fn new(share: &'a Share, stop: Stop, window: [Instant; 2], late_max: u64) -> Self {
        let asked = if stop == Stop::Never { 0 } else { share.parts.len() };
        Self {
            share,
            stop,
            window,
            late_max,
            late: 0,
            ended: vec![false; asked],
            due: 0,
            due_joint: 0,
            late_joint: None,
            stopped_at: None,
        }
    }

    /// A part ended, or could not be had.
    pub(super) fn ended(&mut self, part: u32) {
        if let Some(ended) = self.ended.get_mut(part as usize) {
            *ended = true;
        }
    }

    /// It is later now.
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

    /// The next part is due. The parts of a read follow each other, and it is late once.
    fn fall_due(&mut self) {
        let (number, at) = (self.due, self.share.parts[self.due].at);
        self.due += 1;
        let joint = self.share.joints.get(self.due_joint);
        let joint = joint.filter(|(part, _)| *part as usize == number).map(|(_, joint)| *joint);
        self.due_joint += usize::from(joint.is_some());
        let counted = joint.is_some() && joint == self.late_joint;
        let measured = self.window[0] <= at && at < self.window[1];
        if measured && !self.ended[number] && !counted {
            self.late += 1;
            self.late_joint = joint.or(self.late_joint);
        }
    }

    /// Parts that came and did not end before the run did.
    pub(super) fn pending(&self) -> impl Iterator<Item = u32> + use<'_> {
        let until = self.stopped_at.unwrap_or(Instant::ZERO);
        let came = self.share.parts.iter().zip(&self.ended).zip(0u32..);
        came.filter(move |((part, ended), _)| part.at <= until && !**ended)
            .map(|(_, number)| number)
    }
}
