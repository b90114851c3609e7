"""The main table, to the letter. Run this file to write it again, and read the difference."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest
from made_runs import make_run, manifest, sample

from semanticspec.reporting import table
from semanticspec.reporting.runs import gather
from semanticspec.types import Step

HERE = Path(__file__).parent


def documents(results: Path) -> dict[str, str]:
    """Two benchmarks: one with a baseline, a failure and a method that loses; one without."""
    kept = Step("draft", "kept", 10, True)
    dropped = Step("target", "again", 10, False, n_rejected_tokens=10)
    seconds = {"a": 1.0, "b": 2.0, "c": 1.5, "d": 0.5}
    tokens = {name: int(100 * s) for name, s in seconds.items()}
    make_run(
        results,
        manifest(),
        [
            sample(p, wall_s=s, n_tokens=tokens[p], n_target_passes=tokens[p])
            for p, s in seconds.items()
        ],
    )
    make_run(
        results,
        manifest("semanticspec"),
        [
            sample(
                p,
                correct=p != "c",
                truncated=p == "c",
                wall_s=0.4 * s + 0.1,
                n_tokens=tokens[p] + 5,
                n_target_passes=tokens[p] // 2,
                phase_s={"draft": 0.1 * s, "verify": 0.05 * s, "probe": 0.01 * s},
                steps=(kept, kept, kept, dropped),
                n_steps_proposed=4,
                n_steps_accepted=3,
                n_draft_tokens_kept=30,
            )
            for p, s in seconds.items()
        ],
    )
    slow = [
        sample(
            p,
            wall_s=1.5 * s + 0.1,
            n_tokens=tokens[p],
            phase_s={"draft": s, "verify": 0.4 * s},
            n_target_passes=tokens[p] // 3,
            n_tokens_proposed=tokens[p],
            n_tokens_accepted=tokens[p] // 2,
            n_draft_tokens_kept=tokens[p] // 2,
        )
        for p, s in seconds.items()
        if p != "d"
    ]
    failed = sample("d", correct=False, wall_s=0.0, n_tokens=0, error="RuntimeError: no luck")
    make_run(results, manifest("specsampling", process="launch-2"), [*slow, failed])
    alone = sample("a", wall_s=0.1, n_tokens=100, n_draft_tokens_kept=100)
    make_run(results, manifest("draft_only", benchmark="words"), [alone])
    report = gather([results])
    return {"main_table.md": table.markdown(report), "main_table.csv": table.csv(report)}


@pytest.mark.parametrize("name", ["main_table.md", "main_table.csv"])
def test_the_main_table_is_as_agreed(tmp_path: Path, name: str) -> None:
    assert documents(tmp_path)[name] == (HERE / name).read_text(encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for name, content in documents(Path(folder)).items():
            (HERE / name).write_text(content, encoding="utf-8")
            sys.stdout.write(f"wrote {name}\n")
