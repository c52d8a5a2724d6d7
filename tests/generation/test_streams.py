"""Answers piece by piece: characters of several tokens, answers that are left, stopped or
interrupted, and what the caches hold from one prompt to the next."""

from __future__ import annotations

import json
import signal
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from tests.generation.models import (
    LETTERS,
    SIZE,
    bundle,
    field,
    foretold,
    hugging_face,
    library,
    llm_metadata,
    summing_model,
)
from tests.made_bundles import litertlm
from tflite_ort import GenerationError, LanguageModel
from tflite_ort.generation.vocabulary import TextStream, Vocabulary

# Characters of three, four and two bytes.
CHARACTERS = "\u20ac\U0001f600\u00df"
PARTS = CHARACTERS.encode()


@pytest.fixture(autouse=True)
def _libraries() -> None:
    for name in ("minijinja", "tokenizers"):
        library(name)


def bytes_tokenizer() -> bytes:
    """A ``tokenizer.json`` with a token for each byte of `PARTS`, then one for each letter."""
    names = [f"<0x{byte:02X}>" for byte in dict.fromkeys(PARTS)]
    names = [*names, *LETTERS][:SIZE]
    content = {
        "version": "1.0",
        "added_tokens": [],
        "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": {
            "type": "WordLevel",
            "vocab": {name: number for number, name in enumerate(names)},
            "unk_token": "a",
        },
    }
    return json.dumps(content).encode()


def pieces_of(vocabulary: Vocabulary, tokens: list[int]) -> list[str]:
    stream = TextStream(vocabulary)
    pieces = [stream.add([token]) for token in tokens]
    return [*pieces, stream.rest()]


def tokens_of(text: str) -> list[int]:
    """The tokens of characters and letters."""
    order = list(dict.fromkeys(PARTS))
    parts = (
        [order.index(byte) for byte in character.encode()]
        if character in CHARACTERS
        else [len(order) + LETTERS.index(character)]
        for character in text
    )
    return [token for part in parts for token in part]


def test_characters_of_several_tokens_come_whole() -> None:
    vocabulary, text = Vocabulary("tokenizers", bytes_tokenizer()), "\u20aca\U0001f600\u00dfb"
    pieces = pieces_of(vocabulary, tokens_of(text))
    assert [piece for piece in pieces if piece] == list(text)
    assert pieces[:3] == ["", "", "\u20ac"]


def test_bytes_that_are_no_character() -> None:
    """They become the sign for that. What was said cannot be taken back, so there may be another
    number of these signs than in the text of all tokens; letters are never lost."""
    vocabulary, seed = Vocabulary("tokenizers", bytes_tokenizer()), 11
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    for _ in range(200):
        tokens = [int(token) for token in rng.integers(0, SIZE, rng.integers(1, 20))]
        said, whole = "".join(pieces_of(vocabulary, tokens)), vocabulary.text(tokens)
        assert [c for c in said if c in LETTERS] == [c for c in whole if c in LETTERS]
        assert said[-1] == whole[-1]


def test_an_answer_of_bytes() -> None:
    content = bytes_tokenizer()
    section = struct.pack("<Q", len(content)) + zlib.compress(content)
    model = LanguageModel(bundle(tokenizer=(6, section)))
    stream = model.stream("b", max_tokens=20, template=False)
    pieces = list(stream)
    assert "".join(pieces) == stream.result.text
    assert len(pieces) < len(stream.result.tokens)


def test_an_answer_is_the_same_after_other_prompts() -> None:
    """Rows that an earlier prompt left in the caches are hidden."""
    used = LanguageModel(bundle())
    for prompt in ("mnopqrstuvwxyz", "bcdefgh", "b", "bcdz", "bcdefghijk", "bcdz"):
        fresh = LanguageModel(bundle()).generate(prompt, max_tokens=5, template=False)
        again = used.generate(prompt, max_tokens=5, template=False)
        assert (again.text, again.tokens) == (fresh.text, fresh.tokens)


def test_an_answer_is_stopped() -> None:
    model = LanguageModel(bundle())
    stream = model.stream("bcd", max_tokens=9, template=False)
    for piece in stream:
        if piece == foretold("bcd", 3)[-1]:
            stream.stop()
    result = stream.result
    assert (result.text, result.finish, result.decode_steps) == (foretold("bcd", 3), "interrupt", 3)
    stream.stop()
    assert stream.result == result
    longer = f"bcd{result.text}"
    assert model.generate(longer, max_tokens=3, template=False).text == foretold(longer, 3)


def test_a_finished_answer_is_not_stopped() -> None:
    stream = LanguageModel(bundle()).stream("bcd", max_tokens=2, template=False)
    assert list(stream) == list(foretold("bcd", 2))
    stream.stop()
    assert (stream.result.finish, list(stream)) == ("length", [])


def test_an_interrupted_step_leaves_no_state_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state without a place for each token may be written by a step that did not count."""
    state = b"".join(field(number, "kv_cache_k_0") for number in (1, 2, 3, 4)) + field(6, 5)
    sections = [(9, field(1, field(2, state)), {}), (6, hugging_face(), {})]
    main = {"model_type": "tf_lite_prefill_decode"}
    model = LanguageModel(litertlm([*sections, (3, summing_model(), main)]))
    runner = type(model._network._decode.runner)
    called = runner.__call__

    def interrupted(self: object, **arrays: object) -> object:
        called(self, **arrays)
        raise KeyboardInterrupt

    stream = model.stream("bcd", max_tokens=6, template=False)
    next(stream)
    monkeypatch.setattr(runner, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(stream)
    monkeypatch.undo()
    stream.stop()
    assert stream.result.text == foretold("bcd", 1)
    longer = model.generate(f"bcd{foretold('bcd', 3)}", max_tokens=3, template=False)
    assert (longer.text, longer.prefill_tokens) == (foretold("bcd", 6)[3:], 5)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ messages | unknown }}", "unknown filter"),
        ("{{ unknown() }}", "unknown function"),
        ("{% generation %}{% endgeneration %}", "unknown statement"),
        ("{% include 'other' %}", "template not found"),
    ],
)
def test_templates_that_ask_for_what_is_not_known(template: str, message: str) -> None:
    model = LanguageModel(bundle(metadata=llm_metadata(template=template)))
    with pytest.raises(GenerationError, match=message):
        model.stream("hi")


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is no signal to one process there")
def test_ctrl_c_ends_the_answer_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "long.litertlm"
    path.write_bytes(bundle(summing_model(100_000)))
    # A process that a shell started in the background passes on that the signal is ignored.
    heard = "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    run = f"{heard}; runpy.run_module('tflite_ort', run_name='__main__')"
    call = [sys.executable, "-c", run, "generate", str(path), "--prompt", "bcd", "--raw"]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        begun = process.stdout.read(3)
        process.send_signal(signal.SIGINT)
        rest, said = process.communicate(timeout=300)
    assert process.returncode == 130
    text = (begun + rest).decode()
    assert text.endswith("\n")
    assert text[:-1] == foretold("bcd", len(text) - 1)
    assert b"stopped: interrupted" in said
    assert b"Traceback" not in said
