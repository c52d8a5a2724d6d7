"""Results as the modules ``*_pb2`` of ``mediapipe.framework.formats`` have them: objects with the
fields and methods of protocol buffers, which scripts read and build. They are not serialized."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np


class Repeated(list[Any]):
    """The messages of a repeated field."""

    def __init__(self, kind: type[Message], items: Iterable[Any] = ()) -> None:
        super().__init__(items)
        self._kind = kind

    def add(self, **fields: Any) -> Any:
        """Append a new message; returns it."""
        message = self._kind(**fields)
        self.append(message)
        return message


class Message:
    """A message. A field that is not set reads as its default, and is made when it is a message.

    Args:
        fields: values to set.
    """

    # By field its default, the class of its message, or a list of the class of its messages.
    FIELDS: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, **fields: Any) -> None:
        for name, value in fields.items():
            default = self._declared(name)
            if isinstance(default, list):
                getattr(self, name).extend(value)
            elif isinstance(default, type):
                getattr(self, name).CopyFrom(value)
            else:
                setattr(self, name, value)

    def _declared(self, name: str) -> Any:
        if name not in self.FIELDS:
            raise ValueError(f'Protocol message {type(self).__name__} has no "{name}" field.')
        return self.FIELDS[name]

    def __getattr__(self, name: str) -> Any:
        """What a field has that is not set."""
        if name not in self.FIELDS:
            raise AttributeError(name)
        default = self.FIELDS[name]
        if isinstance(default, list):
            made: Any = Repeated(default[0]) if isinstance(default[0], type) else []
        elif isinstance(default, type):
            made = default()
        else:
            return default
        self.__dict__[name] = made
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        default = self.FIELDS.get(name)
        if name not in self.FIELDS or isinstance(default, list | type):
            raise AttributeError(f'Assignment not allowed (no field "{name}" in protocol message).')
        # Numbers are float32 in the message.
        self.__dict__[name] = float(np.float32(value)) if isinstance(default, float) else value

    def HasField(self, name: str) -> bool:  # noqa: N802
        """Whether a single field is set."""
        default = self._declared(name)
        if isinstance(default, list):
            raise ValueError(f"Protocol message has no singular {name!r} field.")
        value = self.__dict__.get(name)
        return value is not None and not (isinstance(value, Message) and not value.__dict__)

    def ClearField(self, name: str) -> None:  # noqa: N802
        """Take away what a field has."""
        self._declared(name)
        self.__dict__.pop(name, None)

    def CopyFrom(self, other: Self) -> None:  # noqa: N802
        """Take all that another message has."""
        self.__dict__.clear()
        for name, value in other.__dict__.items():
            if isinstance(value, list):
                getattr(self, name).extend(map(_copied, value))
            else:
                self.__dict__[name] = _copied(value)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _set(self) == _set(other)

    __hash__ = None  # type: ignore[assignment]  # as of protocol buffers, which change

    def __repr__(self) -> str:
        return "".join(f"{line}\n" for line in _lines(self))


def _copied(value: Any) -> Any:
    if not isinstance(value, Message):
        return value
    made = type(value)()
    made.CopyFrom(value)
    return made


def _set(message: Any) -> dict[str, Any]:
    """The fields that are set."""
    fields = message.__dict__
    return {
        name: fields[name]
        for name, default in message.FIELDS.items()
        if (bool(fields.get(name)) if isinstance(default, list) else name in fields)
    }


def _lines(message: Message) -> Iterable[str]:
    for name, value in _set(message).items():
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, Message):
                yield f"{name} {{"
                yield from (f"  {line}" for line in _lines(each))
                yield "}"
            elif isinstance(each, float):
                yield f"{name}: {str(np.float32(each)).removesuffix('.0')}"
            else:
                yield f'{name}: "{each}"' if isinstance(each, str) else f"{name}: {each}"


class NormalizedLandmark(Message):
    """A point in 0..1 of the picture."""

    FIELDS: ClassVar = {"x": 0.0, "y": 0.0, "z": 0.0, "visibility": 0.0, "presence": 0.0}


class Landmark(Message):
    """A point in metres."""

    FIELDS = NormalizedLandmark.FIELDS


class NormalizedLandmarkList(Message):
    """The points of one thing."""

    FIELDS: ClassVar = {"landmark": [NormalizedLandmark]}


class LandmarkList(Message):
    """The points of one thing, in metres."""

    FIELDS: ClassVar = {"landmark": [Landmark]}


class Classification(Message):
    """A class and how sure it is."""

    FIELDS: ClassVar = {"index": 0, "score": 0.0, "label": "", "display_name": ""}


class ClassificationList(Message):
    """Classes, the surest first."""

    FIELDS: ClassVar = {"classification": [Classification]}


class RelativeBoundingBox(Message):
    """A box in 0..1 of the picture."""

    FIELDS: ClassVar = {"xmin": 0.0, "ymin": 0.0, "width": 0.0, "height": 0.0}


class RelativeKeypoint(Message):
    """A point in 0..1 of the picture."""

    FIELDS: ClassVar = {"x": 0.0, "y": 0.0, "keypoint_label": "", "score": 0.0}


class LocationData(Message):
    """Where something is."""

    GLOBAL, BOUNDING_BOX, RELATIVE_BOUNDING_BOX, MASK = range(4)

    FIELDS: ClassVar = {
        "format": 0,
        "relative_bounding_box": RelativeBoundingBox,
        "relative_keypoints": [RelativeKeypoint],
    }

    BoundingBox = RelativeBoundingBox
    RelativeBoundingBox = RelativeBoundingBox
    RelativeKeypoint = RelativeKeypoint


class Detection(Message):
    """What was found, how sure, and where."""

    FIELDS: ClassVar = {
        "label": [""],
        "label_id": [0],
        "score": [0.0],
        "location_data": LocationData,
    }
