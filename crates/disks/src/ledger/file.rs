//! The file of a ledger: a line with the totals so far, and a line for each spin-up.
//!
//! Its format is `docs/formats/spin-up-ledger.md`. A record is written and synced before its disks
//! are commanded to spin up, so none of our spin-ups is missing. A last line torn by a crash is
//! dropped and reported. The file is on a disk that is always on.
//!
//! A file whose write or sync failed is not written again, because it is unknown what of it is on
//! disk. The next record begins a new file.

use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, ErrorKind, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use fulgurite_units::lines::{self, LineRead};
use serde::{Deserialize, Serialize};

use super::{Ledger, Totals};
use crate::limits::{
    FIRST_LINE_BYTES_MAX, LEDGER_FILE_BYTES, LINE_BYTES_MAX, RECORD_PLACES_MAX, SET_ASIDE_MAX,
};
use crate::{DisksError, GroupId, PlaceId, Result, SpinUp, StartCount};

const FORMAT: &str = "fulgurite-spin-up-ledger";
const VERSION: u32 = 1;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    version: u32,
    start: StartCount,
    places: Vec<(PlaceId, Totals)>,
    groups: Vec<(GroupId, Totals)>,
}

/// What the first line has in every version.
#[derive(Debug, Deserialize)]
struct AnyHeader {
    format: String,
    version: u32,
}

/// A further line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    SpinUp(SpinUp),
    Replaced(PlaceId),
    Start(StartCount),
}

/// A ledger with its file. Its owner ensures that only one program has it open.
#[derive(Debug)]
pub struct LedgerFile {
    ledger: Ledger,
    path: PathBuf,
    file: File,
    bytes: u64,
    /// Size at which a new file is begun.
    bytes_max: u64,
    /// Whether a write or a sync of it failed.
    has_failed: bool,
}

/// What was found in an existing file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// Spin-up records that were read.
    pub spin_ups: u64,
    /// Bytes of a torn last line that was dropped.
    pub torn_bytes: u64,
    /// Where a damaged file was moved, and what was wrong with it.
    pub set_aside: Option<(PathBuf, String)>,
}

impl LedgerFile {
    /// Opens the ledger at `path`, or begins one if there is none.
    ///
    /// # Errors
    /// When it cannot be read or written, or a line is not valid. Nothing is dropped except a torn
    /// last line.
    pub fn open(path: &Path) -> Result<(Self, LoadReport)> {
        Self::open_up_to(LEDGER_FILE_BYTES, path)
    }

    /// Like `open`, but a damaged ledger is set aside under another name in the same folder, and a
    /// new one begins with what could be read of it: damaged history must not stop the rack.
    ///
    /// # Errors
    /// When it cannot be read or written, or a newer program wrote it.
    pub fn open_or_quarantine(path: &Path) -> Result<(Self, LoadReport)> {
        let problem = match Self::open(path) {
            Err(DisksError::Ledger { line, problem, .. }) => format!("line {line}: {problem}"),
            opened => return opened,
        };
        let file = open(path, OpenOptions::new().read(true))?;
        let mut reader = LedgerReader::new(&file, path);
        reader.salvage()?;
        let LedgerReader { ledger, mut reloaded, .. } = reader;
        reloaded.set_aside = Some((set_aside(path)?, problem));
        Ok((Self::begin(ledger, LEDGER_FILE_BYTES, path)?, reloaded))
    }

    pub(crate) fn open_up_to(bytes_max: u64, path: &Path) -> Result<(Self, LoadReport)> {
        // A file is written under a temporary name first; one that was never renamed is ignored.
        if !path.try_exists().map_err(DisksError::io("find", path))? {
            return Ok((Self::begin(Ledger::new(), bytes_max, path)?, LoadReport::default()));
        }
        let file = open(path, OpenOptions::new().read(true).write(true))?;
        let mut reader = LedgerReader::new(&file, path);
        reader.read_all()?;
        let LedgerReader { ledger, valid_bytes, reloaded, .. } = reader;
        let (path_of, has_failed) = (path.to_owned(), false);
        let mut opened =
            Self { ledger, path: path_of, file, bytes: valid_bytes, bytes_max, has_failed };
        if reloaded.torn_bytes > 0 {
            opened.file.set_len(valid_bytes).map_err(DisksError::io("shorten", path))?;
            opened.file.sync_all().map_err(DisksError::io("sync", path))?;
        }
        opened.file.seek(SeekFrom::Start(valid_bytes)).map_err(DisksError::io("read", path))?;
        Ok((opened, reloaded))
    }

