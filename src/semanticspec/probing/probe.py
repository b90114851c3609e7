"""The probe: a small MLP that reads a step's hidden states and says how likely its meaning was.

Source: arXiv 2602.03708 (mean over the step's positions, MLP with ReLU and dropout, sigmoid).
Deviations: inputs are standardised; several layers may be read; labels are leave-one-out.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ..backends import HFModel, Pair
from ..compose import ROOT
from ..config import ProbeConfig
from ..errors import UserError

Pooling = Literal["mean", "last", "mean+last"]
SCHEMA = 1


def pool(hidden: Tensor, pooling: Pooling) -> Tensor:
    """A step as one vector: over the step's own tokens, its ending included.

    Shapes: hidden [n_layers, T, H] -> float32 [n_layers * H] (twice that for ``mean+last``).
    """
    hidden = hidden.float()
    parts = {
        "mean": lambda: [hidden.mean(1)],
        "last": lambda: [hidden[:, -1]],
        "mean+last": lambda: [hidden.mean(1), hidden[:, -1]],
    }[pooling]()
    return torch.cat(parts, dim=-1).flatten()


class Probe(nn.Module):
    """features -> probability. ``widths`` are the hidden layers', (256, 64) for instance."""

    mean: Tensor
    scale: Tensor

    def __init__(self, n_features: int, widths: tuple[int, ...], pooling: Pooling) -> None:
        super().__init__()
        self.pooling: Pooling = pooling
        self.widths = widths
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("scale", torch.ones(n_features))
        layers: list[nn.Module] = []
        before = n_features
        for width in widths:
            layers += [nn.Linear(before, width), nn.ReLU(), nn.Dropout(0.3)]
            before = width
        self.layers = nn.Sequential(*layers, nn.Linear(before, 1))

    def forward(self, features: Tensor) -> Tensor:
        """Logits. Shapes: features [N, n_features] -> [N]."""
        return self.layers((features - self.mean) / self.scale).squeeze(-1)

    @torch.inference_mode()
    def predict(self, hidden: Tensor) -> float:
        """The semantic probability of one step. Shapes: hidden [n_layers, T, H]."""
        return float(self(pool(hidden, self.pooling)[None]).sigmoid())


@dataclass(frozen=True)
class Probes:
    """One probe a model, and the cards that came with them."""

    target: Probe
    draft: Probe
    cards: dict[str, dict[str, Any]]


def fingerprint(model: HFModel) -> str:
    """A short hash that tells models apart wherever they were loaded from: shape and some weights.

    The weights (two vectors, never quantised) are rounded to bfloat16, so that the precision a
    model is loaded in does not count.
    """
    config = model.model.config.get_text_config()
    digest = hashlib.sha256(f"{config.model_type}/{model.n_layers}/{model.hidden_size}".encode())
    vectors = [(n, p) for n, p in model.model.named_parameters() if p.dim() == 1]
    for name, weight in (vectors[0], vectors[-1]):
        rounded = weight.detach().to("cpu", torch.bfloat16).view(torch.int16)
        digest.update(name.encode() + rounded.numpy().tobytes())
    return digest.hexdigest()[:16]


def save_probe(probe: Probe, card: dict[str, Any], folder: Path, name: str) -> None:
    """Write ``<name>.safetensors`` and its card ``<name>.json``; the card holds the file's hash."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = folder / f"{name}.safetensors"
    state = {key: value.contiguous() for key, value in probe.state_dict().items()}
    save_file(state, weights)
    full = {
        "schema": SCHEMA,
        **card,
        "pooling": probe.pooling,
        "widths": list(probe.widths),
        "weights_sha256": hashlib.sha256(weights.read_bytes()).hexdigest(),
    }
    (folder / f"{name}.json").write_text(json.dumps(full, indent=2) + "\n", encoding="utf-8")


def load_probe(folder: Path, name: str, model: HFModel) -> tuple[Probe, dict[str, Any]]:
    """Load one probe for one model and make the model return the layers that it reads.

    Raises ``UserError`` when files are damaged or made for another model.
    """
    card_file, weights_file = folder / f"{name}.json", folder / f"{name}.safetensors"
    try:
        card = json.loads(card_file.read_text(encoding="utf-8"))
        if card["weights_sha256"] != hashlib.sha256(weights_file.read_bytes()).hexdigest():
            raise UserError(f"{weights_file}: not the weights that its card names; train it again")
        if card["schema"] != SCHEMA:
            raise UserError(f"{card_file}: schema {card['schema']}, not {SCHEMA}; train it again")
        if card["fingerprint"] != fingerprint(model):
            raise UserError(
                f"{card_file}: made for {card['model']}, which is not the {name} model in use; "
                f"set probe.path to this model's probes or model.{name}.path to that model"
            )
        tensors = load_file(weights_file)
        probe = Probe(tensors["mean"].numel(), tuple(card["widths"]), card["pooling"])
        probe.load_state_dict(tensors)
        model.feature_layers = card["layers"]
    except (KeyError, ValueError, IndexError, RuntimeError, SafetensorError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{card_file}: damaged ({reason}); train the probe again") from error
    return probe.to(model.device).eval(), card


def find_probes(config: ProbeConfig, model_name: str) -> Path:
    """The folder of a pair's probes: ``probe.path``, or the checkout's ``probes/<model name>``.

    Raises ``UserError`` when a file is missing.
    """
    folder = Path(config.path) if config.path else ROOT / "probes" / model_name
    for name in ("target.json", "target.safetensors", "draft.json", "draft.safetensors"):
        if not (folder / name).is_file():
            raise UserError(
                f"probe.path={folder}: {name} is missing; train probes with 'python -m "
                f"semanticspec.probing all model={model_name}' or set probe.path to a folder "
                "that has them"
            )
    return folder


def load_probes(config: ProbeConfig, pair: Pair) -> Probes:
    """Load both probes of a pair; see ``find_probes`` for where from."""
    folder = find_probes(config, pair.name)
    target, target_card = load_probe(folder, "target", pair.target)
    draft, draft_card = load_probe(folder, "draft", pair.draft)
    return Probes(target, draft, {"target": target_card, "draft": draft_card})
