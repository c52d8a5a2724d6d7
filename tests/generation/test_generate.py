"""`generate`: prompts, stop tokens, pieces, caches and what a bundle leaves unsaid."""

from __future__ import annotations

import io
import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.generation.models import (
    LETTERS,
    SIZE,
    bundle,
    embedding_model,
    field,
    foretold,
    hugging_face,
    library,
    llm_metadata,
    numbers,
    summing_model,
)
from tests.made_bundles import ONE, litertlm
from tflite_ort import (
    BudgetExceeded,
    Budgets,
    GenerationError,
    LanguageModel,
    MalformedBundle,
    generate,
)
from tflite_ort.command.cli import app
from tflite_ort.generation.sampling import Sampler, Sampling
from tflite_ort.providers.processor import physical_cores


@pytest.fixture(autouse=True)
def _libraries() -> None:
    for name in ("minijinja", "sentencepiece", "tokenizers"):
        library(name)


def answer(model: LanguageModel, prompt: str, count: int, **choices: Any) -> str:
    return model.generate(prompt, max_tokens=count, template=False, **choices).text


@pytest.mark.parametrize("prompt", ["b", "bc", "bcdef", "bcdefghi", "bcdefghijk", "mnopqrstuvwxyz"])
def test_prompts_of_every_length(prompt: str) -> None:
    """One token is never prefilled; others by steps of 8 and 4, the last of them padded."""
    model = LanguageModel(bundle())
    assert answer(model, prompt, 6) == foretold(prompt, 6)


@pytest.mark.parametrize("lengths", [(), (8,), (16,), (64,)])
def test_steps_that_do_not_fit(lengths: tuple[int, ...]) -> None:
    """A step whose places are not all there is left for one that reads token by token."""
    prompt = "bcdefghijklmnopqrstu"
    model = LanguageModel(bundle(summing_model(lengths=lengths)))
    result = model.generate(prompt, template=False)
    assert (result.text, result.finish) == (foretold(prompt, 5), "full")
    assert result.prompt_tokens + result.decode_steps == model.capacity + 1


def test_a_conversation_goes_on_where_it_differs() -> None:
    model = LanguageModel(bundle())
    first = model.generate("bcdef", max_tokens=4, template=False)
    assert first.prefill_tokens == 4
    longer = f"bcdef{first.text}xy"
    second = model.generate(longer, max_tokens=4, template=False)
    assert second.text == foretold(longer, 4)
    assert second.prefill_tokens < 6
    assert answer(model, "bxdef", 4) == foretold("bxdef", 4)


def test_stop_tokens() -> None:
    text = foretold("bcd", 12)
    assert len(set(text[:5])) == 5
    for stop, want in ((text[2], text[:2]), (text[2:5], text[:2]), (text[0] + "b", text[:8])):
        model = LanguageModel(bundle(metadata=llm_metadata(stops=[stop])))
        stream = model.stream("bcd", max_tokens=8, template=False)
        assert ("".join(stream), stream.result.finish) == (
            want,
            "stop" if stop in text else "length",
        )
        assert stream.result.text == want
        assert list(stream.result.tokens) == numbers(want)


def test_pieces_come_one_by_one() -> None:
    stream = LanguageModel(bundle()).stream("bcd", max_tokens=5, template=False)
    with pytest.raises(GenerationError, match="take all of its pieces"):
        _ = stream.result
    assert list(stream) == list(foretold("bcd", 5))
    assert stream.result.tokens_per_second > 0


def test_a_new_answer_ends_one_that_is_not_finished() -> None:
    model = LanguageModel(bundle())
    first = iter(model.stream("bcd", max_tokens=6, template=False))
    assert next(first) == foretold("bcd", 1)
    assert answer(model, "xyz", 4) == foretold("xyz", 4)
    with pytest.raises(GenerationError, match="another prompt took the caches"):
        next(first)
    assert answer(model, "bcd", 6) == foretold("bcd", 6)