    /// Opens an existing ledger so that writes to it fail.
    #[cfg(test)]
    pub(crate) fn unwritable(path: &Path) -> Self {
        let (opened, _) = Self::open(path).unwrap();
        Self { file: open(path, OpenOptions::new().read(true)).unwrap(), ..opened }
    }

    /// Returns the ledger.
    #[must_use]
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Records a spin-up, before it is commanded or after it was detected: written, synced, and
    /// then counted.
    ///
    /// # Errors
    /// When it cannot be written. Then it does not count, and no disk may be spun up.
    ///
    /// # Panics
    /// When it has more disks than [`RECORD_PLACES_MAX`].
    pub fn record(&mut self, spin_up: SpinUp) -> Result<()> {
        assert!(spin_up.places.len() <= RECORD_PLACES_MAX, "too many disks for one record");
        self.put(&Line::SpinUp(spin_up.clone()))?;
        self.ledger.record(spin_up);
        if self.bytes >= self.bytes_max {
            // The record is safe either way; the next one retries.
            let _ = self.rotate();
        }
        Ok(())
    }

    /// Records that the disk of a place was replaced.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn replaced(&mut self, place: PlaceId) -> Result<()> {
        self.put(&Line::Replaced(place))?;
        self.ledger.replaced(place);
        Ok(())
    }

    /// Records the `start`th start of its owner, so that an older copy of either can be detected.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn record_start(&mut self, start: u64) -> Result<()> {
        self.put(&Line::Start(StartCount::new(start)))?;
        self.ledger.start = start;
        Ok(())
    }

    fn put(&mut self, line: &Line) -> Result<()> {
        let text = to_line(line, &self.path)?;
        if self.has_failed {
            self.rotate()?;
        }
        let put = self.file.write_all(&text).and_then(|()| self.file.sync_data());
        if let Err(error) = put {
            // After a failed sync a later success proves nothing.
            self.has_failed = true;
            // Removes the partial line if possible; else it is a torn line.
            let _ = self.file.set_len(self.bytes);
            return Err(DisksError::io("write", &self.path)(error));
        }
        self.bytes += text.len() as u64;
        Ok(())
    }

    /// Begins a new file with the totals, and keeps the old one as `before`.
    fn rotate(&mut self) -> Result<()> {
        // The old file has both names until the new one replaces it, so one always exists.
        let before = sibling_path(&self.path, "before");
        match fs::remove_file(&before) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(DisksError::io("remove", &before)(error));
            }
            Ok(()) | Err(_) => {}
        }
        match fs::hard_link(&self.path, &before) {
            // Somebody removed it; its content is in the totals.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            linked => linked.map_err(DisksError::io("link", &before))?,
        }
        *self = Self::begin(self.ledger.clone(), self.bytes_max, &self.path)?;
        Ok(())
    }

    /// Creates a file with the totals of a ledger and no records. It gets its name only when
    /// complete.
    fn begin(ledger: Ledger, bytes_max: u64, path: &Path) -> Result<Self> {
        let header = Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            start: StartCount::new(ledger.start),
            places: ledger.places().map(|(place, totals)| (place, totals.clone())).collect(),
            groups: ledger.groups().map(|(group, totals)| (group, totals.clone())).collect(),
        };
        let text = to_line(&header, path)?;
        let new = sibling_path(path, "new");
        let mut file =
            open(&new, OpenOptions::new().read(true).write(true).create(true).truncate(true))?;
        file.write_all(&text).map_err(DisksError::io("write", &new))?;
        file.sync_all().map_err(DisksError::io("sync", &new))?;
        fs::rename(&new, path).map_err(DisksError::io("rename to", path))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or_else(|| Path::new("."));
        let synced = open(folder, OpenOptions::new().read(true))?.sync_all();
        synced.map_err(DisksError::io("sync", folder))?;
        let bytes = text.len() as u64;
        let (path, has_failed) = (path.to_owned(), false);
        Ok(Self { ledger, path, file, bytes, bytes_max, has_failed })
    }
}

fn open(path: &Path, options: &OpenOptions) -> Result<File> {
    #[expect(clippy::disallowed_methods, reason = "a ledger's file is on no disk that sleeps")]
    options.open(path).map_err(DisksError::io("open", path))
}

fn sibling_path(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(suffix);
    path.with_file_name(name)
}

