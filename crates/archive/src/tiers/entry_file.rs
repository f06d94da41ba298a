//! The file beside a body in a tier: the identity of the body, and its sealed entry.
//!
//! ```text
//! magic       8   "FULGTIER"
//! version     1   1
//! archive    16
//! body       16
//! bytes       8   of ciphertext
//! digest      8   CRC-64/NVME of it
//! sealed      4   bytes of the sealed entry, which follows
//! crc         8   CRC-64/NVME of all before
//! ```
//! Numbers are little-endian.

use fulgurite_glass::cipher_crc;
use fulgurite_units::{ArchiveId, ObjectId};

const MAGIC: &[u8; 8] = b"FULGTIER";
const VERSION: u8 = 1;
const HEADER_BYTES: usize = 8 + 1 + 16 + 16 + 8 + 8 + 4;
const CRC_BYTES: usize = 8;

/// The content of the file beside a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryFile {
    pub(crate) archive: ArchiveId,
    pub(crate) body: ObjectId,
    /// Length of the ciphertext.
    pub(crate) bytes: u64,
    pub(crate) digest: u64,
    pub(crate) sealed: Vec<u8>,
}

impl EntryFile {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES + self.sealed.len() + CRC_BYTES);
        out.extend_from_slice(MAGIC);
        out.push(VERSION);
        out.extend_from_slice(&self.archive.to_bytes());
        out.extend_from_slice(&self.body.to_bytes());
        out.extend_from_slice(&self.bytes.to_le_bytes());
        out.extend_from_slice(&self.digest.to_le_bytes());
        let sealed = u32::try_from(self.sealed.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&sealed.to_le_bytes());
        out.extend_from_slice(&self.sealed);
        let crc = crc_of(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    /// Decodes these bytes, or returns what is wrong with them.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let mut rest = bytes;
        if &take::<8>(&mut rest)? != MAGIC {
            return Err("it does not begin with the magic number of an entry".to_owned());
        }
        let [version] = take(&mut rest)?;
        if version != VERSION {
            return Err(format!("it has version {version}, and this program knows {VERSION}"));
        }
        let archive = ArchiveId::from_bytes(take(&mut rest)?);
        let body = ObjectId::from_bytes(take(&mut rest)?);
        let length = u64::from_le_bytes(take(&mut rest)?);
        let digest = u64::from_le_bytes(take(&mut rest)?);
        let sealed_bytes = u32::from_le_bytes(take(&mut rest)?) as usize;
        if rest.len() != sealed_bytes.saturating_add(CRC_BYTES) {
            return Err(format!("its length of {} bytes does not match its header", bytes.len()));
        }
        let (sealed, mut crc) = rest.split_at(sealed_bytes);
        if u64::from_le_bytes(take(&mut crc)?) != crc_of(&bytes[..bytes.len() - CRC_BYTES]) {
            return Err("its checksum does not match".to_owned());
        }
        Ok(Self { archive, body, bytes: length, digest, sealed: sealed.to_vec() })
    }
}

fn crc_of(bytes: &[u8]) -> u64 {
    let mut crc = cipher_crc();
    crc.update(bytes);
    crc.finalize()
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], String> {
    let (found, left) = rest.split_first_chunk().ok_or("it is truncated")?;
    *rest = left;
    Ok(*found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> EntryFile {
        EntryFile {
            archive: ArchiveId::from_bytes([1; 16]),
            body: ObjectId::from_bytes([2; 16]),
            bytes: 65_552,
            digest: 0x0102_0304_0506_0708,
            sealed: vec![9; 5],
        }
    }

    #[test]
    fn entry_file_matches_golden_bytes() {
        let bytes = file().encode();
        let lines: Vec<String> = bytes.chunks(16).map(hex::encode).collect();
        expect_test::expect![[r#"
            46554c47544945520101010101010101
            01010101010101010102020202020202
            02020202020202020210000100000000
            00080706050403020105000000090909
            0909019992e24ffa2524"#]]
        .assert_eq(&lines.join("\n"));
    }

    #[test]
    fn entry_file_round_trips_and_rejects_damage() {
        let bytes = file().encode();
        assert_eq!(EntryFile::decode(&bytes).unwrap(), file());
        for cut in 0..bytes.len() {
            assert!(EntryFile::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(EntryFile::decode(&wrong).is_err(), "bit {bit}");
        }
        assert!(EntryFile::decode(&[&bytes[..], &[0]].concat()).is_err());
    }
}