def test_the_template_of_a_bundle() -> None:
    each = "{{ m.role[0] }}{{ m['content'].strip() }}"
    template = "{{ bos_token }}{% for m in messages %}" + each + "{% endfor %}"
    metadata = llm_metadata(start="z", template=template)
    model = LanguageModel(bundle(metadata=metadata))
    assert model.prompt_tokens(" hi ") == tuple(numbers("zuhi"))  # the start token stands once
    messages = [{"role": "system", "content": "ab"}, {"role": "user", "content": "cd"}]
    assert model.prompt_tokens(messages) == tuple(numbers("zsabucd"))
    assert model.prompt_tokens("hi", template=False) == tuple(numbers("zhi"))
    with pytest.raises(GenerationError, match="role and content"):
        model.prompt_tokens([{"role": "user"}])
    with pytest.raises(GenerationError, match="need the template"):
        model.prompt_tokens(messages, template=False)


def test_affixes_instead_of_a_template() -> None:
    def affixes(before: str, behind: str) -> bytes:
        return field(1, before) + field(2, behind)

    parts = field(1, affixes("q", ".")) + field(2, affixes("a", "!")) + field(3, affixes("s", "?"))
    model = LanguageModel(bundle(metadata=field(3, parts)))
    roles = [("system", "x"), ("user", "hi"), ("assistant", "yo"), ("user", "so")]
    messages = [{"role": role, "content": content} for role, content in roles]
    assert model.prompt_tokens(messages) == tuple(numbers("sx?qhi.ayo!qso.a"))


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (
            "{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}",
            "fuel",
        ),
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{% if %}", "syntax error"),
        ("{{ messages.nothing.at_all }}", "undefined"),
        (
            "{% set ns = namespace(a='x') %}{% for i in range(60) %}{% set ns.a = ns.a + ns.a %}"
            "{% endfor %}",
            "more memory|fuel",  # minijinja 3.1 counts the characters of what is made
        ),
        ("{{ ('a' * 10000) | replace('a', 'b' * 10000) }}", "100000000 characters"),
        ("{{ '\\ud800' }}", "the template failed"),
    ],
)
def test_templates_that_fail(template: str, message: str) -> None:
    model = LanguageModel(bundle(metadata=llm_metadata(template=template)))
    with pytest.raises(GenerationError, match=message):
        model.prompt_tokens("hi")


def test_sampling() -> None:
    """Logits fall by one from the next token on, so a temperature of 1 draws its neighbours."""
    metadata = field(4, field(1, 2) + field(2, 5) + field(3, 0.9) + field(4, 1.0) + field(5, 7))
    said = LanguageModel(bundle(metadata=metadata))
    model = LanguageModel(bundle())
    drawn = {answer(model, "bcd", 8, temperature=1.0, seed=seed) for seed in range(8)}
    assert len(drawn) > 4
    assert foretold("bcd", 8) == answer(model, "bcd", 8)
    assert answer(said, "bcd", 8) == answer(
        model, "bcd", 8, temperature=1.0, seed=7, top_k=5, top_p=np.float32(0.9).item()
    )
    assert answer(said, "bcd", 8, temperature=0.0) == foretold("bcd", 8)
    assert answer(said, "bcd", 8, top_k=1) == foretold("bcd", 8)
    assert answer(said, "bcd", 8, top_p=0.0) == foretold("bcd", 8)


def test_drawn_tokens_have_their_probabilities() -> None:
    model, seed = LanguageModel(bundle()), 5
    print(f"seed {seed}")
    at = sum(numbers("bcd")) % SIZE
    first = [
        model.generate(
            "bcd", max_tokens=1, template=False, temperature=1.0, top_k=3, seed=each
        ).tokens[0]
        for each in range(seed, seed + 600)
    ]
    weights = np.exp([0.0, -1.0, -1.0])
    share = first.count(at) / len(first)
    assert set(first) == {at - 1, at, at + 1}
    assert abs(share - weights[0] / weights.sum()) < 0.07  # 3.4 standard deviations


def test_suppressed_tokens() -> None:
    first = numbers(foretold("bcd", 1))[0]
    model = LanguageModel(bundle(metadata=field(9, field(1, bytes([first, 200, 1])))))
    assert model.generate("bcd", max_tokens=1, template=False).tokens[0] in (first - 1, first + 1)


