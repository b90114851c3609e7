"""``python -m semanticspec.probing STAGE [KEY=VALUE ...]``: probes for a pair of models.

Stages: ``collect`` samples next steps (resumes), ``train`` labels them and fits both probes,
``evaluate`` scores the saved probes again, ``all`` does collect and train.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import torch

from ..backends import Pair, load_pair
from ..benchmarks import load
from ..compose import ROOT, compose_probing
from ..config import ProbeConfig, ProbingConfig
from ..equivalence import build_judge
from ..errors import UserError
from ..types import Author, Problem
from .collect import collect, model_card
from .evaluate import decision_scores, evaluate_probe, predictions
from .label import Labelled, label
from .probe import fingerprint, load_probes, save_probe
from .train import split_by_problem, train_probe

STAGES = ("collect", "train", "evaluate", "all")
AUTHORS: tuple[Author, Author] = ("target", "draft")


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] not in STAGES:
        print(__doc__, file=sys.stderr)
        print("Example: python -m semanticspec.probing all model=proxy", file=sys.stderr)
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    stage, *overrides = arguments
    try:
        config = compose_probing(overrides)
        if config.threads:
            torch.set_num_threads(config.threads)
        if stage in ("collect", "all"):
            run_collect(config)
        if stage in ("train", "all"):
            run_train(config)
        if stage == "evaluate":
            run_evaluate(config)
    except UserError as error:
        print(f"semanticspec.probing: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nStopped. The same command goes on from here.", file=sys.stderr)
        return 130
    return 0


def probing_problems(config: ProbingConfig) -> list[Problem]:
    """The problems to collect from, in turn from each benchmark."""
    sets = [config.benchmark] if config.benchmark else list(config.benchmarks.values())
    share = -(-config.collect.n_problems // len(sets))
    columns = [load(benchmark, limit=share) for benchmark in sets]
    rows = [problem for row in zip(*columns, strict=False) for problem in row]
    return rows[: config.collect.n_problems]


def run_collect(config: ProbingConfig) -> None:
    problems = probing_problems(config)
    pair = load_pair(config.model)
    collect(
        pair, problems, config.generation, config.collect, Path(config.data_dir), seed=config.seed
    )


def labelled(config: ProbingConfig) -> Labelled:
    folder = Path(config.data_dir)
    if not any(folder.glob("*.safetensors")):
        raise UserError(f"data_dir={folder}: nothing is collected there; run the collect stage")
    return label(folder, build_judge(config.judge))


def data_hash(folder: Path) -> str:
    """A hash of everything that was collected."""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.safetensors")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def out_folder(config: ProbingConfig) -> Path:
    return Path(config.out) if config.out else ROOT / "probes" / config.model.name


def run_train(config: ProbingConfig) -> None:
    """Fit both probes, score them on held-out problems, and save them with their cards."""
    data = labelled(config)
    pair = load_pair(config.model)
    masks = split_by_problem(data.problem, config.train.seed)
    probes = {model: train_probe(data, model, config.train, masks) for model in AUTHORS}
    p = {model: predictions(probes[model], data, model) for model in AUTHORS}
    decision = decision_scores(p["target"], p["draft"], data, masks["test"])
    for model, layers in zip(
        AUTHORS, (config.collect.target_layers, config.collect.draft_layers), strict=True
    ):
        language_model = pair.target if model == "target" else pair.draft
        card = {
            **model_card(language_model, layers),
            "model": getattr(config.model, model).path,
            "revision": getattr(config.model, model).revision,
            "fingerprint": fingerprint(language_model),
            "judge": config.judge,
            "labels": "leave-one-out share of the model's sampled next steps of equal meaning",
            "n_samples": config.collect.n_samples,
            "temperature": config.generation.temperature,
            "data_hash": data_hash(Path(config.data_dir)),
            "n_items": {name: int(mask.sum()) for name, mask in masks.items()},
            "n_problems": len(set(data.problem)),
            "seed": config.train.seed,
            "held_out": evaluate_probe(p[model], data, model, masks["test"]),
            "decision": decision,
        }
        save_probe(probes[model], card, out_folder(config), model)
    show(out_folder(config))


def run_evaluate(config: ProbingConfig) -> None:
    """Score the saved probes on the test split of the collected data, and print the scores."""
    data = labelled(config)
    pair: Pair = load_pair(config.model)
    probes = load_probes(ProbeConfig(str(out_folder(config))), pair)
    masks = split_by_problem(data.problem, config.train.seed)
    p = {
        "target": predictions(probes.target, data, "target"),
        "draft": predictions(probes.draft, data, "draft"),
    }
    scores = {model: evaluate_probe(p[model], data, model, masks["test"]) for model in AUTHORS}
    decision = decision_scores(p["target"], p["draft"], data, masks["test"])
    print(json.dumps({**scores, "decision": decision}, indent=2))


def show(folder: Path) -> None:
    """A few lines that say whether the probes are any good."""
    for model in AUTHORS:
        card = json.loads((folder / f"{model}.json").read_text(encoding="utf-8"))
        for group, scores in card["held_out"].items():
            print(f"{model} probe, {group} steps: " + _line(scores))
    print("acceptance on draft-written steps: " + _line(card["decision"]))
    print(f"saved in {folder}")


def _line(scores: dict[str, float]) -> str:
    return ", ".join(
        f"{name} {value:.3f}" if isinstance(value, float) else f"{name} {value}"
        for name, value in scores.items()
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
