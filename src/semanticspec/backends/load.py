"""Load a causal language model from the hub, a local folder, a GGUF file or the embedded pair."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GgufConfig,
    PreTrainedTokenizerFast,
)
from transformers.models.auto.tokenization_auto import get_tokenizer_config
from transformers.quantizers.auto import AutoQuantizationConfig

from ..config import ModelSpec
from ..errors import UserError
from .hf import HFModel

EMBEDDED = Path(__file__).parent.parent / "proxies" / "weights"


def model_path(spec: ModelSpec) -> str:
    """Where the weights are: a hub name or a folder (``embedded:NAME`` is one of the package's)."""
    scheme, _, name = spec.path.partition(":")
    return str(EMBEDDED / name) if scheme == "embedded" else spec.path


def load_model(spec: ModelSpec, *, key: str) -> HFModel:
    """Load one model and its tokenizer.

    Raises ``UserError`` naming ``key`` (such as ``model.target``) when it cannot be had.
    """
    path = model_path(spec)
    where: dict[str, Any] = {
        "revision": spec.revision or "main",
        "trust_remote_code": spec.trust_remote_code,
    }
    if spec.gguf_file:
        where["gguf_file"] = spec.gguf_file
    try:
        config = AutoConfig.from_pretrained(path, **where)
        _check_attention(config, spec, key=key)
        tokenizer = _load_tokenizer(path, where)
        model: Any = AutoModelForCausalLM.from_pretrained(path, **where, **_options(spec, key=key))
    except (OSError, ValueError, ImportError) as error:
        raise UserError(_explain(spec, key, error)) from error
    if getattr(model, "hf_device_map", None) is None:
        model = model.to(_device(spec, key=key))
    return HFModel(
        model, tokenizer, system_prompt=spec.system_prompt, think_prefix=spec.think_prefix
    )


def _load_tokenizer(path: str, where: dict[str, Any]) -> Any:
    """The tokenizer as its files describe it.

    ``AutoTokenizer`` lets the model's type win over a generic class: a Qwen or Llama model with a
    tokenizer of its own would get that family's word splitting, silently.
    """
    declared = get_tokenizer_config(path, **where).get("tokenizer_class")
    generic = declared in ("TokenizersBackend", "PreTrainedTokenizerFast")
    loader = PreTrainedTokenizerFast if generic else AutoTokenizer
    return loader.from_pretrained(path, **where)


def _options(spec: ModelSpec, *, key: str) -> dict[str, Any]:
    """What is passed through to transformers' loader."""
    options: dict[str, Any] = {"dtype": _dtype(spec, key=key)}
    if spec.attn_implementation:
        options["attn_implementation"] = spec.attn_implementation
    if spec.gguf_file:
        # Packed blocks would be unpacked again on each pass; expand them once.
        options["quantization_config"] = GgufConfig(dequantize=True)
    elif spec.quantization:
        options["quantization_config"] = AutoQuantizationConfig.from_dict(dict(spec.quantization))
        options["device_map"] = _device(spec, key=key)
    if spec.device in ("balanced", "sequential"):
        options["device_map"] = spec.device
    return options


def _dtype(spec: ModelSpec, *, key: str) -> Any:
    known = {"auto": "auto", "float32": torch.float32, "bfloat16": torch.bfloat16}
    known["float16"] = torch.float16
    if spec.dtype not in known:
        raise UserError(f"{key}.dtype={spec.dtype}: unknown; choose one of {', '.join(known)}")
    return known[spec.dtype]


def _device(spec: ModelSpec, *, key: str) -> torch.device:
    if spec.device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(spec.device)
    except RuntimeError as error:
        raise UserError(f"{key}.device={spec.device}: unknown; use auto, cpu or cuda") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError(f"{key}.device={spec.device}: no CUDA device is visible; use cpu or auto")
    return device


def _check_attention(config: Any, spec: ModelSpec, *, key: str) -> None:
    """Only plain and sliding-window attention can be rolled back by a crop."""
    kinds = set(getattr(config.get_text_config(), "layer_types", None) or ["full_attention"])
    odd = kinds - {"full_attention", "sliding_attention"}
    if odd:
        raise UserError(
            f"{key}.path={spec.path}: layers of type {', '.join(sorted(odd))} cannot be rolled "
            "back; choose a model with full or sliding-window attention"
        )


def _explain(spec: ModelSpec, key: str, error: Exception) -> str:
    """One line for a model that cannot be loaded."""
    reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else repr(error)
    if spec.path.startswith("embedded:"):
        return f"{key}.path={spec.path}: not in this package; 'make proxies' trains it ({reason})"
    if Path(spec.path).exists():
        return f"{key}.path={spec.path}: cannot be loaded; it must be a model folder ({reason})"
    return (
        f"{key}.path={spec.path}: neither a local folder nor within reach on the hub; set "
        f"{key}.path to a folder with the weights, or go online ({reason})"
    )
