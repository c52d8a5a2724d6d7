"""The cache under damage, kill, full disks and other processes; what stays in its folder."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from tests.cached import ADD, KEYWORDS, assert_same, entries, is_hit, made
from tests.models import model_path
from tests.one_op import T, one_op_model
from tflite_ort import CacheWarning, Interpreter
from tflite_ort.cache import folder as folders
from tflite_ort.cache import plans
from tflite_ort.cache.checked_files import ReadLast, file_checksum
from tflite_ort.cache.folder import CacheFolder
from tflite_ort.cache.names import fresh_name
from tflite_ort.schema import AddOptions, MulOptions, Op

# Damage ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", [True, False])
def test_damaged_entries_are_made_anew(
    read: bool, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not read:  # but mapped, as large graphs are
        monkeypatch.setattr(plans, "_READ_BYTES", 0)
    path, seed = model_path(KEYWORDS), random.randrange(1 << 30)
    print("seed", seed)
    rng, want = random.Random(seed), made(Interpreter(path, cache=tmp_path))
    for _ in range(500 if request.config.getoption("--thorough") else 10):
        file = rng.choice(sorted(tmp_path.iterdir()))
        damage(file, rng)
        assert_same(made(Interpreter(path, cache=tmp_path)), want)
        whole = Interpreter(path, cache=tmp_path)
        assert_same(made(whole), want)
        assert is_hit(whole)


def test_damaged_small_entries_are_made_anew(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a process that has not read them before."""
    seed = random.randrange(1 << 30)
    print("seed", seed)
    rng, want = random.Random(seed), made(Interpreter(model_content=ADD, cache=tmp_path))
    for _ in range(500 if request.config.getoption("--thorough") else 20):
        damage(rng.choice(sorted(tmp_path.iterdir())), rng)
        monkeypatch.setattr(folders, "_READ_LAST", ReadLast(32, folders.KEPT_BYTES))
        again = Interpreter(model_content=ADD, cache=tmp_path)
        assert_same(made(again), want)
        assert not is_hit(again)
        assert is_hit(Interpreter(model_content=ADD, cache=tmp_path))


