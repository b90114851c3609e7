"""How often a model of the embedded pair is right when it writes alone, by answer and by step."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import torch

from .corpus import prompt_text
from .language import THINK_END, read_steps
from .problems import BENCHMARKS, Split, problems

TEMPERATURE = 0.6
_STEP = re.compile(r"(?<=\n\n)")


@dataclass(frozen=True)
class Accuracy:
    """Shares by benchmark; ``texts`` are the prompts with what was written."""

    right: dict[str, float]
    right_steps: dict[str, float]
    texts: list[tuple[str, str]]


@torch.inference_mode()
def free_running(
    model: Any, tokenizer: Any, *, n: int, split: Split, seed: int = 1, batch_size: int = 32
) -> Accuracy:
    """Let a model answer ``n`` problems of each benchmark by sampling.

    A step is right when its meaning may follow what the text says before it.
    """
    was_training = model.training
    model.eval()
    torch.manual_seed(seed)
    right, right_steps, texts = {}, {}, []
    for benchmark in BENCHMARKS:
        source = problems(benchmark, split, seed)
        chosen = [next(source) for _ in range(n)]
        answers: list[str] = []
        for start in range(0, n, batch_size):
            prompts = [prompt_text(problem) for problem in chosen[start : start + batch_size]]
            inputs = tokenizer(prompts, padding=True, padding_side="left", return_tensors="pt")
            output = model.generate(
                **inputs, max_new_tokens=400, do_sample=True, temperature=TEMPERATURE, top_k=0
            )
            answers += [
                tokenizer.decode(row, skip_special_tokens=True)
                for row in output[:, inputs.input_ids.shape[1] :]
            ]
        n_steps = n_right_steps = n_right = 0
        for problem, answer in zip(chosen, answers, strict=True):
            thinking, end, said = answer.partition(THINK_END)
            n_right += f"\\boxed{{{problem.answer}}}" in said
            steps = [step for step in _STEP.split(thinking + end) if step.strip()]
            read = read_steps(problem, steps)
            n_steps += len(read)
            n_right_steps += sum(state.is_right(meaning) for state, meaning in read)
            texts.append((prompt_text(problem), answer))
        right[benchmark] = n_right / n
        right_steps[benchmark] = n_right_steps / max(n_steps, 1)
    model.train(was_training)
    return Accuracy(right, right_steps, texts)
