//! Builds the standard LDPC codes and prints their properties.
//!
//! ```text
//! cargo run --release -p fulgurite-codes --example ldpc_construct -- DIR [NAME]
//! ```
//!
//! Writes DIR/NAME.txt for each code (the tables that the crate includes), and to standard output a
//! row for each: counts, girth, cycles and the thresholds by density evolution.
#![expect(clippy::print_stdout, reason = "an example's output is its use")]

use fulgurite_codes::ldpc::calibrate::UNITS_PER_LLR;
use fulgurite_codes::ldpc::density::Degrees;
use fulgurite_codes::ldpc::{Block, Code, Design, Girth, Rate, VoxelChannel};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("which folder?")?;
    let wanted = arguments.next();
    println!("code rate n k z m edges girth cycles ser3 ser4 errors erasures");
    for block in Block::ALL {
        for rate in Rate::ALL {
            let name = format!("{}-{}", block.name(), rate.name());
            if wanted.as_ref().is_some_and(|wanted| *wanted != name) {
                continue;
            }
            let matrix = Design::standard(rate, block).build()?;
            std::fs::write(format!("{folder}/{name}.txt"), matrix.to_text())?;
            let code = Code::new(matrix)?;
            let girth = Girth::compute(code.matrix());
            let degrees = Degrees::compute(code.matrix());
            let voxels = |bits| {
                degrees
                    .threshold(0.3, |rate| VoxelChannel::new(bits, rate, UNITS_PER_LLR).density())
            };
            let thresholds = degrees.thresholds();
            println!(
                "{name} {:.4} {} {} {} {} {} {} {} {:.4} {:.4} {:.5} {:.4}",
                code.rate(),
                code.bits(),
                code.information_bits(),
                code.matrix().circulant(),
                code.matrix().rows(),
                code.matrix().edges(),
                girth.length,
                girth.cycles,
                voxels(3),
                voxels(4),
                thresholds.errors,
                thresholds.erasures,
            );
        }
    }
    Ok(())
}
