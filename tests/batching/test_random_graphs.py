"""Random graphs: whenever there is a batch, it gives what single runs give."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnxruntime
import pytest

from tests.batching import random_indices, random_moves, random_sizes, random_steps
from tests.batching.random_graphs import STEPS, Array, RandomGraph
from tests.batching.single_runs import assert_batched, batch_of
from tests.one_op import assert_close
from tflite_ort import BridgeError, Unbatchable, export_onnx

MODULES = (random_indices, random_moves, random_sizes, random_steps)
GRAPHS, MANY = 150, 10_000
# Of so many graphs one runs through ONNX Runtime too: in a fixed batch, and in an open one.
EVERY = 10
# Sums of floats come in another order where there are more rows.
TOLERANCE = 1e-4


def test_all_families_are_drawn_from() -> None:
    modules = {function.__module__ for function in STEPS}
    assert modules == {each.__name__ for each in MODULES}


@pytest.mark.usefixtures("unmeasured")
def test_batches_of_random_graphs(request: pytest.FixtureRequest) -> None:
    """10,000 graphs in thorough runs; `--seed N` draws others, and N is the first one of them."""
    count = MANY if request.config.getoption("--thorough") else GRAPHS
    first = request.config.getoption("--seed")
    outcomes = Counter(_outcome(seed) for seed in range(first, first + count))
    print(dict(outcomes))
    assert outcomes["right"] > 0.97 * count


def _outcome(seed: int) -> str:
    graph, rng = RandomGraph(seed), np.random.default_rng(seed)
    model = graph.model()
    samples = [graph.sample(rng) for _ in range(1 + seed % 4)]
    try:
        want = assert_batched(model, samples, rtol=TOLERANCE)
        if seed % EVERY == 0:
            assert_batched(model, samples, rtol=TOLERANCE, providers=None)
            _assert_open(model, batch_of(samples), want)
    except Unbatchable as error:
        assert error.operator, f"seed {seed}"
        print(f"seed {seed}: {error}")
        return "refused"
    except (AssertionError, BridgeError) as error:
        raise AssertionError(f"seed {seed}: {error}") from error
    return "right"


def _assert_open(model: bytes, inputs: list[Array], want: list[Array]) -> None:
    """An exported graph of any number of samples gives the same."""
    session = onnxruntime.InferenceSession(
        export_onnx(model, batch="N", state_defaults=True).SerializeToString()
    )
    names = [each.name for each in session.get_inputs()]
    got = session.run(None, dict(zip(names, inputs, strict=True)))
    for number, (a, b) in enumerate(zip(got, want, strict=True)):
        assert_close(np.asarray(a), b, 0, TOLERANCE, f"open, output {number}")
