//! `FULGURITE_*` variables: a setting's path in the file, in upper case, joined by `_`; those of
//! the glass tier without `TIERS`.

use std::fmt::Display;
use std::str::FromStr;

use super::{Config, ConfigError, Engine, Expedited, Fidelity};

type Setter = fn(&mut Config, &str) -> Result<(), String>;

/// Every setting that has a variable. The geometry of platters, the shape of the library,
/// `[classes]` and other tiers can be set in files only.
const SETTINGS: [(&str, Setter); 36] = [
    ("FULGURITE_LISTEN", |c, v| set(&mut c.listen, v)),
    ("FULGURITE_DOMAIN", |c, v| set_some(&mut c.domain, v)),
    ("FULGURITE_TLS", |c, v| set(&mut c.tls, v)),
    ("FULGURITE_GLASS_PROFILE", |c, v| set(&mut c.glass.profile, v)),
    ("FULGURITE_GLASS_MOVES_BYTES", |c, v| set_some(&mut c.glass.moves.bytes, v)),
    ("FULGURITE_GLASS_MOVES_AGE", |c, v| set(&mut c.glass.moves.age, v)),
    ("FULGURITE_GLASS_SHARD_SIZE", |c, v| set(&mut c.glass.shard_size, v)),
    ("FULGURITE_STORAGE_LOG_CAPACITY", |c, v| set(&mut c.storage.log_capacity, v)),
    ("FULGURITE_STORAGE_FREE_MIN", |c, v| set_some(&mut c.storage.free_min, v)),
    ("FULGURITE_STORAGE_RESERVE", |c, v| set_some(&mut c.storage.reserve, v)),
    ("FULGURITE_STORAGE_FORGET_WITHIN", |c, v| set(&mut c.storage.forget_within, v)),
    ("FULGURITE_STORAGE_ACKNOWLEDGED_AT", |c, v| set_some(&mut c.storage.acknowledged_at, v)),
    ("FULGURITE_RESTORE_EXPEDITED", |c, v| set_expedited(&mut c.restore.expedited, v)),
    ("FULGURITE_RESTORE_LOG", |c, v| set_some(&mut c.restore.log, v)),
    ("FULGURITE_RESTORE_DAY", |c, v| set(&mut c.restore.day, v)),
    ("FULGURITE_KEYS_MASTER_KEY", |c, v| set_some(&mut c.keys.master_key, v)),
    ("FULGURITE_KEYS_TABLES", |c, v| set_paths(&mut c.keys.tables, v)),
    ("FULGURITE_GLASS_MEDIUM_CHANNEL", |c, v| set(&mut c.glass.medium.channel, v)),
    ("FULGURITE_GLASS_MEDIUM_DAMAGE", |c, v| set_some(&mut c.glass.medium.damage, v)),
    ("FULGURITE_GLASS_MEDIUM_DECODE_PRICES", |c, v| set(&mut c.glass.medium.decode_prices, v)),
    ("FULGURITE_GLASS_MEDIUM_DECODE_QUEUE", |c, v| set_some(&mut c.glass.medium.decode_queue, v)),
    ("FULGURITE_GLASS_MEDIUM_DECODE_WATTS", |c, v| set(&mut c.glass.medium.decode_watts, v)),
    ("FULGURITE_GLASS_MEDIUM_DECODE_WITHIN", |c, v| set(&mut c.glass.medium.decode_within, v)),
    ("FULGURITE_GLASS_MEDIUM_DECODE_WORKERS", |c, v| set(&mut c.glass.medium.decode_workers, v)),
    ("FULGURITE_GLASS_MEDIUM_ENGINE", |c, v| set_engine(&mut c.glass.medium.engine, v)),
    ("FULGURITE_GLASS_MEDIUM_FIDELITY", |c, v| set_fidelity(&mut c.glass.medium.fidelity, v)),
    ("FULGURITE_GLASS_MEDIUM_MODEL", |c, v| set_some(&mut c.glass.medium.model, v)),
    ("FULGURITE_GLASS_MEDIUM_READS_MAX", |c, v| set(&mut c.glass.medium.reads_max, v)),
    ("FULGURITE_GLASS_MEDIUM_SEED", |c, v| set(&mut c.glass.medium.seed, v)),
    ("FULGURITE_GLASS_MEDIUM_SECTOR_FAILURE_RATE", |c, v| {
        set_ratio(&mut c.glass.medium.sector_failure_rate, v)
    }),
    ("FULGURITE_GLASS_MEDIUM_STATISTICS", |c, v| set_some(&mut c.glass.medium.statistics, v)),
    ("FULGURITE_GLASS_MEDIUM_TRACK_FAILURE_RATE", |c, v| {
        set_ratio(&mut c.glass.medium.track_failure_rate, v)
    }),
    ("FULGURITE_GLASS_LIBRARY_LOG", |c, v| set_some(&mut c.glass.library.log, v)),
    ("FULGURITE_GLASS_LIBRARY_POLICY", |c, v| set_policy(&mut c.glass.library.policy, v)),
    ("FULGURITE_GLASS_LIBRARY_SEED", |c, v| set(&mut c.glass.library.seed, v)),
    ("FULGURITE_GLASS_LIBRARY_TIME_SCALE", |c, v| set(&mut c.glass.library.time_scale, v)),
];

