//! The instruction set that the kernels use: detected once, or forced.
//!
//! ```text
//! FULGURITE_ISA=scalar|neon|avx2|avx2-gfni|avx512-gfni     forces a level, for tests
//! ```
//!
//! Every kernel of this crate is a table of functions, one for each level that it has code for; for
//! any other level it uses the next lower one. Detection reads the processor's feature bits, never
//! a "generation": there are processors with GFNI and no AVX-512, and the other way round.

use std::sync::OnceLock;

use crate::CodeError;

/// Name of the environment variable that forces a level.
pub const ISA_VARIABLE: &str = "FULGURITE_ISA";

/// An instruction-set level that kernels are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// Plain Rust: the reference that every other level is tested against.
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
    /// Every level, the simplest first.
    pub const ALL: [Self; 5] =
        [Self::Scalar, Self::Neon, Self::Avx2, Self::Avx2Gfni, Self::Avx512Gfni];

    /// Returns the level in use: the forced one if this processor supports it, or else the best
    /// supported one.
    #[must_use]
    pub fn current() -> Self {
        static CURRENT: OnceLock<Isa> = OnceLock::new();
        *CURRENT.get_or_init(|| match Self::from_env() {
            Ok(Some(isa)) => isa,
            Ok(None) | Err(_) => Self::best(),
        })
    }

    /// Returns the level that the environment forces, if any.
    ///
    /// # Errors
    /// [`CodeError::Isa`] when it is unknown, or when this processor lacks it. Programs call this
    /// at startup, because [`Self::current`] then silently uses the best level.
    pub fn from_env() -> Result<Option<Self>, CodeError> {
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

    /// Returns the best level that this processor supports.
    #[must_use]
    pub fn best() -> Self {
        Self::ALL.into_iter().rev().find(|isa| isa.is_supported()).unwrap_or(Self::Scalar)
    }

    /// Returns the levels that this processor supports, the simplest first.
    pub fn supported() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|isa| isa.is_supported())
    }

    /// Whether this processor supports the level.
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

    /// Name of the level, as in the environment variable.
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
        match Isa::from_env() {
            Ok(Some(isa)) => assert_eq!(Isa::current(), isa),
            Ok(None) => assert_eq!(Isa::current(), Isa::best()),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn scalar_is_always_supported_and_names_are_distinct() {
        assert!(Isa::supported().any(|isa| isa == Isa::Scalar));
        let names: std::collections::BTreeSet<_> = Isa::ALL.map(Isa::name).into();
        assert_eq!(names.len(), Isa::ALL.len());
    }
}
