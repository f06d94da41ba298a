//! `glass render`: a sector of a platter file as the camera sees it, and as it is decoded.
//!
//! ```text
//! state-0.png .. state-3.png   what the camera sees through each state of polarization
//! symbols.png                  the symbols that were written, a color an azimuth
//! decoded.png                  the likeliest symbols; doubtful ones are darker
//! errors.png                   where the two differ: white
//! ```

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fulgurite_decode::{Damage, Score, SymbolProbabilities, VoxelMedium, VoxelReader};
use fulgurite_glass::channel::{SectorImages, SectorShape};
use fulgurite_glass::{NoFaults, PlatterReader, PlatterSource as _, SectorsAt};
use fulgurite_units::{LayerIndex, Seed, TrackIndex};
use serde_json::json;

use super::ReaderArgs;
use super::sample::RATE;
use crate::exit::{Coded, Exit};
use crate::inspect::FileSource;
use crate::output::Output;

/// Flags of `glass render`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RenderArgs {
    /// Platter file
    #[arg(value_name = "PLATTER")]
    platter: PathBuf,
    /// Physical track; 0 is the header's
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    track: u32,
    /// Sector of the track, the deepest is 0
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    layer: u16,
    #[command(flatten)]
    reader: ReaderArgs,
    /// Seed of the medium, as in the archive's configuration
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,
    /// Drive that reads it
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    drive: u32,
    /// Which of all readings it is: each has noise of its own
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    read: u64,
    /// Folder to write to, made if it is not there
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    out: PathBuf,
}

/// Runs `glass render`.
pub(super) fn render(args: &RenderArgs, out: &Output) -> anyhow::Result<()> {
    let (at, track) = read_track(args)?;
    let channel = args.reader.channel()?;
    let (decoder, make) = args.reader.decoder()?;
    let medium = VoxelMedium {
        seed: Seed::new(args.seed).child(b"medium"),
        channel,
        rate: RATE,
        reads_max: 1,
        damage: Damage::default(),
    };
    let mut reader = VoxelReader::new(medium.clone(), vec![make()?])?;
    let number = usize::from(args.layer);
    let (images, symbols) = reader.images(at, &track, number, args.drive, args.read)?;
    let found = reader.decode(&images, 0)?;
    let frame = reader.frame()?;
    let shape = frame.shape();
    let score = Score::of(medium.channel.medium, shape, &found, &symbols);
    let (report, _) = frame.bytes_of(&found, at.number(number))?;
    let files = draw(&args.out, &images, shape, &symbols, &found)?;
    out.json(&json!({
        "type": "render", "platter": at.platter, "track": args.track, "layer": args.layer,
        "decoder": decoder, "rows": shape.rows(), "columns": shape.columns(),
        "symbol_error_rate": score.symbol_error_rate, "information": score.information,
        "is_read": report.failure.is_none(), "margin": report.margin,
        "iterations": report.iterations_max, "files": files,
    }))?;
    for file in &files {
        out.text(file.display())?;
    }
    let what = if report.failure.is_none() {
        format!("read, with {:.0} % of the effort left", 100.0 * report.margin)
    } else {
        "LOST".to_owned()
    };
    out.text(format!(
        "platter {}, track {}, layer {}: {} x {} voxels (simulated); {decoder}: symbol errors \
         {:.2e}, information {:.3} bits a voxel; {what}",
        at.platter,
        args.track,
        args.layer,
        shape.rows(),
        shape.columns(),
        score.symbol_error_rate,
        score.information,
    ))
}

