//! Memory that a tome takes for its blocks, without object names.

use fulgurite_tome_core::Tome;
use fulgurite_units::{Instant, Seed};

use super::filled::{any, empty, layout, write};

/// Prints resident bytes per block: of the metadata store alone, of the whole core, and the peak
/// while it was started.
pub(crate) fn print(blocks: u32) {
    let layout = layout(blocks);
    let (before, begin) = (resident("VmRSS:"), std::time::Instant::now());
    let mut metadata = empty(0, layout);
    let mut stream = Seed::new(1).stream();
    for region in 0..layout.parts().regions {
        (0..layout.region_blocks())
            .for_each(|offset| write(&mut metadata, region, offset, any(&mut stream)));
    }
    let (filled, filled_s) = (resident("VmRSS:"), begin.elapsed().as_secs_f64());
    let begin = std::time::Instant::now();
    let tome = Tome::new(Instant::ZERO, metadata, Seed::new(2)).unwrap();
    let (started, started_s) = (resident("VmRSS:"), begin.elapsed().as_secs_f64());
    assert_eq!(tome.metadata().layout().blocks(), u64::from(blocks), "the tome keeps its blocks");
    #[expect(clippy::cast_precision_loss, reason = "a figure of four digits")]
    let each = |bytes: u64| bytes.saturating_sub(before) as f64 / f64::from(blocks);
    println!(
        "{{\"blocks\":{blocks},\"awake\":{:.2},\"core\":{:.2},\"most\":{:.2},\
         \"filled_s\":{filled_s:.3},\"started_s\":{started_s:.3}}}",
        each(filled),
        each(started),
        each(resident("VmHWM:")),
    );
}

/// Returns bytes of this process as the kernel counts them.
fn resident(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let kibibytes: u64 = line.split_ascii_whitespace().next().unwrap().parse().unwrap();
    kibibytes * 1024
}
