//! The voxel channel for Python: `fulgurite._native`.
//!
//! Only translates: arguments to the types of `fulgurite-platter`, its errors to `ValueError` with
//! the same message, its images to numpy arrays. Simulating runs without the interpreter's lock, so
//! threads of Python run beside it.

use fulgurite_platter::PlatterError;
use fulgurite_platter::channel::{
    CHANNEL_PRESETS, Channel, Neighbor, Population, ReadFaults, ReadHead, ReadSeeds, SectorImages,
    SectorShape, WriteFaults, random_symbols,
};
use fulgurite_units::Seed;
use numpy::ndarray::{Array2, Array3, Array4, ShapeError};
use numpy::{IntoPyArray, PyArray2, PyArray3, PyArray4, PyReadonlyArray2, PyReadonlyArray3};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::de::DeserializeOwned;

/// Pixels of one call at most: 4 GiB of them.
const PIXELS_MAX: u64 = 1 << 31;

/// Bindings of the voxel channel.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{channel_json, fingerprint, presets, registered, sector, sectors, symbols};
}

/// Names of the presets.
#[pyfunction]
fn presets() -> Vec<&'static str> {
    CHANNEL_PRESETS.to_vec()
}

/// Every number of a channel, as JSON; the same channel is the same text.
#[pyfunction]
fn channel_json(channel: &str) -> PyResult<String> {
    serde_json::to_string(&parse_channel(channel)?).map_err(refuse)
}

/// BLAKE3 of some bytes, in hex.
#[pyfunction]
fn fingerprint(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Random symbols of a sector.
#[pyfunction]
fn symbols<'py>(
    py: Python<'py>,
    channel: &str,
    side: i64,
    seed: u64,
) -> PyResult<Bound<'py, PyArray2<u8>>> {
    let channel = parse_channel(channel)?;
    let shape = square(side)?;
    let drawn = random_symbols(&channel, shape, &Seed::new(seed));
    let drawn =
        Array2::from_shape_vec((shape.rows(), shape.columns()), drawn).map_err(misshapen)?;
    Ok(drawn.into_pyarray(py))
}

/// Images and symbols of random sectors, `first` and the `count - 1` after it. Each has its own
/// symbols, neighboring layers, surface and noise. Drives and platters are those of the population
/// of that number, by default the seed's own: so many of them, or one of each for every sector.
#[pyfunction]
#[pyo3(signature = (channel, side, count, seed, first=0, *, population=None, drives=None,
    platters=None))]
#[expect(clippy::too_many_arguments, clippy::type_complexity, reason = "a Python signature")]
fn sectors<'py>(
    py: Python<'py>,
    channel: &str,
    side: i64,
    count: u32,
    seed: u64,
    first: u64,
    population: Option<u64>,
    drives: Option<u64>,
    platters: Option<u64>,
) -> PyResult<(Bound<'py, PyArray4<u16>>, Bound<'py, PyArray3<u8>>)> {
    let channel = parse_channel(channel)?;
    let shape = square(side)?;
    let pitch = usize::from(channel.optics.pixels_per_pitch);
    let (states, rows, columns) =
        (channel.medium.images(), pitch * shape.rows(), pitch * shape.columns());
    let number = count as usize;
    if u64::from(count).saturating_mul((states * rows * columns) as u64) > PIXELS_MAX {
        return Err(refuse(format!(
            "count is {count}; one call makes at most {PIXELS_MAX} pixels: request parts with first"
        )));
    }
    for (name, value) in [("drives", drives), ("platters", platters)] {
        if value == Some(0) {
            return Err(refuse(format!("{name} is 0; it may be 1 and more, or None")));
        }
    }
    if first.checked_add(u64::from(count)).is_none() {
        return Err(refuse(format!("first is {first}; sectors have numbers of 64 bits")));
    }
    let population =
        Population::new(channel, shape, seed, population.unwrap_or(seed), drives, platters);
    let (images, symbols) = py.detach(|| take(&population, first, number)).map_err(refuse)?;
    let images =
        Array4::from_shape_vec((number, states, rows, columns), images).map_err(misshapen)?;
    let symbols = Array3::from_shape_vec((number, shape.rows(), shape.columns()), symbols)
        .map_err(misshapen)?;
    Ok((images.into_pyarray(py), symbols.into_pyarray(py)))
}

/// Images of one sector with given symbols and neighbors (pairs of a layer's distance and its
/// symbols), and with faults as JSON. Each seed is the root of that number.
#[pyfunction]
#[pyo3(signature = (channel, symbols, *, place, platter, track, drive, read, neighbors=vec![],
    write_faults=None, read_faults=None))]
