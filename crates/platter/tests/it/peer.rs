//! A second reader, written from docs/formats/platter.md and nothing else of this crate: bytes at
//! offsets, and the codes as the linear equations of their definitions. Slow and simple.

fn number(bytes: &[u8], at: usize, length: usize) -> usize {
    bytes[at..at + length].iter().rev().fold(0, |n, &byte| n << 8 | usize::from(byte))
}

/// A platter file, read by the description.
pub(crate) struct Peer {
    pub(crate) json: serde_json::Value,
    file: Vec<u8>,
    payload: usize,
}

impl Peer {
    pub(crate) fn open(file: &[u8]) -> Self {
        let payload = number(file, 24, 4);
        let mut peer = Self { json: serde_json::Value::Null, file: file.to_vec(), payload };
        let first = peer.payload_at(0).unwrap();
        let (pages, json, document) =
            (number(&first, 4, 4), number(&first, 8, 4), number(&first, 12, 4));
        let mut text: Vec<u8> = Vec::new();
        for page in 0..pages {
            let sector = peer.payload_at(page).unwrap();
            assert_eq!(number(&sector, 0, 4), page);
            text.extend(&sector[16..]);
        }
        text.truncate(document);
        peer.json = serde_json::from_slice(&text[..json]).unwrap();
        assert_eq!(&text[json..json + 2], b"\n\n");
        peer
    }

    pub(crate) fn geometry(&self, name: &str) -> usize {
        let value = &self.json["platter"]["geometry"][name];
        usize::try_from(value.as_u64().unwrap()).unwrap()
    }

    fn sectors(&self) -> usize {
        self.geometry("track_information_sectors") + self.geometry("track_redundancy_sectors")
    }

    /// Returns the payload of a sector by its number in the file, if its checksum matches.
    fn payload_at(&self, sector: usize) -> Option<Vec<u8>> {
        let at = sector * (self.payload + 128);
        let bytes = &self.file[at..at + self.payload + 128];
        let (content, checksum) = bytes.split_at(self.payload + 96);
        let good =
            &bytes[..8] == b"FGSECTOR" && fulgurite_codes::sector_checksum(content) == checksum;
        good.then(|| content[96..].to_vec())
    }

    /// Returns the payload of a layer of a physical track.
    pub(crate) fn sector(&self, track: usize, layer: usize) -> Option<Vec<u8>> {
        self.payload_at(track * self.sectors() + layer)
    }

    /// Returns the information layers of a physical track, restored within the track if necessary.
    pub(crate) fn track(&self, track: usize) -> Option<Vec<Vec<u8>>> {
        let shards: Vec<_> = (0..self.sectors()).map(|layer| self.sector(track, layer)).collect();
        let information = self.geometry("track_information_sectors");
        solve_small(information, shards)
    }

    /// Returns the information layers of an information track, from its large group alone.
    pub(crate) fn track_by_group(&self, track: usize, tracks: usize) -> Option<Vec<Vec<u8>>> {
        let in_group = self.geometry("group_information_tracks");
        let redundancy = self.geometry("group_redundancy_tracks");
        let span = self.geometry("group_span_sectors");
        let layers = self.geometry("track_information_sectors");
        let group = track / in_group;
        let mut restored = Vec::new();
        for first in (0..layers).step_by(span) {
            let count = span.min(layers - first);
            let mut shards = Vec::new();
            for t in group * in_group..(group + 1) * in_group {
                for layer in first..first + count {
                    shards.push(if t == track {
                        None
                    } else if t >= tracks {
                        Some(vec![0; self.payload])
                    } else {
                        self.sector(1 + t + t / in_group * redundancy, layer)
                    });
                }
            }
            let behind = 1 + tracks.min((group + 1) * in_group) + group * redundancy;
            for j in 0..redundancy {
                shards.extend((first..first + count).map(|layer| self.sector(behind + j, layer)));
            }
            let solved = solve_large(in_group * count, shards)?;
            restored.extend_from_slice(&solved[track % in_group * count..][..count]);
        }
        Some(restored)
    }
}

/// a + b u, as in the description: a in the low byte, b in the high one.
type Element = u16;

/// Returns the product of two bytes modulo x^8 + x^4 + x^3 + x^2 + 1.
fn times8(a: u16, b: u16) -> u16 {
    (0..8).rev().fold(0, |product, bit| {
        let shifted = product << 1;
        let reduced = if shifted & 0x100 == 0 { shifted } else { shifted ^ 0x11D };
        if b >> bit & 1 == 1 { reduced ^ a } else { reduced }
    })
}

/// Returns the product of two elements, with u^2 = u + 0x22.
fn times(a: Element, b: Element) -> Element {
    let (a0, a1, b0, b1) = (a & 255, a >> 8, b & 255, b >> 8);
    let high = times8(a1, b1);
    let low = times8(a0, b0) ^ times8(0x22, high);
    low | (times8(a0, b1) ^ times8(a1, b0) ^ high) << 8
}

