"""Which landmarks are joined where they are drawn, as ``mediapipe.tasks.python.vision`` says it."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

# The triangles of MediaPipe's face mesh.

# The three points of each of 852 triangles, 9 bits a point.
_PACKED = (
    "P4iRYLAAldDnPBIEonQB5F7oPKANBFIavVaUOwyMpJE4oBKXNgwOaDYTMaZKFC5KAqW4oLi6czlOzKajWKYSCJMHqS"
    "UAdDw4TqtNTMYSHazAZalMQVI5EGYtAiQDAXJqSLbNGS7ZLICRbNS2LRbWpVKgRZzLEiUVaMLgoE7BXr0T6eDj3eyh"
    "dgDYg2IhoYKoBB1cgfXrBG5iMJjPwvMimJ7aTaaDTRGKDQ6ISwvPzZb40GotGaGaaqRhDIpsFZqLbmO54cSCe4/Go0"
    "dwUeQuIycJw+MAuGo/R4icZ7OpvFh9CbsQwzbDOZqaTIWE4lU7IZLQEiOMg5ajKCg8MYcTydEbiOKgT4bZjKaRxcIu"
    "FbKZg+JhNRJ7OgpExIZaBRxAMTwGJmIApJJKajYZ4qJS4VKqaaqSqwNJCIp6AyoPaTXZgJpaII3NZZLS0MpkPA/NJo"
    "LqJcYPKxVQJmGIOK5WG4IBJkF55SIXCxYLKzAx6YhYL5gRSsRDXHSsOYwbYqKBRYYDGYrSQ9VavY5RKQmGoucKQUZu"
    "GhBITlch1ER/dRrNhFNpsS4wIDrHxOX6BaJ+N4jR51PYybxBGgTPqNbo3IIDYbFDIHELcdosIxHRZ6YL1e6CEJHCqi"
    "VSpSy8VzEbC6LgCMKnRp9eKkU4lJAmBgmKQNH5EI7iEZvMoyZrOLilaLGbKlU5hbhzbSFODzd7ueLWQ6pXytQqraAg"
    "PosdpWK6yKpWWZUKq0KZUWrJKa2RJdQhMHy3HpMXA5Hq5ag5XTWZ67ESPThPd7tPaJWIsAIEZLCEBAMyBarXRQ7Uzb"
    "eRjMICLyNJY7dYYNzkDKCcQXDDlCwXcwaCznOAadC9Xzzbo4XwcHDdDYcbwdDbfDwdcD3DzhdxPCimHZLHhLeCTWLX"
    "ChPUy7SbVODpejpQD1QByXhybKuQZzbjZYzsYyDQyxQg6R4jPhuUYHchuDNkwtwBcuhfEr1dl0vhtlq8V4nFstNpkp"
    "V6YvNbrlKl8whwJqFRi0XtGig2vmGYzM2z+Xh2ZzXCrlb02u2U5nQRmUzu+DwkEj2ex1Py2itlv0Gns1HfcclUZAoE"
    "ut2fszoFB1OrzelnISoOVy1AymVnYQCOq1MKvOQuNCw8N0PR6GCgMC6UEwnIx+jjlMpuhjoIrVUgud3Mdo/MpFjudJ"
    "xG321+qsA1uktFsxV7itX2u73kbie4tevg1xlNSqMRu9B4XDru+q3TktOjXK5vOilhv80olFikskt0rO/sFZqkSAIT"
    "5D4jO01epvsAfkNw+JZDH1kKpVJj8R0z651IgUewEJsNWwcDgOo1+uq1hikRp+oklFmdu39Zh8vl2nhVzk3H5kXi0m"
    "h8QmGw2WriGXzGK12vxdxyFOpsrr+hVFgjGbos/oEnlFQn+TylKrldksqptD42/B4Qndm1sXBwPnkdqAJpNdr12vj8"
    "n2SyYGYujn0/otvtlt2dvxtY223iEPm7DAsZiMfkeM1jHm8Phkb3m9ur+qcap0o4NbrUI3/GqEoldSBSXi2348ky+f"
    "s1zsdUrN0rVbjG63caCZeuW53UnfGjYsHf9n3ETiUsv9wr+c6MH6fSltwwuLvV7zlf0e01VCASkxNy53NUgAhcuBYM"
    "hgMBsllkt30FqlKhWp1Wnw+tse1w9Ho245O2qt+tXL5PN2WuxWe59qxlxg1i5vJnmTyU7ymTnWVyk5y2V0uiy1uyNp"
    "mWYy8jzOYj+azOw2ma2WgzcIuF/mu25NgvGRiUTAml1kGk1Hs2x0FvkPH2/OuVGAVGuUx5nHf3B4D/gu+fvC4L84fC"
    "gHE4dV4vEzvQ5+5zuegW63MB3e6ge83cE3u86dW3vL5T6kOIkUipHMvGx2b6kWIzeg2NV5/Q4vQ6Nl6Ocq+cx9ote4"
    "2uP5Gk5FryOzkF0v9hqb/fPAgr/QrzXyFTZwEL2e4hQQZx2Aj1qx2etXPqsHs/Tg75f/S6cEJY8Uzud5PUR/RZIBYl"
    "PLoPBJJAnOSAF7pdCAM5oIaYV6UO52MpKJIoNYJNgxGCDEDCaa4JS5X5QW65FC6O7mOzSZTWKhTCJNJiSUKgDy+HCt"
    "WxqYSKQ7AQLLMQ2CpEAozAiRSAXLRNLbPZq7KbJCS1La2WhaWoQKoRZrOEiwSiMUpcE71YL0DafDgee6hVzsYhnGxo"
    "G7BBBvOofbq9G7wMRjRx+MjbUzaOCbDTGaKDVKHSxyF7ZcDfGrcFqGEDTRhtIZsSQrLbncx4OLie5pH40eLueR8Fyc"
    "L5OMBGFw/OiPcZ0PZvAIsCYDdgzZ7YZoaTQWUonU7HZDQMokMgrHLKeQUMY4DidPgjOIdUAbabMaR8OIuNQrZhgHxN"
    "caJOhJFJIEjLRzrIDwGAxIAqFJKazUZ63FS4aSpaaMVSwNBpIrBPSoGR7XZZMBaIRBNazLK0O5lPBEH5odRdcYQB5V"
    "aKBGIPBxWNY3BJ4Mh5TKRCyyLCzYoGYhZLBgQ6KRCKa6sbRzbYpFRRArDGY5FY9aCrY4pKImcA1cIYSBuNI0IR2cp1"
    "cYidRCNZFBRtS7bGDrW4+X6OQJ+OhvR52Ooyb7eGheCaNbzdILEAbFFrcFicIyLXh6eqLI6iSqqSx6XjEZzYLikASn"
    "eSNeIAUglBZIBgMEwNIw/I4fcRvEhlZrLZylPzRbJiUphdrcbTtd7xaTWVKMVYgeJ9dqzKyyWhVWa1Ki0WxTWrCZK2"
    "WKJQi4Ji3XI9XC6HK5bDUXTAay7RYiTjaJ7tSZ7WItFgEaDJEBiICBYDVRTrHbbRryMJhASNeBLdblDDkD4ZcTmC7l"
    "c4WczoDTndJwdD0XrzXrdXzeDjdb4bbzgDrfcIecBxe7hMY8eDVSbXHgUUzAXbVeZwej0dL1eqAXi8OSuQyDbiubLs"
    "djGQzXWI6TiPPgZNwHD7kDMIslwAALhfD4ldhcuhtessVr3EssrpspxivvMYrdKhsvhyXBNRrEWtGo0Wvh0wzMQm2X"
    "oUOzXB4Vb2Gm2QSnIRkcyu8DwcE1FP0Wytmgw+no8tfcqicZAj+ur9u8zoMY1ObZGlCVPoOWoNAys6nYR0+qhWMvNx"
    "h1Chud0PQwOCgT45GjlUcpqo0II4Faguhzsdo1HpEVsdJmuI219v0Ai+ttFttl7scV2sa3cbjMTteL19xlcpqNPiNB"
    "rnCrtn33TjcljT65XOlkUv8kmlFjcUksIum/rVgqliiQTtfIjOq2mpvl9fkLhuJ0rI1lzhVJ2Ef00ifVIwMCwG+hNW"
    "wWDgOm1Gu3tWimmiOomUkmdgt1ZhkPl1m09zo8m5lLi8ml8PmG02GrmEQzGLxWvvWLyEop0rA1fVF4sGbmdFoEdk9Q"
    "oE/ylJpVdp0lptuoe/ngPndLs0XnoOngIjoJitJrz9uz8n8+ydfA2jok+ouNt9tkGzxsWrG3m0Qm74YcZu8RkavxjH"
    "nE3hkUje9w11qcnjUo4HBrVkhHGqNQldRqSXk0W480kmf1tmscJql0sFajEn3UasQTuUd3MnYb4YvJ3ESlssuGhr/R"
    "fctwuKxd7x+c0ea2lCowCxNiuXNxKkhcMlwMnEMBsqksthO+qkYpWpoWqw+k1u1xOHo1Y3G25XL5ts2WK1mMg0SsXJ"
    "ns8yU8neTnc6yk6nOVnOly1Dt1pkkyy8ykeYkcfzMf2Ga1eyzd0hF/5c15NusGRAMSAmi0sGpcms2z2NvxEh29I51G"
    "LwCuUhmPHqb+4Fnf++fz94L9fnCfkA4cAqvEz2d58e3Oej0C3MCgO6gMD3cDgm8gnT3s15b6mMhkUxkXMyN42c1fWI"
    "vGb2PFqvQsvF6NXsuc2tXx9YtG40m15Fo0lrtORkEJulhw1TfNT4D/A="
)


def triangles() -> list[list[int]]:
    """The three points of each triangle."""
    bits = np.unpackbits(np.frombuffer(base64.b64decode(_PACKED), np.uint8))
    points = bits[: len(bits) // 27 * 27].reshape(-1, 9) @ (1 << np.arange(8, -1, -1))
    found: list[list[int]] = points.reshape(-1, 3).tolist()
    return found


@dataclass
class Connection:
    """A line from one landmark to another."""

    start: int
    end: int


Connections = list[Connection]


def _joined(*chains: Iterable[int]) -> Connections:
    """Each point of a chain with the next one."""
    return [Connection(*pair) for chain in chains for pair in pairwise(chain)]


def _ring(*points: int) -> Sequence[int]:
    return (*points, points[0])


class HandLandmarksConnections:
    """Lines between the 21 points of a hand."""

    Connection = Connection

    HAND_PALM_CONNECTIONS: ClassVar = _joined((0, 1, 5), (9, 13, 17), (5, 9), (0, 17))
    HAND_THUMB_CONNECTIONS: ClassVar = _joined(range(1, 5))
    HAND_INDEX_FINGER_CONNECTIONS: ClassVar = _joined(range(5, 9))
    HAND_MIDDLE_FINGER_CONNECTIONS: ClassVar = _joined(range(9, 13))
    HAND_RING_FINGER_CONNECTIONS: ClassVar = _joined(range(13, 17))
    HAND_PINKY_FINGER_CONNECTIONS: ClassVar = _joined(range(17, 21))
    HAND_CONNECTIONS: ClassVar = [
        *HAND_PALM_CONNECTIONS,
        *HAND_THUMB_CONNECTIONS,
        *HAND_INDEX_FINGER_CONNECTIONS,
        *HAND_MIDDLE_FINGER_CONNECTIONS,
        *HAND_RING_FINGER_CONNECTIONS,
        *HAND_PINKY_FINGER_CONNECTIONS,
    ]


class PoseLandmarksConnections:
    """Lines between the 33 points of a body."""

    Connection = Connection

    POSE_LANDMARKS: ClassVar = _joined(
        *((0, 1, 2, 3, 7), (0, 4, 5, 6, 8), (9, 10), (11, 12)),
        *((11, 13, 15, 17), (15, 19), (15, 21), (17, 19)),
        *((12, 14, 16, 18), (16, 20), (16, 22), (18, 20)),
        *((11, 23), (12, 24), (23, 24), (23, 25), (24, 26), (25, 27), (26, 28)),
        *((27, 29), (28, 30), (29, 31), (30, 32), (27, 31), (28, 32)),
    )


# Of the lips, outside and inside: from the right corner to the left one, below and above.
_LIPS = (
    (61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291),
    (61, 185, 40, 39, 37, 0, 267, 269, 270, 409, 291),
    (78, 95, 88, 178, 87, 14, 317, 402, 318, 324, 308),
    (78, 191, 80, 81, 82, 13, 312, 311, 310, 415, 308),
)
_LEFT_EYE = (
    (263, 249, 390, 373, 374, 380, 381, 382, 362),
    (263, 466, 388, 387, 386, 385, 384, 398, 362),
)
_RIGHT_EYE = (
    (33, 7, 163, 144, 145, 153, 154, 155, 133),
    (33, 246, 161, 160, 159, 158, 157, 173, 133),
)
_OVAL = _ring(
    *(10, 338, 297, 332, 284, 251, 389, 356, 454, 323, 361, 288, 397, 365, 379, 378, 400, 377),
    *(152, 148, 176, 149, 150, 136, 172, 58, 132, 93, 234, 127, 162, 21, 54, 103, 67, 109),
)


# Down the bridge, and around the nostrils.
_NOSE = (
    (168, 6, 197, 195, 5, 4, 1, 19, 94, 2),
    (98, 97, 2, 326, 327, 294, 278, 344, 440, 275, 4, 45, 220, 115, 48, 64, 98),
)


class FaceLandmarksConnections:
    """Lines between the 478 points of a face."""

    Connection = Connection

    FACE_LANDMARKS_LIPS: ClassVar = _joined(*_LIPS)
    FACE_LANDMARKS_LEFT_EYE: ClassVar = _joined(*_LEFT_EYE)
    FACE_LANDMARKS_LEFT_EYEBROW: ClassVar = _joined(
        (276, 283, 282, 295, 285), (300, 293, 334, 296, 336)
    )
    FACE_LANDMARKS_LEFT_IRIS: ClassVar = _joined(_ring(474, 475, 476, 477))
    FACE_LANDMARKS_RIGHT_EYE: ClassVar = _joined(*_RIGHT_EYE)
    FACE_LANDMARKS_RIGHT_EYEBROW: ClassVar = _joined((46, 53, 52, 65, 55), (70, 63, 105, 66, 107))
    FACE_LANDMARKS_RIGHT_IRIS: ClassVar = _joined(_ring(469, 470, 471, 472))
    FACE_LANDMARKS_FACE_OVAL: ClassVar = _joined(_OVAL)
    FACE_LANDMARKS_NOSE: ClassVar = _joined(*_NOSE)
    FACE_LANDMARKS_CONTOURS: ClassVar = [
        *FACE_LANDMARKS_LIPS,
        *FACE_LANDMARKS_LEFT_EYE,
        *FACE_LANDMARKS_LEFT_EYEBROW,
        *FACE_LANDMARKS_RIGHT_EYE,
        *FACE_LANDMARKS_RIGHT_EYEBROW,
        *FACE_LANDMARKS_FACE_OVAL,
    ]
    FACE_LANDMARKS_TESSELATION: ClassVar = _joined(*(_ring(*each) for each in triangles()))
