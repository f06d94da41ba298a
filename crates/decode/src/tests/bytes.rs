//! Computations in bytes, against the same in real numbers.

use fulgurite_codes::symbols::{DemapMethod, Demapper};
use fulgurite_platter::channel::{Channel, SectorImages};

use super::{sector, shape};
use crate::frame::{SOFT_SCALE, alphabet};
use crate::{Decoder, FlatImages, Matched, standard_linear};

/// Flat images are the light over its mean, in the documented steps, and clipped at their ends.
#[test]
fn flat_images_are_light_over_its_mean() {
    let side = 96;
    for count in [1, 4] {
        let mut pixels = vec![100; count * side * side];
        let spots = [(5, 130), (47, 70), (60, 199), (80, 0)];
        for (at, value) in spots {
            pixels[at * side + 7] = value;
        }
        let images = SectorImages { count, rows: side, columns: side, bits: 8, pixels };
        let flat = FlatImages::new(&images, 3);
        assert!(flat.pixel(0, [20, 20]).abs() < 1e-6);
        for (at, value) in spots {
            // A single pixel changes the mean by some thousandths.
            let exact = (f32::from(value) / 100.0 - 1.0).clamp(-0.8, 127.0 / 160.0);
            let found = flat.pixel(0, [isize::try_from(at).unwrap(), 7]);
            assert!((found - exact).abs() < 0.01, "{count} images: {value} is {found}");
        }
        assert_eq!(flat.pixel(0, [5, -9]).to_bits(), flat.pixel(0, [5, 0]).to_bits());
    }
}

/// Soft bits match the probabilities, up to rounding.
#[test]
fn soft_bits_match_the_probabilities() {
    for preset in ["nominal", "phase"] {
        let channel = Channel::preset(preset).unwrap();
        let medium = channel.medium;
        let (images, symbols) = sector(&channel, shape(96), 5);
        let known = [(&images, &symbols[..])];
        let mut decoders: Vec<Box<dyn Decoder>> = vec![
            Box::new(standard_linear(preset).unwrap()),
            Box::new(Matched::fit(medium, 3, true, shape(96), known).unwrap()),
        ];
        #[cfg(feature = "learned")]
        if preset == "nominal" {
            let model = crate::standard_model().unwrap();
            let engine = crate::EngineChoice::BuiltIn;
            decoders.push(Box::new(crate::Learned::new(&model, medium, &engine).unwrap()));
        }
        let demapper = Demapper::new(&alphabet(medium), DemapMethod::MaxLog, SOFT_SCALE).unwrap();
        for decoder in &mut decoders {
            let found = decoder.decode(&images, shape(96)).unwrap();
            let mut expected = vec![0; 96 * 96 * usize::from(medium.bits())];
            demapper.logarithms(found.logarithms(), &mut expected).unwrap();
            let mut soft = vec![1; 3];
            decoder.soft_bits(&images, shape(96), &demapper, &mut soft).unwrap();
            assert_eq!(soft.len(), expected.len());
            let off: Vec<u8> = soft.iter().zip(&expected).map(|(a, b)| a.abs_diff(*b)).collect();
            let differ = off.iter().filter(|off| **off > 0).count();
            assert!(off.iter().all(|off| *off <= 1) && differ * 200 < off.len(), "{differ}");
            assert!(
                expected.iter().any(|soft| *soft > 9) && expected.iter().any(|soft| *soft < -9)
            );
        }
    }
}

#[test]
fn a_demapper_of_another_alphabet_is_refused() {
    let channel = Channel::preset("nominal").unwrap();
    let (images, _) = sector(&channel, shape(32), 1);
    let phase = Channel::preset("phase").unwrap().medium;
    let demapper = Demapper::new(&alphabet(phase), DemapMethod::MaxLog, SOFT_SCALE).unwrap();
    let mut linear = standard_linear("nominal").unwrap();
    let refused = linear.soft_bits(&images, shape(32), &demapper, &mut Vec::new()).unwrap_err();
    assert!(refused.to_string().starts_with("soft bits of a sector: "), "{refused}");
}
