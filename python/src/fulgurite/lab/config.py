"""Configurations: one TOML file into plain dataclasses; unknown keys are refused.

Every number that decides a result is here, seeds too: the same file on the same machine is the same
run. What a run costs is not: it says so itself.
"""

import dataclasses
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

from fulgurite.lab.errors import LabError


@dataclass(frozen=True)
class ChannelConfig:
    """A preset, and numbers that differ from it: `"optics.focus_um" = 0.6`."""

    preset: str = "nominal"
    set: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class SectorsConfig:
    """A set of sectors. Drives and platters: these counts, or one of each per sector."""

    count: int
    seed: int
    side: int = 128
    drives: int | None = None
    platters: int | None = None


@dataclass(frozen=True)
class NetworkConfig:
    """The network: channels at full resolution, halvings, residual blocks, pixels of the stem."""

    width: int = 24
    depth: int = 2
    blocks: int = 1
    stem: int = 7


@dataclass(frozen=True)
class TrainingConfig:
    """Training settings."""

    seed: int = 1
    steps: int = 8000
    batch: int = 8
    crop: int = 64
    rate: float = 3e-3
    decay: float = 1e-4
    warmup: int = 100
    threads: int = 1
    device: str = "auto"
    # Of products: bfloat16 takes half the time; weights and sums stay float32.
    precision: str = "bfloat16"
    # Steps between lines of the log.
    log: int = 100


@dataclass(frozen=True)
class EvaluationConfig:
    """Evaluation settings."""

    # Voxels at the border that are not scored: tiles overlap by as many.
    margin: int = 4
    # Training sectors that the linear decoders are fitted to.
    linear: int = 40


@dataclass(frozen=True)
class Config:
    """A run of the lab."""

    name: str
    train: SectorsConfig
    # Temperatures are fitted on these.
    calibration: SectorsConfig
    test: SectorsConfig
    channel: ChannelConfig = field(default_factory=ChannelConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    def __post_init__(self) -> None:
        """Check constraints that types do not express."""
        sets = {"train": self.train, "calibration": self.calibration, "test": self.test}
        numbers = {
            **{f"{name}.count": s.count for name, s in sets.items()},
            "network.width": self.network.width,
            "network.depth": self.network.depth,
            "network.blocks": self.network.blocks,
            "training.steps": self.training.steps,
            "training.batch": self.training.batch,
            "training.threads": self.training.threads,
            "training.log": self.training.log,
            "evaluation.linear": self.evaluation.linear,
        }
        for name, number in numbers.items():
            _require(number >= 1, name, number, "1 and more")
        _require(len({s.seed for s in sets.values()}) == 3, "seeds", "shared", "one for each set")
        block = 2**self.network.depth
        for name, side in (
            ("training.crop", self.training.crop),
            *((f"{name}.side", s.side) for name, s in sets.items()),
        ):
            _require(side >= block and side % block == 0, name, side, f"a multiple of {block}")
        crop, side = self.training.crop, self.train.side
        _require(crop <= side, "training.crop", crop, f"at most the side {side}")
        margin, least = self.evaluation.margin, min(self.test.side, self.calibration.side)
        _require(0 <= margin < least // 2, "evaluation.margin", margin, f"below {least // 2}")
        device = self.training.device
        _require(device in ("auto", "cpu", "cuda"), "training.device", device, "auto, cpu or cuda")
        precision, known = self.training.precision, ("float32", "bfloat16")
        _require(precision in known, "training.precision", precision, " or ".join(known))


def load(path: Path) -> Config:
    """Read a configuration."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LabError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LabError(f"{path}: {error}") from error
    try:
        return parse(table)
    except LabError as error:
        raise LabError(f"{path}: {error}") from error


def parse(table: dict[str, Any]) -> Config:
    """Make a configuration from a table."""
    made = _fill(Config, table, "")
    assert isinstance(made, Config)
    return made


def without_nothing(table: dict[str, Any]) -> dict[str, Any]:
    """Leave keys without a value out, as TOML does."""
    return {
        key: without_nothing(value) if isinstance(value, dict) else value
        for key, value in table.items()
        if value is not None
    }


def _require(holds: bool, name: str, value: object, allowed: str) -> None:
    if not holds:
        raise LabError(f"{name} is {value}; it may be {allowed}")


def _fill(kind: type[Any], table: dict[str, Any], path: str) -> Any:
    """Make a dataclass of a table, key by key."""
    hints = get_type_hints(kind)
    for key in table:
        if key not in hints:
            raise LabError(f"there is no key {path}{key}; there are {', '.join(hints)}")
    for each in dataclasses.fields(kind):
        is_optional = (
            each.default is not dataclasses.MISSING
            or each.default_factory is not dataclasses.MISSING
        )
        if not is_optional and each.name not in table:
            raise LabError(f"{path}{each.name} is missing")
    return kind(**{key: _value(hints[key], v, f"{path}{key}") for key, v in table.items()})


def _value(hint: Any, value: Any, path: str) -> Any:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if not isinstance(value, dict):
            raise LabError(f"{path} is {value!r}; it may be a table")
        return _fill(hint, value, f"{path}.")
    if hint == dict[str, float]:
        if not isinstance(value, dict):
            raise LabError(f"{path} is {value!r}; it may be a table")
        return {key: _value(float, number, f"{path}.{key}") for key, number in value.items()}
    kinds = {int: (int,), float: (int, float), str: (str,), int | None: (int,)}[hint]
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise LabError(f"{path} is {value!r}; it may be {getattr(hint, '__name__', 'a number')}")
    return float(value) if hint is float else value