/// Links a file under an additional, unused name in the same folder.
fn set_aside(path: &Path) -> Result<PathBuf> {
    let mut number = 1;
    loop {
        let aside = sibling_path(path, &format!("damaged-{number}"));
        match fs::hard_link(path, &aside) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && number < SET_ASIDE_MAX => {
                number += 1;
            }
            linked => return linked.map_err(DisksError::io("link", &aside)).map(|()| aside),
        }
    }
}

fn to_line(line: &impl Serialize, path: &Path) -> Result<Vec<u8>> {
    let mut text =
        serde_json::to_vec(line).map_err(|error| DisksError::io("write", path)(error.into()))?;
    text.push(b'\n');
    Ok(text)
}

/// Reads a file from the beginning.
struct LedgerReader<'a> {
    source: BufReader<&'a File>,
    path: &'a Path,
    buffer: Vec<u8>,
    line: u64,
    /// Bytes of complete lines.
    valid_bytes: u64,
    ledger: Ledger,
    reloaded: LoadReport,
}

impl<'a> LedgerReader<'a> {
    fn new(file: &'a File, path: &'a Path) -> Self {
        let (ledger, reloaded) = (Ledger::new(), LoadReport::default());
        let source = BufReader::new(file);
        let (line, valid_bytes) = (0, 0);
        Self { source, path, buffer: Vec::new(), line, valid_bytes, ledger, reloaded }
    }

    fn read_all(&mut self) -> Result<()> {
        if !self.next(FIRST_LINE_BYTES_MAX)? {
            return Err(self.wrong("not the first line of a spin-up ledger"));
        }
        self.check_version()?;
        let header = self.parse()?;
        self.begin(header);
        while self.next(LINE_BYTES_MAX)? {
            let line = self.parse()?;
            self.apply(line);
        }
        Ok(())
    }

    /// Returns an error if the first line is not that of a known version.
    fn check_version(&self) -> Result<()> {
        let AnyHeader { format, version } = self.parse()?;
        if format == FORMAT && version == VERSION {
            return Ok(());
        }
        Err(self.wrong(format!(
            "it is a {format:?} of version {version}; expected a {FORMAT} of version {VERSION}"
        )))
    }

    /// Whether the first line is that of a newer version, whatever else it has.
    fn is_newer(&self) -> bool {
        let header = self.parse::<AnyHeader>();
        header.is_ok_and(|header| header.format == FORMAT && header.version > VERSION)
    }

    fn begin(&mut self, header: Header) {
        self.ledger.start = header.start.get();
        self.ledger.places = header.places.into_iter().collect();
        self.ledger.groups = header.groups.into_iter().collect();
    }

    fn apply(&mut self, line: Line) {
        match line {
            Line::SpinUp(spin_up) => {
                self.ledger.record(spin_up);
                self.reloaded.spin_ups += 1;
            }
            Line::Replaced(place) => self.ledger.replaced(place),
            Line::Start(start) => self.ledger.start = start.get(),
        }
    }

    /// Reads all valid lines, up to an unterminated one.
    fn salvage(&mut self) -> Result<()> {
        let mut bytes_max = FIRST_LINE_BYTES_MAX;
        loop {
            match self.next(bytes_max) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(DisksError::Ledger { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
            if self.line > 1 {
                bytes_max = LINE_BYTES_MAX;
                if let Ok(line) = self.parse() {
                    self.apply(line);
                }
            } else if self.is_newer() {
                return self.check_version();
            } else if let Ok(header) = self.parse::<Header>() {
                self.begin(header);
            }
        }
    }

    /// Reads the next line. Returns `false` at the end, and at an unterminated line.
    fn next(&mut self, bytes_max: usize) -> Result<bool> {
        self.line += 1;
        let read = lines::read_line(&mut self.source, &mut self.buffer, bytes_max);
        match read.map_err(DisksError::io("read", self.path))? {
            LineRead::Complete => {
                self.valid_bytes += self.buffer.len() as u64 + 1;
                Ok(true)
            }
            LineRead::Truncated => {
                self.reloaded.torn_bytes = self.buffer.len() as u64;
                Ok(false)
            }
            LineRead::TooLong => Err(self.wrong(format!("longer than {bytes_max} bytes"))),
        }
    }

    fn parse<T: for<'de> Deserialize<'de>>(&self) -> Result<T> {
        serde_json::from_slice(&self.buffer).map_err(|error| self.wrong(error.to_string()))
    }

    fn wrong(&self, problem: impl Into<String>) -> DisksError {
        DisksError::Ledger { path: self.path.to_owned(), line: self.line, problem: problem.into() }
    }
}
