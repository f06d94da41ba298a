"""Training, export and the command line, once and small. Needs torch."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e .[train]")

from fulgurite.lab import config, data, decoder, evaluate, train  # noqa: E402
from fulgurite.lab.__main__ import main  # noqa: E402
from fulgurite.lab.errors import LabError  # noqa: E402

TINY = Path(__file__).parent.parent / "configs" / "tiny.toml"


@pytest.fixture(scope="module")
def trained() -> tuple[train.Model, list[dict[str, Any]]]:
    lines: list[dict[str, Any]] = []
    return train.train(config.load(TINY), lines.append), lines


def test_twenty_steps_lower_the_loss(trained: tuple[train.Model, list[dict[str, Any]]]) -> None:
    model, lines = trained
    losses = [line["loss"] for line in lines if "step" in line]
    assert [line["step"] for line in lines if "step" in line] == [5, 10, 15, 20]
    assert losses[-1] < losses[0] - 0.05
    assert 0.2 <= model.temperature <= 5
    assert model.origin["channel"] == data.channel("easy").fingerprint


def test_the_same_configuration_trains_to_the_same_weights(
    trained: tuple[train.Model, list[dict[str, Any]]],
) -> None:
    again = train.train(config.load(TINY), lambda _: None)
    first, second = trained[0].network.state_dict(), again.network.state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_rate_rises_and_falls() -> None:
    wanted = dataclasses.replace(config.load(TINY).training, steps=100, warmup=10, rate=1.0)
    rates = [train.rate(wanted, step) for step in range(100)]
    assert rates[0] < 0.11
    assert max(rates) == pytest.approx(rates[9], rel=0.03)
    assert rates[-1] == pytest.approx(0.01, abs=0.01)


def test_a_checkpoint_is_read_as_it_was_written(
    trained: tuple[train.Model, list[dict[str, Any]]], tmp_path: Path
) -> None:
    model, _ = trained
    model.save(tmp_path / "model.pt")
    read = train.Model.load(tmp_path / "model.pt")
    assert read.config == model.config
    assert read.temperature == model.temperature
    image = data.sectors(model.channel, 32, 1, 5).images[0]
    opened = decoder.load(tmp_path / "model.pt")
    sectors = data.sectors(model.channel, 32, 1, 5)
    assert np.allclose(opened.decode(image), train.predict(model.network, sectors)[0], atol=1e-5)
    (tmp_path / "other.pt").write_bytes(b"no checkpoint")
    with pytest.raises(LabError, match="no checkpoint"):
        train.Model.load(tmp_path / "other.pt")


def test_only_operators_that_every_engine_has_are_exported(
    trained: tuple[train.Model, list[dict[str, Any]]], tmp_path: Path
) -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install -e .[train]")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    from fulgurite.lab import export

    model, _ = trained
    path = tmp_path / "tiny.onnx"
    about = export.export(model, path)
    assert export.compare(model, path) < 1e-4
    assert {node.op_type for node in onnx.load(path).graph.node} <= {
        "Add",
        "Constant",
        "Conv",
        "DepthToSpace",
        "Relu",
    }
    opened = decoder.load(path)
    assert opened.config == model.config
    assert opened.about["channel"] == model.channel.fingerprint
    assert about["temperature"] == f"{model.temperature:.4f}"
    # The file decodes sectors of another shape, and as torch does.
    sectors = data.sectors(model.channel, 48, 1, 5)
    ours = train.predict(model.network, sectors)[0]
    assert np.abs(opened.decode(sectors.images[0]) - ours).max() < 1e-4


def test_card_describes_its_network_and_takes_metrics(
    trained: tuple[train.Model, list[dict[str, Any]]], tmp_path: Path
) -> None:
    for package in ("onnx", "onnxruntime"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install -e .[train]")
    from fulgurite.lab import card, export

    model, _ = trained
    path = tmp_path / "tiny.onnx"
    export.export(model, path, "7")
    read = json.loads(card.path_of(path).read_text(encoding="utf-8"))
    numbers = {"states": 4, "symbols": 8, "pixels_per_pitch": 3, "block": 4, "margin": 4}
    assert read.items() >= numbers.items()
    assert (read["format"], read["name"], read["version"]) == (decoder.FORMAT, "tiny", "7")
    assert read["temperature"] == pytest.approx(model.temperature, abs=1e-4)
    assert read["about"]["config"]["training"]["steps"] == 20

    report = {"preset": "easy", "test": {"seed": 2}, "decoders": {"net": {}}, "confusion": []}
    assert card.add_metrics(path, report) == card.path_of(path)
    merged = json.loads(card.path_of(path).read_text(encoding="utf-8"))
    assert merged["about"].pop("metrics") == {key: report[key] for key in list(report)[:3]}
    assert merged == read
    assert card.add_metrics(tmp_path / "model.pt", report) is None
    path.write_bytes(path.read_bytes() + b"!")
    with pytest.raises(LabError, match="card of another file"):
        card.add_metrics(path, report)

    # Eight bits lose little, even of a network that knows little.
    export.export(model, path)
    small = export.export_int8(model, path)
    assert small.name == "tiny-int8.onnx"
    assert small.stat().st_size < 0.6 * path.stat().st_size
    about = json.loads(card.path_of(small).read_text(encoding="utf-8"))
    assert (about["name"], about["precision"]) == ("tiny-int8", "int8")
    image = data.sectors(model.channel, 32, 1, 5).images[0]
    ours, theirs = decoder.load(path).decode(image), decoder.load(small).decode(image)
    assert np.abs(ours - theirs).mean() < 0.1 * np.abs(ours).mean() + 0.02


def test_the_command_line_from_a_configuration_to_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    less = {axis: values[:2] for axis, values in evaluate.SWEEPS.items()}
    monkeypatch.setattr(evaluate, "SWEEPS", less)
    for package in ("onnx", "onnxruntime", "matplotlib"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install -e .[train]")
    assert main(["train", str(TINY), "--out", str(tmp_path)]) == 0
    model = str(tmp_path / "model.pt")
    assert main(["export", model]) == 0
    exported = tmp_path / "tiny.onnx"
    assert main(["evaluate", str(exported)]) == 0
    assert main(["sweep", str(exported), "--sectors", "2"]) == 0
    assert main(["gallery", model]) == 0
    assert main(["figures", str(tmp_path)]) == 0
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert list(report["decoders"]) == ["a", "b", "b2", "net"]
    assert len(report["sectors"]["net"]["ser"]) == 3
    drawn = {path.stem for path in tmp_path.glob("*.svg")}
    assert drawn == {
        "training",
        "sectors",
        "confusion",
        "constellation",
        "gallery",
        "sweep-electrons",
        "sweep-focus_um",
        "sweep-crosstalk",
        "sweep-aperture",
        "sweep-pitch_um",
        "sweep-swing_waves",
        "sweep-defects",
    }
    capsys.readouterr()
    assert main(["evaluate", str(tmp_path / "report.json")]) == 1
    assert "is no checkpoint" in capsys.readouterr().err
    assert main(["figures", str(tmp_path / "nothing")]) == 1
    assert "has none of" in capsys.readouterr().err
