"""The file of a number: drawn from a seed model by a salt, always the same."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.fuzz import (
    tree_fields,
    tree_file,
    tree_graph,
    tree_sparsity,
    tree_tensors,
)
from tests.fuzz.corpus import Corpus, Seed
from tests.fuzz.feeds import Shapes
from tests.fuzz.mutate_bytes import BY_WORDS, BYTES, damaged
from tests.fuzz.tree import Unfit
from tflite_ort.schema import Model, write_model

Change = Callable[[random.Random, Model], Model]
Graft = Callable[[random.Random, Model, Model], Model]

# The shares of files that are changed without regard to their structure.
_BYTES, _WORDS = 0.06, 0.1
# What the writer raises for a tree that no file can hold.
_UNWRITABLE = (
    *(ValueError, TypeError, OverflowError, struct.error, ArithmeticError),
    MemoryError,  # of constants that grow with a size
)
_TRIES = 12
# How many changes of a tree.
_CHANGES = (1, 1, 1, 1, 1, 2, 2, 3, 5)
# Of so many draws the smallest seed is taken, half of the time.
_SMALLER = 2

CHANGES: dict[Change, int] = {
    tree_fields.any_field: 6,
    tree_fields.any_option: 10,
    tree_tensors.one_size: 5,
    tree_tensors.one_rank: 3,
    tree_tensors.many_dimensions: 2,
    tree_tensors.one_size_everywhere: 6,
    tree_tensors.dynamic: 3,
    tree_tensors.variable: 1,
    tree_tensors.one_type: 3,
    tree_tensors.one_type_everywhere: 6,
    tree_tensors.quantisation: 12,
    tree_tensors.one_value: 8,
    tree_tensors.all_values: 8,
    tree_tensors.data_size: 1,
    tree_tensors.constant_to_input: 3,
    tree_tensors.to_constant: 4,
    tree_sparsity.sparse: 4,
    tree_sparsity.sparse_with_all_data: 1,
    tree_graph.inputs_of_operator: 4,
    tree_graph.outputs_of_operator: 2,
    tree_graph.ends_of_graph: 3,
    tree_graph.order_of_operators: 2,
    tree_graph.version: 3,
    tree_graph.other_operator: 2,
    tree_file.external: 1,
    tree_file.signature: 1,
    tree_file.metadata: 1,
    tree_file.custom_options: 3,
    tree_file.share_buffer: 2,
}
GRAFTS: dict[Graft, int] = {
    tree_graph.graft: 12,
    tree_graph.same_arity: 6,
    tree_graph.graft_tensor: 2,
    tree_graph.graft_options: 2,
    tree_graph.add_subgraph: 1,
}


@dataclass(frozen=True)
class Mutant:
    """A file, and how it was made.

    Args:
        inputs: what its inputs are drawn from.
        seed: the number of the model that was changed.
        changes: the names of the changes.
        shapes: of inputs, see `resized`.
    """

    number: int
    content: bytes
    inputs: int
    seed: int = -1
    changes: tuple[str, ...] = ()
    shapes: Shapes = ()


def mutant(corpus: Corpus, salt: str, number: int) -> Mutant:
    """The file `number` of `salt`."""
    name = f"{salt}:{number}"
    draw = random.Random(name)
    at = _drawn_seed(draw, corpus)
    seed, kind = corpus.seeds[at], draw.random()
    if kind < _BYTES:
        family, (content, names) = "bytes", damaged(draw, seed.content, BYTES)
    elif kind < _BYTES + _WORDS:
        family, (content, names) = "words", damaged(draw, seed.content, BY_WORDS)
    else:
        family, (content, names) = "tree", _grown(draw, corpus, seed)
    return Mutant(number, content, inputs_of(salt, number), at, (family, *names))


def inputs_of(salt: str, number: int | str) -> int:
    """What the inputs of a file are drawn from."""
    return zlib.crc32(f"{salt}:{number}".encode())


def _drawn_seed(draw: random.Random, corpus: Corpus) -> int:
    """Half of the files are made from any seed, half from one of the smaller ones."""
    draws = [draw.randrange(len(corpus.seeds)) for _ in range(_SMALLER)]
    return draws[0] if draw.random() < 0.5 else min(draws)


def _grown(draw: random.Random, corpus: Corpus, seed: Seed) -> tuple[bytes, list[str]]:
    """The seed's tree after one to five changes that it can take."""
    models, names = [seed.model], list[str]()
    wanted = draw.choice(_CHANGES)
    for _ in range(_TRIES):
        name, change = _drawn_change(draw, corpus)
        try:
            models.append(change(draw, models[-1]))
        except (Unfit, *_UNWRITABLE):
            continue
        names.append(name)
        if len(names) == wanted:
            break
    while len(models) > 1:
        try:
            return write_model(models.pop()), names
        except _UNWRITABLE:
            names.pop()
    return seed.content, names


def _drawn_change(draw: random.Random, corpus: Corpus) -> tuple[str, Change]:
    change = draw.choices(_ALL, _WEIGHTS)[0]
    if change in GRAFTS:
        donor = corpus.seeds[_drawn_seed(draw, corpus)].model
        return change.__name__, partial(change, donor=donor)
    return change.__name__, change


_ALL = [*CHANGES, *GRAFTS]
_WEIGHTS = [*CHANGES.values(), *GRAFTS.values()]
