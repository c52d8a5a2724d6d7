"""What stands in a folder that somebody else has packed: links, pipes, and files that lie."""

from __future__ import annotations

import io
import os
import random
import struct
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from PIL import Image

from tests.one_op import T, one_op_model
from tests.prediction.models import colours, sums
from tests.prediction.test_csv import as_parquet, csv_of, made
from tests.prediction.test_predict import lines, predict, written
from tflite_ort.prediction import reading, record_files
from tflite_ort.prediction.array_files import InputError
from tflite_ort.prediction.images import decoded_image
from tflite_ort.prediction.sound import Ear, open_wav
from tflite_ort.schema import Op

posix = pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return written(tmp_path / "sums.tflite", sums())


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return csv_of(tmp_path, "a,b,c,d\n1,2,3,4\n")


# Results -----------------------------------------------------------------------------------------


def test_the_lock_is_no_link_and_no_file_of_others(model: Path, table: Path) -> None:
    kept = written(table.with_name("kept"), b"kept")
    lock = table.with_name(".out.csv.lock")
    out = table.with_name("out.csv")
    lock.symlink_to(kept)
    assert "is a link" in predict(model, table, "--out", out, code=1)
    lock.unlink()
    lock.write_bytes(b"mine")
    assert "is no lock of predict" in predict(model, table, "--out", out, code=1)
    assert (kept.read_bytes(), lock.read_bytes()) == (b"kept", b"mine")
    lock.write_bytes(b"")  # as a kill leaves it
    predict(model, table, "--out", out)
    assert out.exists() and not lock.exists()


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_folder_that_is_no_job_stays(overwrite: bool, model: Path, table: Path) -> None:
    out, folder = table.with_name("out.csv"), table.with_name("out.csv.job")
    options = ["--out", out, *(["--overwrite"] if overwrite else [])]
    elsewhere = table.with_name("elsewhere")
    for place in (folder, elsewhere):
        place.mkdir()
        for name in ("notes.txt", "units.jsonl", "000000000000-000000000001"):
            (place / name).write_text("mine")
    assert "is no job of predict" in predict(model, table, *options, code=1)
    (folder / "job.json").write_text('{"name": "cron"}')
    assert "is no job of predict" in predict(model, table, *options, code=1)
    assert len(list(folder.iterdir())) == 4
    folder.rename(table.with_name("moved"))
    folder.symlink_to(elsewhere)
    assert "is no job of predict" in predict(model, table, *options, code=1)
    assert len(list(elsewhere.iterdir())) == 3
    folder.unlink()
    folder.mkdir()  # an empty one has nothing to lose
    predict(model, table, *options)
    assert not folder.exists()


