"""``python -m semanticspec.reporting results``: tables and figures of what has run."""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import UserError
from . import figures, table
from .runs import gather


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the main table and write it, with the figures. Exit code 2 for what a user can mend."""
    parser = argparse.ArgumentParser(
        prog="python -m semanticspec.reporting",
        description="Make the main table (Markdown, CSV) and the figures (PNG, PDF) of runs.",
        epilog="example: python -m semanticspec.reporting results --out report",
    )
    parser.add_argument(
        "folders",
        nargs="+",
        type=Path,
        metavar="FOLDER",
        help="run folders, or folders that hold them, at any depth",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FOLDER", help="where to write (default: beside what is read)"
    )
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    try:
        report = gather(options.folders)
        files = _write(report, options.out or Path(os.path.commonpath(options.folders)))
    except UserError as error:
        print(f"reporting: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    # Where nobody looks at a terminal, there is room for everything.
    print(table.text(report, width=shutil.get_terminal_size((200, 50)).columns))
    print("\nWritten:", *(f"  {file}" for file in files), sep="\n")
    return 0


def _write(report: table.Report, out: Path) -> list[Path]:
    try:
        out.mkdir(parents=True, exist_ok=True)
        tables = {"main_table.md": table.markdown(report), "main_table.csv": table.csv(report)}
        for name, content in tables.items():
            (out / name).write_text(content, encoding="utf-8")
        return [*(out / name for name in tables), *figures.write(report, out)]
    except OSError as error:
        raise UserError(f"--out {out}: cannot be written ({error})") from error


if __name__ == "__main__":
    sys.exit(main())
