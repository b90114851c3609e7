"""Results on disk: one folder a run, one line a sample."""

from .manifest import RunManifest, config_hash
from .store import RunStore, load, load_manifest, open_run, run_folders

__all__ = ["RunManifest", "RunStore", "config_hash", "load", "load_manifest", "open_run", "run_folders"]
