"""Which kind of network a model is: told by its metadata and by the shapes of its outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tflite_ort.base import entry_points
from tflite_ort.decode import landmarks, scores
from tflite_ort.decode.body_points import movenet, posenet
from tflite_ort.decode.detections import (
    Outputs,
    Scored,
    anchored_detections,
    anchors_for,
    listed_detections,
    scored_detections,
)
from tflite_ort.decode.efficientdet import PER_CELL, Normalization, efficientdet_of
from tflite_ort.decode.face_mesh import BLENDSHAPE_POINTS, BLENDSHAPES
from tflite_ort.decode.image_input import Projection
from tflite_ort.decode.networks import INTERACTIVE, SEGMENTATION, Kind, Network
from tflite_ort.decode.nodes import Nodes
from tflite_ort.decode.other_inputs import POINTS, add_hand_inputs, embedding, pointed
from tflite_ort.decode.picture_input import quantization_of
from tflite_ort.decode.pixel_range import FROM_MINUS_ONE, FROM_ZERO
from tflite_ort.decode.yolo import nanodet, yolo
from tflite_ort.schema import Model, TensorType
from tflite_ort.schema.file.custom_options import custom_options
from tflite_ort.schema.file.detector_metadata import read_detector, read_segmenter
from tflite_ort.schema.file.model_metadata import AudioProperties, SubGraphMetadata

_PALM_POINTS = 7
# By the number of their keypoints.
_DETECTORS = {6: "face detector", _PALM_POINTS: "palm detector", 4: "pose detector"}
_OVERLAP = 0.3
_POSTPROCESS = "TFLite_Detection_PostProcess"
_FEWEST_SAMPLES = 1000
# What a vector may be, as somebody wants it who knows; a vector of scores, and one of sound.
_SCORED, _HEARD = ("classifier", "audio classifier"), "audio embedding"
_VECTORS = (*_SCORED, "embedding", _HEARD)
# What scores of classes end in.
_ACTIVATIONS = ("LOGISTIC", "SOFTMAX")
# Two points, which could be any four numbers.
_HAND_REGION = "hand region"
# Of how many pixels a cell of a mask is at most.
_COARSEST = 8


def kind_of(
    model: Model,
    told: SubGraphMetadata | None = None,
    labels: tuple[str, ...] = (),
    named: str = "",
    wanted: str = "",
) -> Kind | None:
    """What `model` is; None where it is nothing that is known here.

    Args:
        told: what its metadata says of its main subgraph.
        labels: of its classes.
        named: what it is said to be, a name in `known_names`; empty asks all of them in their
            order, those of other packages first.
        wanted: the kind that a vector is where nothing contradicts.

    Raises:
        MalformedModel: what it says of a detector is damaged.
    """
    if not model.subgraphs or not len(model.subgraphs[0].inputs):
        return None
    network = Network(model, told or SubGraphMetadata(), labels, wanted)
    if len(model.subgraphs[0].inputs) != 1 and not named:
        return _gestures(network)
    names = [named] if named else [*entry_points.installed(entry_points.DECODERS), *KINDS]
    for name in names:
        kind_told = KINDS.get(name) or entry_points.loaded(entry_points.DECODERS, name)
        if kind_told is not None and (kind := kind_told(network)) is not None:
            return replace(kind, facts={**kind.facts, **({"labels": labels} if labels else {})})
    return None


def known_names() -> list[str]:
    """What a network may be said to be: the names in `KINDS`, and those of other packages."""
    return [*KINDS, *sorted(entry_points.installed(entry_points.DECODERS))]


def _anchored(network: Network) -> Kind | None:
    """A single-shot detector of one class: boxes with keypoints, and scores."""
    shapes, size = network.outputs, network.picture
    if size is None or len(shapes) != 2 or {len(shape) for shape in shapes} != {3}:
        return None
    (_, count, numbers), (_, scored, classes) = shapes
    if scored != count or classes != 1 or numbers < 4 or numbers % 2:
        return None
    anchors = anchors_for(count, *size)
    if anchors is None:
        return None
    points = numbers // 2 - 2
    name = _DETECTORS.get(points, "detector")
    prepared = network.prepared(FROM_ZERO if points == _PALM_POINTS else FROM_MINUS_ONE, name)
    if prepared is None:
        return None

    def build(nodes: Nodes, raw: list[str], to: Projection) -> Outputs:
        boxes, logits = raw
        scale = (size[1], size[0])
        return anchored_detections(nodes, boxes, logits, anchors, scale, to, _OVERLAP)

    letterbox = replace(prepared, letterbox=True, outside="zeros")
    return Kind(name, build, letterbox, {"keypoints": points})


def _listed(network: Network) -> Kind | None:
    """A detector that ends in TFLite's own post-processing."""
    if network.last() != _POSTPROCESS or len(network.outputs) != 4:
        return None
    last = next(
        op for op in reversed(network.graph.operators) if network.graph.outputs[0] in op.outputs
    )
    if sorted(last.outputs) != sorted(network.graph.outputs):
        return None
    order = [network.graph.outputs.index(index) for index in last.outputs]

    def build(nodes: Nodes, raw: list[str], to: Projection) -> Outputs:
        boxes, classes, sure, count = (raw[place] for place in order)
        return listed_detections(nodes, boxes, classes, sure, count, to)

    prepared = network.prepared(FROM_MINUS_ONE, "detector of its kind")
    options = b"" if last.custom_options is None else bytes(last.custom_options)
    given = custom_options(options)
    told = given.get("num_classes") if isinstance(given, Mapping) else None
    return Kind("object detector", build, prepared, classes=told if isinstance(told, int) else 0)


