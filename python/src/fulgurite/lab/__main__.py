"""The command line of the lab: `python -m fulgurite.lab`.

Progress goes to standard error, results to files and standard output. Exit code 1 is an error of
the user's making, with one line that names it.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fulgurite.lab import config
from fulgurite.lab.errors import LabError

_NO_TORCH = "this needs torch: pip install -e .[train]"


def main(arguments: list[str] | None = None) -> int:
    """Run one command."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fulgurite.lab", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    train = commands.add_parser("train", help="train a network")
    train.add_argument("config", type=Path, metavar="CONFIG.toml")
    train.add_argument("--out", type=Path, metavar="FOLDER", help="default: runs/NAME")
    train.set_defaults(run=_train)

    judge = commands.add_parser("evaluate", help="judge it, and the linear decoders beside it")
    _model(judge)
    judge.add_argument("--no-linear", action="store_true", help="leave the linear decoders out")
    judge.set_defaults(run=_evaluate)

    sweep = commands.add_parser("sweep", help="judge it on channels it was not trained on")
    _model(sweep)
    sweep.add_argument("--sectors", type=int, default=12, help="sectors of each; default: 12")
    sweep.set_defaults(run=_sweep)

    damaged = commands.add_parser("gallery", help="show one sector with one damage at a time")
    _model(damaged)
    damaged.set_defaults(run=_gallery)

    export = commands.add_parser("export", help="write the network as ONNX, with its card")
    _model(export, "MODEL.pt")
    export.add_argument("--version", default="1", help="what its card calls it; default: 1")
    export.add_argument("--int8", action="store_true", help="also write NAME-int8.onnx")
    export.set_defaults(run=_export)

    figures = commands.add_parser("figures", help="draw what the other commands wrote")
    figures.add_argument("folder", type=Path, metavar="FOLDER")
    figures.set_defaults(run=_figures)
    return parser


def _model(parser: argparse.ArgumentParser, metavar: str = "MODEL") -> None:
    parser.add_argument("model", type=Path, metavar=metavar)
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="default: the model's")


def _train(options: argparse.Namespace) -> None:
    try:
        from fulgurite.lab import train
    except ImportError as error:
        raise LabError(_NO_TORCH) from error
    wanted = config.load(options.config)
    folder = options.out or Path("runs") / wanted.name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log.ndjson").open("w", encoding="utf-8") as log:
        train.train(wanted, _reporter(log.write)).save(folder / "model.pt")
    print(folder / "model.pt")


def _evaluate(options: argparse.Namespace) -> None:
    from fulgurite.lab import card, decoder, evaluate

    learned = decoder.load(options.model)
    report = evaluate.evaluate(learned, _progress, with_linear=not options.no_linear)
    _write_json(_folder(options) / "report.json", report)
    written = card.add_metrics(options.model, report)
    if written is not None:
        print(written)


def _sweep(options: argparse.Namespace) -> None:
    from fulgurite.lab import decoder, evaluate

    if options.sectors < 2:
        raise LabError(f"--sectors is {options.sectors}; it may be 2 and more")
    learned = decoder.load(options.model)
    found = evaluate.sweep(learned, options.sectors, _progress)
    _write_json(_folder(options) / "sweep.json", found)


def _gallery(options: argparse.Namespace) -> None:
    import numpy as np

    from fulgurite.lab import decoder, gallery

    path = _folder(options) / "gallery.npz"
    found: dict[str, Any] = dict(gallery.gallery(decoder.load(options.model)))
    np.savez_compressed(path, **found)
    print(path)


def _export(options: argparse.Namespace) -> None:
    try:
        from fulgurite.lab import export, train
    except ImportError as error:
        raise LabError(_NO_TORCH) from error
    model = train.Model.load(options.model)
    path = _folder(options) / f"{model.config.name}.onnx"
    export.export(model, path, options.version)
    print(path)
    if options.int8:
        print(export.export_int8(model, path, options.version))


def _figures(options: argparse.Namespace) -> None:
    try:
        from fulgurite.lab import figures
    except ImportError as error:
        raise LabError("figures need matplotlib: pip install -e .[train]") from error
    for path in figures.draw(options.folder):
        print(path)


def _folder(options: argparse.Namespace) -> Path:
    folder: Path = options.out or options.model.parent
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    print(path)


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _reporter(write: Callable[[str], object]) -> Callable[[dict[str, Any]], None]:
    def say(line: dict[str, Any]) -> None:
        text = json.dumps(line)
        write(text + "\n")
        print(text, file=sys.stderr, flush=True)

    return say


if __name__ == "__main__":
    sys.exit(main())
