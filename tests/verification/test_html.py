"""The HTML report: one file, whole, safe against names in files, readable by machines."""

import base64
import dataclasses
import hashlib
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from tests.verification.reports import HARM, hostile, plentiful
from tflite_ort.schema import BridgeError
from tflite_ort.verification import Values, html
from tflite_ort.verification.html import to_html
from tflite_ort.verification.pictures import picture_of
from tflite_ort.verification.plots import HEIGHT, WIDTH, Sample, histogram, size_plot

_VOID = {"meta", "img"}
_ADDRESSES = {"src", "href", "action", "formaction", "poster", "srcset", "data", "xlink:href"}


class Page(HTMLParser):
    """Elements as (tag, attributes), and all text; a tag that is not closed is an error."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(source)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for each, attributes in self.elements if each == tag]

    def text_in(self, tag: str) -> str:
        return "".join(text for each, text in self.texts if each == tag)


@pytest.mark.parametrize("report", [plentiful(), hostile()], ids=["plentiful", "hostile"])
def test_page_is_whole_and_names_its_parts(report):
    page = Page(to_html(report))
    attributes = [each for _, each in page.elements]
    ids = [each["id"] for each in attributes if "id" in each]
    assert len(ids) == len(set(ids))
    for each in attributes:
        for name in (each.get("aria-labelledby") or "").split():
            assert name in ids
        if (each.get("href") or "").startswith("#"):
            assert each["href"][1:] in ids
    assert len(page.all("table")) == len(page.all("caption"))
    assert all(each["scope"] in {"col", "row"} for each in page.all("th"))
    assert all(each["alt"] for each in page.all("img"))
    drawn = [each for each in page.all("svg") if each.get("aria-hidden") != "true"]
    assert drawn and all(each["role"] == "img" and each["aria-labelledby"] for each in drawn)
    assert all(each["type"] == "button" for each in page.all("button"))
    assert page.all("html") == [{"lang": "en"}]


@pytest.mark.parametrize("report", [plentiful(), hostile()], ids=["plentiful", "hostile"])
def test_page_needs_no_network(report):
    source = to_html(report)
    page = Page(source)
    for _, attributes in page.elements:
        for name in _ADDRESSES & attributes.keys():
            assert (attributes[name] or "").startswith(("#", "data:image/png;base64,"))
    assert not {"link", "iframe", "object", "embed", "base"} & {tag for tag, _ in page.elements}
    assert "url(" not in page.text_in("style") and "@import" not in page.text_in("style")
    assert "//" not in source.replace("// Tables sort", "").partition("<body>")[0]


def test_policy_lets_nothing_run_but_its_own_script():
    page = Page(to_html(plentiful()))
    (policy,) = (each["content"] for each in page.all("meta") if "http-equiv" in each)
    assert policy.startswith("default-src 'none'; img-src data:;")
    for tag in ("style", "script"):
        (text,) = (text for each, text in page.texts if each == tag)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert not any("style" in attributes for _, attributes in page.elements)


def test_names_in_files_stay_text():
    source = to_html(hostile())
    page = Page(source)
    assert len(page.all("script")) == len(page.all("style")) == 1
    assert {tag for tag, _ in page.elements} <= {
        tag for tag, _ in Page(to_html(plentiful())).elements
    }
    assert not any(name.startswith("on") for _, each in page.elements for name in each)
    said = "".join(text for _, text in page.texts)
    for name in HARM[:4]:
        assert name in said
    assert "49" not in page.text_in("bdi")
    assert not set("\u202e\u0000\u001b\udc80") & set(source)
    assert len(source.encode()) < 3e6


def test_operators_can_be_sorted_by_error_and_time():
    page = Page(to_html(plentiful()))
    heads = [each["aria-sort"] for each in page.all("th") if "aria-sort" in each]
    assert heads == ["ascending", *["none"] * 8]
    keys = [float(each["data-key"]) for each in page.all("td") if "data-key" in each]
    rows = [keys[at : at + 5] for at in range(0, len(keys), 5)]
    assert [row[0] for row in rows] == [0, 1, 2, 3]
    assert [row[1] for row in rows] == [0.125, 0.25, -1, np.inf]
    assert [row[4] for row in rows] == [0.5, 0.25, -1, 12.5]
    assert page.text_in("tr").count("no") == 0


def test_what_is_not_known_is_said():
    said = "".join(text for _, text in Page(to_html(plentiful())).texts)
    for text in (
        "fused away in this runtime",
        "It could not run: no such file",
        "Only outputs were compared",
        "The verification was interrupted",
        "Not isolated: it is fused",
        "2 quanta",
        "0 relative, 3 NaN, 1 infinite",
        "shape (1, 2), the reference has (1, 3)",
        "computed at load",
        "it is not installed",
    ):
        assert text in said


def test_long_names_and_large_values_are_bounded():
    rng = np.random.default_rng(0)
    noise = [rng.random((1, 900, 900, 3)) for _ in range(2)]
    runtime = plentiful().runtimes[0]
    values = tuple(Values(at, f"image {at}", *noise) for at in range(9))
    outputs = tuple(dataclasses.replace(runtime.outputs[0], index=at) for at in range(9))
    runtime = dataclasses.replace(runtime, values=values, outputs=outputs)
    report = dataclasses.replace(plentiful(), runtimes=(runtime,))
    source = to_html(report)
    assert len(source) < 4e6
    assert "Of 9 tensors that are pictures 4 are shown" in source


def test_worst_tensor_that_does_not_differ_is_not_shown():
    runtime = plentiful().runtimes[0]
    worst = runtime.values[-1]
    for got, shown in ((worst.got, True), (worst.reference, False)):
        values = (*runtime.values[:-1], dataclasses.replace(worst, got=got))
        changed = dataclasses.replace(runtime, values=values)
        source = to_html(dataclasses.replace(plentiful(), runtimes=(changed,)))
        assert ("The tensor that differs most" in source) is shown


def test_missing_jinja_is_said(monkeypatch):
    monkeypatch.setattr(html, "optional_module", lambda name: None)
    with pytest.raises(BridgeError, match=re.escape("pip install 'tflite-ort[report]'")):
        to_html(plentiful())


def test_empty_report():
    report = dataclasses.replace(plentiful(), runtimes=())
    assert "Nothing was compared." in to_html(report)


def pixels(uri: str) -> np.ndarray:
    head, _, body = uri.partition(",")
    assert head == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(body))))


def test_image_of_bytes_is_that_image():
    image = np.random.default_rng(1).integers(0, 256, (1, 20, 30, 3)).astype(np.uint8)
    image[0, 0, 0], image[0, 0, 1] = 0, 255
    picture = picture_of(image, image)
    assert picture is not None and picture.kind == "image"
    np.testing.assert_array_equal(pixels(picture.reference), image[0])
    np.testing.assert_array_equal(pixels(picture.got), image[0])
    assert len(np.unique(pixels(picture.difference).reshape(-1, 3), axis=0)) == 1


def test_heat_map_shows_the_channel_that_differs():
    want = np.zeros((1, 10, 12, 5), np.float32)
    got = want.copy()
    got[0, 4, 7, 3] = 2
    picture = picture_of(want, got)
    assert picture is not None and picture.part == "channel 3 of 5" and picture.apart == 2
    shown = pixels(picture.difference)
    bright = np.argwhere((shown != shown[0, 0]).any(axis=2))
    assert bright.tolist() == [[4, 7]]


def test_one_pixel_of_a_large_map_stays_visible():
    want = np.zeros((1000, 700), np.float32)
    got = want.copy()
    got[333, 555] = 1
    picture = picture_of(want, got)
    assert picture is not None
    shown = pixels(picture.difference)
    assert max(shown.shape) <= 256
    assert np.argwhere((shown != shown[0, 0]).any(axis=2)).tolist() == [[83, 185]]


def test_what_is_not_finite_is_magenta():
    want = np.full((9, 9), np.float32(3e38))
    want[0, 0] = -3e38
    got = want.copy()
    got[1, :3] = np.nan, np.inf, -np.inf
    picture = picture_of(want, got)
    assert picture is not None and picture.part == ""
    magenta = (pixels(picture.got) == (255, 0, 255)).all(axis=2)
    assert np.argwhere(magenta).tolist() == [[1, 0], [1, 1], [1, 2]]


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        *(((1, 1000), np.float32), ((7, 9), np.int8), ((), np.float32)),
        *(((0, 9, 9, 3), np.int8), ((9, 9, 0), np.int8)),
        *(((9, 9), np.complex64), ((9, 9), object), ((9, 9), np.str_)),
    ],
)
def test_lists_and_words_are_no_pictures(shape, dtype):
    assert picture_of(np.zeros(shape, dtype), np.zeros(shape, dtype)) is None
    assert picture_of(np.zeros((9, 9)), np.zeros((9, 10))) is None


@pytest.mark.parametrize(
    "sizes", [[0.0], [1e308, 5e-324], [np.inf, 0.0], [np.nan], [1.0] * 3, [1e-9, 1e9, 0.0, np.inf]]
)
def test_marks_stay_inside_their_plot(sizes):
    samples = [Sample(at, size, "text") for at, size in enumerate(sizes)]
    plot = size_plot("title", ("x", "y"), [("one", samples), ("two", [])], 1e-4)
    assert plot is not None and len(plot.series) == 1
    for dot in plot.series[0].dots:
        assert 0 <= dot.x <= WIDTH and 0 <= dot.y <= HEIGHT
    for tick in (*plot.y_ticks, plot.limit):
        assert 0 <= tick.at <= HEIGHT
    larger = [dot.y for dot, size in zip(plot.series[0].dots, sizes, strict=True) if size > 0]
    exact = [dot.y for dot, size in zip(plot.series[0].dots, sizes, strict=True) if size == 0]
    assert not larger or not exact or max(larger) < min(exact)


@pytest.mark.parametrize(
    "values", [[1.0], [-1.7e308, 1.7e308], [5e-324, 0], [np.nan, 2.0], [1.0, 1.0 + 2**-52]]
)
def test_histogram_counts_every_finite_element(values):
    plot = histogram("title", "x", [("a", np.array(values)), ("none", np.array([np.nan]))])
    assert plot is not None
    assert f"a: {np.isfinite(values).sum()};" in plot.description
    assert len(plot.series) == 1


def test_nothing_to_plot():
    assert size_plot("title", ("x", "y"), [("none", [])]) is None
    assert histogram("title", "x", [("none", np.array([np.inf]))]) is None
