"""Draws what the other commands found: reads their files, simulates nothing.

report.json --> constellation, confusion, sectors      log.ndjson --> training
sweep.json ---> sweep-*                                gallery.npz -> gallery
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fulgurite.lab.errors import LabError
from fulgurite.lab.metrics import gray

_STYLE = Path(__file__).with_name("plots.mplstyle")

# Names of decoders in legends.
_LABELS = {
    "a": "per voxel",
    "b": "LMMSE",
    "b2": "LMMSE, refitted per sector",
    "net": "network",
}
# Those that are drawn, and their colors in all figures.
_DRAWN = {"a": "C5", "b": "C0", "b2": "C2", "net": "C1"}

_AXES = {
    "camera.electrons": "electrons of a pixel",
    "optics.focus_um": "focus error, standard deviation in um",
    "optics.crosstalk": "light of neighboring layers, of all there is",
    "optics.aperture": "numerical aperture",
    "voxels.pitch_um": "pitch of voxels, um",
    "polarization.swing_waves": "swing, waves",
    "defects": "dust, scratches and voids, times the preset's",
}


def draw(folder: Path) -> list[Path]:
    """Draw all that a folder has the numbers of; SVG and PNG."""
    mpl.use("Agg")
    makers: Mapping[str, Callable[[Path], dict[str, Figure]]] = {
        "log.ndjson": _training,
        "report.json": _report,
        "sweep.json": _sweep,
        "gallery.npz": _gallery,
    }
    there = [name for name in makers if (folder / name).is_file()]
    if not there:
        raise LabError(f"{folder} has none of {', '.join(makers)}")
    written = []
    with plt.style.context(str(_STYLE)):
        for name in there:
            for title, figure in makers[name](folder / name).items():
                for kind in ("svg", "png"):
                    path = folder / f"{title}.{kind}"
                    # Without a date, the same numbers are the same file.
                    figure.savefig(path, metadata={"Date": None} if kind == "svg" else None)
                    written.append(path)
                plt.close(figure)
    return written


def _read(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise LabError(f"{path}: {error}") from error
    return found


def _training(path: Path) -> dict[str, Figure]:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    steps = [(line["step"], line["loss"]) for line in lines if "step" in line]
    if not steps:
        return {}
    figure, axes = plt.subplots()
    axes.plot(*zip(*steps, strict=True), color=_DRAWN["net"])
    axes.set(xlabel="step", ylabel="cross entropy, nats a voxel", yscale="log")
    return {"training": figure}


def _report(path: Path) -> dict[str, Figure]:
    report = _read(path)
    figures = {"sectors": _sectors(report), "confusion": _confusion(report)}
    if report["constellation"]:
        figures["constellation"] = _constellation(report["constellation"])
    return figures


def _sectors(report: dict[str, Any]) -> Figure:
    """Share of sectors below an error rate, and below an information."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
    for name, color in _DRAWN.items():
        if name not in report["sectors"]:
            continue
        found = report["sectors"][name]
        share = (np.arange(len(found["ser"])) + 0.5) / len(found["ser"])
        left.plot(np.sort(found["ser"]), share, color=color, label=_LABELS[name])
        right.plot(np.sort(found["mi"]), share, color=color)
    left.set(xlabel="symbol error rate of a sector", ylabel="share of sectors", xscale="log")
    right.set(xlabel="information of a sector, bits a voxel", ylabel="share of sectors below")
    left.legend()
    return figure


def _confusion(report: dict[str, Any]) -> Figure:
    names = [name for name in ("b", "net") if name in report["confusion"]]
    figure, row = plt.subplots(1, len(names), figsize=(4.4 * len(names), 4), squeeze=False)
    for axes, name in zip(row[0], names, strict=True):
        counts = np.array(report["confusion"][name], float)
        rates = counts / np.maximum(counts.sum(1, keepdims=True), 1)
        wrong = np.where(np.eye(len(rates), dtype=bool), np.nan, rates)
        image = axes.imshow(100 * wrong, cmap="Blues", vmin=0)
        labels = [f"{k} ({label:03b})" for k, label in enumerate(gray(len(rates)))]
        axes.set_xticks(range(len(rates)), labels, rotation=60)
        axes.set_yticks(range(len(rates)), labels)
        axes.set(title=_LABELS[name], xlabel="read", ylabel="written")
        axes.grid(visible=False)
        figure.colorbar(image, ax=axes, shrink=0.8, label="% of voxels, errors only")
    figure.tight_layout()
    return figure


def _constellation(found: dict[str, Any]) -> Figure:
    names = list(found["points"])
    figure, row = plt.subplots(1, len(names), figsize=(4 * len(names), 4), squeeze=False)
    for axes, name in zip(row[0], names, strict=True):
        real, imaginary = found["points"][name]
        axes.scatter(real, imaginary, c=found["symbols"], cmap="hsv", s=2, alpha=0.5, vmax=8)
        axes.set(title=_LABELS[name], xlabel="cos 2 azimuth", ylabel="sin 2 azimuth")
        axes.set(xlim=(-2, 2), ylim=(-2, 2), aspect="equal")
    figure.tight_layout()
    return figure


def _sweep(path: Path) -> dict[str, Figure]:
    figures = {}
    for axis, points in _read(path)["axes"].items():
        figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
        values = [point["value"] for point in points]
        for name, color in _DRAWN.items():
            if name not in points[0]["decoders"]:
                continue
            rows = [point["decoders"][name] for point in points]
            _with_errors(left, values, [row["ser"] for row in rows], color, _LABELS[name])
            _with_errors(right, values, [row["mi"] for row in rows], color, _LABELS[name])
        scale = "log" if axis == "camera.electrons" else "linear"
        left.set(xlabel=_AXES[axis], ylabel="symbol error rate", yscale="log", xscale=scale)
        right.set(xlabel=_AXES[axis], ylabel="information, bits a voxel", xscale=scale)
        left.legend()
        figure.tight_layout()
        figures[f"sweep-{axis.partition('.')[2] or axis}"] = figure
    return figures


def _with_errors(
    axes: Axes, x: list[float], y: list[dict[str, float]], color: str, label: str
) -> None:
    axes.errorbar(
        x,
        [point["value"] for point in y],
        [point["error"] for point in y],
        color=color,
        label=label,
        marker="o",
        capsize=2,
    )


def _gallery(path: Path) -> dict[str, Figure]:
    """The first state's image of each damage, and the voxels that the network got wrong."""
    with np.load(path) as stored:
        names = [key.removesuffix(" image") for key in stored if key.endswith(" image")]
        images = {name: stored[f"{name} image"][0] for name in names}
        errors = {name: stored[f"{name} errors"] for name in names}
    figure, rows = plt.subplots(2, len(names), figsize=(2.1 * len(names), 4.4), squeeze=False)
    for column, name in enumerate(names):
        top, bottom = rows[0][column], rows[1][column]
        top.imshow(images[name], vmin=0, vmax=np.quantile(images["none"], 0.999))
        top.set_title(name)
        bottom.imshow(errors[name], cmap="Reds", vmin=0, vmax=1)
        bottom.set_title(f"{errors[name].mean():.1%} wrong")
        for axes in (top, bottom):
            axes.set_xticks([])
            axes.set_yticks([])
            axes.grid(visible=False)
    figure.tight_layout()
    return {"gallery": figure}