def _scored(network: Network) -> Kind | None:
    """A detector of several classes, whose metadata tells its anchors."""
    said = read_detector(network.told)
    if said is None or said.ssd_anchors_options is None or said.tensors_decoding_options is None:
        return None
    listed, how = said.ssd_anchors_options.fixed_anchors_schema, said.tensors_decoding_options
    anchors = listed.anchors if listed is not None else ()
    places = _places_of(network, ("location", "score"))
    shapes = [network.outputs[place] for place in places]
    count, classes, scale = len(anchors), how.num_classes, (how.y_scale, how.x_scale)
    scales = np.array([*scale, how.h_scale, how.w_scale], np.float32)
    if shapes != [(1, count, max(how.num_coords, 4)), (1, count, classes)] or not scales.all():
        return None
    boxes = [(each.y_center, each.x_center, each.height, each.width) for each in anchors]
    scored = Scored(np.array(boxes), scales, how.apply_exponential_on_box_size, how.sigmoid_score)
    return _object_detector(network, places, classes, scored, FROM_MINUS_ONE)


def _object_detector(
    network: Network,
    places: Sequence[int],
    classes: int,
    how: Scored,
    normalization: Normalization,
) -> Kind:
    """A detector whose outputs at `places` are boxes and scores."""

    def build(nodes: Nodes, raw: list[str], to: Projection) -> Outputs:
        located, sure = (raw[place] for place in places)
        return scored_detections(nodes, located, sure, classes, how, to, _OVERLAP)

    prepared = network.prepared(normalization, "detector of its kind")
    return Kind("object detector", build, prepared, classes=classes)


def _efficientdet(network: Network) -> Kind | None:
    """An EfficientDet whose metadata tell nothing: its anchors are those that were published."""
    shapes, size = network.outputs, network.picture
    if size is None or len(shapes) != 2 or {len(shape) for shape in shapes} != {3}:
        return None
    places = _places_of(network, ("location", "score"))
    if shapes[places[0]][2] != 4:
        places = places[::-1]
    (_, count, numbers), (_, scored, classes) = (shapes[place] for place in places)
    if (numbers, scored) != (4, count) or classes < 1:
        return None
    for channels in network.read_by_heads(4 * PER_CELL):
        known = efficientdet_of(*size, channels, count)
        if known is not None:
            logits = network.maker(places[1]) != "LOGISTIC"
            how = Scored(known.anchors(size[0]), np.ones(4), exponential=True, sigmoid=logits)
            return _object_detector(network, places, classes, how, known.normalization)
    return None