def test_embeddings_of_a_model_of_their_own() -> None:
    content = bundle(summing_model(embedded=True), others={"tf_lite_embedder": embedding_model()})
    assert answer(LanguageModel(content), "bcdefghij", 6) == foretold("bcdefghij", 6)
    with pytest.raises(GenerationError, match="0 models called 'embedder'"):
        LanguageModel(bundle(summing_model(embedded=True)))


def test_states_without_a_place_for_each_token() -> None:
    """They are never padded, and a conversation that differs is read from its start."""
    state = b"".join(field(number, "kv_cache_k_0") for number in (1, 2, 3, 4)) + field(6, 5)
    main = {"model_type": "tf_lite_prefill_decode"}
    sections = [(9, field(1, field(2, state)), {}), (6, hugging_face(), {})]
    model = LanguageModel(litertlm([*sections, (3, summing_model(), main)]))
    assert answer(model, "bcdefghij", 4) == foretold("bcdefghij", 4)
    again = model.generate("bcdefghij", max_tokens=4, template=False)
    assert (again.text, again.prefill_tokens) == (foretold("bcdefghij", 4), 8)


@pytest.mark.parametrize("said", [True, False])
def test_the_length_of_caches_is_that_of_their_tokens(said: bool) -> None:
    """No other size of a cache counts where the bundle says which axis has the tokens."""
    state = b"".join(field(number, "kv_cache_k_0") for number in (1, 2, 3, 4)) + field(7, 1)
    main = {"model_type": "tf_lite_prefill_decode"}
    sections = [(9, field(1, field(2, state)), {}), (6, hugging_face(), {})]
    content = litertlm([*sections[not said :], (3, summing_model(), main)])
    model = LanguageModel(content, cache_length=24)
    assert answer(model, "bcd", 4) == foretold("bcd", 4)
    there = "no signature has caches of 2 tokens; there are " + ("24" if said else "1, 24")
    with pytest.raises(GenerationError, match=there):
        LanguageModel(content, cache_length=2)
    if said:
        with pytest.raises(GenerationError, match="no signature has caches of 1 tokens"):
            LanguageModel(content, cache_length=1)


