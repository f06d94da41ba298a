//! Small platters in memory for the tests of this crate.

use fulgurite_platter::{
    Blank, Faults, Geometry, Medium, NoFaults, PlatterError, PlatterHeader, PlatterReader,
    PlatterRole, SetEncoder, SetMember, WriteDrive,
};
use fulgurite_platter::{InformationTrack, TrackBuffer};
use fulgurite_units::{ArchiveId, LayerIndex, PlatterId, Seed, SetId, TrackIndex, UnixTime};

/// Returns a geometry of 2 groups of 3 + 1 tracks of 8 + 3 sectors of 2 KiB; sets of 3 + 2
/// platters.
pub(crate) fn tiny() -> Geometry {
    Geometry {
        profile: "tiny".to_owned(),
        sector_payload_bytes: 2048,
        track_information_sectors: 8,
        track_redundancy_sectors: 3,
        group_information_tracks: 3,
        group_redundancy_tracks: 1,
        group_span_sectors: 3,
        groups: 2,
        set_information_platters: 3,
        set_redundancy_platters: 2,
        set_span_sectors: 5,
    }
}

pub(crate) const ARCHIVE: [u8; 16] = [0xA0; 16];

pub(crate) fn archive() -> ArchiveId {
    ArchiveId::from_bytes(ARCHIVE)
}

pub(crate) fn platter_id(position: usize) -> PlatterId {
    PlatterId::from_bytes([u8::try_from(position).unwrap() + 1; 16])
}

/// Returns pseudorandom bytes of a seed.
pub(crate) fn user_bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Seed::new(seed).stream().fill(&mut bytes);
    bytes
}

/// Returns the headers of a set whose information platters hold these many bytes (`None`: not
/// written).
pub(crate) fn set_headers(
    geometry: &Geometry,
    bytes: &[Option<u64>],
) -> Vec<Option<PlatterHeader>> {
    let tracks = bytes.iter().flatten().map(|&b| geometry.tracks_for(b)).max().unwrap_or(0);
    let redundancy = u64::from(tracks) * geometry.track_user_bytes() as u64;
    let members: Vec<Option<SetMember>> = bytes
        .iter()
        .copied()
        .chain((0..geometry.set_redundancy_platters).map(|_| Some(redundancy)))
        .enumerate()
        .map(|(position, bytes)| {
            let platter = platter_id(position);
            bytes.map(|data_bytes| SetMember { platter, data_bytes, list_bytes: 0 })
        })
        .collect();
    let information = usize::from(geometry.set_information_platters);
    let role = |position: usize| {
        let index = |n: usize| u16::try_from(n).unwrap();
        if position < information {
            PlatterRole::Information { index: index(position) }
        } else {
            PlatterRole::Redundancy { index: index(position - information) }
        }
    };
    members
        .iter()
        .enumerate()
        .map(|(position, member)| {
            member.map(|member| PlatterHeader {
                archive: archive(),
                platter: member.platter,
                generation: 0,
                set: SetId::from_bytes([0x5E; 16]),
                role: role(position),
                members: members.clone(),
                geometry: geometry.clone(),
                data_bytes: member.data_bytes,
                list_bytes: 0,
                list_entries: 0,
                created: UnixTime::from_millis(1_700_000_000_000),
                software: "fulgurite test".to_owned(),
            })
        })
        .collect()
}

/// Returns the header of a platter that is alone in its set.
pub(crate) fn single_header(geometry: &Geometry, bytes: u64) -> PlatterHeader {
    let mut platters = vec![None; usize::from(geometry.set_information_platters)];
    platters[0] = Some(bytes);
    set_headers(geometry, &platters)[0].clone().unwrap()
}

/// Writes a platter file with these user bytes, in pieces of `piece` bytes.
pub(crate) fn write(header: &PlatterHeader, bytes: &[u8], piece: usize) -> Vec<u8> {
    let blank = Blank::new(header.platter);
    let mut writer = WriteDrive::new().write(blank, header.clone(), Vec::new()).unwrap();
    for piece in bytes.chunks(piece) {
        writer.write(piece).unwrap();
    }
    let (written, file) = writer.finish().unwrap();
    assert_eq!(written.seal().file_bytes, file.len() as u64);
    file
}