def _places_of(network: Network, names: tuple[str, ...]) -> Sequence[int]:
    """Where the outputs of these names are; one after the other where the metadata names none."""
    told = [each.name for each in network.told.output_tensor_metadata]
    if len(network.outputs) != len(names):
        return ()
    found = [told.index(name) for name in names if told.count(name) == 1]
    return found if sorted(found) == list(range(len(names))) else range(len(names))


# By the elements of the outputs.
_LANDMARKS: Mapping[tuple[int, ...], tuple[str, Callable[..., Outputs]]] = {
    (63, 1, 1, 63): ("hand landmarks", landmarks.hand),
    (1404, 1): ("face landmarks", partial(landmarks.face, count=468)),
    (1434, 1): ("face landmarks", partial(landmarks.face, count=478)),
    (1434, 1, 1): ("face landmarks", partial(landmarks.face, count=478)),
    (1404, 160, 142, 142, 10, 10, 1): ("face landmarks", landmarks.face_with_attention),
    (213, 15): ("iris landmarks", landmarks.iris),
}


def _landmarks(network: Network) -> Kind | None:
    size = network.picture
    if size is None or size[0] != size[1]:
        return None
    name, decode = _LANDMARKS.get(network.sizes, ("", None))
    if network.wanted == _HAND_REGION and network.sizes == (4,):
        name, decode = _HAND_REGION, landmarks.hand_region
    if decode is None and _is_pose(network, size[0]):
        name, decode = "pose landmarks", landmarks.pose
    if decode is None:
        return None

    def build(nodes: Nodes, raw: list[str], to: Projection) -> Outputs:
        return decode(nodes, raw, size[0], to)

    return Kind(name, build, network.prepared(FROM_ZERO, f"network for {name}"))


def _is_pose(network: Network, size: int) -> bool:
    shapes, sizes = network.outputs, network.sizes
    if len(sizes) != 5 or (sizes[0], sizes[1], sizes[2], sizes[4]) != (195, 1, size * size, 117):
        return False
    return len(shapes[3]) == 4 and shapes[3][3] == 39


def _blendshapes(network: Network) -> Kind | None:
    """How much a face shows of each expression, from some of its points."""
    if network.input != (1, len(BLENDSHAPE_POINTS), 2) or network.sizes != (len(BLENDSHAPES),):
        return None

    def build(nodes: Nodes, raw: list[str], to: Projection) -> Outputs:
        count = len(BLENDSHAPES)
        return {"scores": (nodes.reshape(raw[0], count), "float32", [count])}

    points = {"points": list(BLENDSHAPE_POINTS), "names": list(BLENDSHAPES)}
    return Kind("face blendshapes", build, None, points)


def _gestures(network: Network) -> Kind | None:
    """A vector of numbers that tells a hand's gesture, from its points."""
    tensors = [network.graph.tensors[index] for index in network.graph.inputs]
    shapes = [tuple(tensor.shape) for tensor in tensors]
    points = 3 * POINTS
    if [math.prod(shape) for shape in shapes] != [points, 1, points] or len(network.sizes) != 1:
        return None
    if any(tensor.type is not TensorType.FLOAT32 for tensor in tensors) or network.sizes[0] < 2:
        return None
    begin = partial(add_hand_inputs, shapes=shapes)
    return Kind("gesture embedder", partial(embedding, count=network.sizes[0]), begin=begin)


def _segmentation(network: Network) -> Kind | None:
    shapes = network.outputs
    if network.picture is None or len(shapes) != 1 or len(shapes[0]) != 4:
        return None
    first = network.input[3] != network.channels  # the mask has its channels first too
    channels, height, width = shapes[0][1:] if first else (shapes[0][3], *shapes[0][1:3])
    if min(height, width) < 2 or not 0 < channels <= 256:
        return None
    done, said = network.last() in _ACTIVATIONS, read_segmenter(network.told)
    told = done or network.labels or said is not None or network.wanted == INTERACTIVE
    if not told and _COARSEST * height < network.picture[0]:
        return None  # cells of a detector
    activation = "" if done else "Sigmoid" if channels == 1 else "Softmax"
    if said is not None:
        activation = said.activation_name
    elif network.wanted and network.described:
        activation = ""  # MediaPipe's tasks take what such a model gives

    def build(nodes: Nodes, raw: list[str], to: Projection) -> Outputs:
        planes = raw[0] if first else nodes.op("Transpose", raw[0], perm=[0, 3, 1, 2])
        return scores.masks(nodes, planes, channels, activation, to)

    how = network.prepared()
    if network.channels == 4:
        return None if how is None else pointed(network.wanted, how, build)
    return Kind(SEGMENTATION, build, how, classes=channels)