def test_sentencepiece(tmp_path: Path) -> None:
    trainer, stream = library("sentencepiece").SentencePieceTrainer, io.BytesIO()
    trainer.train(
        sentence_iterator=iter([" ".join(LETTERS[:26])] * 40),
        model_writer=stream,
        vocab_size=30,
        model_type="char",
        minloglevel=2,
    )
    model = LanguageModel(bundle(tokenizer=(4, stream.getvalue())))
    tokens = model.prompt_tokens("abc", template=False)
    assert model.vocabulary.text(tokens) == "abc"
    stream_ = model.stream("abc", max_tokens=6, template=False)
    pieces = "".join(stream_)
    assert pieces.strip() == model.vocabulary.text(stream_.result.tokens)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"prompt": ""}, "no token"),
        ({"prompt": "b" * 25}, "25 tokens, the model reads 24"),
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"temperature": -1.0}, "temperature is -1.0"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_k": -1}, "top_k is -1"),
        ({"top_p": 1.5}, "top_p is 1.5"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_calls_that_are_refused(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(GenerationError, match=message):
        generate(bundle(), **{"prompt": "b", "template": False, **choices})


SHORT = struct.pack("<Q", 10**12) + hugging_face()[8:]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (bundle(ONE), GenerationError, "has a signature that decodes"),
        (bundle(tokenizer=(1, b"")), GenerationError, "no tokenizer"),
        (bundle(tokenizer=(6, b"1234")), MalformedBundle, "too short"),
        (bundle(tokenizer=(6, SHORT)), BudgetExceeded, "bundle_bytes"),
        (bundle(tokenizer=(6, hugging_face()[:40])), MalformedBundle, "has not"),
        (bundle(tokenizer=(6, hugging_face()[:8] + b"?" * 9)), MalformedBundle, "unpacked"),
        (bundle(tokenizer=(4, b"nothing")), GenerationError, "cannot be read"),
        (bundle(metadata=b"\x0a\xff"), MalformedBundle, "does not end"),
        (bundle(metadata=b"\x0a\x09"), MalformedBundle, "leaves its message"),
        (bundle(metadata=b"\x0b"), MalformedBundle, "type 3"),
        (bundle(metadata=b"\x00\x00"), MalformedBundle, "field 0"),
        (bundle(metadata=b"\x12\x00" * (1 << 20)), MalformedBundle, "more than 1048576"),
        (bundle(metadata=field(7, b"\xff")), MalformedBundle, "no UTF-8"),
        (bundle(metadata=field(4, field(1, 2) + field(4, -1.0))), GenerationError, "temperature"),
    ],
    ids=lambda part: (
        part if isinstance(part, str) else ""
    ),  # bytes as a name: too long to start processes
)
def test_bundles_that_are_refused(content: bytes, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        LanguageModel(content)


def test_tokens_of_logits_at_the_edges() -> None:
    infinite, far = np.array([1, np.inf, 2, np.inf]), np.array([1, 3e38, -np.inf, 2])
    drawn = Sampler(Sampling(temperature=1.0, seed=0))
    assert {drawn.choose(infinite) for _ in range(40)} == {1, 3}
    assert {Sampler(Sampling(temperature=1e-309, seed=0)).choose(far)} == {1}
    assert Sampler(Sampling()).choose(infinite) == 1
    # A file may suppress what is no token: it says nothing of others.
    assert Sampler(Sampling(), [-1, 2**64 - 1, 9, 1]).choose(np.array([0, 5, 3])) == 2
    with pytest.raises(GenerationError, match="no numbers"):
        drawn.choose(np.array([np.nan, 1]))


def test_damaged_bundles_end_in_errors_of_their_own() -> None:
    content = bundle(metadata=llm_metadata(stops=["!"], template="{{ messages }}"))
    rng = np.random.default_rng(2)
    for _ in range(60):
        damaged = bytearray(content)
        for place in rng.integers(0, len(content), 4):
            damaged[place] = rng.integers(256)
        try:
            generate(bytes(damaged), "b", max_tokens=2, budgets=Budgets())
        except (GenerationError, ValueError, RuntimeError) as error:
            assert "tflite_ort" in type(error).__module__


def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "m.litertlm"
    path.write_bytes(bundle(metadata=llm_metadata(template="{{ messages[-1].content }}")))
    call = ["generate", str(path), "--max-tokens", "5"]
    run = CliRunner().invoke(app, [*call, "--prompt", "bcd"])
    assert run.stdout == foretold("bcd", 5) + "\n"
    assert "5 made" in run.stderr
    run = CliRunner().invoke(app, [*call, "--prompt", "-", "--json"], input="bcd")
    said = json.loads(run.stdout)
    assert (said["text"], said["finish"]) == (foretold("bcd", 5), "length")
    assert (
        CliRunner().invoke(app, [*call, "--prompt", "bcd", "--raw", "--system", "x"]).exit_code == 2
    )
    run = CliRunner().invoke(app, [*call, "--prompt", ""])
    assert (run.exit_code, "no token" in run.stderr) == (1, True)


def test_a_conversation(tmp_path: Path) -> None:
    """Each line is answered after those before it, until one is empty or the caches are full."""
    path = tmp_path / "m.litertlm"
    template = "{% for each in messages %}{{ each.content }}{% endfor %}"
    path.write_bytes(bundle(metadata=llm_metadata(template=template)))
    call = ["generate", str(path), "--chat"]
    run = CliRunner().invoke(app, [*call, "--max-tokens", "3"], input="bcd\nab\n\nnever read\n")
    assert run.exit_code == 0, run.output
    first = foretold("bcd", 3)
    second = foretold(f"bcd{first}ab", 3)
    assert run.stdout == f"> {first}\n> {second}\n> \n"
    assert run.stderr == "stopped: as many tokens as asked for\n" * 2
    full = CliRunner().invoke(app, call, input="bcd\nab\n")
    assert full.stderr.endswith("stopped: context full\n")
    assert full.stdout.count("> ") == 1
    for more in (["--prompt", "x"], ["--raw"], ["--json"]):
        assert CliRunner().invoke(app, [*call, *more]).exit_code == 2
    assert "give one of PROMPT, --prompt and --chat" in CliRunner().invoke(app, call[:2]).stderr


def test_cores() -> None:
    assert 1 <= physical_cores() <= (os.cpu_count() or 1)
