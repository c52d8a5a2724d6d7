"""``python -m tests.sizes``: every model of the tests with open inputs."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from tests.fuzz.corpus import fixed_corpus, full_corpus
from tests.fuzz.describe import operators, types
from tests.fuzz.litert import LiteRT
from tests.sizes.trial import rows

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", default="0/1")
    parser.add_argument(
        "--show",
        default="differs,answers alone,interpreter refuses,interpreter differs,interpreter refuses, as the file,untyped",
    )
    options = parser.parse_args()
    corpus = fixed_corpus() if options.fixed else full_corpus()
    if options.only:
        corpus = corpus.only(options.only)
    part, parts = map(int, options.part.split("/"))
    counts: Counter[str] = Counter()
    litert = LiteRT()
    for number, seed in enumerate(corpus.seeds):
        if number % parts != part:
            continue
        print(f"#{number}", file=sys.stderr, flush=True)
        try:
            found = rows(seed.content, litert, options.seed)
        except Exception as error:
            print(
                f"UNTYPED {number} {operators(seed.content)}: {type(error).__name__} {error}"[:300],
                flush=True,
            )
            counts["untyped"] += 1
            continue
        for row in found:
            counts[row.kind] += 1
            if row.kind not in ("same", "refused", "fails", "both refuse", "no single runs"):
                print(
                    f"{row.kind} | {number} | {operators(seed.content)} | {types(seed.content)} | {row.axes} | {row.shapes} | {row.text}"[
                        :600
                    ].replace("\n", " "),
                    flush=True,
                )
    print(dict(counts))
    litert.close()
