//! Which instructions the kernels use: found out once, or forced.
//!
//! ```text
//! FULGURITE_ISA=scalar|neon|avx2|avx2-gfni|avx512-gfni     forces a level, for tests
//! ```
//!
//! Every kernel of this crate is a table of functions, one for each level that it has its own code
//! for; a level without its own takes the one below. The bits of the processor are asked, never a
//! "generation": there are processors with GFNI and no AVX-512, and the other way round.

use std::sync::OnceLock;

use crate::CodeError;

/// Name of the environment variable that forces a level.
pub const ISA_VARIABLE: &str = "FULGURITE_ISA";

/// A level of instructions that kernels are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// Plain Rust: the twin that every other level is tested against.
    Scalar,
    /// 128-bit vectors of AArch64.
    Neon,
    /// 256-bit vectors of x86-64.
    Avx2,
    /// The same with 8 x 8 bit-matrix products (GFNI).
    Avx2Gfni,
    /// 512-bit vectors (F, BW, VL, VBMI) with GFNI.
    Avx512Gfni,
}

impl Isa {
    /// Every level, the plainest first.
    pub const ALL: [Self; 5] =
        [Self::Scalar, Self::Neon, Self::Avx2, Self::Avx2Gfni, Self::Avx512Gfni];

    /// The level in use: the forced one if this processor has it, or else the best it has.
    #[must_use]
    pub fn current() -> Self {
        static CURRENT: OnceLock<Isa> = OnceLock::new();
        *CURRENT.get_or_init(|| match Self::forced() {
            Ok(Some(isa)) => isa,
            Ok(None) | Err(_) => Self::best(),
        })
    }

    /// The level that the environment forces, if it does.
    ///
    /// # Errors
    /// [`CodeError::Isa`] when it names none, or one that this processor lacks. Programs ask this
    /// when they start, because [`Self::current`] then quietly takes the best.
    pub fn forced() -> Result<Option<Self>, CodeError> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the instruction-set choice is this crate's one global; CI forces each level"
        )]
        let Ok(name) = std::env::var(ISA_VARIABLE) else { return Ok(None) };
        match Self::ALL.into_iter().find(|isa| isa.name() == name) {
            Some(isa) if isa.is_supported() => Ok(Some(isa)),
            Some(_) | None => Err(CodeError::Isa { name }),
        }
    }

    /// The best level that this processor has.
    #[must_use]
    pub fn best() -> Self {
        Self::ALL.into_iter().rev().find(|isa| isa.is_supported()).unwrap_or(Self::Scalar)
    }

    /// The levels that this processor has, the plainest first.
    pub fn supported() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|isa| isa.is_supported())
    }

    /// Whether this processor has the level.
    #[must_use]
    pub fn is_supported(self) -> bool {
        match self {
            Self::Scalar => true,
            Self::Neon => cfg!(target_arch = "aarch64"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2Gfni => Self::Avx2.is_supported() && is_x86_feature_detected!("gfni"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Gfni => {
                Self::Avx2Gfni.is_supported()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512vbmi")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx2Gfni | Self::Avx512Gfni => false,
        }
    }

    /// The name that forces it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx2Gfni => "avx2-gfni",
            Self::Avx512Gfni => "avx512-gfni",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forced_level_is_the_one_in_use() {
        match Isa::forced() {
            Ok(Some(isa)) => assert_eq!(Isa::current(), isa),
            Ok(None) => assert_eq!(Isa::current(), Isa::best()),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn scalar_is_always_there_and_names_are_distinct() {
        assert!(Isa::supported().any(|isa| isa == Isa::Scalar));
        let names: std::collections::BTreeSet<_> = Isa::ALL.map(Isa::name).into();
        assert_eq!(names.len(), Isa::ALL.len());
    }
}