/// Writes all platter files of a set with these user bytes.
pub(crate) fn write_set(geometry: &Geometry, platters: &[Option<Vec<u8>>]) -> Vec<Option<Vec<u8>>> {
    let sizes: Vec<Option<u64>> =
        platters.iter().map(|p| p.as_ref().map(|bytes| bytes.len() as u64)).collect();
    let headers = set_headers(geometry, &sizes);
    let mut files: Vec<Option<Vec<u8>>> = platters
        .iter()
        .zip(&headers)
        .map(|(bytes, header)| {
            bytes.as_ref().map(|bytes| write(header.as_ref().unwrap(), bytes, 5000))
        })
        .collect();
    let readers: Vec<_> = files.iter().map(|f| f.as_ref().map(|f| open(f).unwrap())).collect();
    let readers: Vec<Option<&_>> = readers.iter().map(Option::as_ref).collect();
    let drive = WriteDrive::new();
    let mut writers: Vec<_> = headers[platters.len()..]
        .iter()
        .flatten()
        .map(|h| drive.write(Blank::new(h.platter), h.clone(), Vec::new()).unwrap())
        .collect();
    let tracks = writers[0].header().map().information_tracks();
    let mut encoder = SetEncoder::new(geometry);
    for track in (0..tracks).map(InformationTrack::new) {
        encoder
            .encode_track(track, &readers, &NoFaults, |index, bytes| {
                writers[usize::from(index)].write(bytes)
            })
            .unwrap();
    }
    let redundancy: Vec<_> = writers.into_iter().map(|w| Some(w.finish().unwrap().1)).collect();
    files.extend(redundancy);
    files
}

pub(crate) fn open(file: &Vec<u8>) -> Result<PlatterReader<&Vec<u8>>, PlatterError> {
    PlatterReader::open(file, None, &NoFaults)
}

/// Reads all user bytes of a platter.
pub(crate) fn read_all(
    reader: &PlatterReader<&Vec<u8>>,
    medium: &dyn Medium,
) -> Result<Vec<u8>, PlatterError> {
    let mut bytes = Vec::new();
    let mut buffer = TrackBuffer::new();
    reader.read_user(0..reader.header().user_bytes(), medium, &mut buffer, &mut |piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    })?;
    Ok(bytes)
}

/// Faults at the listed places.
#[derive(Debug, Default)]
pub(crate) struct At(pub(crate) std::collections::BTreeSet<(u32, u16)>);

impl Faults for At {
    fn fails(&self, _: PlatterId, track: TrackIndex, layer: LayerIndex) -> bool {
        self.0.contains(&(track.get(), layer.get()))
    }
}

/// Returns a platter with a forged header in valid sectors: text of its JSON is replaced.
pub(crate) fn forged(file: &[u8], geometry: &Geometry, change: &[(&str, &str)]) -> Vec<u8> {
    let mut file = file.to_vec();
    let (sector, payload) = (geometry.sector_image_bytes(), geometry.sector_payload_bytes as usize);
    let number =
        |file: &[u8], at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let (pages, json) = (number(&file, 100), number(&file, 104));
    let mut document: Vec<u8> =
        (0..pages).flat_map(|page| file[page * sector + 112..][..payload - 16].to_vec()).collect();
    let mut text = String::from_utf8(document[..json].to_vec()).unwrap();
    for (old, new) in change {
        assert!(text.contains(old), "{old} is not in {text}");
        text = text.replacen(old, new, 1);
    }
    // Lengths stay the same: the rest of the software name compensates for the change.
    let software = "fulgurite test";
    let length = (software.len() + json).checked_sub(text.len()).unwrap();
    text = text.replacen(software, &"x".repeat(length), 1);
    document[..json].copy_from_slice(text.as_bytes());
    let back = file.len() - 1024 - geometry.track_image_bytes();
    for layer in 0..usize::from(geometry.track_sectors()) {
        for track in [0, back] {
            let image = &mut file[track + layer * sector..][..sector];
            let page = layer % pages;
            let bytes = &document[page * (payload - 16)..][..payload - 16];
            image[112..][..bytes.len()].copy_from_slice(bytes);
            let checksum = fulgurite_codes::sector_checksum(&image[..sector - 32]);
            image[sector - 32..].copy_from_slice(&checksum);
        }
    }
    file
}
