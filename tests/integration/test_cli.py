"""``run.py`` as a person types it, from another folder than its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from models import END, tiny_llama, word_tokenizer

from semanticspec.compose import ROOT
from semanticspec.proxies.problems import BENCHMARKS, problems

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "HF_HUB_OFFLINE": "1"}


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "run.py"), *arguments]
    return subprocess.run(
        command, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Overrides that put a tiny random pair, saved as any local model is, in the proxy's place."""
    folder = tmp_path_factory.mktemp("models")
    texts = " ".join(next(problems(name, "test", 0)).text for name in BENCHMARKS)
    words = [*dict.fromkeys(texts.split()), "\n\n", " ", "\n"]
    tokenizer = word_tokenizer(words)
    for seed, name in enumerate(("target", "draft")):
        model = tiny_llama(len(tokenizer), seed=seed, end=tokenizer.get_vocab()[END])
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    return [
        "model.name=tiny",
        f"model.target.path={folder / 'target'}",
        f"model.draft.path={folder / 'draft'}",
        "model.target.think_prefix=''",
        "model.draft.think_prefix=''",
        "generation.max_new_tokens=16",
        "benchmark=chain_short",
        "limit=2",
        "threads=1",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fooo=1"], "fooo: no such key; choose one of benchmark, "),
        (["method=nope"], "method=nope: no such choice; choose one of autoregressive, "),
        (["-m", "method=nope,draft_only"], "method=nope: no such choice; choose one of "),
        (["+method.gama=3"], "method.gama: no such key; choose one of "),
        (["method.tau=-1"], "method.tau=-1.0: must be 0 or more"),
        (["model.target.path=no/where", "method=autoregressive"], "model.target.path=no/where: "),
        (["probe.path=no/where"], "probe.path=no/where: target.json is missing"),
        (["benchmark=gsm8k", "benchmark.path=nope.jsonl"], "benchmark.path=nope.jsonl: no such "),
        (["benchmark=math500"], "benchmark=math500: HuggingFaceH4/MATH-500 "),
        (["model=qwq", "method=autoregressive"], "model.target.path=Qwen/QwQ-32B: neither a "),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"run.py: {message}")
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
    assert not [item for item in tmp_path.iterdir() if item.name != "results"]


def test_help_says_what_to_type_next(tmp_path: Path) -> None:
    done = run("--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "python run.py experiment=quickstart" in done.stdout
    assert "method: autoregressive, draft_only, random_accept, semanticspec" in done.stdout
    assert "schema" not in done.stdout


def test_a_dry_run_shows_and_leaves_nothing(tmp_path: Path, models: list[str]) -> None:
    (Path(models[1].partition("=")[2]) / "model.safetensors").rename(tmp_path / "away")
    try:
        done = run(*models, "method=specsampling", "dry_run=true", cwd=tmp_path)
    finally:
        (tmp_path / "away").rename(Path(models[1].partition("=")[2]) / "model.safetensors")
    assert (done.returncode, done.stderr) == (0, "")
    assert "parameters, float32" in done.stdout
    assert "How many" in done.stdout
    assert not list(tmp_path.iterdir())


def test_a_sweep_runs_resumes_and_repeats_itself(tmp_path: Path, models: list[str]) -> None:
    sweep = ["-m", *models, "method=autoregressive,specsampling", "results_dir=out"]
    done = run(*sweep, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "python -m semanticspec.reporting out" in done.stdout
    files = sorted((tmp_path / "out").glob("*/samples.jsonl"))
    assert [file.parent.name.rpartition("-")[0] for file in files] == [
        "tiny-chain_short-autoregressive-s0",
        "tiny-chain_short-specsampling-s0",
    ]
    texts = [file.read_text(encoding="utf-8") for file in files]
    assert [text.count("\n") for text in texts] == [2, 2]
    assert all(json.loads(line)["error"] is None for text in texts for line in text.splitlines())
    again = run(*sweep, cwd=tmp_path)
    assert again.returncode == 0
    assert [file.read_text(encoding="utf-8") for file in files] == texts
    assert [item.name for item in tmp_path.iterdir()] == ["out"]


def test_seeds_decide_the_text(tmp_path: Path, models: list[str]) -> None:
    def texts(folder: str, seed: int) -> list[str]:
        overrides = ["method=specsampling", f"seed={seed}", f"results_dir={folder}"]
        assert run(*models, *overrides, cwd=tmp_path).returncode == 0
        (file,) = (tmp_path / folder).glob("*/samples.jsonl")
        rows = file.read_text(encoding="utf-8").splitlines()
        return [json.loads(row)["text"] for row in rows]

    first = texts("first", 1)
    assert texts("same", 1) == first
    assert texts("other", 2) != first


def test_one_closed_and_resolved_wandb_run_a_seed(tmp_path: Path, models: list[str]) -> None:
    sweep = ["-m", *models, "method=autoregressive", "seed=1,2", "tracker=wandb"]
    done = run(*sweep, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    runs = sorted((tmp_path / "results").glob("*/wandb/offline-run-*"))
    assert len(runs) == 2
    assert len({folder.name.rpartition("-")[2] for folder in runs}) == 2
    for folder in runs:
        (file,) = folder.glob("*.wandb")
        content = file.read_bytes()
        assert b"${" not in content
        assert b"max_new_tokens" in content
        assert b"pass_at_1" in content  # written when the run is closed
    assert not (tmp_path / "wandb").exists()