def _classifier(network: Network, *, said: bool = False) -> Kind | None:
    """Scores of classes, of a picture, of sound or of features.

    Args:
        said: the numbers are scores.
    """
    shapes, counts = network.outputs, network.sizes
    if network.wanted in _SCORED and counts and min(counts) > 0:
        return _scores(network, counts)
    if len(shapes) != 1 or not shapes[0] or counts[0] != shapes[0][-1] or counts[0] < 2:
        return None
    count = counts[0]
    # As many numbers as it takes are no classes but what was given, once more.
    ends = network.last() in ("SOFTMAX", "LOG_SOFTMAX") or (
        network.last() == "LOGISTIC" and shapes[0] != network.input
    )
    scored = said or ends or len(network.labels) == count
    if scored and network.wanted not in _VECTORS:
        return _scores(network, counts)
    build_vector = partial(embedding, count=count)
    if network.wanted == _HEARD:
        return Kind(_HEARD, build_vector, None, _sound_facts(network))
    return Kind("embedding", build_vector, network.prepared())


def _scores(network: Network, counts: Sequence[int]) -> Kind:
    """A network whose outputs are scores, of so many classes each."""
    classes = counts[0] if len(counts) == 1 else 0
    tensors = [network.graph.tensors[index] for index in network.graph.outputs]
    whole = [
        each.type is not TensorType.FLOAT32 and not quantization_of(each)[0] for each in tensors
    ]

    def build(nodes: Nodes, raw: list[str], to: Projection) -> Outputs:
        real = [
            nodes.cast(name, np.float32) if other else name
            for name, other in zip(raw, whole, strict=True)
        ]
        return scores.classes(nodes, real, counts)

    if network.wanted == "audio classifier" or _is_sound(network):
        return Kind("audio classifier", build, None, _sound_facts(network), classes=classes)
    return Kind("classifier", build, network.prepared(), classes=classes)


def _is_sound(network: Network) -> bool:
    if _sound_facts(network):
        return True
    return len(network.input) in (1, 2) and math.prod(network.input) >= _FEWEST_SAMPLES


def _sound_facts(network: Network) -> dict[str, Any]:
    for tensor in network.described[:1]:
        content = tensor.content.content_properties if tensor.content else None
        if isinstance(content, AudioProperties):
            return {"sample_rate": content.sample_rate, "channels": content.channels}
    return {}


def _letters(network: Network) -> Kind | None:
    """Scores of letters, one after the other, of speech (CTC)."""
    shapes = network.outputs
    if len(shapes) != 1 or len(shapes[0]) != 3 or not _is_sound(network):
        return None
    _, steps, letters = shapes[0]
    if shapes[0][0] != 1 or steps < 2 or letters < 2:
        return None

    def build(nodes: Nodes, raw: list[str], to: Projection) -> Outputs:
        best = nodes.op("ArgMax", raw[0], axis=2, keepdims=0)
        return {"tokens": (nodes.reshape(best, -1), np.int64, ["steps"])}

    return Kind("speech", build, None, _sound_facts(network), classes=letters)


def _named_scores(network: Network) -> Kind | None:
    """Scores of classes, whatever operator makes them."""
    return _classifier(network, said=True)


# By what they are called on the command line, in the order in which they are asked.
KINDS: Mapping[str, Callable[[Network], Kind | None]] = {
    "ssd": _listed,
    "ssd-anchors": _scored,
    "mediapipe-detector": _anchored,
    "efficientdet": _efficientdet,
    "yolo": yolo,
    "nanodet": nanodet,
    "movenet": movenet,
    "posenet": posenet,
    "landmarks": _landmarks,
    "blendshapes": _blendshapes,
    "segmentation": _segmentation,
    "letters": _letters,
    "vector": _classifier,
    "classes": _named_scores,
}
