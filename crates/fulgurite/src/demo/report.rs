//! The report of a demo, as one JSON object or as a page of text.

use fulgurite_archive::DecodeStatus;
use fulgurite_archive::status::{SealReport, ShardLocation, Status};
use fulgurite_archive_commands::archive::show_place;
use fulgurite_archive_commands::config::Fidelity;
use fulgurite_object_commands::{GetSummary, PutSummary};
use fulgurite_platter::Geometry;
use fulgurite_terminal::output::{self, Output, group_digits, pluralize, rate};
use serde_json::json;

use super::damage::Damage;
use super::source::Source;

/// The report of a demo.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    seed: u64,
    origin: &'static str,
    folder: String,
    endpoint: String,
    /// Ingest.
    pub(crate) put: PutSummary,
    seal_seconds: f64,
    sealed_bytes: u64,
    platters: (u64, u64),
    /// Bytes of all platter files before the damage.
    pub(crate) platter_bytes: u64,
    /// Damage.
    pub(crate) damage: Damage,
    /// From the first request to the last copy.
    pub(crate) restore_seconds: f64,
    /// Download.
    pub(crate) get: GetSummary,
    /// Keys whose restored bytes differ.
    pub(crate) differing: Vec<String>,
    repaired: (u64, u64, u64),
    geometry: Option<Geometry>,
    fidelity: Fidelity,
    decode: Option<DecodeStatus>,
    /// Places of a few files.
    pub(crate) places: Vec<(String, Vec<ShardLocation>)>,
}

impl Report {
    /// Creates an empty report.
    pub(crate) fn new(seed: u64, fidelity: Fidelity, source: &Source, endpoint: &str) -> Self {
        Self {
            seed,
            fidelity,
            origin: source.origin,
            folder: source.folder.display().to_string(),
            endpoint: endpoint.to_owned(),
            put: PutSummary::default(),
            seal_seconds: 0.0,
            sealed_bytes: 0,
            platters: (0, 0),
            platter_bytes: 0,
            damage: Damage::default(),
            restore_seconds: 0.0,
            get: GetSummary::default(),
            differing: Vec::new(),
            repaired: (0, 0, 0),
            geometry: None,
            decode: None,
            places: Vec::new(),
        }
    }

    /// Records the result of sealing.
    pub(crate) fn record_seal(&mut self, sealed: &SealReport) {
        self.seal_seconds = sealed.seconds;
        self.sealed_bytes = sealed.bytes;
        for set in &sealed.sets {
            self.platters.0 += u64::from(set.information_platters);
            self.platters.1 += u64::from(set.redundancy_platters);
        }
    }

    /// Records how much redundancy was used.
    pub(crate) fn record_repairs(&mut self, status: &Status, geometry: Geometry) {
        self.repaired =
            (status.repaired_by_track, status.repaired_by_group, status.repaired_by_set);
        self.geometry = Some(geometry);
        self.decode.clone_from(&status.decode);
    }

    /// Prints the report.
    pub(crate) fn show(&self, out: &Output) -> anyhow::Result<()> {
        out.json("demo", &self.to_json())?;
        out.text(self.to_text())
    }

    fn to_json(&self) -> serde_json::Value {
        let places: Vec<_> =
            self.places.iter().map(|(key, places)| json!({"key": key, "places": places})).collect();
        json!({
            "endpoint": self.endpoint, "seed": self.seed, "folder": self.folder,
            "objects": self.put.objects, "bytes": self.put.bytes,
            "put_seconds": self.put.seconds, "seal_seconds": self.seal_seconds,
            "restore_seconds": self.restore_seconds, "get_seconds": self.get.seconds,
            "information_platters": self.platters.0, "redundancy_platters": self.platters.1,
            "platter_bytes": self.platter_bytes, "damage": self.damage,
            "repaired_by_track": self.repaired.0, "repaired_by_group": self.repaired.1,
            "repaired_by_set": self.repaired.2, "decode": self.decode,
            "differing": self.differing, "places": places,
        })
    }

    fn to_text(&self) -> String {
        let put = &self.put;
        let bytes = put.bytes;
        let line = |name: &str, seconds: f64| {
            format!("{name:10} {:>10}  {}", output::seconds(seconds), rate(bytes, seconds))
        };
        let mut lines = vec![
            String::new(),
            format!("source     {} ({})", self.folder, self.origin),
            format!("endpoint   {} (gone now)", self.endpoint),
            format!("files      {}, {}", group_digits(put.objects), output::bytes(bytes)),
            line("put", put.seconds),
            line("seal", self.seal_seconds),
            line("restore", self.restore_seconds),
            line("get", self.get.seconds),
            format!(
                "glass      {} information + {} redundancy platters, {} in all, \
                 {:.1} times the data",
                self.platters.0,
                self.platters.1,
                output::bytes(self.platter_bytes),
                ratio(self.platter_bytes, bytes)
            ),
            format!(
                "damaged    {} removed, {} destroyed, {} with flipped bytes (seed {})",
                pluralize(self.damage.platters_lost.len() as u64, "platter"),
                pluralize(self.damage.tracks, "track"),
                pluralize(self.damage.sectors, "sector"),
                self.seed
            ),
            format!(
                "repaired   {} by their track, {} by their group, {} by the set",
                pluralize(self.repaired.0, "sector"),
                pluralize(self.repaired.1, "track"),
                pluralize(self.repaired.2, "track")
            ),
        ];
        lines.extend(self.decode.as_ref().map(format_decode));
        lines.push("places     of a few files:".to_owned());
        for (key, places) in &self.places {
            lines.push(format!("  {key}"));
            lines.extend(places.iter().map(|place| format!("    {}", show_place(place))));
        }
        lines.push(match &self.geometry {
            Some(geometry) => {
                let scope = match self.fidelity {
                    Fidelity::Sector => "which sectors fail, not how light writes them",
                    Fidelity::Soft => {
                        "what a decoder reports for each voxel, by measured statistics"
                    }
                    Fidelity::Analog => "voxels, light, camera and noise, by assumed sizes",
                };
                let profile = &geometry.profile;
                format!(
                    "simulated  the glass (profile {profile}: {scope}) and the library's mechanics"
                )
            }
            None => String::new(),
        });
        lines.push("real       S3, encryption, layout, all three codes, every byte".to_owned());
        lines.push(self.verdict());
        lines.join("\n")
    }

    fn verdict(&self) -> String {
        if self.differing.is_empty() {
            let files = pluralize(self.get.objects, "file");
            return format!("result     every byte of {files} came back");
        }
        let mut text =
            format!("result     {} DIFFER", pluralize(self.differing.len() as u64, "file"));
        for key in self.differing.iter().take(fulgurite_object_commands::limits::FAILURES_SHOWN_MAX)
        {
            text.push_str("\n  ");
            text.push_str(key);
        }
        text
    }
}

/// Describes the work of the decode service in a line.
fn format_decode(status: &DecodeStatus) -> String {
    let decoders: Vec<String> = status
        .sectors
        .iter()
        .map(|(name, sectors)| format!("{} by the decoder {name}", pluralize(*sectors, "sector")))
        .collect();
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let rate = status.voxels as f64 / status.busy_seconds.max(1e-9) / 1e6;
    format!(
        "decoded    {}, {} not at all, {} from more than one set of images; {rate:.2} million \
         voxels a second and core, simulation of light included",
        decoders.join(", "),
        group_digits(status.lost),
        group_digits(status.reread)
    )
}

fn ratio(whole: u64, part: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
    let ratio = whole as f64 / part.max(1) as f64;
    ratio
}