def test_a_small_graph_stays_with_its_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that has checked it does not look at its file again."""
    want = made(Interpreter(model_content=ADD, cache=tmp_path))
    assert is_hit(Interpreter(model_content=ADD, cache=tmp_path))
    (file,) = tmp_path.glob("*.1")
    file.unlink()
    hit = Interpreter(model_content=ADD, cache=tmp_path)
    assert is_hit(hit)
    assert_same(made(hit), want)
    monkeypatch.setattr(folders, "_READ_LAST", ReadLast(32, folders.KEPT_BYTES))
    assert not is_hit(Interpreter(model_content=ADD, cache=tmp_path))
    assert is_hit(Interpreter(model_content=ADD, cache=tmp_path))


@pytest.mark.parametrize("odd", [None, -1, 1 << 70, "x", [], {}, 1e300], ids=repr)
def test_a_document_that_says_something_odd_of_the_model_is_made_anew(
    odd: object, tmp_path: Path
) -> None:
    """In the place of each number and list of what it says; its checksum is right."""
    path = model_path(KEYWORDS)
    want = made(Interpreter(path, cache=tmp_path))
    folder = CacheFolder(str(tmp_path), lambda: 1 << 30)
    for place in range(7):
        key = max(folder.entries(), key=lambda entry: entry.size).key
        document = folder.read(key)
        assert document is not None
        face = list(document.hot["face"])
        face[place] = [odd] if isinstance(face[place], list) and odd != [] else odd
        folder.write(key, {**document.hot, "face": face}, document.rest(), ())
        interpreter = Interpreter(path, cache=tmp_path)
        for details in (interpreter.get_input_details(), interpreter.get_output_details()):
            assert all(each["index"] >= 0 for each in details)
        if place not in (1, 4, 5) or odd != []:  # no signatures, inputs, outputs: nothing is odd
            assert_same(made(interpreter), want)
        folder.remove(key)
        made(Interpreter(path, cache=tmp_path))


@pytest.mark.parametrize(
    "line", [b"", b"x", b"{", b'{"face": 1} 2', b'"\\x"', b"\xff", b"[" * 100_000], ids=range(7)
)
def test_a_document_that_is_no_json_is_deleted(line: bytes, tmp_path: Path) -> None:
    """Its checksum is right."""
    key, body = "a" * 40, line + b"\n{}"
    (tmp_path / f"{key}.json").write_bytes(b"%s\n%s" % (folders._header(key, body), body))
    assert CacheFolder(str(tmp_path), lambda: 1 << 30).read(key) is None
    assert not list(tmp_path.iterdir())


def test_a_small_graph_is_read_whole(tmp_path: Path) -> None:
    """Nobody changes it under a session any more."""
    path = model_path(KEYWORDS)
    want = made(Interpreter(path, cache=tmp_path))
    hit = Interpreter(path, cache=tmp_path)
    assert is_hit(hit)
    for file in tmp_path.iterdir():
        size = file.stat().st_size
        with file.open("r+b") as stream:  # as long as before: a map would see it
            stream.write(bytes(size))
    assert_same(made(hit), want)


def test_the_entry_of_another_model_is_none(tmp_path: Path) -> None:
    """Its checksums are right."""
    inputs, outputs = [T((2,)), T((2,))], [T((2,))]
    operators = ((Op.ADD, AddOptions()), (Op.MUL, MulOptions()))
    two = [one_op_model(op, inputs, outputs, options) for op, options in operators]
    want = [made(Interpreter(model_content=each)) for each in two]
    folder = tmp_path / "cache"
    for each in two:
        made(Interpreter(model_content=each, cache=folder))
    one, other = sorted(folder.glob("*.json"))
    one.rename(tmp_path / "kept")
    other.rename(one)
    (tmp_path / "kept").rename(other)
    for each, result in zip(two, want, strict=True):
        assert_same(made(Interpreter(model_content=each, cache=folder)), result)


def damage(file: Path, rng: random.Random) -> None:
    """Change a byte, or lose some. A file that an earlier damage emptied gets one."""
    content = bytearray(file.read_bytes() or b"\0")
    place = rng.randrange(len(content))
    content[place] ^= 1 << rng.randrange(8)
    file.write_bytes(content[:place] if rng.random() < 0.2 else content)


def test_what_is_missing_or_none_of_ours_is_made_anew(tmp_path: Path) -> None:
    path = model_path(KEYWORDS)
    want = made(Interpreter(path, cache=tmp_path))
    for spoil in (
        lambda file: file.unlink(),
        lambda file: file.write_bytes(b""),
        lambda file: (file.unlink(), file.mkdir()),
        lambda file: (file.unlink(), os.mkfifo(file)),
        lambda file: (file.unlink(), file.symlink_to(file.name)),
    ):
        for suffix in (".json", ".1"):
            files = [each for each in tmp_path.iterdir() if each.suffix == suffix]
            file = max(files, key=lambda each: each.stat().st_mtime_ns)
            spoil(file)
            assert_same(made(Interpreter(path, cache=tmp_path)), want)
            if file.is_dir():
                file.rmdir()
            made(Interpreter(path, cache=tmp_path))


def test_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file" / "below", Path("/proc/nothing"), tmp_path / "file"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CacheWarning)
            assert made(Interpreter(model_content=ADD, cache=folder))


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_folder_of_others_is_not_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.warns(CacheWarning, match="other users"):
        Interpreter(model_content=ADD, cache=tmp_path).allocate_tensors()
    assert entries(tmp_path) == []
    tmp_path.chmod(0o700)
    Interpreter(model_content=ADD, cache=tmp_path / "new").allocate_tensors()
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


# Several processes -------------------------------------------------------------------------------

PROGRAM = """
import hashlib, resource, sys
from tflite_ort import Interpreter
from tflite_ort.comparison.drawn import random_inputs

def run(folder):
    interpreter = Interpreter(model, cache=folder)
    interpreter.allocate_tensors()
    for index, array in random_inputs(interpreter.get_input_details(), 7).items():
        interpreter.set_tensor(index, array)
    interpreter.invoke()
    index = interpreter.get_output_details()[0]["index"]
    print(hashlib.sha256(interpreter.get_tensor(index).tobytes()).hexdigest(), flush=True)
    return interpreter

model, folder, *rest = sys.argv[1:]
interpreter = run(folder)
while rest == ["again"]:
    interpreter._shared.cache.drop(0, {})
    interpreter = run(folder)
for limit in rest:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
    run(f"{folder}/{limit}")
