"""``python -m tests.fuzz``: makes damaged models and holds the library against LiteRT on them."""

from __future__ import annotations

import argparse
import re
import signal
import sys
from functools import partial
from itertools import count, islice
from pathlib import Path

from tests.fuzz.corpus import Corpus, fix, fixed_corpus, full_corpus, small_corpus
from tests.fuzz.judge import Finding, Record
from tests.fuzz.litert import LiteRT, Question
from tests.fuzz.mutate import Mutant, inputs_of, mutant
from tests.fuzz.pool import judge_all
from tests.fuzz.regressions import contradictions, known
from tests.fuzz.report import FAULTS, Report
from tests.fuzz.steps import taken, warm_up


def main() -> int:
    options = _options()
    if options.judge:
        return _judge_files(options.judge)
    if options.regressions:
        wrong = contradictions()
        print(f"{len(known())} files replayed", *wrong, sep="\n")
        return 1 if wrong else 0
    corpus = _corpus(options)
    if options.fix:
        fix(corpus)
        return 0
    if options.replay:
        return _replay(corpus, options.replay, options.keep)
    if options.thorough:
        options.count, options.seconds = None, options.seconds or 8 * 3600
    return _judge(corpus, options)


def _corpus(options: argparse.Namespace) -> Corpus:
    if options.fixed:
        return fixed_corpus()
    corpus = _every_seed(options)
    return corpus.only(options.only) if options.only else corpus


def _every_seed(options: argparse.Namespace) -> Corpus:
    folders = [options.models] if options.models else []
    return small_corpus() if options.small else full_corpus(options.seeds, folders)


def _judge(corpus: Corpus, options: argparse.Namespace) -> int:
    """Judges the files that the options name, and prints what was found."""
    warm_up()
    make = partial(mutant, corpus, options.salt)
    title = f"salt {options.salt} from {len(corpus.seeds)} seeds ({corpus.digest})"
    report = Report(title, options.salt, make, options.keep)
    numbers = islice(count(options.start), options.count)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    limits = (options.jobs, options.seconds, not options.alone)
    try:
        judge_all(make, numbers, report.add, *limits)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    print(report.text(options.kinds))
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
        report.write(options.keep / f"report-{options.salt}-{options.start}.json")
    return 1 if report.faults() else 0


def _judge_files(files: list[Path]) -> int:
    """Prints what is found in files, fed as the names of kept ones tell."""

    def make(number: int) -> Mutant:
        named = re.match(r"\w*-(.+)-(\d+)$", files[number].stem)
        inputs = inputs_of(*named.groups()) if named else 0
        return Mutant(number, files[number].read_bytes(), inputs)

    def report(record: Record) -> None:
        faults.extend(each for each in record.findings if each.bucket in FAULTS)
        for finding in record.findings or (Finding("no finding", record.stage),):
            print(f"{files[record.number]}: {finding.bucket}: {finding.kind}", flush=True)

    faults: list[Finding] = []
    judge_all(make, iter(range(len(files))), report)
    return 1 if faults else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--salt", default="0", help="a text; with a number it names a file")
    parser.add_argument("--count", type=int, default=1000, help="how many files")
    parser.add_argument("--start", type=int, default=0, help="the first number")
    parser.add_argument("--jobs", type=int, default=1, help="processes that work at a time")
    parser.add_argument("--seconds", type=float, help="when to stop, whatever the count")
    parser.add_argument("--thorough", action="store_true", help="hours: --seconds, else eight")
    parser.add_argument("--replay", metavar="SALT:NUMBER", help="tell all about one file")
    parser.add_argument("--judge", type=Path, nargs="+", metavar="FILE", help="kept files")
    parser.add_argument("--regressions", action="store_true", help="replay what was found once")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="examples and a report go here")
    parser.add_argument("--small", action="store_true", help="few seeds, made in a second")
    parser.add_argument("--fixed", action="store_true", help="seeds that tests do not change")
    parser.add_argument("--fix", action="store_true", help="write the seeds of --fixed anew")
    parser.add_argument("--alone", action="store_true", help="do not ask LiteRT")
    parser.add_argument("--seeds", type=Path, metavar="ZIP", help="the models of the tests")
    parser.add_argument("--only", metavar="OPERATOR", help="seeds that have this operator alone")
    parser.add_argument("--models", type=Path, metavar="DIR", help="a folder of further seeds")
    parser.add_argument("--kinds", type=int, default=12, help="how many of each bucket to print")
    return parser.parse_args()


def _replay(corpus: Corpus, name: str, folder: Path | None) -> int:
    """Tells how a file was made and what both make of it."""
    salt, _, number = name.rpartition(":")
    made = mutant(corpus, salt, int(number))
    print(f"{len(made.content)} bytes from seed {made.seed}: {', '.join(made.changes)}")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{salt}-{number}.tflite").write_bytes(made.content)
    litert = LiteRT()
    for kernels in ("default", "optimized", "reference"):
        answer = litert.ask(Question(made.content, made.inputs, kernels))
        print(f"LiteRT {kernels}: {answer.stage} {answer.error}")
        print(*answer.outputs, sep="\n")
    litert.close()
    outcome = taken(made.content, made.inputs, load=True)
    print(f"tflite_ort: {outcome.stage} {outcome.error} {outcome.untyped}")
    print(*outcome.outputs, sep="\n")
    print(f"export: {outcome.exported} {outcome.export_error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
