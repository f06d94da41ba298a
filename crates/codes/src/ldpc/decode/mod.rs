//! Decoding: layered offset min-sum on 8-bit integers.
//!
//! A block row of the code is a layer. Its checks share no bit, so they are updated together, 64 to
//! a vector. A bit's sum is its channel value plus the messages of its checks. A layer subtracts
//! its own old messages from the sums, finds the two smallest magnitudes and the parity of the
//! signs of each check, and adds the new messages:
//!
//! ```text
//! rest    = sum - old message                                     for each edge of the check
//! message = parity of the other signs * clamp(smallest other magnitude - OFFSET, 0, MESSAGE_MAX)
//! sum     = rest + message
//! ```
//!
//! Nothing saturates. The channel is clipped to `CHANNEL_MAX` and a message to `MESSAGE_MAX`, so
//! that a sum with `COLUMN_WEIGHT_MAX` messages fits an i8. Sums are exact, the order of operations
//! does not matter, and all kernels give the same words and the same messages. With saturation,
//! sums would no longer equal the sum of their messages, and a converged word could diverge again
//! in further iterations.
//!
//! Decoding ends as soon as the hard decisions satisfy every check. A word reported as converged
//! has passed that test on exactly the bits returned. The checks of one layer are tested first,
//! because most of the time they already fail.

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
/// Offset subtracted from each magnitude, because min-sum overestimates it.
pub const OFFSET: u8 = 1;

// 31 + 4 * 24 = 127: a sum never leaves the range of an i8.
const _: () = assert!(CHANNEL_MAX as usize + COLUMN_WEIGHT_MAX * MESSAGE_MAX as usize <= 127);

/// Limits of the decoding effort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Maximum number of iterations.
    pub iterations: usize,
    /// Whether to stop at the first codeword. Otherwise all iterations run, which only benchmarks
    /// need.
    pub early_stop: bool,
}

impl Default for Effort {
    /// 30 iterations with early stop: more gain little at any rate.
    fn default() -> Self {
        Self { iterations: 30, early_stop: true }
    }
}

/// Result of decoding a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the returned bits satisfy every check.
    pub converged: bool,
    /// Number of iterations. Zero if the word was a codeword as read.
    pub iterations: usize,
    /// Bits whose returned value differs from the value read. Meaningless without convergence.
    pub corrected: usize,
    /// Erased bits: channel value 0.
    pub erased: usize,
}

/// Decodes words of one code. Owns all the memory that decoding needs.
#[derive(Debug)]
pub struct Decoder {
    plan: Plan,
    state: State,
    kernel: &'static Kernel,
}

impl Decoder {
    /// Creates a decoder of `code` for the instruction set in use.
    #[must_use]
    pub fn new(code: &Code) -> Self {
        Self::with_isa(code, Isa::current())
    }

    /// Creates a decoder of `code` for an instruction set, or the scalar one if this processor
    /// lacks it.
    #[must_use]
    pub fn with_isa(code: &Code, isa: Isa) -> Self {
        let kernel = Kernel::select(isa);
        let plan = Plan::new(code, kernel.group_max());
        Self { state: State::new(&plan), plan, kernel }
    }

    /// Decodes the soft bits `soft` into the codeword `word`, information bits first. Without
    /// convergence, `word` is the decoder's last guess.
    ///
    /// # Errors
    /// [`CodeError::WordLength`] when the length of `soft` is not that of a codeword, or that of
    /// `word` not an eighth of it.
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
            converged = kernel.hard_decide(plan, state, word);
        }
        let [corrected, erased] = kernel.compare(soft, word);
        Ok(Outcome { converged, iterations, corrected, erased })
    }
}

/// Returns whether a word satisfies every check of a code: the plain test, for callers that have
/// hard bits only.
///
/// # Errors
/// [`CodeError::WordLength`] when the word does not have the code's length in bytes.
pub fn is_codeword(code: &Code, word: &[u8]) -> Result<bool, CodeError> {
    if word.len() != code.bits() / 8 {
        return Err(CodeError::WordLength { have: word.len(), need: code.bits() / 8 });
    }
    Ok(Plan::new(code, 1).is_codeword(word))
}

#[cfg(test)]
mod tests;
