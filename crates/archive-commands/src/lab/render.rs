//! `lab render`: a sector of a platter file as the camera sees it, and as it is decoded.
//!
//! ```text
//! state-0.png .. state-3.png   camera images through each state of polarization
//! symbols.png                  the symbols as written, one color per azimuth
//! decoded.png                  the likeliest symbols; uncertain ones are darker
//! errors.png                   where the two differ: white
//! ```
//!
//! Camera images are written pixel for pixel; maps of symbols are enlarged, with a scale and a
//! legend.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fulgurite_decode::{Damage, Score, SymbolProbabilities, VoxelMedium, VoxelReader};
use fulgurite_platter::channel::{SectorImages, SectorShape};
use fulgurite_platter::{NoFaults, PlatterReader, PlatterSource as _, SectorExtent};
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::Output;
use fulgurite_units::{LayerIndex, Seed, TrackIndex};
use serde_json::json;

use super::ReaderArgs;
use super::canvas::{Color, Map};
use super::sample::RATE;
use crate::inspect::FileSource;

/// Flags of `lab render`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct RenderArgs {
    /// Platter file
    #[arg(value_name = "PLATTER")]
    platter: PathBuf,
    /// Physical track; 0 is the header track
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    track: u32,
    /// Sector of the track; the deepest is 0
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    layer: u16,
    #[command(flatten)]
    reader: ReaderArgs,
    /// Seed of the medium, as in the archive's configuration
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,
    /// Number of the drive that reads it
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    drive: u32,
    /// Number of the read: each has its own noise
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    read: u64,
    /// Folder to write to; created if missing
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    out: PathBuf,
}

/// Runs `lab render`.
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
    let score = Score::new(medium.channel.medium, shape, &found, &symbols);
    let (report, _) = frame.decode_probabilities(&found, at.number(number))?;
    let pitch_um = medium.channel.voxels.pitch_um;
    let mut files = draw_images(&args.out, &images)?;
    files.extend(draw_maps(&args.out, shape, pitch_um, &symbols, &found)?);
    out.json(
        "render",
        &json!({
            "platter": at.platter, "track": args.track, "layer": args.layer,
            "decoder": decoder, "rows": shape.rows(), "columns": shape.columns(),
            "symbol_error_rate": score.symbol_error_rate, "information": score.information,
            "is_read": report.failure.is_none(), "margin": report.margin,
            "iterations": report.iterations_max, "files": files,
        }),
    )?;
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

/// Reads the sectors of the track, as they were written.
fn read_track(args: &RenderArgs) -> anyhow::Result<(SectorExtent, Vec<u8>)> {
    let path = args.platter.display();
    let source = FileSource::open(&args.platter).map_err(|error| {
        let is_missing = error.kind() == std::io::ErrorKind::NotFound;
        let exit = if is_missing { Exit::NotFound } else { Exit::Failure };
        anyhow::Error::from(ExitError::new(exit, format!("cannot open \"{path}\": {error}")))
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
            return Err(ExitError::new(Exit::NotFound, message).into());
        }
    }
    let mut track = vec![0; geometry.track_image_bytes()];
    let place = TrackIndex::new(args.track);
    source.read_at(map.offset(place), &mut track)?;
    let at = SectorExtent {
        platter: reader.header().platter,
        track: place,
        first: LayerIndex::new(0),
        sector_bytes: geometry.sector_image_bytes(),
    };
    Ok((at, track))
}

/// Draws the camera image through each state.
fn draw_images(folder: &Path, images: &SectorImages) -> anyhow::Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make \"{}\"", folder.display()))?;
    let shift = images.bits.saturating_sub(8);
    let mut files = Vec::new();
    for state in 0..images.count {
        let pixels: Vec<u8> = images
            .image(state)
            .iter()
            .map(|pixel| u8::try_from(pixel >> shift).unwrap_or(u8::MAX))
            .collect();
        let path = folder.join(format!("state-{state}.png"));
        write_png(&path, [images.rows, images.columns], png::ColorType::Grayscale, &pixels)
            .with_context(|| format!("cannot write \"{}\"", path.display()))?;
        files.push(path);
    }
    Ok(files)
}

/// Draws the written symbols, the decoded ones, and where they differ.
fn draw_maps(
    folder: &Path,
    shape: SectorShape,
    pitch_um: f64,
    symbols: &[u8],
    found: &SymbolProbabilities,
) -> anyhow::Result<Vec<PathBuf>> {
    const WRONG: Color = [255; 3];
    const RIGHT: Color = [0; 3];
    let count = found.symbols();
    let written: Vec<Color> =
        symbols.iter().map(|symbol| color(usize::from(*symbol), count, 1.0)).collect();
    let (mut decoded, mut errors) = (Vec::new(), Vec::new());
    for (voxel, symbol) in symbols.iter().enumerate() {
        let likeliest = found.likeliest(voxel);
        let chance = found.voxel(voxel)[usize::from(likeliest)].exp();
        decoded.push(color(usize::from(likeliest), count, chance));
        errors.push(if likeliest == *symbol { RIGHT } else { WRONG });
    }
    let wrong = errors.iter().filter(|color| **color == WRONG).count();
    let colors: Vec<(Color, String)> =
        (0..count).map(|symbol| (color(symbol, count, 1.0), symbol.to_string())).collect();
    let sides = [(RIGHT, "right".to_owned()), (WRONG, "wrong".to_owned())];
    let mut files = Vec::new();
    for (name, title, voxels, legend) in [
        ("symbols.png", "symbols as written".to_owned(), &written, &colors[..]),
        (
            "decoded.png",
            "likeliest symbols: the darker, the less sure".to_owned(),
            &decoded,
            &colors,
        ),
        (
            "errors.png",
            format!("symbols decoded wrong: {wrong} of {}", symbols.len()),
            &errors,
            &sides,
        ),
    ] {
        let path = folder.join(name);
        let map = Map { title, size: [shape.rows(), shape.columns()], voxels, pitch_um, legend };
        map.draw().write(&path).with_context(|| format!("cannot write \"{}\"", path.display()))?;
        files.push(path);
    }
    Ok(files)
}

/// Returns the color of a symbol: the hue from its position on the circle, darker the less likely
/// it is.
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

pub(super) fn write_png(
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
