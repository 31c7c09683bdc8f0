"""PNG files of 8 bits in RGB, as `rbee imagine` writes them, with the standard library."""
import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
KEPT = (b"IHDR", b"IDAT", b"IEND")  # other chunks hold texts


def chunks_of(data):
    at = len(SIGNATURE)
    while at + 12 <= len(data):
        length = struct.unpack(">I", data[at:at + 4])[0]
        yield data[at + 4:at + 8], data[at + 8:at + 8 + length], data[at:at + 12 + length]
        at += 12 + length


def without_texts(data):
    return SIGNATURE + b"".join(whole for kind, _, whole in chunks_of(data) if kind in KEPT)


def paeth(left, up, corner):
    guess = left + up - corner
    return min((left, up, corner), key=lambda value: abs(guess - value))


def pixels_of(data):
    """Width, height, and the bytes of all rows."""
    chunks = [(kind, content) for kind, content, _ in chunks_of(data)]
    width, height, depth, colours = struct.unpack(">IIBB", dict(chunks)[b"IHDR"][:10])
    if (depth, colours) != (8, 2):
        raise ValueError("not a PNG of 8 bits in RGB")
    raw = zlib.decompress(b"".join(content for kind, content in chunks if kind == b"IDAT"))
    step, out, above = 3, bytearray(), bytes(3 * width)
    for row in range(height):
        begin = row * (step * width + 1)
        method, line = raw[begin], bytearray(raw[begin + 1:begin + 1 + step * width])
        for i in range(len(line)):
            left, corner = (line[i - step], above[i - step]) if i >= step else (0, 0)
            line[i] = line[i] + (0, left, above[i], (left + above[i]) // 2, paeth(left, above[i], corner))[method] & 255
        out += line
        above = line
    return width, height, bytes(out)


def difference(first, second):
    """The mean and the most of the differences of two files' values, of 255."""
    a, b = pixels_of(first), pixels_of(second)
    if a[:2] != b[:2]:
        raise ValueError("pictures of two sizes")
    steps = [abs(x - y) for x, y in zip(a[2], b[2])]
    return sum(steps) / len(steps), max(steps)