def test_what_others_put_into_the_folder_of_a_job_stays(
    model: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, folder = table.with_name("out.csv"), table.with_name("out.csv.job")
    with monkeypatch.context() as patched:
        patched.setattr("tflite_ort.command.predict.run_threads", _ends)
        predict(model, table, "--out", out, code=1)
    assert (folder / "job.json").exists()
    (folder / "notes.txt").write_text("mine")
    predict(model, table, "--out", out)
    assert [each.name for each in folder.iterdir()] == ["notes.txt"]
    assert "is no job" in predict(model, table, "--out", out, "--overwrite", code=1)


def _ends(*_: object) -> None:
    raise InputError("no more")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl", ".npz"])
def test_overwriting_replaces_results_alone(suffix: str, model: Path, tmp_path: Path) -> None:
    """Not an input, whatever name it is given, and nothing else."""
    folder = tmp_path / "data"
    folder.mkdir()
    np.save(folder / "a.npy", np.ones((1, 4), np.float32))
    mine = folder / f"mine{suffix}"
    given = csv_of(folder, "a,b,c,d\n1,2,3,4\n")
    if suffix == ".parquet":
        as_parquet(given).rename(mine)
    elif suffix == ".npz":
        np.savez(mine, x=np.ones((1, 4), np.float32))
    else:
        given.rename(mine)
    content = mine.read_bytes()
    for inputs in ([folder], [folder / "*"]):
        said = predict(model, *inputs, "--out", mine, "--overwrite", code=1)
        assert "holds no results of predict" in said
    predict(model, mine, "--out", mine, "--overwrite", code=2)
    os.link(mine, tmp_path / f"hard{suffix}")
    predict(model, mine, "--out", tmp_path / f"hard{suffix}", "--overwrite", code=2)
    assert mine.read_bytes() == content
    out = tmp_path / f"out{suffix}"
    for _ in range(2):
        predict(model, folder / "a.npy", "--out", out, "--overwrite")
    out.write_bytes(b"")  # as mktemp makes one
    if suffix in (".csv", ".jsonl"):
        predict(model, folder / "a.npy", "--out", out, "--overwrite")


# Files -------------------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("suffix", [".png", ".wav", ".npy", ".npz", ".parquet", ".csv"])
def test_pipes_and_devices_are_refused(suffix: str, tmp_path: Path) -> None:
    model = written(tmp_path / "sums.tflite", sums())
    folder = tmp_path / "data"
    folder.mkdir()
    os.mkfifo(folder / f"pipe{suffix}")
    (folder / f"zero{suffix}").symlink_to("/dev/zero")
    out = tmp_path / "out.jsonl"
    for rows in ([], ["--rows"]):
        given = [folder / f"pipe{suffix}", folder / f"zero{suffix}"]
        predict(model, *given, "--overwrite", "--out", out, *rows, code=1)
        told = [each["error"] for each in lines(out)]
        assert len(told) == 2 and "a pipe, not a plain file" in told[0]
        assert "a device, not a plain file" in told[1]
    if suffix != ".csv":
        predict(model, folder, "--overwrite", "--out", out, code=1)


def test_cells_name_files_in_the_folder_of_the_table_alone(tmp_path: Path) -> None:
    model = written(tmp_path / "sums.tflite", sums())
    folder = tmp_path / "data"
    (folder / "below").mkdir(parents=True)
    np.save(tmp_path / "secret.npy", np.ones(4, np.float32))
    np.save(folder / "below" / "a.npy", np.ones(4, np.float32))
    (folder / "link.npy").symlink_to(tmp_path / "secret.npy")
    inside = ["below/a.npy", "below/../below/a.npy", str(folder / "below" / "a.npy")]
    outside = ["../secret.npy", str(tmp_path / "secret.npy"), "link.npy", "below/../../secret.npy"]
    table = csv_of(folder, "\n".join(["x", *inside, *outside]) + "\n")
    for each in (table, as_parquet(table)):
        rows = made(model, each)
        assert [value for _, value, _ in rows] == [[5]] * 3 + [None] * 4
        assert all("leads out of the folder" in str(error) for *_, error in rows[3:])


@pytest.mark.parametrize("cell", ["1e400", "-1e400", '"[1, 2, 1e400, 4]"', '"[1.5, 1{}]"'])
def test_numbers_beyond_floats_are_refused_by_row_and_column(cell: str, tmp_path: Path) -> None:
    cell = cell.format("0" * 400)
    shape = (1, 1) if cell[0] != '"' else (1, cell.count(",") + 1)
    model = written(tmp_path / "abs.tflite", one_op_model(Op.ABS, [T(shape)], [T(shape)]))
    good = '"[' + ", ".join("1" * shape[1]) + ']"' if shape[1] > 1 else "1"
    rows = made(model, csv_of(tmp_path, f"a\n{good}\n{cell}\n{good}\n"))
    assert [value is None for _, value, _ in rows] == [False, True, False]
    assert "row 1: column 'a' holds" in str(rows[1][2])


@pytest.mark.parametrize("cell", ["inf", "-Infinity", '"[1e38, -Infinity]"', "1e39"])
def test_infinity_itself_is_a_number(cell: str, tmp_path: Path) -> None:
    shape = (1, cell.count(",") + 1)
    model = written(tmp_path / "abs.tflite", one_op_model(Op.ABS, [T(shape)], [T(shape)]))
    ((_, value, error),) = made(model, csv_of(tmp_path, f"a\n{cell}\n"), code=cell == "1e39")
    assert (value is None) == (cell == "1e39"), error
    assert cell != "1e39" or "row 0: column 'a' holds float64 1e+39" in str(error)


def wav(rate: int, channels: int, frames: int) -> bytes:
    data = bytes(frames * channels * 2)
    head = struct.pack("<IHHIIHH", 16, 1, channels, rate, 0, channels * 2, 16)
    chunks = b"WAVEfmt " + head + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(chunks)) + chunks


