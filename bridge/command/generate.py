"""The verb ``generate``: a language model's answer to a prompt."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from tflite_ort.command.arguments import (
    BudgetNumbers,
    Hybrid,
    HybridOption,
    ProviderOptions,
    Providers,
    Threads,
    budgets,
    choices_of,
)
from tflite_ort.command.terminal import INTERRUPTED, say, say_json, say_on
from tflite_ort.generation import Generated, LanguageModel, Stream


def generate(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="A .litertlm file.")],
    prompt: Annotated[str, typer.Option(help="What the model answers; - reads it from the input.")],
    system: Annotated[str | None, typer.Option(help="A message of the system before it.")] = None,
    template: Annotated[
        bool, typer.Option("--template/--raw", help="Whether the bundle's template is applied.")
    ] = True,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Of the answer.")] = None,
    temperature: Annotated[
        float | None, typer.Option(min=0, help="0 takes the most likely token.")
    ] = None,
    top_k: Annotated[int | None, typer.Option(min=0, help="Draw from so many tokens.")] = None,
    top_p: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Draw from tokens as likely as this, together."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the random numbers.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, at the end.")] = False,
    threads: Threads = None,
    provider: Providers = None,
    provider_option: ProviderOptions = None,
    hybrid: HybridOption = Hybrid.XNNPACK,
    cache_length: Annotated[
        int | None, typer.Option(min=1, help="Of the caches, where the bundle has several sizes.")
    ] = None,
    budget: BudgetNumbers = None,
) -> None:
    """Let a bundle with a language model answer a prompt."""
    text = sys.stdin.read() if prompt == "-" else prompt
    model = LanguageModel(
        bundle,
        providers=choices_of(provider, provider_option),
        num_threads=threads,
        hybrid=hybrid.value,
        budgets=budgets(budget),
        cache_length=cache_length,
    )
    said: Any = text
    if system is not None and template:
        said = [{"role": "system", "content": system}, {"role": "user", "content": text}]
    elif system is not None:
        raise typer.BadParameter("--system needs the template", param_hint="--system")
    stream = model.stream(
        said,
        max_tokens=max_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        template=template,
    )
    interrupted = not _said(stream, aloud=not as_json)
    if as_json:
        speed = {"tokens_per_second": stream.result.tokens_per_second}
        say_json({**asdict(stream.result), **speed})
    else:
        say("")
        say(_summary(stream.result), error=True)
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _said(stream: Stream, *, aloud: bool) -> bool:
    """Take all pieces of an answer; False after Ctrl-C, which ends it where it is."""
    try:
        for piece in stream:
            if aloud:
                say_on(piece)
    except KeyboardInterrupt:
        stream.stop()
        return False
    return True


def _summary(result: Generated) -> str:
    prefill = ""
    if result.prefill_seconds > 0 and result.prefill_tokens:
        speed = result.prefill_tokens / result.prefill_seconds
        prefill = f"{result.prefill_tokens} tokens read ({speed:.0f} a second), "
    made = f"{result.decode_steps} made ({result.tokens_per_second:.1f} a second)"
    return f"{prefill}{made}, ended by {result.finish}"
