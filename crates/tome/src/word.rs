//! Whether signatures belong together, and if not whose is wrong: the code's checks on signatures.
//!
//! ```text
//! s_j = parity j  -  sum over i of c_ji data i          all zero: they belong together
//! data i is wrong by e:     s_j = c_ji e for every j, and c_0i = 1, so e = s_0
//! parity j is wrong by e:   s_j = e, and all others are zero
//! ```
//!
//! The same for the blocks of a segment and the regions of a group. With one parity a wrong word
//! is only known to be wrong; with two or more one wrong member is named, since no two columns of
//! the code are multiples of each other. Two wrong members may look like a third one or like none:
//! with r parities, up to r - 1 wrong members are never taken for a word that belongs together,
//! nor are r, but only one is named. Not here: which of the disks has to be woken for it.

use fulgurite_codes::Signature;
use serde::{Deserialize, Serialize};

use crate::{Member, Result, Split, TomeError};

/// What the signatures of a word say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// They belong together.
    Consistent,
    /// They do not, and would if this one were another.
    Wrong(Member),
    /// They do not, and which of them is wrong is not known.
    Unnamed,
}

impl Verdict {
    /// Who is wrong, if that is known.
    #[must_use]
    pub const fn culprit(&self) -> Option<Member> {
        match self {
            Self::Wrong(member) => Some(*member),
            Self::Consistent | Self::Unnamed => None,
        }
    }
}

/// The checks of a word: one signature for each parity.
///
/// # Errors
/// [`TomeError::Count`] when the word has not one signature for each member.
pub fn syndromes(split: Split, word: &[Signature]) -> Result<Vec<Signature>> {
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

/// Whether a word belongs together, and who is wrong if not.
///
/// # Errors
/// As [`syndromes`].
pub fn judge(split: Split, word: &[Signature]) -> Result<Verdict> {
    Ok(named(split, &syndromes(split, word)?))
}

/// What checks say.
fn named(split: Split, syndromes: &[Signature]) -> Verdict {
    let mut failed = syndromes.iter().enumerate().filter(|(_, s)| **s != Signature::ZERO);
    let Some((first, error)) = failed.next() else { return Verdict::Consistent };
    if syndromes.len() == 1 {
        return Verdict::Unnamed;
    }
    if failed.next().is_none() {
        return Verdict::Wrong(Member::at(split.data() as usize + first));
    }
    // Row 0 of the code is all ones: if a data member is wrong, its error is the first check.
    let fits = |i: &usize| {
        syndromes.iter().enumerate().all(|(j, s)| *s == error.scale8(split.coefficient(j, *i)))
    };
    let wrong = (0..split.data() as usize).find(|i| first == 0 && fits(i));
    wrong.map_or(Verdict::Unnamed, |i| Verdict::Wrong(Member::at(i)))
}
