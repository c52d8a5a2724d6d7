"""Files are written whole or not at all: full disks, interrupts, devices, pipes, permissions."""

import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.one_op import Node, T, graph_model
from tflite_ort import ExportError, export_onnx
from tflite_ort.base import files
from tflite_ort.command.arrays import write_outputs
from tflite_ort.command.versions import versions_command
from tflite_ort.export import form as export_form
from tflite_ort.schema import AddOptions, Op

ROOT = Path(__file__).parents[1]


def sums(unit: float) -> bytes:
    weights = np.arange(300, dtype=np.float32) / np.float32(unit)
    tensors = {"x": T((300,)), "w": T.constant(weights), "y": T((300,))}
    return graph_model(tensors, [Node(Op.ADD, ["x", "w"], ["y"], AddOptions())], ["y"])


MODEL = sums(7)
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
"""


def limited(code: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a process in which no file may have more than 100 bytes, as on a full disk."""
    return subprocess.run(
        [sys.executable, "-c", LIMITED + code], capture_output=True, text=True, cwd=ROOT
    )


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "models" / "model.tflite"
    path.parent.mkdir()
    path.write_bytes(MODEL)
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A good file in a folder of its own."""
    path = tmp_path / "out" / "good"
    path.parent.mkdir()
    path.write_bytes(b"good")
    return path


def only_good(out: Path) -> bool:
    return out.read_bytes() == b"good" and list(out.parent.iterdir()) == [out]


def test_an_error_of_a_file_names_that_file_alone(model: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: '\S*/none/x\.onnx'$"):
        export_onnx(model, tmp_path / "none" / "x.onnx")


@pytest.mark.parametrize("verb", ["export", "versions"])
def test_a_full_disk_leaves_the_file_and_says_so(model: Path, out: Path, verb: str) -> None:
    given = {"export": [str(model), str(out)], "versions": [str(model), "--fix", str(out)]}
    arguments = ["tflite-ort", verb, *given[verb]]
    done = limited(f"from tflite_ort.command.cli import main\nsys.argv = {arguments}\nmain()")
    assert done.returncode == 1
    assert done.stderr.strip() == f"error: {out}: File too large"
    assert only_good(out)


def test_a_full_disk_leaves_arrays_and_reports(out: Path) -> None:
    done = limited(
        "import numpy as np\nfrom pathlib import Path\n"
        "from tflite_ort.command.arrays import write_outputs\n"
        "from tflite_ort.base.files import write_text\n"
        f"path = Path({str(out)!r})\n"
        "for write in (\n"
        "    lambda: write_text(path, 'x' * 200),\n"
        "    lambda: write_outputs(path.with_suffix('.npz'), {'y': np.zeros(99)}),\n"
        "    lambda: write_outputs(path.parent, {'good': np.zeros(99)}),\n"
        "):\n"
        "    try: write()\n"
        "    except OSError as error: print(error.filename)\n"
    )
    assert done.stderr == ""
    assert done.stdout.split() == [str(out), f"{out}.npz", f"{out}.npy"]
    assert only_good(out)


def test_external_data_and_graph_come_together(
    out: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_form, "_INLINE_LIMIT", 1000)
    target, data = out.parent / "m.onnx", out.parent / "m.onnx.data"
    export_onnx(model, target)
    proto = onnx.load(target)
    weights = {each.name: onnx.numpy_helper.to_array(each) for each in proto.graph.initializer}
    np.testing.assert_array_equal(weights["const/w"], np.arange(300, dtype=np.float32) / 7)
    before = target.read_bytes(), data.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        export_onnx(model, target, weights="int8")
    assert (target.read_bytes(), data.read_bytes()) == before
    assert sorted(out.parent.iterdir()) == [out, target, data]


def test_an_export_that_is_killed_between_its_files_leaves_the_earlier_one(
    out: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The earlier graph goes on finding its own weights, and the next export clears up."""
    target = out.parent / "m.onnx"

    def weights() -> set[str]:
        return {path.name for path in target.parent.glob("m.onnx.*")}

    def read() -> bytes:
        return onnx.load(target).SerializeToString()  # with the weights that it names

    export_onnx(model, target, external_data=True)
    before, publish = read(), files._Draft.publish

    def killed(draft: Any) -> None:
        if draft._target == target:
            raise KeyboardInterrupt
        publish(draft)

    with monkeypatch.context() as patched:
        patched.setattr(files._Draft, "publish", killed)
        with pytest.raises(KeyboardInterrupt):
            export_onnx(sums(11), target, external_data=True)
    assert read() == before
    assert len(weights()) == 2
    export_onnx(sums(11), target, external_data=True)
    assert read() != before
    assert len(weights()) == 1
    export_onnx(model, target, external_data=True)
    assert read() == before
    assert weights() == {"m.onnx.data"}
    export_onnx(model, target, external_data=True)
    assert (read(), weights()) == (before, {"m.onnx.data"})


def made_by_others(target: Path, model: Path) -> None:
    export_onnx(model, target, external_data=True)
    graph = onnx.load(target, load_external_data=False)
    graph.producer_name = "pytorch"
    target.write_bytes(graph.SerializeToString())


def no_graph(target: Path, model: Path) -> None:
    target.write_text("m.onnx.data")


