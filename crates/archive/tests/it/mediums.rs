//! Archives at each fidelity of the medium: verification results are in the catalog, sector by
//! sector, and objects can be restored.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fulgurite_archive::config::{
    AnalogOptions, ArchiveConfig, EngineChoice, Fidelity, InjectedDamage, MediumOptions, Tariff,
};
use fulgurite_archive::{StorageClass, Verification, VerifiedSector};
use fulgurite_codes::ldpc::Rate;
use fulgurite_decode::{Interval, Provenance, Score, SoftFit, SymbolProbabilities};
use fulgurite_platter::channel::{Medium, SectorShape, Shares};
use fulgurite_platter::{Geometry, TrackRole};
use fulgurite_units::{PlatterId, Ratio, Seed, TrackIndex};

use crate::harness::{Client, config, key, noise};

async fn found(client: &Client, platter: PlatterId) -> Verification {
    client.archive.verification(platter).await.unwrap().expect("it was verified")
}

fn lost(found: &Verification) -> u64 {
    let sectors = found.tracks.iter().flat_map(|track| &track.sectors);
    sectors.filter(|sector| **sector == VerifiedSector::Lost).count() as u64
}

#[tokio::test]
async fn lost_sectors_are_recorded_individually() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(dir.path());
    config.glass.medium = MediumOptions::losing(1, Ratio::new(0.05).unwrap());
    let sectors_of_a_track = config.glass.geometry.track_sectors();
    let client = Client::open(config.clone()).await;
    client.put("a", StorageClass::DeepArchive, &noise(1, 300_000)).await.unwrap();
    client.archive.seal().await.unwrap();
    let places = client.archive.locate(&client.bucket, &key("a")).await.unwrap();
    let platter = places[0].platter.unwrap();
    // The results of sealing are stored before any further verification.
    let sealed = found(&client, platter).await;
    let mut failed = 0;
    for report in client.archive.verify(None, &Arc::default()).await.unwrap().platters {
        let found = found(&client, report.platter).await;
        assert_eq!((found.sectors, found.sectors_failed), (report.sectors, report.sectors_failed));
        assert_eq!((lost(&found), found.sector_margins), (report.sectors_failed, None));
        for track in &found.tracks {
            assert_eq!(track.sectors.len(), usize::from(sectors_of_a_track));
            assert!(track.sectors.contains(&VerifiedSector::Lost), "lost sectors are recorded");
        }
        failed += report.sectors_failed;
    }
    assert!(failed > 0, "5 % of the sectors are lost");
    // The medium loses the same sectors each time: the rows were replaced, not appended.
    assert_eq!(found(&client, platter).await.tracks, sealed.tracks);
    client.archive.stop().await.unwrap();
    drop(client);

    // A medium without losses: no track has results to store.
    config.glass.medium = MediumOptions::perfect(1);
    let client = Client::open(config).await;
    assert_eq!(
        found(&client, platter).await.tracks,
        sealed.tracks,
        "the results of before the restart"
    );
    client.archive.verify(Some(platter), &Arc::default()).await.unwrap();
    let found = found(&client, platter).await;
    assert_eq!((found.tracks, found.sectors_failed), (Vec::new(), 0));
    let other = PlatterId::from_bytes([9; 16]);
    assert_eq!(client.archive.verification(other).await.unwrap(), None);
    client.archive.stop().await.unwrap();
}

/// Writes statistics of sectors with up to 3 % wrong symbols, by the decoder's own estimate: all
/// but the worst can be decoded.
fn statistics(path: &Path) {
    let shape = SectorShape::new(64, 64).unwrap();
    let medium = Medium::Birefringent;
    let count = medium.symbols();
    let mut fit = SoftFit::new(medium);
    for number in 1..=32u32 {
        let rate = 0.001 * f64::from(number);
        let mut stream = Seed::new(number.into()).stream();
        let (mut symbols, mut logarithms) = (Vec::new(), Vec::new());
        for _ in 0..shape.voxels() {
            let own = u8::try_from(stream.below(count.into())).unwrap();
            let is_uncertain = stream.unit() < 2.0 * rate;
            let is_wrong = is_uncertain && stream.unit() < 0.5;
            let other = (own + 1) % count;
            let (first, second) = if is_wrong { (other, own) } else { (own, other) };
            let gap = if is_uncertain { 0.2 } else { 12.0 };
            logarithms.extend((0..count).map(|symbol| match symbol {
                symbol if symbol == first => 0.0,
                symbol if symbol == second => -gap,
                _ => -14.0,
            }));
            symbols.push(own);
        }
        let found = SymbolProbabilities::normalized(usize::from(count), logarithms);
        let score = Score::new(medium, shape, &found, &symbols);
        fit.add(shape, &found, &symbols, &score);
    }
    let none = Interval { value: 0.0, low: 0.0, high: 0.0 };
    let about = Provenance {
        preset: "test".to_owned(),
        decoder: "test".to_owned(),
        seed: 1,
        side: 64,
        shares: Shares { drive: 0.2, platter: 0.2 },
        measured: [none; 3],
        rate: Rate::R9of10,
        sector_bytes: 1024,
    };
    std::fs::write(path, fit.finish(about).unwrap().to_json()).unwrap();
}

#[tokio::test]
async fn soft_fidelity_restores_every_byte() {
    by_statistics(|statistics| Fidelity::Soft { statistics, reads_max: 1 }).await;
}