#[expect(clippy::too_many_arguments, reason = "a Python signature")]
fn sector<'py>(
    py: Python<'py>,
    channel: &str,
    symbols: PyReadonlyArray2<'py, u8>,
    place: u64,
    platter: u64,
    track: u64,
    drive: u64,
    read: u64,
    neighbors: Vec<(u8, PyReadonlyArray2<'py, u8>)>,
    write_faults: Option<&str>,
    read_faults: Option<&str>,
) -> PyResult<Bound<'py, PyArray3<u16>>> {
    let channel = parse_channel(channel)?;
    let write_faults: WriteFaults = parse_json("write_faults", write_faults.unwrap_or("{}"))?;
    let read_faults: ReadFaults = parse_json("read_faults", read_faults.unwrap_or("{}"))?;
    let (shape, symbols) = layer(&symbols)?;
    let mut others = Vec::new();
    for (distance, symbols) in &neighbors {
        let (other, symbols) = layer(symbols)?;
        if other != shape {
            return Err(refuse("neighbors must have the shape of the sector"));
        }
        others.push((*distance, symbols));
    }
    let seeds =
        ReadSeeds { platter: Seed::new(platter), track: Seed::new(track), read: Seed::new(read) };
    let images = py
        .detach(|| {
            let written = channel.write(shape, &symbols, &Seed::new(place), &write_faults)?;
            let neighbors: Vec<Neighbor<'_>> = others
                .iter()
                .map(|(distance, symbols)| Neighbor { distance: *distance, symbols })
                .collect();
            let mut head = ReadHead::new(&channel, shape, Seed::new(drive))?;
            Ok::<_, PlatterError>(head.read(&written, &neighbors, &seeds, &read_faults))
        })
        .map_err(refuse)?;
    let size = (images.count, images.rows, images.columns);
    let images = Array3::from_shape_vec(size, images.pixels).map_err(misshapen)?;
    Ok(images.into_pyarray(py))
}

/// Images `[state, row, column]` of one sector as a network sees them: without illumination, each
/// voxel found by its light and put in the middle of its own pixels.
#[pyfunction]
fn registered<'py>(
    py: Python<'py>,
    channel: &str,
    images: PyReadonlyArray3<'py, u16>,
) -> PyResult<Bound<'py, PyArray3<f32>>> {
    let channel = parse_channel(channel)?;
    let images = images.as_array();
    let &[count, rows, columns] = images.shape() else {
        return Err(refuse("images have three axes: state, row, column"));
    };
    let pitch = usize::from(channel.optics.pixels_per_pitch);
    let voxels = |pixels: usize| u16::try_from(pixels / pitch).map_err(refuse);
    let shape = SectorShape::new(voxels(rows)?, voxels(columns)?).map_err(refuse)?;
    let images = SectorImages {
        count,
        rows,
        columns,
        bits: channel.camera.bits,
        pixels: images.iter().copied().collect(),
    };
    let planes = py
        .detach(|| fulgurite_decode::registered(&images, shape, channel.medium, pitch))
        .map_err(refuse)?;
    let values = planes.into_iter().flat_map(|plane| plane.values).collect();
    let planes = Array3::from_shape_vec((count, rows, columns), values).map_err(misshapen)?;
    Ok(planes.into_pyarray(py))
}

/// Pixels and symbols of `count` sectors, one after the other.
fn take(
    population: &Population,
    first: u64,
    count: usize,
) -> Result<(Vec<u16>, Vec<u8>), PlatterError> {
    let (mut all_pixels, mut all_symbols) = (Vec::new(), Vec::new());
    for number in (first..).take(count) {
        let (images, symbols) = population.sector(number)?;
        all_pixels.extend_from_slice(&images.pixels);
        all_symbols.extend_from_slice(&symbols);
    }
    Ok((all_pixels, all_symbols))
}

/// A preset by its name, or a channel as JSON.
fn parse_channel(text: &str) -> PyResult<Channel> {
    let channel = if text.trim_start().starts_with('{') {
        parse_json("channel", text)?
    } else {
        Channel::preset(text).map_err(refuse)?
    };
    channel.validate().map_err(refuse)?;
    Ok(channel)
}

fn parse_json<T: DeserializeOwned>(what: &str, text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| refuse(format!("{what}: {error}")))
}

fn square(side: i64) -> PyResult<SectorShape> {
    let side = u16::try_from(side)
        .map_err(|_| refuse(format!("side is {side}; it may be a number of 16 bits")))?;
    SectorShape::new(side, side).map_err(refuse)
}

/// Shape and symbols of a layer.
fn layer(symbols: &PyReadonlyArray2<'_, u8>) -> PyResult<(SectorShape, Vec<u8>)> {
    let symbols = symbols.as_array();
    let side = |axis: usize| {
        let side = symbols.shape()[axis];
        u16::try_from(side).map_err(|_| refuse(format!("symbols has a side of {side}")))
    };
    let shape = SectorShape::new(side(0)?, side(1)?).map_err(refuse)?;
    Ok((shape, symbols.iter().copied().collect()))
}

/// What the caller got wrong, with the causes of an error behind it.
fn refuse(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Vectors are made as long as their shape says.
fn misshapen(error: ShapeError) -> PyErr {
    pyo3::exceptions::PyRuntimeError::new_err(error.to_string())
}
