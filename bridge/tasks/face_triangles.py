"""The triangles of MediaPipe's face mesh."""

from __future__ import annotations

import base64

import numpy as np

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
