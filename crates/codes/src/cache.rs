//! How large the second-level cache is: found out once, or forced.
//!
//! ```text
//! FULGURITE_SECOND_CACHE_KIB=1024     forces a size, for tests and comparisons
//! ```
//!
//! Sizes of blocks come from it, never bytes: whatever it says, results are the same.

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use crate::CodeError;

/// Name of the environment variable that forces the size, in KiB.
pub const SECOND_CACHE_VARIABLE: &str = "FULGURITE_SECOND_CACHE_KIB";

/// What is taken where the processor does not say: what small ones have.
const UNKNOWN: usize = 512 << 10;
/// Sizes that are believed.
const BELIEVED: RangeInclusive<usize> = 128 << 10..=64 << 20;

/// Bytes of the second-level cache of a core: those forced, or what the processor says.
#[must_use]
pub fn second_cache_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| forced_cache().ok().flatten().or_else(ask).unwrap_or(UNKNOWN))
}

/// The size that the environment forces, if it does.
///
/// # Errors
/// [`CodeError::SecondCache`] when no cache is of such a size. Programs ask this when they start,
/// because [`second_cache_bytes`] then quietly takes what the processor says.
pub fn forced_cache() -> Result<Option<usize>, CodeError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "beside the instruction set the one choice that depends on the machine"
    )]
    let Ok(kib) = std::env::var(SECOND_CACHE_VARIABLE) else { return Ok(None) };
    let bytes = kib.parse().ok().and_then(|count| believed(count, 1 << 10));
    bytes.map(Some).ok_or(CodeError::SecondCache { kib })
}

/// The product, if a second-level cache can be that large.
fn believed(count: usize, each: usize) -> Option<usize> {
    count.checked_mul(each).filter(|bytes| BELIEVED.contains(bytes))
}

#[cfg(not(target_arch = "x86_64"))]
fn ask() -> Option<usize> {
    None
}

/// What the processor says of its caches: leaf 4 where Intel defined it, 0x8000001d by AMD.
#[cfg(target_arch = "x86_64")]
fn ask() -> Option<usize> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const CACHES_MAX: u32 = 8;
    // Vendors differ in which leaf they fill; the other is zeros or not there.
    let leaves = [(0, 4), (0x8000_0000, 0x8000_001d)];
    let there = leaves.into_iter().filter(|(first, leaf)| __cpuid(*first).eax >= *leaf);
    let caches = there.flat_map(|(_, leaf)| (0..CACHES_MAX).map(move |i| __cpuid_count(leaf, i)));
    let size = caches.filter_map(|cache| {
        let (kind, level) = (cache.eax & 31, cache.eax >> 5 & 7);
        // Data, or all; sizes are ways, partitions, bytes of a line and sets, each less one.
        let is_second = matches!(kind, 1 | 3) && level == 2;
        let [ways, parts, line] =
            [cache.ebx >> 22, cache.ebx >> 12 & 0x3ff, cache.ebx & 0xfff].map(|less| less + 1);
        let sets = usize::try_from(cache.ecx).ok()?.checked_add(1)?;
        // No overflow: 2^10 ways, 2^10 partitions and 2^12 bytes.
        is_second.then(|| {
            believed(sets, usize::try_from(ways * parts).ok()? * usize::try_from(line).ok()?)
        })?
    });
    size.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_forced_or_one_that_processors_have() {
        assert_eq!(believed(1024, 1 << 10), Some(1 << 20));
        for (count, each) in [(0, 1 << 10), (64, 1 << 10), (1 << 20, 1 << 10), (usize::MAX, 2)] {
            assert_eq!(believed(count, each), None, "{count} of {each}");
        }
        let bytes = second_cache_bytes();
        assert!(BELIEVED.contains(&bytes), "{bytes} bytes");
        assert_eq!(bytes, forced_cache().unwrap().or_else(ask).unwrap_or(UNKNOWN));
    }

    /// What the kernel found is another way to the same number.
    #[test]
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    fn the_processor_says_what_the_kernel_says() {
        let folder = std::path::Path::new("/sys/devices/system/cpu/cpu0/cache");
        let read = |index: u32, what: &str| {
            std::fs::read_to_string(folder.join(format!("index{index}/{what}"))).ok()
        };
        let second = (0..8).find(|i| read(*i, "level").is_some_and(|level| level.trim() == "2"));
        let Some(size) = second.and_then(|index| read(index, "size")) else { return };
        let kib: usize = size.trim().trim_end_matches('K').parse().unwrap();
        assert_eq!(ask(), Some(kib << 10));
    }
}