#[tokio::test]
async fn sector_fidelity_with_statistics_restores_every_byte() {
    by_statistics(|statistics| Fidelity::Drawn { statistics, reads_max: 1 }).await;
}

async fn by_statistics(fidelity: impl FnOnce(PathBuf) -> Fidelity) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.soft");
    statistics(&path);
    let mut config = config(&dir.path().join("data"));
    config.glass.geometry = Geometry::profile("sliver").unwrap();
    config.glass.medium = MediumOptions { seed: 1, fidelity: fidelity(path) };
    let client = Client::open(config).await;
    let bodies: Vec<Vec<u8>> = (0..4).map(|seed| noise(seed, 40_000)).collect();
    for (number, body) in bodies.iter().enumerate() {
        client.put(&number.to_string(), StorageClass::DeepArchive, body).await.unwrap();
    }
    let report = client.archive.seal().await.unwrap();
    assert_eq!((report.objects, report.kept_staged), (4, 0));
    for (number, body) in bodies.iter().enumerate() {
        let name = number.to_string();
        client.restore(&name).await.unwrap();
        client.restored(&name).await.unwrap();
        assert!(client.get(&name, None).await.unwrap() == *body);
    }
    // Every sector has its decoding margin, or is recorded as lost.
    for report in client.archive.verify(None, &Arc::default()).await.unwrap().platters {
        let found = found(&client, report.platter).await;
        let sectors: Vec<VerifiedSector> =
            found.tracks.iter().flat_map(|track| track.sectors.clone()).collect();
        assert_eq!(sectors.len() as u64, report.sectors);
        assert!(!sectors.contains(&VerifiedSector::Read));
        let margins = found.sector_margins.unwrap();
        assert_eq!(margins.sectors + lost(&found), report.sectors);
        let least = sectors.iter().filter_map(|sector| match sector {
            VerifiedSector::Margin(margin) => Some(*margin),
            VerifiedSector::Lost | VerifiedSector::Read => None,
        });
        assert_eq!(least.min(), Some(margins.least));
        assert!(margins.least < 100, "sectors with 3 % of errors have small margins");
    }
    client.archive.stop().await.unwrap();
}

/// Configures an archive at `analog` with damage.
fn damaged(data: &Path, damage: &str) -> ArchiveConfig {
    let mut config = config(data);
    config.glass.geometry = Geometry::profile("sliver").unwrap();
    let analog = AnalogOptions {
        preset: "easy".to_owned(),
        model: None,
        engine: EngineChoice::BuiltIn,
        reads_max: 1,
        workers: 0,
        queue: None,
        tariff: Tariff::default(),
        watts: 1.0,
        damage: InjectedDamage::from_toml(damage).unwrap(),
    };
    config.glass.medium = MediumOptions { seed: 1, fidelity: Fidelity::Analog(Box::new(analog)) };
    config
}

/// A layer that the laser failed to write loses its sector and nothing else. If whole tracks are
/// lost, more than their group can reconstruct on any platter of the set, their objects stay
/// staged.
#[tokio::test]
async fn injected_damage_is_located_exactly() {
    let dir = tempfile::tempdir().unwrap();
    let geometry = Geometry::profile("sliver").unwrap();
    let body = noise(1, 20_000);
    let map = geometry.map(geometry.tracks_for(body.len() as u64));
    let tracks: Vec<u32> = (0..map.tracks())
        .filter(|track| match map.role(TrackIndex::new(*track)).unwrap() {
            TrackRole::Header(_) => false,
            TrackRole::Information(_) | TrackRole::Redundancy { .. } => true,
        })
        .collect();
    let lose = |track: &u32, layers: Vec<u16>| {
        format!("[[write]]\ntrack = {track}\nlayers = {layers:?}\nfaults.lost_layer = true\n")
    };

    let once = lose(&tracks[0], vec![3]);
    let client = Client::open(damaged(dir.path(), &once)).await;
    client.put("one layer", StorageClass::DeepArchive, &body).await.unwrap();
    let report = client.archive.seal().await.unwrap();
    assert_eq!((report.objects, report.kept_staged), (1, 0));
    let places = client.archive.locate(&client.bucket, &key("one layer")).await.unwrap();
    let platter = places[0].platter.unwrap();
    let sealed = found(&client, platter).await;
    let track_of = |track: u32| sealed.tracks.iter().find(|found| found.track == track).unwrap();
    assert_eq!(track_of(tracks[0]).sectors[3], VerifiedSector::Lost);
    assert_eq!(lost(&sealed), sealed.sectors_failed);
    assert!(lost(&sealed) <= 1 + sealed.sectors / 20, "few others: {sealed:?}");
    client.restore("one layer").await.unwrap();
    client.restored("one layer").await.unwrap();
    assert!(client.get("one layer", None).await.unwrap() == body);
    client.archive.stop().await.unwrap();
    drop(client);

    let layers = 0..geometry.track_sectors();
    let all: String = tracks.iter().map(|track| lose(track, layers.clone().collect())).collect();
    let client = Client::open(damaged(dir.path(), &all)).await;
    client.put("all layers", StorageClass::DeepArchive, &body).await.unwrap();
    let report = client.archive.seal().await.unwrap();
    assert_eq!((report.objects, report.kept_staged), (0, 1));
    assert_eq!(client.archive.status().await.unwrap().objects_staged, 1);
    client.restore("all layers").await.unwrap();
    client.restored("all layers").await.unwrap();
    assert!(client.get("all layers", None).await.unwrap() == body);
    client.archive.stop().await.unwrap();
}
