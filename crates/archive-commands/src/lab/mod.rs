//! `lab`: tools for the simulated medium: what its voxels look like, how well decoders read them,
//! and whether the faster fidelities agree.

mod calibrate;
mod canvas;
mod compare;
mod picture;
mod render;
mod sample;

use std::path::PathBuf;

use clap::Subcommand;
use fulgurite_archive::config::EngineChoice;
use fulgurite_decode::{Decoder, Learned, Model, standard_linear, standard_model};
use fulgurite_platter::channel::Channel;
use fulgurite_terminal::exit::{Exit, ExitError};
use fulgurite_terminal::output::Output;

use crate::config::Engine;

/// `lab`, with one of its commands.
#[derive(Clone, Debug, clap::Args)]
pub struct LabCommand {
    #[command(subcommand)]
    command: LabAction,
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
enum LabAction {
    /// Measure a decoder on simulated sectors, and write statistics for fidelities soft and sector
    Calibrate(calibrate::CalibrateArgs),
    /// Compare the fidelities with each other
    Compare(compare::CompareArgs),
    /// Draw the camera images of a sector, and what is decoded from them
    Render(render::RenderArgs),
}

/// Selects the channel and the decoder.
#[derive(Clone, Debug, clap::Args)]
struct ReaderArgs {
    /// Preset of the voxel channel: nominal, easy, dense or phase
    #[arg(long, value_name = "NAME", default_value = "nominal")]
    channel: String,
    /// Decoder
    #[arg(long, value_enum, value_name = "NAME", default_value = "learned")]
    decoder: DecoderName,
    /// File of a learned decoder (ONNX), with its card beside it
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Engine of a learned decoder
    #[arg(long, value_enum, value_name = "NAME", default_value = "builtin")]
    engine: Engine,
}

/// A kind of decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum DecoderName {
    /// Least mean squares
    Linear,
    /// Neural network
    Learned,
}

/// Creates a worker's decoder.
type MakeDecoder = Box<dyn Fn() -> anyhow::Result<Box<dyn Decoder + Send>> + Sync>;

impl ReaderArgs {
    /// Returns the channel.
    fn channel(&self) -> anyhow::Result<Channel> {
        Channel::preset(&self.channel).map_err(|error| usage(&error))
    }

    /// Returns the decoder, and its name with the model's version.
    fn decoder(&self) -> anyhow::Result<(String, MakeDecoder)> {
        let channel = self.channel()?;
        match self.decoder {
            DecoderName::Linear => {
                let linear = standard_linear(&self.channel).map_err(|error| usage(&error))?;
                Ok(("linear".to_owned(), Box::new(move || Ok(Box::new(linear.clone())))))
            }
            DecoderName::Learned => {
                let model = match &self.model {
                    Some(path) => Model::open(path).map(std::sync::Arc::new),
                    None => standard_model(),
                };
                let model = model.map_err(|error| usage(&error))?;
                let engine: EngineChoice = self.engine.choice();
                // Report errors of model or engine before work begins.
                Learned::new(&model, channel.medium, &engine).map_err(|error| usage(&error))?;
                let name = format!("learned {}", model.id());
                let make = move || {
                    let learned = Learned::new(&model, channel.medium, &engine)?;
                    Ok(Box::new(learned) as Box<dyn Decoder + Send>)
                };
                Ok((name, Box::new(make)))
            }
        }
    }
}

fn usage(error: &dyn std::error::Error) -> anyhow::Error {
    ExitError::new(Exit::Config, error.to_string()).into()
}

/// Runs a `lab` command.
pub fn lab(args: &LabCommand, out: &Output) -> anyhow::Result<()> {
    match &args.command {
        LabAction::Calibrate(args) => calibrate::calibrate(args, out),
        LabAction::Compare(args) => compare::compare(args, out),
        LabAction::Render(args) => render::render(args, out),
    }
}
