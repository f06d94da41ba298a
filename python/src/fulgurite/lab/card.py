"""The card beside an exported network: what a reader must know before it opens the file.

`NAME.json` names the BLAKE3 hash of `NAME.onnx`, so that weights cannot be swapped unseen, and the
numbers that decoding needs. Whatever else is known of the network, seeds, configuration and
metrics, is free JSON under `about`.
"""

import json
from pathlib import Path
from typing import Any

from fulgurite import channel as glass
from fulgurite.lab.decoder import FORMAT
from fulgurite.lab.errors import LabError

# What decoding needs, and the kind that it has in the card.
_NUMBERS = {"pixels_per_pitch": int, "block": int, "margin": int, "temperature": float}


def path_of(onnx: Path) -> Path:
    """Where the card of a network lies."""
    return onnx.with_suffix(".json")


def write(
    onnx: Path, metadata: dict[str, str], *, states: int, symbols: int, version: str, precision: str
) -> Path:
    """Write the card of a network that was exported with this metadata."""
    about: dict[str, Any] = {
        key: value for key, value in metadata.items() if key not in {"format", "name", "channel"}
    }
    numbers = {name: kind(about.pop(name)) for name, kind in _NUMBERS.items()}
    for key in ("config", "channel_json"):
        about[key] = json.loads(about[key])
    card = {
        "format": FORMAT,
        "name": metadata["name"],
        "version": version,
        "blake3": glass.fingerprint(onnx.read_bytes()),
        "precision": precision,
        "states": states,
        "symbols": symbols,
        **numbers,
        "channel": metadata["channel"],
        "about": about,
    }
    path = path_of(onnx)
    _save(path, card)
    return path


def add_metrics(onnx: Path, report: dict[str, Any]) -> Path | None:
    """Put a report's scores into the card of a network, if it has one of this very file."""
    path = path_of(onnx)
    if onnx.suffix != ".onnx" or not path.exists():
        return None
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
        is_its_own = card["blake3"] == glass.fingerprint(onnx.read_bytes())
    except (ValueError, LookupError, TypeError) as error:
        raise LabError(f"{path} is no card") from error
    if not is_its_own:
        raise LabError(f"{path} is the card of another file than {onnx}: export it again")
    card["about"]["metrics"] = {key: report[key] for key in ("preset", "test", "decoders")}
    _save(path, card)
    return path


def _save(path: Path, card: dict[str, Any]) -> None:
    path.write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
