//! Exports a standard code and received words for other decoders: `NAME.alist`, `NAME.soft` (an i8
//! for each bit of 8 words) and `NAME.bits` (the words that they decode to, packed).
//!
//! ```text
//! cargo run --release -p fulgurite-codes --example ldpc_export DIR RATE
//! ```
#![expect(clippy::print_stdout, reason = "an example's output is its use")]

use fulgurite_codes::ldpc::calibrate::UNITS_PER_LLR;
use fulgurite_codes::ldpc::decode::Effort;
use fulgurite_codes::ldpc::simulate::sample;
use fulgurite_codes::ldpc::{Block, Code, Decoder, Rate, VoxelChannel};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, rate] = &arguments[..] else { return Err("DIR RATE are wanted".into()) };
    let rate = Rate::ALL.into_iter().find(|known| known.name() == rate).ok_or("no such rate")?;
    for block in Block::ALL {
        let code = Code::standard(rate, block);
        let name = format!("{folder}/{}-{}", block.name(), rate.name());
        // The words that `ldpc_speed` measures: raw symbol error rate 1e-2 at 3 bits a voxel.
        let frames = sample(&code, &VoxelChannel::new(3, 1e-2, UNITS_PER_LLR), 1, 8);
        let mut decoder = Decoder::new(&code);
        let mut words = vec![0; frames.len() * code.bits() / 8];
        for (soft, word) in frames.iter().zip(words.chunks_exact_mut(code.bits() / 8)) {
            if !decoder.decode(soft, Effort::default(), word)?.converged {
                return Err("a word did not decode".into());
            }
        }
        let soft: Vec<u8> = frames.concat().into_iter().map(i8::cast_unsigned).collect();
        std::fs::write(format!("{name}.alist"), code.matrix().to_alist())?;
        std::fs::write(format!("{name}.soft"), soft)?;
        std::fs::write(format!("{name}.bits"), words)?;
        println!("{name} {} {}", code.information_bits(), code.bits());
    }
    Ok(())
}
