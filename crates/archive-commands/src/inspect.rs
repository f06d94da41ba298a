//! `inspect PLATTER-FILE`: shows the contents of a platter, without archive, catalog or keys.
//!
//! Names of objects are encrypted on the platter, so files are shown by id and size only.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fulgurite_platter::{
    ListEntry, ListReader, NoFaults, PlatterReader, PlatterRole, PlatterSource, SectorMap,
    TrackBuffer, TrackRole, TrackScan,
};
use fulgurite_terminal::output::{Output, bytes, group_digits, pluralize, timestamp};
use serde_json::json;

/// Flags of `inspect`.
#[derive(Clone, Debug, clap::Args)]
pub struct InspectArgs {
    /// Platter file (DATA/platters/ID.glass)
    #[arg(value_name = "PLATTER-FILE")]
    file: PathBuf,
    /// Read every sector and show which are good
    #[arg(long)]
    map: bool,
    /// Leave the list of files out
    #[arg(long)]
    no_files: bool,
}

/// A platter stored in a file.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    bytes: u64,
}

impl FileSource {
    /// Opens the file at `path`.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
        }
        Ok(Self { file, bytes: metadata.len() })
    }
}

impl PlatterSource for FileSource {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Runs `inspect`.
pub fn inspect(args: &InspectArgs, out: &Output) -> anyhow::Result<()> {
    let shown = args.file.display().to_string();
    let source =
        FileSource::open(&args.file).with_context(|| format!("cannot open \"{shown}\""))?;
    let reader = PlatterReader::open(source, None, &NoFaults).with_context(|| shown.clone())?;
    let mut buffer = TrackBuffer::new();
    show_header(&reader, out)?;
    if !args.no_files {
        let problem = show_files(&reader, &mut buffer, out)?;
        if let Some(error) = problem {
            return Err(anyhow::Error::from(error).context(format!("{shown}: file list")));
        }
    }
    if args.map {
        let map = reader.sector_map(&NoFaults, &mut buffer).with_context(|| shown.clone())?;
        out.json("map", &json!({"tracks": map.tracks}))?;
        out.text(picture(&map))?;
    }
    Ok(())
}

fn show_header(reader: &PlatterReader<FileSource>, out: &Output) -> anyhow::Result<()> {
    let header = reader.header();
    let map = reader.map();
    out.json(
        "header",
        &json!({
            "header": header, "position": header.position(),
            "tracks": map.tracks(), "file_bytes": map.file_bytes(),
        }),
    )?;
    let geometry = &header.geometry;
    let (role, index) = match header.role {
        PlatterRole::Information { index } => ("information", index),
        PlatterRole::Redundancy { index } => ("redundancy", index),
    };
    let written = header.members.iter().flatten().count();
    out.text(format_args!("platter    {}", header.platter))?;
    out.text(format_args!("archive    {}", header.archive))?;
    out.text(format_args!(
        "set        {}: {role} platter {index}, one of {written} written",
        header.set
    ))?;
    out.text(format_args!("written    {} by {}", timestamp(header.created), header.software))?;
    out.text(format_args!(
        "geometry   {}: sectors of {}, tracks of {}+{}, groups of {}+{} tracks, sets of {}+{}",
        geometry.profile,
        bytes(u64::from(geometry.sector_payload_bytes)),
        geometry.track_information_sectors,
        geometry.track_redundancy_sectors,
        geometry.group_information_tracks,
        geometry.group_redundancy_tracks,
        geometry.set_information_platters,
        geometry.set_redundancy_platters
    ))?;
    out.text(format_args!(
        "holds      {} of data, {} of list, {}; sealed, generation {}",
        bytes(header.data_bytes),
        bytes(header.list_bytes),
        pluralize(u64::from(map.tracks()), "track"),
        header.generation
    ))
}

/// Shows every entry of the file list; returns the error that ended it early, if any.
fn show_files(
    reader: &PlatterReader<FileSource>,
    buffer: &mut TrackBuffer,
    out: &Output,
) -> anyhow::Result<Option<fulgurite_platter::PlatterError>> {
    let header = reader.header();
    if header.list_bytes == 0 {
        return Ok(None);
    }
    let range = header.data_bytes..header.user_bytes();
    let mut list = ListReader::new(header.platter);
    let mut failed = None;
    let read = reader.read_user(range, &NoFaults, buffer, &mut |piece| {
        list.push(piece);
        while let Some(entry) = list.next_entry()? {
            if failed.is_none() {
                failed = show_entry(&entry, out).err();
            }
        }
        Ok(())
    });
    if let Some(error) = failed {
        return Err(error);
    }
    match read.and_then(|()| list.finish()) {
        Ok(entries) => {
            out.text(format_args!(
                "{} on the platter",
                pluralize(u64::from(entries), "body part")
            ))?;
            Ok(None)
        }
        Err(error) => Ok(Some(error)),
    }
}

fn show_entry(entry: &ListEntry, out: &Output) -> anyhow::Result<()> {
    out.json(
        "body",
        &json!({
            "body": entry.object, "offset": entry.offset, "bytes": entry.length,
            "body_offset": entry.body_offset, "body_bytes": entry.body_bytes,
        }),
    )?;
    out.text(format_args!(
        "body {}  at {:>12}  {:>10} of {}",
        entry.object,
        group_digits(entry.offset),
        bytes(entry.length),
        bytes(entry.body_bytes)
    ))
}

/// Tracks per line of the picture.
const LINE_TRACKS: usize = 64;

/// Draws one character per track, for the number of its lost sectors.
fn picture(map: &SectorMap) -> String {
    let failed: u64 = map.tracks.iter().map(|track| u64::from(track.failed)).sum();
    let sectors: u64 = map.tracks.iter().map(|track| u64::from(track.sectors)).sum();
    let mut text = format!(
        "tracks     H header, . all good, 1-9 sectors lost (9: or more), X all lost; \
         redundancy tracks of groups as r, R with losses\n\
         sectors    {} of {} lost\n",
        group_digits(failed),
        group_digits(sectors)
    );
    for (line, tracks) in map.tracks.chunks(LINE_TRACKS).enumerate() {
        let cells: String = tracks.iter().map(cell).collect();
        text.push_str(&format!("{:>10} {cells}\n", line * LINE_TRACKS));
    }
    text.truncate(text.trim_end().len());
    text
}

fn cell(track: &TrackScan) -> char {
    match (track.role, track.failed) {
        (_, failed) if failed == track.sectors => 'X',
        (TrackRole::Header(_), _) => 'H',
        (TrackRole::Redundancy { .. }, 0) => 'r',
        (TrackRole::Redundancy { .. }, _) => 'R',
        (TrackRole::Information(_), 0) => '.',
        (TrackRole::Information(_), failed) => {
            char::from_digit(u32::from(failed.min(9)), 10).unwrap_or('9')
        }
    }
}