@pytest.mark.parametrize("rate", [1, 4, 99, (1 << 20) + 1, 65_536_000, (1 << 32) - 1])
def test_rates_that_no_recorder_has(rate: int, tmp_path: Path) -> None:
    details: dict[str, Any] = {"name": "x", "shape_signature": np.array([7]), "dtype": np.float32}
    sound = open_wav(written(tmp_path / "a.wav", wav(rate, 1, 100)))
    for wanted in (None, rate, 16_000):
        with pytest.raises(InputError, match=rf"{rate} Hz"):
            next(Ear.of(details, wanted).stretches(sound))


@pytest.mark.parametrize(("rate", "channels"), [(100, 2), (1 << 20, 64), (64_000, 64)])
def test_sound_is_read_in_blocks_of_bounded_size(
    rate: int, channels: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks of other sizes give the same."""
    rng = np.random.default_rng(7)
    samples = rng.integers(-30_000, 30_000, (6000, channels), np.int16)
    content = bytearray(wav(rate, channels, len(samples)))
    content[44:] = samples.tobytes()
    sound = open_wav(written(tmp_path / "a.wav", bytes(content)))
    details: dict[str, Any] = {"name": "x", "shape_signature": np.array([700]), "dtype": np.float32}
    for wanted in (None, rate // 4):
        got = []
        for bound in (1 << 24, 1 << 16):
            monkeypatch.setattr("tflite_ort.prediction.sound._BLOCK_FILTERED", bound)
            monkeypatch.setattr("tflite_ort.prediction.sound._BLOCK_FRAMES", bound >> 8)
            got.append(np.stack(list(Ear.of(details, wanted).stretches(sound))))
        np.testing.assert_allclose(got[0], got[1], rtol=0, atol=1e-6)


def test_a_wav_file_of_nothing_but_chunks(tmp_path: Path) -> None:
    content = b"RIFF\0\0\0\0WAVE" + b"none\0\0\0\0" * 100_000
    with pytest.raises(InputError, match="without samples"):
        open_wav(written(tmp_path / "a.wav", content))


def test_archives_are_compressed_as_numpy_does(model: Path, tmp_path: Path) -> None:
    """Damaged content of other kinds raises other errors."""
    path, out = tmp_path / "a.npz", tmp_path / "out.jsonl"
    array = io.BytesIO()
    np.save(array, np.ones(4, np.float32))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("x.npy", array.getvalue())
    predict(model, path, "--out", out, code=1)
    assert "compressed in a way" in lines(out)[0]["error"]


def test_an_array_that_does_not_fit_is_not_read(model: Path, tmp_path: Path) -> None:
    """It has 64 GB, none of which is on the disk."""
    path, out = tmp_path / "a.npy", tmp_path / "out.jsonl"
    np.lib.format.open_memmap(path, "w+", np.float32, (1 << 4, 1 << 30))
    predict(model, path, "--out", out, code=1)
    assert "has shape (16, 1073741824)" in lines(out)[0]["error"]


@pytest.mark.parametrize(
    "head", [b"a" * (17 << 20), b",".join(b"%d" % i for i in range(70_000))], ids=["long", "many"]
)
def test_the_names_of_a_table_are_bounded(head: bytes, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    predict(model, csv_of(tmp_path, head + b"\n1\n"), "--out", out, code=1)
    assert "characters" in (said := lines(out)[0]["error"]) or "columns" in said


def test_a_text_that_a_small_table_repeats_does_not_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch, model: Path, tmp_path: Path
) -> None:
    """Its dictionary has one text of a megabyte, which all rows have."""
    path, out = tmp_path / "a.parquet", tmp_path / "out.jsonl"
    texts = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array([0] * 1000, pyarrow.int32()), pyarrow.array(["0" * (1 << 20)])
    )
    pyarrow.parquet.write_table(
        pyarrow.table({"x": texts}), path, compression="zstd", store_schema=False
    )
    assert path.stat().st_size < 2000
    monkeypatch.setattr(record_files, "_BATCH_BYTES", 1 << 22)
    batch = next(record_files.Parquet(str(path)).batches(0)[2])
    assert batch.num_rows < 4 and batch.nbytes < 1 << 22
    monkeypatch.setattr(reading, "_MOST_BYTES", 1 << 24)
    predict(model, path, "--out", out, code=1)
    assert "rows 0 to 255 have more than 16777216 bytes" in lines(out)[0]["error"]


def test_a_small_table_of_very_many_values_is_not_read(
    monkeypatch: pytest.MonkeyPatch, model: Path, tmp_path: Path
) -> None:
    path, out = tmp_path / "a.parquet", tmp_path / "out.jsonl"
    nothing = pyarrow.array([[None] * 1_000_000], pyarrow.list_(pyarrow.float64()))
    pyarrow.parquet.write_table(pyarrow.table({"x": nothing}), path)
    monkeypatch.setattr(record_files, "_MANY_VALUES", 1000)
    predict(model, path, "--out", out, code=1)
    assert "has 1000000 values of 'x.list.element' in " in lines(out)[0]["error"]


def test_a_program_is_not_started_for_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pillow would give PostScript to Ghostscript, whatever the suffix."""
    started: list[object] = []
    monkeypatch.setattr("PIL.EpsImagePlugin.Ghostscript", lambda *given: started.append(given))
    model = written(tmp_path / "colours.tflite", colours())
    content = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n"
    out = tmp_path / "out.jsonl"
    predict(model, written(tmp_path / "a.png", content), "--out", out, code=1)
    assert "is not an image that can be read" in lines(out)[0]["error"] and not started


@pytest.mark.parametrize("format", ["BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP"])
@pytest.mark.filterwarnings("ignore::UserWarning")  # of Pillow: damaged EXIF, many pixels
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_damaged_pictures_are_typed_errors(format: str) -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    rng, made = random.Random(seed), io.BytesIO()
    details: dict[str, Any] = {"name": "x", "shape": np.array([1, 4, 4, 3]), "dtype": np.uint8}
    details["shape_signature"] = details["shape"]
    Image.effect_noise((9, 7), 50).convert("RGB").save(made, format)
    for _ in range(60):
        content = bytearray(made.getvalue())
        for _ in range(rng.randint(1, 6)):
            content[rng.randrange(min(len(content), 300))] = rng.choice(
                [0, 1, 255, rng.randrange(256)]
            )
        with suppress(InputError):
            decoded_image(
                bytes(content[: rng.choice([None, rng.randrange(len(content))])]),
                details,
                None,
                "it",
            )


# A job that somebody else has packed -------------------------------------------------------------


@posix
def test_a_part_that_is_a_pipe_is_refused(
    model: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, folder = table.with_name("out.csv"), table.with_name("out.csv.job")
    for name in ("000000000000-000000000001", "units.jsonl"):
        with monkeypatch.context() as patched:
            patched.setattr("tflite_ort.command.predict.run_threads", _ends)
            predict(model, table, "--out", out, "--overwrite", code=1)
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)
        assert "is not a plain file" in predict(model, table, "--out", out, code=1)
    predict(model, table, "--out", out, "--overwrite")
    assert len(out.read_text().splitlines()) == 2