"""
# What a hit imports of the package and of what it depends on.
IMPORTS = """
import sys
from tflite_ort import Interpreter
interpreter = Interpreter(sys.argv[1], cache=sys.argv[2])
interpreter.allocate_tensors()
index = interpreter.get_input_details()[0]["index"]
interpreter.set_tensor(index, interpreter.get_tensor(index))
interpreter.invoke()
interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
print(*sorted(sys.modules))
"""


def started(folder: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, str(model_path(KEYWORDS)), str(folder), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str]) -> list[str]:
    answer, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return answer.split()


def test_a_hit_imports_little(tmp_path: Path) -> None:
    command = [sys.executable, "-c", IMPORTS, str(model_path(KEYWORDS)), str(tmp_path)]
    # The first process makes the entry: this one may have started before a source was edited.
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    modules = done.stdout.split()
    ours = {name.removeprefix("tflite_ort.") for name in modules if name.startswith("tflite_ort.")}
    assert not {"onnx", "flatbuffers", "rich", "typer", "tempfile"}.intersection(modules)
    made = ("plan.build", "custom.kernels", "specialize", "versioning", "model.resolvers")
    read = ("schema.file.model", "schema.file.read", "fallback_kernels", "opmap.convolution")
    assert not ours & {*made, *read}
    assert len(ours) < 69


def test_processes_at_once(tmp_path: Path) -> None:
    processes = [started(tmp_path) for _ in range(8)]
    answers = [finished(each) for each in processes]
    assert answers == [answers[0]] * 8
    assert len(entries(tmp_path)) == 1
    assert not list(tmp_path.glob("staging-*"))


def test_killed_while_writing(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    want, rng = made(Interpreter(model_path(KEYWORDS), cache=False)), random.Random(11)
    for _ in range(50 if request.config.getoption("--thorough") else 3):
        process = started(tmp_path, "again")
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(rng.uniform(0, 0.1))
        process.kill()
        process.communicate()
        for _ in range(2):
            assert_same(made(Interpreter(model_path(KEYWORDS), cache=tmp_path)), want)


def test_disk_full(tmp_path: Path) -> None:
    limits = ("0", "100", "20000", "50000")
    first, *others = finished(started(tmp_path, *limits))
    assert others == [first] * len(limits)
    assert [entries(tmp_path / limit) for limit in limits] == [[]] * len(limits)


# The folder --------------------------------------------------------------------------------------


def entry(folder: CacheFolder, letter: str, size: int) -> str:
    key, stage = letter * 40, folder.stage()
    file = stage / f"{key}.1"
    file.write_bytes(bytes(size))
    blob = [file.name, size, file_checksum(file)]
    assert folder.write(key, {"blobs": [blob]}, {"letter": letter}, [file])
    stage.rmdir()
    return key


def test_the_least_recently_used_leave(tmp_path: Path) -> None:
    folder = CacheFolder(tmp_path, lambda: 4000)
    keys = [entry(folder, letter, 1000) for letter in "abc"]
    now = time.time()
    for age, key in zip((3000, 1000, 2000), keys, strict=True):
        os.utime(tmp_path / f"{key}.json", (now - age, now - age))
    assert folder.read(keys[0]) is not None  # now the most recent
    entry(folder, "d", 1000)
    assert [key[0] for key in entries(tmp_path)] == ["a", "b", "d"]
    too_large = folder.stage() / f"{'e' * 40}.1"
    too_large.write_bytes(bytes(5000))
    assert not folder.write("e" * 40, {}, {}, [too_large])
    assert len(entries(tmp_path)) == 3


def test_the_use_of_an_entry_is_noted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(Interpreter(model_content=ADD, cache=tmp_path))
    (file,) = tmp_path.glob("*.json")
    os.utime(file, (1e9, 1e9))
    monkeypatch.setattr(folders, "_READ_LAST", ReadLast(32, folders.KEPT_BYTES))
    noted = []
    utime = os.utime
    monkeypatch.setattr(os, "utime", lambda path: (noted.append(path), utime(path)))
    for _ in range(3):
        assert is_hit(Interpreter(model_content=ADD, cache=tmp_path))
    assert noted == [str(file)]


def test_abandoned_files_leave(tmp_path: Path) -> None:
    folder = CacheFolder(tmp_path, lambda: 1 << 30)
    stage, orphan = folder.stage(), tmp_path / f"{fresh_name('a' * 40 + '.')}.1"
    young, stranger = tmp_path / f"{fresh_name('b' * 40 + '.')}.1", tmp_path / "notes.txt"
    for file in (orphan, young, stranger):
        file.write_bytes(b"x")
    for old in (stage, orphan, stranger):
        os.utime(old, (1e9, 1e9))
    folder.shrink()
    assert {each.name for each in tmp_path.iterdir()} == {young.name, stranger.name}
    folder.clear()
    assert [each.name for each in tmp_path.iterdir()] == [stranger.name]


def test_the_environment_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFLITE_ORT_CACHE", str(tmp_path / "one"))
    Interpreter(model_content=ADD).allocate_tensors()
    assert len(entries(tmp_path / "one")) == 1
    Interpreter(model_content=ADD, cache=tmp_path / "two").allocate_tensors()
    assert len(entries(tmp_path / "two")) == 1
    monkeypatch.setenv("TFLITE_ORT_CACHE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    Interpreter(model_content=ADD).allocate_tensors()
    assert len(entries(tmp_path / "home" / "tflite-ort")) == 1
    monkeypatch.setenv("TFLITE_ORT_CACHE", "0")
    interpreter = Interpreter(model_content=ADD)
    assert interpreter._shared.cache is None
    monkeypatch.setenv("TFLITE_ORT_CACHE_LIMIT", "many")
    assert is_hit(Interpreter(model_content=ADD, cache=tmp_path / "two"))
    with pytest.warns(CacheWarning, match="no number"):  # when an entry is written
        Interpreter(model_content=ADD, cache=tmp_path / "three").allocate_tensors()


def test_a_large_file_is_known_by_what_the_system_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tflite_ort.schema.file.plain_files.KNOWN_BYTES", 0)
    monkeypatch.setattr("tflite_ort.cache.plans._SETTLED_SECONDS", -1.0)
    path, folder = tmp_path / "model.tflite", tmp_path / "cache"
    path.write_bytes(ADD)
    for _ in range(2):
        Interpreter(path, cache=folder).allocate_tensors()
    assert len(entries(folder)) == 2
    with monkeypatch.context() as patch:
        patch.setattr("tflite_ort.cache.plans.digest", None)
        assert is_hit(Interpreter(path, cache=folder))
    status = path.stat()
    path.write_bytes(ADD + bytes(8))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    Interpreter(path, cache=folder)
    assert len(entries(folder)) == 3


def test_an_entry_says_what_it_is(tmp_path: Path) -> None:
    Interpreter(model_content=ADD, cache=tmp_path).allocate_tensors()
    (listed,) = CacheFolder(tmp_path, lambda: 1 << 30).entries()
    assert listed.about["bytes"] == len(ADD)
    assert json.dumps(dict(listed.about))
    assert listed.size == sum(each.stat().st_size for each in tmp_path.iterdir())


def test_a_path_of_bytes(tmp_path: Path) -> None:
    path, folder = tmp_path / "model.tflite", tmp_path / "cache"
    path.write_bytes(ADD)
    for _ in range(2):
        interpreter = Interpreter(os.fsencode(path), cache=folder)  # type: ignore[arg-type]
        interpreter.allocate_tensors()
    assert is_hit(interpreter)
    (listed,) = CacheFolder(folder, lambda: 1 << 30).entries()
    assert listed.about["model"] == "model.tflite"


def call(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tflite_ort", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_an_empty_text_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be the folder that the process works in."""
    monkeypatch.chdir(tmp_path)
    for choice in ({"cache": ""}, {"tune": ""}):
        with pytest.raises(ValueError, match="names no f"):
            Interpreter(model_content=ADD, **choice)
    monkeypatch.setenv("TFLITE_ORT_CACHE", "")
    Interpreter(model_content=ADD).allocate_tensors()
    assert not list(tmp_path.iterdir())


