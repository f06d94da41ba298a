//! The output of `serve` when it listens: the endpoint, and lines to copy for three clients.

use std::path::Path;

use fulgurite_archive::config::TierName;
use fulgurite_client::credentials::{KeyOrigin, KeyPair, credentials_path};
use fulgurite_client::server_file::ServerFile;
use fulgurite_terminal::output::Output;
use fulgurite_terminal::style::{self, Tone};
use serde_json::json;

use crate::config::rack::Backend;
use crate::config::{Config, Tier};

/// The contents of the banner.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Banner<'a> {
    /// Data directory.
    pub data: &'a Path,
    /// The effective configuration.
    pub config: &'a Config,
    /// The server's endpoint.
    pub file: &'a ServerFile,
    /// Its keys.
    pub keys: &'a KeyPair,
    /// Where they came from.
    pub origin: KeyOrigin,
}

/// Prints the banner.
pub(crate) fn show(banner: &Banner<'_>, out: &Output) -> anyhow::Result<()> {
    let secret = (banner.origin == KeyOrigin::New).then_some(banner.keys.secret_key.as_str());
    out.json(
        "listening",
        &json!({
            "endpoint": banner.file.endpoint, "pid": banner.file.pid,
            "data": banner.data.to_string_lossy(), "access_key": banner.keys.access_key,
            "secret_key": secret, "certificate": banner.file.certificate,
        }),
    )?;
    out.text(text(banner))
}

/// Formats the banner as text.
pub(crate) fn text(banner: &Banner<'_>) -> String {
    let Banner { data, config, file, keys, origin } = banner;
    let endpoint = &file.endpoint;
    let stored = credentials_path(data);
    let stored = stored.display();
    let (secret, note) = match origin {
        KeyOrigin::New => (
            keys.secret_key.as_str(),
            format!("{}   shown only this once, stored in {stored}", keys.secret_key),
        ),
        KeyOrigin::Stored => ("SECRET", format!("in {stored}")),
        KeyOrigin::Provided => ("SECRET", "as provided".to_owned()),
    };
    let profile = config.glass.profile();
    let mut text = format!(
        "Fulgurite {} serves {}\n\n\
         \x20 endpoint    {endpoint}\n\
         \x20 access key  {}\n\
         \x20 secret key  {note}\n",
        env!("CARGO_PKG_VERSION"),
        data.display(),
        keys.access_key,
    );
    if let Some(certificate) = &file.certificate {
        text.push_str(&format!("  trust       {}\n", certificate.display()));
    }
    text.push_str(&format!("  medium      simulated glass, profile {profile}\n"));
    for (name, tier) in &config.tiers {
        text.push_str(&format!("  {:<11} {}\n", name.as_str(), tier_line(name, tier)));
    }
    text.push('\n');
    text.push_str(&clients(file, &keys.access_key, secret));
    text.push_str("\nStop with Ctrl-C or SIGTERM.");
    text
}

/// Describes a tier, and says so if its disks are simulated.
fn tier_line(name: &TierName, tier: &Tier) -> String {
    let kind = match tier {
        Tier::Rack(rack) => {
            let disks = rack.effective_shape().map_or(0, |shape| shape.place_count());
            let what = disks_of(rack.backend);
            format!("rack {}, {disks} {what}", rack.shape)
        }
        Tier::Tome(tome) => {
            let count = match &tome.network {
                Some(file) => format!("as \"{}\" has them,", file.display()),
                None => format!("{} of", tome.count),
            };
            format!("tomes, {count} {}", disks_of(tome.backend))
        }
        Tier::Geo(geo) => format!("sites of {}", geo.map.display()),
        Tier::Objects(objects) => return format!("objects in {}", objects.url),
    };
    format!("{kind}: see fulgurite tier status {name}")
}

const fn disks_of(backend: Backend) -> &'static str {
    match backend {
        Backend::Simulated => "simulated disks (directories)",
        Backend::Linux => "disks",
    }
}

fn clients(file: &ServerFile, access_key: &str, secret: &str) -> String {
    let endpoint = &file.endpoint;
    let ca = file.certificate.as_ref().map(|path| path.display().to_string());
    let aws_ca = ca.as_ref().map_or_else(String::new, |ca| format!(" AWS_CA_BUNDLE='{ca}'"));
    let boto_ca = ca.as_ref().map_or_else(String::new, |ca| format!(", verify=\"{ca}\""));
    let aws = format!(
        "{}\n\
         \x20 export AWS_ACCESS_KEY_ID={access_key} AWS_SECRET_ACCESS_KEY={secret} \
         AWS_REGION=us-east-1 AWS_ENDPOINT_URL={endpoint}{aws_ca}\n\
         \x20 aws s3 mb s3://my-bucket\n\
         \x20 aws s3 cp FILE s3://my-bucket/ --storage-class DEEP_ARCHIVE\n\
         \x20 aws s3api restore-object --bucket my-bucket --key FILE --restore-request Days=7\n\
         \x20 aws s3 cp --recursive --force-glacier-transfer s3://my-bucket DIR   # when restored\n\
         \x20 before version 1.29 or 2.13 the CLI does not know AWS_ENDPOINT_URL and would talk to \
         AWS:\n\
         \x20 add --endpoint-url {endpoint} to each command\n",
        title("aws")
    );
    let boto3 = format!(
        "{}\n\
         \x20 s3 = boto3.client(\"s3\", endpoint_url=\"{endpoint}\", region_name=\"us-east-1\",\n\
         \x20     aws_access_key_id=\"{access_key}\", \
         aws_secret_access_key=\"{secret}\"{boto_ca})\n",
        title("boto3")
    );
    let rclone_ca = ca.map_or_else(String::new, |ca| format!(" --ca-cert '{ca}'"));
    let rclone = format!(
        "{}\n\
         \x20 rclone config create fulgurite s3 provider=Other endpoint={endpoint} \
         access_key_id={access_key} secret_access_key={secret}\n\
         \x20 rclone copy DIR fulgurite:my-bucket{rclone_ca} --s3-storage-class DEEP_ARCHIVE\n",
        title("rclone")
    );
    format!("{aws}{boto3}{rclone}")
}

fn title(name: &'static str) -> impl std::fmt::Display {
    style::out(Tone::Strong, name)
}
