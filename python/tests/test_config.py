"""Configurations: what is read, and what is refused with which words."""

from pathlib import Path
from typing import Any

import pytest

from fulgurite.lab import config
from fulgurite.lab.__main__ import main
from fulgurite.lab.errors import LabError

CONFIGS = Path(__file__).parent.parent / "configs"

_LEAST: dict[str, Any] = {
    "name": "x",
    "train": {"count": 4, "seed": 1},
    "test": {"count": 2, "seed": 2},
    "calibration": {"count": 1, "seed": 3},
}


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda path: path.stem)
def test_shipped_configs_load_and_match_their_file_names(path: Path) -> None:
    assert config.load(path).name == path.stem


def test_omitted_fields_have_defaults() -> None:
    made = config.parse(_LEAST | {"channel": {"set": {"optics.focus_um": 1}}})
    assert made.channel == config.ChannelConfig("nominal", {"optics.focus_um": 1.0})
    assert made.train == config.SectorsConfig(count=4, seed=1, side=128)
    assert made.training.batch == 8


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nam": 1}, "there is no key nam; there are name, train"),
        ({"training": {"speed": 1}}, r"there is no key training\.speed"),
        ({"training": {"steps": "9"}}, r"training\.steps is '9'; it may be int"),
        ({"training": {"steps": True}}, r"training\.steps is True"),
        ({"training": {"steps": 0}}, r"training\.steps is 0; it may be 1 and more"),
        ({"training": {"crop": 30}}, r"training\.crop is 30; it may be a multiple of 4"),
        ({"training": {"crop": 256}}, "at most the side 128"),
        ({"training": {"device": "gpu"}}, r"training\.device is gpu"),
        ({"training": {"precision": "half"}}, r"training\.precision is half"),
        ({"test": {"seed": 2}}, r"test\.count is missing"),
        ({"test": {"count": 2, "seed": 1}}, "seeds is shared"),
        ({"test": 5}, "test is 5; it may be a table"),
        ({"evaluation": {"margin": 64}}, r"evaluation\.margin is 64; it may be below 64"),
        ({"channel": {"set": {"a": "b"}}}, r"channel\.set\.a is 'b'"),
    ],
)
def test_invalid_fields_are_reported_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(LabError, match=message):
        config.parse(_LEAST | changes)


def test_unreadable_files_give_a_one_line_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install -e .[train]")
    assert main(["train", str(tmp_path / "none.toml")]) == 1
    assert "error: cannot read" in capsys.readouterr().err
    broken = tmp_path / "broken.toml"
    broken.write_text("name = ", encoding="utf-8")
    assert main(["train", str(broken)]) == 1
    assert capsys.readouterr().err.startswith(f"error: {broken}: ")
