//! Decoding: layered offset min-sum on 8-bit integers.
//!
//! A block row of the code is a layer: its checks share no bit, so they are worked on together, 64
//! to a vector. A bit's sum is its channel value plus the messages of its checks. A layer takes
//! its own old messages out of the sums, finds the smallest two magnitudes and the parity of the
//! signs of each check, and puts the new messages in:
//!
//! ```text
//! rest    = sum - old message                                     for each edge of the check
//! message = parity of the other signs * clamp(smallest other magnitude - OFFSET, 0, MESSAGE_MAX)
//! sum     = rest + message
//! ```
//!
//! Nothing saturates. The channel is cut to `CHANNEL_MAX` and a message to `MESSAGE_MAX`, so that
//! a sum of `COLUMN_WEIGHT_MAX` messages stays within an i8: sums are exact, the order of
//! instructions does not matter, and all kernels give the same words and the same messages. With
//! saturation instead, sums would forget what they are made of, and a word that has converged
//! would fall apart again under further iterations.
//!
//! Decoding ends as soon as the hard decisions satisfy every check; a word that is reported as
//! converged has passed that test on the very bits that are handed out. The checks of one layer
//! are tried first, because most of the time they already say no.

mod kernel;
mod plan;

use self::kernel::Kernel;
use self::plan::{Plan, State};
use super::Code;
use super::construct::COLUMN_WEIGHT_MAX;
use crate::{CodeError, Isa};

/// Largest magnitude of a channel value: 6 bits with the sign.
pub const CHANNEL_MAX: i8 = 31;
/// Largest magnitude of a message from a check.
pub const MESSAGE_MAX: i8 = 24;
/// What is taken off a magnitude, because min-sum overrates it.
pub const OFFSET: u8 = 1;

// 31 + 4 * 24 = 127: a sum never leaves the range of an i8.
const _: () = assert!(CHANNEL_MAX as usize + COLUMN_WEIGHT_MAX * MESSAGE_MAX as usize <= 127);

/// How long decoding may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Most iterations.
    pub iterations: usize,
    /// Whether to end at the first codeword. Otherwise all iterations are made, which only
    /// measurements want.
    pub early_stop: bool,
}

impl Default for Effort {
    /// 30 iterations with early stop: beyond, little is won at any rate.
    fn default() -> Self {
        Self { iterations: 30, early_stop: true }
    }
}

/// What came of decoding a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the bits handed out satisfy every check.
    pub converged: bool,
    /// Iterations made. Zero when the word was a codeword as it was read.
    pub iterations: usize,
    /// Bits that were read, and are handed out, differently. Meaningless without convergence.
    pub corrected: usize,
    /// Bits that were not read: channel value 0.
    pub erased: usize,
}

/// Decodes words of one code. Holds all the memory that decoding needs.
#[derive(Debug)]
pub struct Decoder {
    plan: Plan,
    state: State,
    kernel: &'static Kernel,
}

impl Decoder {
    /// A decoder of `code` with the instructions in use.
    #[must_use]
    pub fn new(code: &Code) -> Self {
        Self::with_isa(code, Isa::current())
    }

    /// A decoder of `code` with given instructions, or with plain ones if this processor lacks
    /// them.
    #[must_use]
    pub fn with_isa(code: &Code, isa: Isa) -> Self {
        let kernel = Kernel::of(isa);
        let plan = Plan::new(code, kernel.group_max());
        Self { state: State::new(&plan), plan, kernel }
    }

    /// Decodes the soft bits `soft` into the codeword `word`, which holds the information in front.
    /// Without convergence `word` is the decoder's last guess.
    ///
    /// # Errors
    /// [`CodeError::WordLength`] when `soft` is not as long as a codeword or `word` not an eighth.
    pub fn decode(
        &mut self,
        soft: &[i8],
        effort: Effort,
        word: &mut [u8],
    ) -> Result<Outcome, CodeError> {
        for (have, need) in [(soft.len(), self.plan.bits), (word.len(), self.plan.bits / 8)] {
            if have != need {
                return Err(CodeError::WordLength { have, need });
            }
        }
        let Self { plan, state, kernel } = self;
        kernel.load(plan, state, soft);
        let mut iterations = 0;
        let mut converged = effort.early_stop && kernel.is_codeword(plan, state, word);
        while !converged && iterations < effort.iterations {
            kernel.iterate(plan, state, iterations == 0);
            iterations += 1;
            converged = effort.early_stop && kernel.is_codeword(plan, state, word);
        }
        if !converged {
            converged = kernel.harden(plan, state, word);
        }
        let [corrected, erased] = kernel.compare(soft, word);
        Ok(Outcome { converged, iterations, corrected, erased })
    }
}

/// Whether a word satisfies every check of a code: the plain test, for whoever has bits alone.
///
/// # Errors
/// [`CodeError::WordLength`] when the word has not the code's length in bytes.
pub fn is_codeword(code: &Code, word: &[u8]) -> Result<bool, CodeError> {
    if word.len() != code.bits() / 8 {
        return Err(CodeError::WordLength { have: word.len(), need: code.bits() / 8 });
    }
    Ok(Plan::new(code, 1).is_codeword(word))
}

#[cfg(test)]
mod tests;