fn inverse(a: Element) -> Element {
    (1..16).fold(1, |product, bit| {
        let power = (0..bit).fold(a, |power, _| times(power, power));
        times(product, power)
    })
}

/// Returns the element of a number, over the basis of the description.
fn element(number: usize) -> Element {
    const BASIS: [Element; 16] = [
        0x0001, 0x00D6, 0x0098, 0x0092, 0x0056, 0x00C8, 0x0058, 0x00E6, 0x019E, 0xD672, 0x9888,
        0x92A2, 0x5656, 0xC8DA, 0x58EE, 0xE64C,
    ];
    (0..16).filter(|bit| number >> bit & 1 == 1).fold(0, |sum, bit| sum ^ BASIS[bit])
}

/// Decodes the information shards of a codeword of the code of tracks and sets.
pub(crate) fn solve_small(
    information: usize,
    shards: Vec<Option<Vec<u8>>>,
) -> Option<Vec<Vec<u8>>> {
    let factor = |i: usize, j: usize| {
        let x = element(255 - j);
        times(x, inverse(x ^ element(i)))
    };
    let symbols = |shard: &[u8]| shard.iter().copied().map(u16::from).collect();
    let bytes = |symbols: &[u16]| symbols.iter().map(|s| u8::try_from(*s).unwrap()).collect();
    solve(information, shards, &factor, &symbols, &bytes)
}

/// Decodes the information shards of a codeword of the code of large groups.
fn solve_large(information: usize, shards: Vec<Option<Vec<u8>>>) -> Option<Vec<Vec<u8>>> {
    let m = (shards.len() - information).next_power_of_two();
    let factor = |i: usize, j: usize| {
        let x = element(m + j);
        times(element((m + j) / m), inverse(x ^ element(i)))
    };
    let symbols = |shard: &[u8]| {
        let block = |block: &[u8]| -> Vec<u16> {
            (0..64).map(|i| u16::from_le_bytes([block[i], block[64 + i]])).collect()
        };
        shard.chunks_exact(128).flat_map(block).collect()
    };
    let bytes = |symbols: &[u16]| {
        let block = |block: &[u16]| -> Vec<u8> {
            let low = block.iter().map(|s| s.to_le_bytes()[0]);
            low.chain(block.iter().map(|s| s.to_le_bytes()[1])).collect()
        };
        symbols.chunks_exact(64).flat_map(block).collect()
    };
    solve(information, shards, &factor, &symbols, &bytes)
}

/// Solves for lost information with the equations of the surviving redundancy.
fn solve(
    information: usize,
    shards: Vec<Option<Vec<u8>>>,
    factor: &dyn Fn(usize, usize) -> Element,
    symbols: &dyn Fn(&[u8]) -> Vec<u16>,
    bytes: &dyn Fn(&[u16]) -> Vec<u8>,
) -> Option<Vec<Vec<u8>>> {
    let lost: Vec<usize> = (0..information).filter(|&j| shards[j].is_none()).collect();
    let left: Vec<usize> = (information..shards.len()).filter(|&s| shards[s].is_some()).collect();
    if lost.len() > left.len() {
        return None;
    }
    let mut matrix: Vec<Vec<Element>> = Vec::new();
    let mut values: Vec<Vec<Element>> = Vec::new();
    for &place in &left[..lost.len()] {
        let i = place - information;
        matrix.push(lost.iter().map(|&j| factor(i, j)).collect());
        let mut value = symbols(shards[place].as_ref().unwrap());
        for (j, shard) in shards[..information].iter().enumerate() {
            if let Some(shard) = shard {
                let symbols = symbols(shard);
                add(&mut value, &symbols, factor(i, j));
            }
        }
        values.push(value);
    }
    for column in 0..lost.len() {
        let pivot = (column..lost.len()).find(|&row| matrix[row][column] != 0)?;
        matrix.swap(column, pivot);
        values.swap(column, pivot);
        let scale = inverse(matrix[column][column]);
        let scaled = |row: &mut Vec<u16>| row.iter_mut().for_each(|v| *v = times(*v, scale));
        scaled(&mut matrix[column]);
        scaled(&mut values[column]);
        for row in (0..lost.len()).filter(|&row| row != column) {
            let factor = matrix[row][column];
            let (pivot, value) = (matrix[column].clone(), values[column].clone());
            add(&mut matrix[row], &pivot, factor);
            add(&mut values[row], &value, factor);
        }
    }
    let mut all = shards;
    for (&j, value) in lost.iter().zip(&values) {
        all[j] = Some(bytes(value));
    }
    all.truncate(information);
    all.into_iter().collect()
}

fn add(row: &mut [Element], other: &[Element], factor: Element) {
    if factor != 0 {
        row.iter_mut().zip(other).for_each(|(a, &b)| *a ^= times(b, factor));
    }
}
