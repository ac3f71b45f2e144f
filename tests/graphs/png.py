"""The pixels of a PNG, without a library."""

from __future__ import annotations

import struct
import zlib


def read_png(data: bytes) -> tuple[int, int, list[tuple[int, ...]]]:
    """The pixels of a PNG with 8 bits a channel, as RGB."""
    at, found = 8, b""
    while at < len(data):
        (size,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", data[at + 8 : at + 18])
            assert depth == 8
        if kind == b"IDAT":
            found += data[at + 8 : at + 8 + size]
        at += 12 + size
    channels = {2: 3, 6: 4}[colour]
    raw, stride = zlib.decompress(found), width * channels
    above = bytearray(stride)
    pixels = []
    for row in range(height):
        start = row * (stride + 1)
        method, line = raw[start], bytearray(raw[start + 1 : start + 1 + stride])
        for k in range(stride):
            left = line[k - channels] if k >= channels else 0
            corner = above[k - channels] if k >= channels else 0
            line[k] = (line[k] + _predicted(method, left, above[k], corner)) & 255
        pixels += [tuple(line[k : k + 3]) for k in range(0, stride, channels)]
        above = line
    return width, height, pixels


def _predicted(method: int, left: int, up: int, corner: int) -> int:
    if method < 4:
        return (0, left, up, (left + up) // 2)[method]
    return min((left, up, corner), key=lambda one: abs(left + up - corner - one))
