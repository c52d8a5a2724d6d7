"""Whether bundles answer as litert-lm does: the most likely tokens until a stop or full caches.

    python -m benchmarks.same_tokens --python VENV/bin/python [--models FOLDER] [BUNDLE...]

VENV is an environment of its own with `pip install litert-lm-api`. Bundles: those of
$TFLITE_ORT_MODELS2, else ../shared/models2. Each reads eight prompts of 1 to 33 tokens, without its
template. litert-lm gives text, in which a character that is not whole at the end is left out here.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.kept_caches import FOLDER
from tflite_ort import LanguageModel

PROMPTS = (
    "the",
    "a lazy dog",
    "jumps over",
    "1 2 3",
    "q" * 14,
    "Once upon a time",
    "hello world, this is a longer prompt",
    "the quick brown fox jumps over the lazy dog and the quick brown fox jumps again over",
)
# Run by the other environment.
WORKER = """
import json, sys
import litert_lm
litert_lm.set_min_log_severity(litert_lm.LogSeverity.ERROR)
path, prompts = sys.argv[1], json.loads(sys.argv[2])
cpu = litert_lm.Backend.CPU(thread_count=1)
engine = litert_lm.Engine(path, backend=cpu, cache_dir=":nocache")
greedy = litert_lm.SamplerConfig(top_k=1, top_p=1.0, temperature=1.0, seed=1)
texts = []
for prompt in prompts:
    session = engine.create_session(apply_prompt_template=False, sampler_config=greedy)
    session.run_prefill([prompt])
    texts.append(session.run_decode().texts[0])
    session.close()
print("\\n" + json.dumps(texts))
"""
_UNFINISHED = "\N{REPLACEMENT CHARACTER}"


def theirs(python: str, path: Path) -> list[str]:
    """What litert-lm answers."""
    call = [python, "-c", WORKER, str(path), json.dumps(PROMPTS)]
    run = subprocess.run(call, capture_output=True, text=True, check=True, timeout=300)
    texts: list[str] = json.loads(run.stdout.strip().splitlines()[-1])
    return texts


def same(ours: str, other: str) -> bool:
    """Whether one text is the beginning of the other: their caches end at different places."""
    first, second = ours.rstrip(_UNFINISHED), other.rstrip(_UNFINISHED)
    return ours.startswith(second) or other.startswith(first)


def compared(python: str, path: Path) -> Sequence[bool]:
    """For each prompt, whether the answers are the same; prints them."""
    model, results = LanguageModel(path), []
    for prompt, other in zip(PROMPTS, theirs(python, path), strict=True):
        answer = model.generate(prompt, template=False)
        results.append(same(answer.text, other))
        said = f"{len(answer.tokens):3} tokens, {'same' if results[-1] else 'different'}"
        print(f"{path.stem:24}{prompt[:30]!r:36}{answer.prompt_tokens:3} read, {said}", flush=True)
    return results


def main() -> None:
    """Print a line for each prompt."""
    parser = argparse.ArgumentParser()
    parser.add_argument("bundles", nargs="*", type=Path)
    parser.add_argument("--python", required=True)
    parser.add_argument("--models", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    paths = arguments.bundles or sorted(arguments.models.glob("*.litertlm"))
    results = [each for path in paths for each in compared(arguments.python, path)]
    print(f"{sum(results)} of {len(results)} answers are the same")


if __name__ == "__main__":
    main()
