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
    Precision,
    PrecisionOption,
    ProviderOptions,
    Providers,
    budgets,
    choices_of,
    refuse_unused,
)
from tflite_ort.command.terminal import INTERRUPTED, say, say_json, say_on
from tflite_ort.generation import Generated, LanguageModel, Stream

Bundle = Annotated[Path, typer.Argument(metavar="BUNDLE", help="A .litertlm file.")]
Text = Annotated[str | None, typer.Argument(metavar="PROMPT", help="As --prompt.")]
Prompt = Annotated[
    str | None, typer.Option(help="What the model answers; - reads it from standard input.")
]
Chat = Annotated[
    bool,
    typer.Option(
        "--chat", help="Answer line after line, as a conversation; Ctrl-D or an empty line ends it."
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(min=1, help="Threads within an operator; without, one for each core."),
]
System = Annotated[str | None, typer.Option(help="A system message before the prompt.")]
Template = Annotated[
    bool,
    typer.Option(
        "--template/--raw", help="Put the prompt into the bundle's template, or read it as it is."
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(min=1, help="The most tokens of the answer; without, until the caches are full."),
]
Temperature = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="Divides the logits before a token is drawn; 0 takes the most likely token. Without, "
        "as the bundle says.",
    ),
]
TopK = Annotated[
    int | None,
    typer.Option(min=0, help="Draw from the N most likely tokens; without, as the bundle says."),
]
TopP = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        help="Draw from the most likely tokens that together are as likely as this; without, as "
        "the bundle says.",
    ),
]
DrawSeed = Annotated[int | None, typer.Option(min=0, help="Seed of the random numbers.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object at the end.")]
CacheLength = Annotated[
    int | None,
    typer.Option(min=1, help="Size of the caches in tokens, if the bundle has several."),
]

# Why an answer ends, as people say it.
_ENDS = {
    "stop": "the answer is complete",
    "length": "as many tokens as asked for",
    "full": "context full",
    "interrupt": "interrupted",
}


def generate(
    context: typer.Context,
    bundle: Bundle,
    text: Text = None,
    prompt: Prompt = None,
    chat: Chat = False,
    system: System = None,
    template: Template = True,
    max_tokens: MaxTokens = None,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: DrawSeed = None,
    as_json: AsJson = False,
    threads: Threads = None,
    provider: Providers = None,
    provider_option: ProviderOptions = None,
    precision: PrecisionOption = Precision.FULL,
    hybrid: HybridOption = Hybrid.XNNPACK,
    cache_length: CacheLength = None,
    budget: BudgetNumbers = None,
) -> None:
    """Let a bundle with a language model answer a prompt, or a conversation."""
    if chat:
        refuse_unused(context, "is not of a conversation", "text", "prompt", "template", "as_json")
    elif (prompt is None) == (text is None):
        raise typer.BadParameter("give one of PROMPT, --prompt and --chat", param_hint="PROMPT")
    if system is not None and not template:
        raise typer.BadParameter("--system needs the template", param_hint="--system")
    model = LanguageModel(
        bundle,
        providers=choices_of(provider, provider_option),
        precision=precision.value,
        num_threads=threads,
        hybrid=hybrid.value,
        budgets=budgets(budget),
        cache_length=cache_length,
    )
    drawn = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    choices: dict[str, Any] = {"max_tokens": max_tokens, **drawn}
    before = [] if system is None else [{"role": "system", "content": system}]
    if chat:
        _converse(model, before, choices)
        return
    asked = text if prompt is None else sys.stdin.read() if prompt == "-" else prompt
    assert asked is not None
    said = [*before, {"role": "user", "content": asked}] if before else asked
    stream = model.stream(said, template=template, **choices)
    interrupted = not _print_answer(stream, aloud=not as_json)
    if as_json:
        speed = {"tokens_per_second": stream.result.tokens_per_second}
        say_json({**asdict(stream.result), **speed})
    else:
        say("")
        say(_summary(stream.result), error=True)
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _converse(
    model: LanguageModel, messages: list[dict[str, str]], choices: dict[str, Any]
) -> None:
    """Answer lines of standard input until it ends, or one is empty.

    Args:
        messages: what stands before the first line.
    """
    while True:
        say_on("> ")
        line = sys.stdin.readline()
        if not line.strip():
            say("")
            return
        messages.append({"role": "user", "content": line.strip()})
        stream = model.stream(messages, **choices)
        _print_answer(stream, aloud=True)
        result = stream.result
        messages.append({"role": "assistant", "content": result.text})
        say("")
        if result.finish != "stop":
            say(f"stopped: {_ENDS.get(result.finish, result.finish)}", error=True)
        if result.finish == "full":
            return


def _print_answer(stream: Stream, *, aloud: bool) -> bool:
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
    return f"{prefill}{made}, stopped: {_ENDS.get(result.finish, result.finish)}"
