//! Parses the two sectors in which a disk describes itself: identification and SMART attributes.

use fulgurite_units::ByteCount;

use crate::Health;

/// 512 bytes, as returned by a disk.
pub(super) type Sector = [u8; 512];

/// Returns the word at `index`.
fn word(sector: &Sector, index: usize) -> u16 {
    u16::from_le_bytes([sector[2 * index], sector[2 * index + 1]])
}

/// Decodes text from words whose first character is in the high byte.
fn text(sector: &Sector, words: std::ops::Range<usize>) -> Option<String> {
    let swapped = |index: usize| [sector[2 * index + 1], sector[2 * index]];
    let bytes: Vec<u8> = words.flat_map(swapped).collect();
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

/// Parses the identification.
pub(super) fn identity(sector: &Sector) -> Health {
    let long = |first: usize, words: usize| {
        (0..words).rev().fold(0, |sum: u64, i| sum << 16 | u64::from(word(sector, first + i)))
    };
    let sectors = long(100, 4);
    // Word 106 is valid, and logical sectors are longer than 256 words.
    let is_long = word(sector, 106) & 0xd000 == 0x5000;
    let sector_bytes = if is_long { long(117, 2).saturating_mul(2) } else { 512 };
    let bytes = sectors.saturating_mul(sector_bytes);
    Health {
        model: text(sector, 27..47),
        serial: text(sector, 10..20),
        bytes: (bytes > 0).then(|| ByteCount::new(bytes)),
        ..Health::default()
    }
}

/// Whether the disk has stayed in standby since power-up, and waits for a command to spin up.
pub(super) fn waits_for_spin_up(sector: &Sector) -> bool {
    matches!(word(sector, 2), 0x37c8 | 0x738c)
}

/// Adds SMART attributes; a sector with a wrong checksum is ignored.
pub(super) fn add_counts(health: &mut Health, sector: &Sector) {
    if sector.iter().fold(0_u8, |sum, &byte| sum.wrapping_add(byte)) != 0 {
        return;
    }
    // 30 attributes of 12 bytes behind the revision: number, flags, value, worst, raw, reserved.
    for attribute in sector[2..362].chunks_exact(12) {
        let raw = attribute[5..11].iter().rev().fold(0, |sum: u64, &b| sum << 8 | u64::from(b));
        add_count(health, attribute[0], raw);
    }
}

/// Adds one attribute by its id.
pub(super) fn add_count(health: &mut Health, number: u8, raw: u64) {
    match number {
        // Disks are rated for head loads; spindle starts are the fallback.
        193 => health.spin_ups = Some(raw),
        4 => health.spin_ups = health.spin_ups.or(Some(raw)),
        5 => health.reallocated = Some(raw),
        197 => health.pending = Some(raw),
        // The upper bytes hold minimum and maximum, or milliseconds.
        194 => health.celsius = i8::try_from(raw & 0xff).ok().map(i16::from),
        9 => health.hours = Some(raw & 0xffff_ffff),
        _ => {}
    }
}
