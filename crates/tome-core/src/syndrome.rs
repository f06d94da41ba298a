//! Syndrome check on signatures: whether they form a codeword, and if not which one is wrong.
//!
//! ```text
//! s_j = parity j  -  sum over i of c_ji data i          all zero: a codeword
//! data i is wrong by e:     s_j = c_ji e for every j, and c_0i = 1, so e = s_0
//! parity j is wrong by e:   s_j = e, and all others are zero
//! ```
//!
//! The same for the blocks of a segment and the regions of a group. With one parity an error is
//! only detected; with two or more a single wrong member is located, since no two columns of the
//! code are multiples of each other. Two wrong members may look like a third one, or like no single
//! one: with r parities, up to r wrong members are never taken for a codeword, but only one is
//! located. Not here: which of the disks to spin up for it.

use fulgurite_codes::Signature;
use serde::{Deserialize, Serialize};

use crate::{CodeParams, Member, Result, TomeError};

/// The result of a syndrome check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The signatures form a codeword.
    Consistent,
    /// They do not, but would if this one were different.
    Wrong(Member),
    /// They do not, and which of them is wrong is ambiguous.
    Unnamed,
}

impl Verdict {
    /// The wrong member, if known.
    #[must_use]
    pub const fn wrong_member(&self) -> Option<Member> {
        match self {
            Self::Wrong(member) => Some(*member),
            Self::Consistent | Self::Unnamed => None,
        }
    }
}

/// Computes the syndromes of a word: one signature for each parity.
///
/// # Errors
/// [`TomeError::Count`] when the word does not have one signature for each member.
pub fn syndromes(split: CodeParams, word: &[Signature]) -> Result<Vec<Signature>> {
    let (have, need) = (word.len(), split.total() as usize);
    if have != need {
        return Err(TomeError::Count { what: "signatures", have, need });
    }
    let (data, parity) = word.split_at(split.data() as usize);
    let syndrome = |(j, parity): (usize, &Signature)| {
        let terms = data.iter().enumerate().map(|(i, s)| s.scale8(split.coefficient(j, i)));
        terms.fold(*parity, |sum, term| sum ^ term)
    };
    Ok(parity.iter().enumerate().map(syndrome).collect())
}

/// Checks whether a word is a codeword, and locates the wrong member if not.
///
/// # Errors
/// As [`syndromes`].
pub fn locate(split: CodeParams, word: &[Signature]) -> Result<Verdict> {
    Ok(interpret(split, &syndromes(split, word)?))
}

/// Interprets syndromes.
fn interpret(split: CodeParams, syndromes: &[Signature]) -> Verdict {
    let mut failed = syndromes.iter().enumerate().filter(|(_, s)| **s != Signature::ZERO);
    let Some((first, error)) = failed.next() else { return Verdict::Consistent };
    if syndromes.len() == 1 {
        return Verdict::Unnamed;
    }
    if failed.next().is_none() {
        return Verdict::Wrong(Member::at(split.data() as usize + first));
    }
    // Row 0 of the code is all ones: if a data member is wrong, its error is the first syndrome.
    let fits = |i: &usize| {
        syndromes.iter().enumerate().all(|(j, s)| *s == error.scale8(split.coefficient(j, *i)))
    };
    let wrong = (0..split.data() as usize).find(|i| first == 0 && fits(i));
    wrong.map_or(Verdict::Unnamed, |i| Verdict::Wrong(Member::at(i)))
}
