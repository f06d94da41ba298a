//! Benchmarks one core at writing, verifying, reading and recovering platters in memory.
//!
//! ```text
//! cargo run --release --package fulgurite-platter --example throughput [PROFILE] [MIB]
//! ```
//!
//! Prints MB of user data per second of CPU time for each step (of wall time, where the system does
//! not report CPU time), so that other load on the machine matters little, and a digest of the
//! platter, which must not change from run to run. This measures codes and checksums in memory, no
//! disk.

#![expect(clippy::print_stdout, reason = "a report is what this program is for")]
#![expect(clippy::disallowed_methods, reason = "a measurement needs a clock")]

use std::time::{Duration, Instant};

use fulgurite_platter::{
    Blank, Geometry, InformationTrack, Medium, Member, NoFaults, PlatterError, PlatterHeader,
    PlatterReader, PlatterRole, SeededFaults, SetDecoder, SetEncoder, SetMember, TrackBuffer,
    WriteDrive,
};
use fulgurite_units::{ArchiveId, PlatterId, Ratio, Seed, SetId, UnixTime};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let geometry = Geometry::profile(&arguments.next().unwrap_or_else(|| "desk".to_owned()))?;
    let mib: u64 = arguments.next().map_or(Ok(512), |text| text.parse())?;
    let bytes = (mib << 20).min(geometry.platter_user_bytes());
    let mut user = vec![0; usize::try_from(bytes)?];
    Seed::new(1).stream().fill(&mut user);
    println!("{} platter of {bytes} user bytes, one core", geometry.profile);

    let header = header(&geometry, 0, bytes);
    let room = usize::try_from(header.map().file_bytes())?;
    // Touches the memory first: page faults are not part of the measurement.
    let mut file = vec![1; room];
    file.clear();
    let platters = (mib << 20) / bytes;
    let file = timed("write", platters * bytes, || {
        (0..platters).try_fold(file, |mut file, _| {
            file.clear();
            write(&header, &user, file)
        })
    })?;
    println!("seal digest {:02x?}", &open(&file)?.seal().digest[..4]);

    let reader = open(&file)?;
    let mut buffer = TrackBuffer::new();
    timed("verify", bytes, || reader.verify(&NoFaults, &mut buffer, &mut |_, _| {}))?;
    timed("read", bytes, || read(&reader, &NoFaults, &mut buffer))?;
    let faults = SeededFaults::new(Seed::new(2), Ratio::new(0.001)?, Ratio::ZERO);
    timed("read, 1 sector in 1,000 lost", bytes, || read(&reader, &faults, &mut buffer))?;

    let tracks = reader.map().information_tracks().min(8);
    let set_bytes = u64::from(tracks) * geometry.track_user_bytes() as u64 * 16;
    let platters = vec![Some(&reader); 16];
    let mut encoder = SetEncoder::new(&geometry);
    let mut redundancy = vec![Vec::new(); 3];
    timed("set encode", set_bytes, || {
        (0..tracks).map(InformationTrack::new).try_for_each(|track| {
            encoder.encode_track(track, &platters, &NoFaults, |index, bytes| {
                redundancy[usize::from(index)].extend_from_slice(bytes);
                Ok(())
            })
        })
    })?;
    let mut files = Vec::new();
    for (position, bytes) in (16..).zip(&redundancy) {
        let header = self::header(&geometry, position, bytes.len() as u64);
        files.push(write(&header, bytes, Vec::new())?);
    }
    let readers = files.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let mut decoder = SetDecoder::new(reader.header());
    let members: Vec<Member<'_, &Vec<u8>>> = (0..19)
        .map(|position| match position {
            0..3 => Member::Lost,
            3..16 => Member::Platter(&reader),
            _ => Member::Platter(&readers[position - 16]),
        })
        .collect();
    timed("set recovery, 3 platters lost", set_bytes / 16, || {
        (0..tracks).map(InformationTrack::new).try_for_each(|track| {
            decoder.recover_track(track, &members, 0, &NoFaults, &mut buffer).map(|_| ())
        })
    })?;
    Ok(())
}

fn timed<T>(
    label: &str,
    bytes: u64,
    work: impl FnOnce() -> Result<T, PlatterError>,
) -> Result<T, PlatterError> {
    let (start, processor) = (Instant::now(), cpu_time());
    let result = work()?;
    let elapsed = match (processor, cpu_time()) {
        (Some(start), Some(end)) => end - start,
        (_, _) => start.elapsed(),
    };
    let seconds = elapsed.as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a rate is shown in whole megabytes")]
    let rate = bytes as f64 / 1e6 / seconds;
    println!("{label:30} {rate:8.0} MB/s");
    Ok(result)
}

/// Returns the CPU time of this thread, where the system reports it.
fn cpu_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

fn write(header: &PlatterHeader, user: &[u8], file: Vec<u8>) -> Result<Vec<u8>, PlatterError> {
    let mut writer = WriteDrive::new().write(Blank::new(header.platter), header.clone(), file)?;
    for piece in user.chunks(1 << 20) {
        writer.write(piece)?;
    }
    Ok(writer.finish()?.1)
}

fn open(file: &Vec<u8>) -> Result<PlatterReader<&Vec<u8>>, PlatterError> {
    PlatterReader::open(file, None, &NoFaults)
}

fn read(
    reader: &PlatterReader<&Vec<u8>>,
    medium: &dyn Medium,
    buffer: &mut TrackBuffer,
) -> Result<(), PlatterError> {
    reader.read_user(0..reader.header().user_bytes(), medium, buffer, &mut |piece| {
        std::hint::black_box(piece);
        Ok(())
    })
}

fn header(geometry: &Geometry, position: u16, data_bytes: u64) -> PlatterHeader {
    let id = |n: u16| PlatterId::from_bytes(u128::from(n).to_le_bytes());
    let member = |n: u16| Some(SetMember { platter: id(n), data_bytes, list_bytes: 0 });
    let role = match position.checked_sub(geometry.set_information_platters) {
        None => PlatterRole::Information { index: position },
        Some(index) => PlatterRole::Redundancy { index },
    };
    PlatterHeader {
        archive: ArchiveId::from_bytes([0; 16]),
        platter: id(position),
        generation: 0,
        set: SetId::from_bytes([0; 16]),
        role,
        members: (0..geometry.set_platters()).map(member).collect(),
        geometry: geometry.clone(),
        data_bytes,
        list_bytes: 0,
        list_entries: 0,
        created: UnixTime::from_millis(0),
        software: "throughput".to_owned(),
    }
}
