"""Which points of the face mesh the outputs of the network with attention refine.

Points 0 to 467 are the mesh; 468 to 472 are the iris of one eye, its middle first, and 473 to 477
that of the other.
"""

from __future__ import annotations

LIPS = (
    *(61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291, 185, 40, 39, 37, 0, 267, 269, 270, 409),
    *(78, 95, 88, 178, 87, 14, 317, 402, 318, 324, 308, 191, 80, 81, 82, 13, 312, 311, 310, 415),
    *(76, 77, 90, 180, 85, 16, 315, 404, 320, 307, 306, 184, 74, 73, 72, 11, 302, 303, 304, 408),
    *(62, 96, 89, 179, 86, 15, 316, 403, 319, 325, 292, 183, 42, 41, 38, 12, 268, 271, 272, 407),
)
FIRST_EYELIDS = (33, 7, 163, 144, 145, 153, 154, 155, 133, 246, 161, 160, 159, 158, 157, 173)
FIRST_EYE = (
    *FIRST_EYELIDS,
    *(130, 25, 110, 24, 23, 22, 26, 112, 243, 247, 30, 29, 27, 28, 56, 190),
    *(226, 31, 228, 229, 230, 231, 232, 233, 244, 113, 225, 224, 223, 222, 221, 189),
    *(35, 124, 46, 53, 52, 65, 143, 111, 117, 118, 119, 120, 121, 128, 245),
    *(156, 70, 63, 105, 66, 107, 55, 193),
)
SECOND_EYELIDS = (263, 249, 390, 373, 374, 380, 381, 382, 362, 466, 388, 387, 386, 385, 384, 398)
SECOND_EYE = (
    *SECOND_EYELIDS,
    *(359, 255, 339, 254, 253, 252, 256, 341, 463, 467, 260, 259, 257, 258, 286, 414),
    *(446, 261, 448, 449, 450, 451, 452, 453, 464, 342, 445, 444, 443, 442, 441, 413),
    *(265, 353, 276, 283, 282, 295, 372, 340, 346, 347, 348, 349, 350, 357, 465),
    *(383, 300, 293, 334, 296, 336, 285, 417),
)
MESH_POINTS, IRIS_POINTS = 468, 5


def _attended() -> tuple[int, ...]:
    rows = list(range(MESH_POINTS))
    first = MESH_POINTS
    for places in (LIPS, FIRST_EYE, SECOND_EYE):
        for number, place in enumerate(places, first):
            rows[place] = number
        first += len(places)
    return (*rows, *range(first, first + 2 * IRIS_POINTS))


# Where a point is among the mesh, lips, eyes and irises one after the other, and where its depth is
# among those of the mesh and of the two irises. A point of several parts is of the last one.
ATTENDED = _attended()
ATTENDED_DEPTHS = (
    *range(MESH_POINTS),
    *(MESH_POINTS + eye for eye in (0, 1) for _ in range(IRIS_POINTS)),
)

# Of which points of a face the blendshape network reads x and y, in pixels of the picture.
BLENDSHAPE_POINTS = (
    *(0, 1, 4, 5, 6, 7, 8, 10, 13, 14, 17, 21, 33, 37, 39, 40, 46, 52, 53, 54, 55, 58, 61, 63, 65),
    *(66, 67, 70, 78, 80, 81, 82, 84, 87, 88, 91, 93, 95, 103, 105, 107, 109, 127, 132, 133, 136),
    *(144, 145, 146, 148, 149, 150, *range(152, 156), *range(157, 164), 168, 172, 173, 176, 178),
    *(181, 185, 191, 195, 197, 234, 246, 249, 251, 263, 267, 269, 270, 276, 282, 283, 284, 285),
    *(288, 291, 293, 295, 296, 297, 300, 308, 310, 311, 312, 314, 317, 318, 321, 323, 324, 332),
    *(334, 336, 338, 356, 361, 362, 365, 373, 374, 375, *range(377, 383), *range(384, 391), 397),
    *(398, 400, 402, 405, 409, 415, 454, 466, *range(468, 478)),
)
# What its scores are called.
BLENDSHAPES = (
    *("_neutral", "browDownLeft", "browDownRight", "browInnerUp", "browOuterUpLeft"),
    *("browOuterUpRight", "cheekPuff", "cheekSquintLeft", "cheekSquintRight", "eyeBlinkLeft"),
    *("eyeBlinkRight", "eyeLookDownLeft", "eyeLookDownRight", "eyeLookInLeft", "eyeLookInRight"),
    *("eyeLookOutLeft", "eyeLookOutRight", "eyeLookUpLeft", "eyeLookUpRight", "eyeSquintLeft"),
    *("eyeSquintRight", "eyeWideLeft", "eyeWideRight", "jawForward", "jawLeft", "jawOpen"),
    *("jawRight", "mouthClose", "mouthDimpleLeft", "mouthDimpleRight", "mouthFrownLeft"),
    *("mouthFrownRight", "mouthFunnel", "mouthLeft", "mouthLowerDownLeft", "mouthLowerDownRight"),
    *("mouthPressLeft", "mouthPressRight", "mouthPucker", "mouthRight", "mouthRollLower"),
    *("mouthRollUpper", "mouthShrugLower", "mouthShrugUpper", "mouthSmileLeft", "mouthSmileRight"),
    *("mouthStretchLeft", "mouthStretchRight", "mouthUpperUpLeft", "mouthUpperUpRight"),
    *("noseSneerLeft", "noseSneerRight"),
)