/// Variables with this prefix that other parts of the program read.
const OTHER_VARIABLES: [&str; 13] = [
    "FULGURITE_DATA",
    "FULGURITE_CONFIG",
    "FULGURITE_ENDPOINT",
    "FULGURITE_ACCESS_KEY",
    "FULGURITE_SECRET_KEY",
    "FULGURITE_LOG",
    "FULGURITE_LOG_FORMAT",
    "FULGURITE_FAIL_POINT",
    "FULGURITE_ONNXRUNTIME",
    crate::decode_worker::CREDENTIALS,
    crate::decode_worker::KEY,
    fulgurite_codes::ISA_VARIABLE,
    fulgurite_codes::L2_CACHE_VARIABLE,
];

/// Returns the variables of this process that are UTF-8. The others are not ours.
pub fn process_environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// Applies every variable of `environment` that names a setting; warns of unknown ones with our
/// prefix.
pub(super) fn apply(
    config: &mut Config,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<(), ConfigError> {
    for (name, value) in environment {
        if let Some((_, setter)) = SETTINGS.iter().find(|(known, _)| *known == name) {
            setter(config, &value)
                .map_err(|reason| ConfigError::Environment { name: name.clone(), reason })?;
        } else if name.starts_with("FULGURITE_")
            && !name.starts_with(super::tiers::VARIABLE)
            && !OTHER_VARIABLES.contains(&name.as_str())
        {
            tracing::warn!(name, "environment variable is not a setting and was ignored");
        }
    }
    Ok(())
}

fn set<T: FromStr<Err: Display>>(field: &mut T, value: &str) -> Result<(), String> {
    *field = value.parse().map_err(|error: T::Err| error.to_string())?;
    Ok(())
}

fn set_some<T: FromStr<Err: Display>>(field: &mut Option<T>, value: &str) -> Result<(), String> {
    *field = Some(value.parse().map_err(|error: T::Err| error.to_string())?);
    Ok(())
}

/// Sets comma-separated paths, with or without the file's brackets and quotes.
#[expect(clippy::unnecessary_wraps, reason = "a setter like the others")]
fn set_paths(field: &mut Vec<std::path::PathBuf>, value: &str) -> Result<(), String> {
    let paths = value.trim_matches(['[', ']']).split(',');
    *field = paths.map(|path| path.trim().trim_matches('"').into()).collect();
    Ok(())
}

fn set_ratio(field: &mut fulgurite_units::Ratio, value: &str) -> Result<(), String> {
    let number: f64 = value.parse().map_err(|_| format!("\"{value}\" is not a number"))?;
    *field = number.try_into().map_err(|error: fulgurite_units::RatioError| error.to_string())?;
    Ok(())
}

fn set_policy(
    field: &mut fulgurite_glass_core::control::Policy,
    value: &str,
) -> Result<(), String> {
    *field =
        fulgurite_glass_core::control::Policy::named(value).map_err(|error| error.to_string())?;
    Ok(())
}

fn set_fidelity(field: &mut Fidelity, value: &str) -> Result<(), String> {
    *field = match value {
        "sector" => Fidelity::Sector,
        "soft" => Fidelity::Soft,
        "analog" => Fidelity::Analog,
        _ => return Err(format!("\"{value}\" is none of sector, soft and analog")),
    };
    Ok(())
}

fn set_engine(field: &mut Engine, value: &str) -> Result<(), String> {
    *field = match value {
        "builtin" => Engine::BuiltIn,
        "onnxruntime" => Engine::OnnxRuntime,
        _ => return Err(format!("\"{value}\" is neither builtin nor onnxruntime")),
    };
    Ok(())
}

fn set_expedited(field: &mut Expedited, value: &str) -> Result<(), String> {
    *field = match value {
        "refuse" => Expedited::Refuse,
        "standard" => Expedited::Standard,
        _ => return Err(format!("\"{value}\" is neither refuse nor standard")),
    };
    Ok(())
}
