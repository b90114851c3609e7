"""Results on disk: one folder a run, one line a sample."""

from .manifest import RunManifest
from .store import RunStore, load, load_manifest, open_run, run_folders

__all__ = ["RunManifest", "RunStore", "load", "load_manifest", "open_run", "run_folders"]