def test_a_plan_that_is_compiled_tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFLITE_ORT_CACHE", str(tmp_path / "user"))
    path = model_path(KEYWORDS)
    for said in ("kept", "was there"):
        done = call("compile", path, "--tune", "--cache", tmp_path / "plans")
        assert done.returncode == 0 and said in done.stdout, done.stderr
    assert (tmp_path / "user" / "tuning.json").exists()
    assert is_hit(Interpreter(path, cache=tmp_path / "plans", tune=True))
    assert not is_hit(Interpreter(path, cache=tmp_path / "other", tune=True))


def test_the_verbs(tmp_path: Path) -> None:
    path = model_path(KEYWORDS)
    for said in ("kept", "was there"):
        done = call("compile", path, "--cache", tmp_path, "--threads", 1)
        assert done.returncode == 0
        assert said in done.stdout
    assert is_hit(Interpreter(path, cache=tmp_path))
    (row,) = json.loads(call("cache", "list", tmp_path, "--json").stdout)["entries"]
    assert row["model"] == KEYWORDS
    assert KEYWORDS in call("cache", "list", tmp_path).stdout
    kept = tmp_path.parent / f"{tmp_path.name} again"
    shutil.copytree(tmp_path, kept)
    assert "deleted 1 entry, " in call("cache", "clear", kept).stdout
    freed = json.loads(call("cache", "clear", tmp_path, "--json").stdout)
    assert freed["entries"] == 1
    assert freed["bytes"] == row["bytes"]
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "no folder").touch()
    done = call("compile", path, "--cache", tmp_path / "no folder" / "below")
    assert done.returncode == 1
