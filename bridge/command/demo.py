"""The demo: held-out digits drawn in the terminal beside what the shipped models read."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tflite_ort.base.shipped import shipped
from tflite_ort.interpreter.interpreter import Interpreter

Array = npt.NDArray[Any]

DIGITS = Path(__file__).with_name("digits")
MODELS = ("float32", "int8", "lstm_float32", "lstm_int8")
PER_ROW = 6
# Columns of the models' names, of a digit, and of a summary with room.
LABELS, CELL, WIDE = 13, 9, 60
# A character shows two pixels, one above the other: neither, the lower, the upper, both.
HALVES, ASCII_HALVES = " ▄▀█", " .'#"
INK = 8


@dataclass(frozen=True, slots=True)
class Answers:
    """What one model reads: a digit and its probability per image, and the time of one invoke."""

    model: str
    digits: Array
    probabilities: Array
    milliseconds: float


def digits_model(name: str) -> Path:
    """The file of a shipped model: one of `MODELS`."""
    return DIGITS / f"{name}.tflite"


def digits_content(name: str) -> bytes:
    """What is in that file, also where the library is no folder."""
    return shipped("tflite_ort.command", f"digits/{name}.tflite")


def held_out() -> tuple[Array, Array]:
    """Shipped images uint8 [24, 8, 8] in 0..16, and labels int64 [24]."""
    with np.load(BytesIO(shipped("tflite_ort.command", "digits/held_out.npz"))) as file:
        return file["images"], file["labels"]


def read_digits(model: str, images: Array) -> Answers:
    """Run a shipped model over images [N, 8, 8], one invoke each."""
    interpreter = Interpreter(model_content=digits_content(model))
    interpreter.allocate_tensors()
    image, answer = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    outputs, seconds = [], []
    for pixels in quantized(images[:, np.newaxis, :, :, np.newaxis] / np.float32(16), image):
        interpreter.reset_all_variables()  # an LSTM goes on where it was
        interpreter.set_tensor(image["index"], pixels)
        start = perf_counter()
        interpreter.invoke()
        seconds.append(perf_counter() - start)
        outputs.append(interpreter.get_tensor(answer["index"])[0])
    found = dequantized(np.array(outputs), answer)
    return Answers(model, found.argmax(1), found.max(1), 1000 * float(np.median(seconds)))


def quantized(real: Array, details: dict[str, Any]) -> Array:
    """Real values as a tensor stores them."""
    scale, zero_point = details["quantization"]
    stored = np.round(real / scale + zero_point) if scale else real
    return stored.astype(details["dtype"])


def dequantized(stored: Array, details: dict[str, Any]) -> Array:
    """Stored values as real ones."""
    scale, zero_point = details["quantization"]
    return (stored.astype(np.float32) - zero_point) * scale if scale else stored


def picture(image: Array, halves: str = HALVES) -> str:
    """An image [8, 8] as four lines of characters, by default half blocks."""
    ink = (image >= INK).astype(int)
    return "\n".join("".join(line) for line in np.array(list(halves))[2 * ink[::2] + ink[1::2]])


def verdict(answers: Answers, index: int, label: int) -> Text:
    """The digit a model read and how sure it is; red when it is wrong."""
    digit, probability = answers.digits[index], answers.probabilities[index]
    return Text(f"{digit:3} {probability:4.0%}", style="green" if digit == label else "bold red")


def pictures(
    images: Array, labels: Array, answers: list[Answers], shown: range, halves: str = HALVES
) -> Table:
    """One row of digits with every model's answer below."""
    grid = Table.grid(padding=(0, 1))
    grid.add_row("", *(Text(picture(images[i], halves), style="cyan") for i in shown))
    for given in answers:
        grid.add_row(given.model, *(verdict(given, i, labels[i]) for i in shown))
    return grid


def summary(labels: Array, answers: list[Answers], *, narrow: bool = False) -> Table:
    """Every model's size, score and speed."""
    gap = 1 if narrow else 3
    table = Table("model", box=None, header_style="bold", pad_edge=False, padding=(0, gap, 0, 0))
    for column in ("size", "right", "invoke"):
        table.add_column(column, justify="right")
    for given in answers:
        size = len(digits_content(given.model))
        right = int((given.digits == labels).sum())
        score, time = f"{right} of {len(labels)}", f"{given.milliseconds:.3f} ms"
        table.add_row(given.model, f"{size / 1024:.1f} KiB", score, time)
    return table


def run_demo(console: Console) -> None:
    """Print the held-out digits, what each model reads, and the time of one invoke."""
    images, labels = held_out()
    answers = [read_digits(model, images) for model in MODELS]
    console.print(f"{len(images)} digits the models have not seen, and what they read:")
    console.print("")
    halves = HALVES if _draws(console, HALVES) else ASCII_HALVES
    step = max(1, min(PER_ROW, (console.width - LABELS) // CELL))
    for start in range(0, len(images), step):
        shown = range(start, min(start + step, len(images)))
        console.print(pictures(images, labels, answers, shown, halves), "")
    console.print(summary(labels, answers, narrow=console.width < WIDE))


def demo_record() -> dict[str, Any]:
    """What the demo tells as JSON: the digits that there are, and of each model what it reads."""
    images, labels = held_out()
    read = [read_digits(model, images) for model in MODELS]
    return {"digits": labels.tolist(), "models": [_record(each, labels) for each in read]}


def _record(answers: Answers, labels: Array) -> dict[str, Any]:
    return {
        "model": answers.model,
        "bytes": len(digits_content(answers.model)),
        "right": int((answers.digits == labels).sum()),
        "digits": answers.digits.tolist(),
        "probabilities": answers.probabilities.tolist(),
        "ms": answers.milliseconds,
    }


def _draws(console: Console, characters: str) -> bool:
    """Whether a console can write the characters."""
    try:
        characters.encode(console.encoding)
    except UnicodeEncodeError:
        return False
    return True