@pytest.mark.parametrize("before", [None, no_graph, made_by_others])
def test_weights_of_others_stay(before: Any, model: Path, tmp_path: Path) -> None:
    """Whatever they are called: other graphs may read them."""
    target = tmp_path / "m.onnx"
    if before is not None:
        before(target, model)
    others = [tmp_path / f"m.onnx.{name}" for name in ("data", f"{12345:016x}.data")]
    for path in others:
        path.write_bytes(path.name.encode())
    for source in (model, sums(11), model):
        export_onnx(source, target, external_data=True)
        assert len(list(tmp_path.glob("m.onnx.*"))) == 3
    assert [each.read_bytes().decode() for each in others] == [each.name for each in others]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes")
def test_a_pipe_in_the_place_of_weights(model: Path, tmp_path: Path) -> None:
    """Nobody reads it: to write to it would wait for ever."""
    target, data = tmp_path / "m.onnx", tmp_path / "m.onnx.data"
    os.mkfifo(data)
    export_onnx(model, target, external_data=True)
    assert onnx.load(target).graph.node and stat.S_ISFIFO(data.stat().st_mode)


def test_external_data_has_no_place_beside_a_device(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_form, "_INLINE_LIMIT", 1000)
    with pytest.raises(ExportError, match="need a file beside /dev/null"):
        export_onnx(model, "/dev/null")


def test_devices_are_written_to(model: Path) -> None:
    export_onnx(model, "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        export_onnx(model, "/dev/full")
    with pytest.raises(OSError, match="/dev/full"):
        versions_command(model, fix="/dev/full")


def test_pipes_are_written_to(model: Path, tmp_path: Path) -> None:
    fifo, found = tmp_path / "fifo", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: found.append(fifo.read_bytes()))
    reader.start()
    export_onnx(model, fifo)
    reader.join(10)
    assert onnx.load_from_string(found[0]).graph.node
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_an_interrupt_leaves_the_file(out: Path) -> None:
    with pytest.raises(KeyboardInterrupt), files.writing(out) as (stream,):
        stream.write(b"half")
        stream.flush()
        raise KeyboardInterrupt
    assert only_good(out)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_killed_process_leaves_the_file(out: Path, number: int) -> None:
    code = (
        "import signal\nimport time\nfrom tflite_ort.base.files import writing\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored in the background
        f"with writing({str(out)!r}) as (stream,):\n"
        "    stream.write(b'x' * 100000)\n    stream.flush()\n"
        "    print('written', flush=True)\n"
        # Not one long sleep: a signal just before it is handled after it, in Python 3.14.
        "    while True:\n        time.sleep(0.05)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        process.send_signal(number)
        process.wait(10)
    assert only_good(out)


@pytest.mark.parametrize("unnamed", [True, False])
def test_files_without_names_and_with(
    out: Path, unnamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems make no file without a name."""
    if not unnamed:
        monkeypatch.setattr(files, "_UNNAMED", None)
    with pytest.raises(ZeroDivisionError), files.writing(out) as (stream,):
        stream.write(b"half")
        raise ZeroDivisionError
    assert only_good(out)
    files.write_bytes(out, b"better")
    assert out.read_bytes() == b"better"
    assert list(out.parent.iterdir()) == [out]


def test_permissions_and_links_stay(out: Path, tmp_path: Path) -> None:
    out.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(out)
    files.write_text(link, "better")
    assert link.is_symlink()
    assert out.read_text() == "better"
    assert stat.S_IMODE(out.stat().st_mode) == 0o640
    new = tmp_path / "new"
    files.write_text(new, "")
    (tmp_path / "plain").touch()
    assert new.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "no" / "file", Path("/proc/no")):
        with pytest.raises(OSError, match=re.escape(str(path))):
            files.write_bytes(path, b"")


def test_outputs_go_to_folders_and_archives(tmp_path: Path) -> None:
    (written,) = write_outputs(tmp_path / "o.npz", {"y": np.arange(3)})
    with np.load(written) as archive:
        np.testing.assert_array_equal(archive["y"], np.arange(3))
    (written,) = write_outputs(tmp_path / "o", {"y": np.arange(3)})
    np.testing.assert_array_equal(np.load(written), np.arange(3))


def test_readers_see_old_or_new(out: Path) -> None:
    """A reader that looks all the time never sees a part."""
    contents, seen, stop = [b"a" * 100_000, b"b" * 50_000], set[bytes](), threading.Event()
    files.write_bytes(out, contents[0])

    def look() -> None:
        while not stop.is_set():
            seen.add(out.read_bytes())

    reader = threading.Thread(target=look)
    reader.start()
    for i in range(50):
        files.write_bytes(out, contents[i % 2])
        time.sleep(0.001)
    stop.set()
    reader.join()
    assert seen <= set(contents)


def test_everything_that_writes_does_it_so() -> None:
    writes = re.compile(r"\.write_(bytes|text)\(|np\.savez?\(|open\([^)]*\"[wa]b?\"|ir\.save\(")
    stray = [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in ("bridge", "schema", "versioning", "opmap", "fallback_kernels", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if writes.search(line) and not ALLOWED.search(line) and path.name != "files.py"
    ]
    assert stray == []


# Into a stream of `writing`, by this module, the kernel's counter of memory, a lock, and what runs
# without this library.
ALLOWED = re.compile(
    r"np\.savez?\(stream|archive\.open\(|_CLEAR_REFS|files\.write_|has no tflite_ort|# a lock"
)
