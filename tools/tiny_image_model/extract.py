#!/usr/bin/env python3
"""Packs colour bitmaps and names of emoji into one file for train.py.

Needs Debian's fonts-noto-color-emoji, unicode-data and unicode-cldr-core, and PyPI's fonttools,
numpy and pillow. Flags and sequences with a skin tone are left out.

    extract.py emoji.npz

The file holds `images` (count, 128, 128, 4) uint8 RGBA, not premultiplied, and `items`, JSON: for
each picture its name, group and keywords.
"""
import argparse
import io
import json
import xml.etree.ElementTree as ElementTree


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out")
    return parser.parse_args()


OPTIONS = read_options() if __name__ == "__main__" else None

# Below the options, so that --help works without them.
import numpy as np  # noqa: E402
from fontTools.ttLib import TTFont  # noqa: E402
from PIL import Image  # noqa: E402

FONT = "/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf"
NAMES = "/usr/share/unicode/emoji/emoji-test.txt"
KEYWORDS = ("/usr/share/unicode/cldr/common/annotations/en.xml",
            "/usr/share/unicode/cldr/common/annotationsDerived/en.xml")
SIDE = 128
VARIATION_SELECTOR = 0xFE0F


def read_names(path):
    """(code points, name, group) of each fully-qualified sequence that is no flag or skin tone."""
    group, found = "", []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("# group:"):
                group = line.split(":", 1)[1].strip()
            if "; fully-qualified" not in line:
                continue
            codes, rest = line.split(";", 1)
            name = rest.split("#", 1)[1].split(maxsplit=2)[2].strip()
            if group == "Flags" or "skin tone" in name:
                continue
            found.append(([int(code, 16) for code in codes.split()], name, group))
    return found


def read_keywords(paths):
    """Keywords of each sequence, the variation selector left out of its text."""
    keywords = {}
    for path in paths:
        for node in ElementTree.parse(path).getroot().iter("annotation"):
            if node.get("type") == "tts" or not node.text:
                continue
            text = node.get("cp").replace(chr(VARIATION_SELECTOR), "")
            keywords[text] = [word.strip() for word in node.text.split("|")]
    return keywords


class Glyphs:
    """Bitmaps of the font's largest strike, found by code points."""

    def __init__(self, path):
        font = TTFont(path)
        self.characters = font.getBestCmap()
        self.bitmaps = font["CBDT"].strikeData[0]
        self.ligatures = {}
        for lookup in font["GSUB"].table.LookupList.Lookup:
            for table in lookup.SubTable:
                table = getattr(table, "ExtSubTable", table)
                for first, entries in getattr(table, "ligatures", {}).items():
                    for entry in entries:
                        self.ligatures[(first, *entry.Component)] = entry.LigGlyph

    def find(self, codes):
        """The bitmap as an RGBA image; None when the font has none for the whole sequence."""
        names = tuple(self.characters.get(code) for code in codes if code != VARIATION_SELECTOR)
        if len(names) > 1:
            names = (self.ligatures.get(names),)
        if names[0] is None or names[0] not in self.bitmaps:
            return None
        return Image.open(io.BytesIO(self.bitmaps[names[0]].imageData)).convert("RGBA")


def square(image):
    """The picture in the middle of a transparent square, as SIDE x SIDE pixels."""
    side = max(image.size)
    canvas = Image.new("RGBA", (side, side))
    canvas.paste(image, ((side - image.width) // 2, (side - image.height) // 2))
    premultiplied = np.asarray(canvas, np.float32)
    premultiplied[..., :3] *= premultiplied[..., 3:] / 255
    planes = [Image.fromarray(premultiplied[..., c]) for c in range(4)]
    channels = [np.asarray(plane.resize((SIDE, SIDE), Image.LANCZOS)) for plane in planes]
    small = np.stack(channels, axis=-1)
    alpha = np.clip(small[..., 3:], 0, 255)
    colour = np.where(alpha > 0, small[..., :3] * 255 / np.maximum(alpha, 1e-3), 0)
    return np.concatenate([np.clip(colour, 0, 255), alpha], axis=-1).round().astype(np.uint8)


def main(out):
    glyphs, keywords = Glyphs(FONT), read_keywords(KEYWORDS)
    images, items, missing = [], [], []
    for codes, name, group in read_names(NAMES):
        image = glyphs.find(codes)
        if image is None:
            missing.append(name)
            continue
        text = "".join(chr(code) for code in codes if code != VARIATION_SELECTOR)
        images.append(square(image))
        items.append({"name": name, "group": group, "keywords": keywords.get(text, [])})
    np.savez_compressed(out, images=np.stack(images), items=np.array(json.dumps(items)))
    print(f"{len(items)} pictures in {out}; without one: {', '.join(missing) or 'none'}")


if __name__ == "__main__":
    main(OPTIONS.out)
