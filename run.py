"""Run an experiment: ``python run.py --help`` shows what can be typed."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

# Keep this file's imports light: worker processes import it again.
import hydra
from omegaconf import DictConfig

from semanticspec.compose import COMPOSE_ERRORS, one_line, read_config
from semanticspec.config import register
from semanticspec.errors import UserError

HELP = "'python run.py --help' shows all there is"


@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def job(composed: DictConfig) -> None:
    """One launch; a sweep (-m) makes several."""
    try:
        config = read_config(composed)
        if config.dry_run:
            from semanticspec.dry_run import describe

            print(describe(config))
            return
        from semanticspec.runner import run

        folders = run(config)
    except UserError as error:
        fail(str(error))
    print("\nResults:", *(f"  {folder}" for folder in folders), sep="\n")
    print(f"Next: python -m semanticspec.reporting {config.results_dir}")


def fail(message: str) -> NoReturn:
    """One line on standard error, exit code 2."""
    print(f"run.py: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(2)


def main() -> None:
    # Hydra then raises its errors instead of printing pages, and they can be told in one line; what
    # the hub has to say is in the error that ends its retries.
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    register()
    try:
        job()
    except COMPOSE_ERRORS as error:
        fail(f"{one_line(error)}; {HELP}")
    except KeyboardInterrupt:
        print("\nStopped. The same command goes on from here.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