/// The sectors of the track, as they were written.
fn read_track(args: &RenderArgs) -> anyhow::Result<(SectorsAt, Vec<u8>)> {
    let path = args.platter.display();
    let source = FileSource::open(&args.platter).map_err(|error| {
        let is_missing = error.kind() == std::io::ErrorKind::NotFound;
        let exit = if is_missing { Exit::NotFound } else { Exit::Failure };
        anyhow::Error::from(Coded::new(exit, format!("cannot open \"{path}\": {error}")))
    })?;
    let reader = PlatterReader::open(&source, None, &NoFaults)
        .with_context(|| format!("\"{path}\" is no platter that can be read"))?;
    let (map, geometry) = (reader.map(), &reader.header().geometry);
    let (tracks, sectors) = (map.tracks(), geometry.track_sectors());
    for (what, value, count) in
        [("track", args.track, tracks), ("layer", u32::from(args.layer), u32::from(sectors))]
    {
        if value >= count {
            let message = format!("\"{path}\" has no {what} {value}; there are 0 to {}", count - 1);
            return Err(Coded::new(Exit::NotFound, message).into());
        }
    }
    let mut track = vec![0; geometry.track_image_bytes()];
    let place = TrackIndex::new(args.track);
    source.read_at(map.offset(place), &mut track)?;
    let at = SectorsAt {
        platter: reader.header().platter,
        track: place,
        first: LayerIndex::new(0),
        sector_bytes: geometry.sector_image_bytes(),
    };
    Ok((at, track))
}

fn draw(
    folder: &Path,
    images: &SectorImages,
    shape: SectorShape,
    symbols: &[u8],
    found: &SymbolProbabilities,
) -> anyhow::Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make \"{}\"", folder.display()))?;
    let mut files = Vec::new();
    let mut write = |name: String, size: [usize; 2], color, pixels: &[u8]| -> anyhow::Result<()> {
        let path = folder.join(name);
        write_png(&path, size, color, pixels)
            .with_context(|| format!("cannot write \"{}\"", path.display()))?;
        files.push(path);
        Ok(())
    };
    let shift = images.bits.saturating_sub(8);
    for state in 0..images.count {
        let pixels: Vec<u8> = images
            .image(state)
            .iter()
            .map(|pixel| u8::try_from(pixel >> shift).unwrap_or(u8::MAX))
            .collect();
        let size = [images.rows, images.columns];
        write(format!("state-{state}.png"), size, png::ColorType::Grayscale, &pixels)?;
    }
    let size = [shape.rows(), shape.columns()];
    let count = found.symbols();
    let written: Vec<u8> =
        symbols.iter().flat_map(|symbol| color(usize::from(*symbol), count, 1.0)).collect();
    write("symbols.png".to_owned(), size, png::ColorType::Rgb, &written)?;
    let (mut decoded, mut errors) = (Vec::new(), Vec::new());
    for (voxel, symbol) in symbols.iter().enumerate() {
        let likeliest = found.likeliest(voxel);
        let chance = found.voxel(voxel)[usize::from(likeliest)].exp();
        decoded.extend(color(usize::from(likeliest), count, chance));
        errors.push(if likeliest == *symbol { 0 } else { u8::MAX });
    }
    write("decoded.png".to_owned(), size, png::ColorType::Rgb, &decoded)?;
    write("errors.png".to_owned(), size, png::ColorType::Grayscale, &errors)?;
    Ok(files)
}

/// The color of a symbol: once around the circle of hues, darker the less likely it is.
fn color(symbol: usize, count: usize, chance: f32) -> [u8; 3] {
    #[expect(clippy::cast_precision_loss, reason = "at most 8")]
    let turn = symbol as f32 / count as f32;
    [0.0, 1.0 / 3.0, 2.0 / 3.0].map(|phase: f32| {
        let wave = 0.5 + 0.5 * (std::f32::consts::TAU * (turn - phase)).cos();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
        let value = (255.0 * wave * chance) as u8;
        value
    })
}

fn write_png(
    path: &Path,
    [rows, columns]: [usize; 2],
    color: png::ColorType,
    pixels: &[u8],
) -> anyhow::Result<()> {
    let file = BufWriter::new(File::create(path)?);
    let mut encoder = png::Encoder::new(file, u32::try_from(columns)?, u32::try_from(rows)?);
    encoder.set_color(color);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    Ok(writer.finish()?)
}
