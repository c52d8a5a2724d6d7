"""``python -m tests.sizes``: open sizes of every model that the tests of operators write.

It prints a line for each result that no other runtime gives, and counts. The exit status is 1 if a
file gives such a result.
"""

from __future__ import annotations

import argparse
import random
import sys
import warnings
from collections import Counter
from collections.abc import Sequence

from tests.fuzz.corpus import Corpus, fixed_corpus, full_corpus
from tests.fuzz.describe import operators, types
from tests.fuzz.litert import LiteRT
from tests.sizes.trial import OURS, WRONG, trial


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.sizes")
    parser.add_argument("--fixed", action="store_true", help="the smallest model of each kind only")
    parser.add_argument("--only", default="", metavar="OP", help="models with such an operator")
    parser.add_argument("--seed", type=int, default=0, help="of sizes and inputs")
    parser.add_argument("--sample", type=int, metavar="N", help="N models, drawn by --seed")
    parser.add_argument("--part", default="0/1", metavar="I/N", help="each N-th model, from I on")
    return parser.parse_args()


def tried(corpus: Corpus, seed: int, numbers: Sequence[int]) -> Counter[str]:
    """Counts by kind, of the models of these numbers."""
    counts: Counter[str] = Counter()
    litert = LiteRT()
    for number in numbers:
        model = corpus.seeds[number]
        found = trial(model.content, litert, seed)
        if found is None:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = list(found.rows())
        counts["models"] += 1
        counts.update(row.kind for row in rows)
        for row in rows:
            if row.kind in (*WRONG, *OURS):
                what = f"{operators(model.content)} {types(model.content)}"
                where = f"{number} | {row.opening.axes} {dict(row.shapes)}"
                line = f"{row.kind} | {what} | {where} | {row.text}".replace("\n", " ")
                print(line[:500], flush=True)
    litert.close()
    return counts


def main() -> int:
    options = _options()
    corpus = fixed_corpus() if options.fixed else full_corpus()
    part, parts = map(int, options.part.split("/"))
    corpus = corpus.only(options.only) if options.only else corpus
    numbers = list(range(len(corpus.seeds)))
    if options.sample is not None:
        count = min(options.sample, len(numbers))
        numbers = sorted(random.Random(options.seed).sample(numbers, count))
    print(f"corpus {corpus.digest}, seed {options.seed}, {len(numbers)} models")
    counts = tried(corpus, options.seed, numbers[part::parts])
    print(", ".join(f"{name}: {count}" for name, count in counts.most_common()))
    return int(any(counts[kind] for kind in WRONG))


if __name__ == "__main__":
    sys.exit(main())
