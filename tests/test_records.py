"""Records: what a dataclass does, without its cost."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from typing import Any

import pytest

from tflite_ort.base.records import _OFTEN, field, record, replace
from tflite_ort.command.demo import digits_model


@record
class Place:
    """Somewhere."""

    x: int
    y: int = 2
    names: list[str] = field(default_factory=list)

    @property
    def both(self) -> tuple[int, int]:
        return self.x, self.y


@record
class One:
    value: object


@record(eq=False)
class Itself:
    x: int


@record(frozen=False)
class Counter:
    count: int = 0


@record
class Checked:
    x: int

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("below 0")


@dataclasses.dataclass(frozen=True, slots=True)
class Twin:
    """A dataclass with the fields of a Place."""

    x: int
    y: int = 2
    names: list[str] = dataclasses.field(default_factory=list)


@pytest.fixture(params=[0, 2 * _OFTEN], autouse=True)
def made_before(request: pytest.FixtureRequest) -> None:
    """Records of which many were made have a constructor of their own."""
    for _ in range(request.param):
        made = Place(1), One(2), Itself(3), Counter(4), Checked(5)
        assert [each.__match_args__ for each in made]


def test_a_constructor_is_compiled_once_for_the_class_itself() -> None:
    @record
    class Point:
        x: int
        y: int = 0

    class Below(Point):  # type: ignore[misc]
        def __init__(self, x: int) -> None:
            super().__init__(x, 2 * x)

    first = Point.__init__
    assert [Below(x).y for x in range(2 * _OFTEN)] == [*range(0, 4 * _OFTEN, 2)]
    assert Point.__init__ is first
    assert [Point(x) for x in range(2 * _OFTEN)] == [Point(x, 0) for x in range(2 * _OFTEN)]
    compiled = Point.__init__
    assert compiled is not first
    assert [Point(y=1, x=x).x for x in range(2 * _OFTEN)] == [*range(2 * _OFTEN)]
    assert Point.__init__ is compiled
    assert Below(3).y == 6


def test_fields_may_have_the_names_of_what_a_constructor_uses() -> None:
    @record
    class Named:
        type: int
        cls: int = 2
        object: int = 3

    named = [Named(x, object=4) for x in range(2 * _OFTEN)]
    assert named == [Named(x, 2, 4) for x in range(2 * _OFTEN)]


def test_a_record_does_what_a_dataclass_does() -> None:
    for values, named in (((1,), {}), ((1, 3, ["a"]), {}), ((), {"names": ["b"], "x": 4})):
        place, twin = Place(*values, **named), Twin(*values, **named)  # type: ignore[arg-type]
        assert dataclasses.asdict(place) == dataclasses.asdict(twin)  # type: ignore[call-overload]
        assert dataclasses.astuple(place) == dataclasses.astuple(twin)  # type: ignore[call-overload]
        assert repr(place) == repr(twin).replace("Twin", "Place")
    assert dataclasses.is_dataclass(Place)
    assert [f.name for f in dataclasses.fields(Place)] == ["x", "y", "names"]
    assert dataclasses.replace(Place(1), y=5) == replace(Place(1), y=5) == Place(1, 5)
    assert replace(Twin(1), y=5) == Twin(1, 5)
    assert str(inspect.signature(Place)) == str(inspect.signature(Twin))
    assert Place(1).names is not Place(1).names
    assert (Place.__doc__, Place(1).both, Place.__match_args__) == (
        "Somewhere.",
        (1, 2),
        Twin.__match_args__,
    )
    match Place(3, 4):
        case Place(x, y):
            assert (x, y) == (3, 4)


@pytest.mark.parametrize(
    ("values", "named", "what"),
    [
        ((), {}, "needs 'x'|missing 1 .*'x'"),
        ((1, 2, [], 4), {}, "does not take 4 values|takes from 2 to 4 .* 5 were given"),
        ((1,), {"z": 1}, "does not take 'z'|unexpected keyword argument 'z'"),
        ((1,), {"x": 1}, "does not take 'x'|multiple values for argument 'x'"),
        ((1, 2, []), {"y": 1}, "does not take 'y'|multiple values for argument 'y'"),
    ],
)
def test_wrong_arguments(values: Any, named: Any, what: str) -> None:
    with pytest.raises(TypeError, match=what):
        Place(*values, **named)
    with pytest.raises(TypeError):
        Twin(*values, **named)
    with pytest.raises(TypeError, match="does not take 'z'"):
        replace(Place(1), z=1)  # type: ignore[call-arg]


def test_equality_and_hashes() -> None:
    nan, array = float("nan"), [1]
    assert One(nan) == One(nan)
    assert One(nan) != One(float("nan"))
    assert One(array) == One([1])
    assert One(1) != Twin(1)
    assert hash(One(3)) == hash(One(3))
    assert Itself(1) != Itself(1)
    assert len({Itself(1), Itself(1)}) == 2
    assert Counter(1) == Counter(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Counter(1))


def test_what_can_be_set() -> None:
    counter = Counter()
    counter.count = 3
    assert counter == Counter(3)
    with pytest.raises(dataclasses.FrozenInstanceError, match="assign to field 'x'"):
        Place(1).x = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="delete field 'x'"):
        del Place(1).x
    with pytest.raises(AttributeError):
        counter.other = 1  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="below 0"):
        Checked(-1)


def test_copies() -> None:
    place = Place(1, names=["a"])
    assert pickle.loads(pickle.dumps(place)) == copy.copy(place) == copy.deepcopy(place) == place
    assert copy.copy(place).names is place.names
    assert copy.deepcopy(place).names is not place.names


DECLARED = """
import sys
from tflite_ort import Interpreter
interpreter = Interpreter(sys.argv[1])
interpreter.allocate_tensors()
interpreter.invoke()
classes = {c for m in list(sys.modules.values()) for c in vars(m).values() if isinstance(c, type)}
ours = [c for c in classes if c.__module__.startswith("tflite_ort.")]
print(*sorted(c.__qualname__ for c in ours if type(vars(c).get("__dataclass_fields__")) is dict))
"""


def test_a_load_compiles_the_methods_of_no_class() -> None:
    """All are records."""
    command = [sys.executable, "-c", DECLARED, str(digits_model("float32"))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@record
class Town(Place):
    """A record of a record."""

    y: int = 5
    people: int = 0


@dataclasses.dataclass(frozen=True)
class City(Town):
    """A dataclass of a record."""

    river: str = ""


class Named(Place):
    """What has more than fields."""

    def __init__(self, x: int, name: str) -> None:
        super().__init__(x)
        object.__setattr__(self, "name", name)


def test_a_record_of_a_record() -> None:
    town = Town(1, people=7)
    assert (town.x, town.y, town.names, town.people, town.both) == (1, 5, [], 7, (1, 5))
    assert [each.name for each in dataclasses.fields(Town)] == ["x", "y", "names", "people"]
    assert repr(town) == "Town(x=1, y=5, names=[], people=7)"
    assert town == Town(1, 5, [], 7) != Place(1, 5)
    assert dataclasses.replace(town, x=2) == replace(town, x=2) == Town(2, people=7)
    with pytest.raises(dataclasses.FrozenInstanceError):
        town.x = 2  # type: ignore[misc]


def test_a_dataclass_of_a_record() -> None:
    city = City(1, people=7, river="Spree")
    assert (city.y, city.names, city.people, city.river) == (5, [], 7, "Spree")
    assert city == City(1, 5, [], 7, "Spree") != City(1, people=7)
    assert dataclasses.replace(city, x=2).river == "Spree"
    assert dataclasses.asdict(city)["river"] == "Spree"


@pytest.mark.parametrize("made", [Town(1, people=7), City(1, river="Spree"), Named(1, "a")])
def test_copies_of_subclasses(made: Any) -> None:
    for twin in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert twin == made
        assert getattr(twin, "__dict__", None) == getattr(made, "__dict__", None)
