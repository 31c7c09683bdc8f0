"""Scenes of the tiny image model: which pictures stand where on which background, their captions,
and their pixels."""
import json
import random

import numpy as np
import torch
import torch.nn.functional as functional

SIDE = 128
COLOURS = {
    "white": (255, 255, 255), "black": (0, 0, 0), "grey": (128, 128, 128), "red": (220, 30, 40),
    "orange": (255, 140, 0), "yellow": (255, 225, 50), "green": (40, 160, 60),
    "teal": (0, 150, 150), "blue": (40, 80, 220), "purple": (130, 50, 170),
    "pink": (255, 150, 190), "brown": (120, 75, 40),
}
# Column, row in -1, 0, 1 -> how a caption says it.
PLACES = {
    (-1, -1): "in the top left", (0, -1): "at the top", (1, -1): "in the top right",
    (-1, 0): "on the left", (0, 0): "in the middle", (1, 0): "on the right",
    (-1, 1): "in the bottom left", (0, 1): "at the bottom", (1, 1): "in the bottom right",
}
PLACE_LIST = list(PLACES)
RELATIONS = ("left of", "above")
JITTER = 6  # of background colours, in 255ths
SMALL, BIG = 0.58, 0.8  # scales below and above which a caption may say so


def load_bank(path):
    """(pictures (count, 128, 128, 4) uint8, list of {name, group, keywords})"""
    data = np.load(path)
    return data["images"], json.loads(str(data["items"]))


def held_out(count):
    """(count, colours) bool: pairs of picture and background that training never shows."""
    rng = np.random.default_rng(2026)
    pairs = rng.random((count, len(COLOURS))) < 0.05
    for item in rng.choice(count, 40, replace=False):
        pairs[item, rng.choice(len(COLOURS), 3, replace=False)] = True
    return pairs


def draw_scenes(count, items, seed):
    """Parameters of `count` scenes as a dictionary of arrays."""
    rng = np.random.default_rng(seed)
    kind = rng.random(count)  # below .5 large and central, below .9 anywhere, else two pictures
    item = rng.integers(items, size=count)
    second = np.where(kind >= 0.9, rng.integers(items, size=count), -1)
    background = rng.integers(len(COLOURS), size=count)
    forbidden = held_out(items)
    for _ in range(60):
        bad = forbidden[item, background] | ((second >= 0) & forbidden[second, background])
        background[bad] = rng.integers(len(COLOURS), size=int(bad.sum()))
    place = np.where(kind < 0.5, PLACE_LIST.index((0, 0)), rng.integers(9, size=count))
    scale = np.where(kind < 0.5, rng.uniform(0.65, 0.95, count), rng.uniform(0.42, 0.7, count))
    scale = np.where(kind >= 0.9, rng.uniform(0.4, 0.5, count), scale)
    return {
        "item": item, "second": second, "background": background, "place": place, "scale": scale,
        "relation": rng.integers(2, size=count),
        "slack": rng.uniform(0.7, 1.0, (count, 2)),  # share of the free margin that is used
        "shift": rng.uniform(-0.15, 0.15, (count, 2)),  # of it, for the middle
        "tint": rng.uniform(-JITTER, JITTER, (count, 3)),
    }


def part(scenes, first, last):
    """The scenes in [first, last)."""
    return {name: values[first:last] for name, values in scenes.items()}


def article(name):
    return ("an " if name[0] in "aeiou" else "a ") + name


def subject(item, scale, rng):
    """One picture in words."""
    roll, name = rng.random(), item["name"].lower()
    if roll < 0.12 and item["keywords"]:
        return ", ".join(rng.sample(item["keywords"], min(len(item["keywords"]),
                                                          rng.randint(1, 3))))
    if rng.random() < 0.5 and scale < SMALL:
        return "a small " + name
    if rng.random() < 0.4 and scale > BIG:
        return "a big " + name
    return article(name) if roll < 0.6 else name


def caption(scene, items, rng):
    """A caption of one scene (a dictionary of scalars), or nothing one time in ten."""
    if rng.random() < 0.1:
        return ""
    words = subject(items[scene["item"]], scene["scale"], rng)
    if scene["second"] >= 0:
        other = subject(items[scene["second"]], 0.7, rng)
        words = f"{words} {RELATIONS[scene['relation']]} {other}"
    elif rng.random() < (0.2 if PLACE_LIST[scene["place"]] == (0, 0) else 0.6):
        words += " " + PLACES[PLACE_LIST[scene["place"]]]
    if rng.random() < 0.75:
        colour = list(COLOURS)[scene["background"]]
        words += rng.choice((f" on {article(colour)} background", f" on {colour}",
                             f", {colour} background"))
    return words


def captions(scenes, items, seed, variants):
    """`variants` captions of each scene, as lists."""
    rng = random.Random(seed)
    fields = ("item", "second", "relation", "background", "place", "scale")
    rows = zip(*(scenes[name].tolist() for name in fields))
    return [[caption(dict(zip(fields, row)), items, rng) for _ in range(variants)] for row in rows]


class Painter:
    """Renders scenes on a device."""

    def __init__(self, images, scenes, device):
        pixels = torch.from_numpy(images).to(device).permute(0, 3, 1, 2).float() / 255
        pixels[:, :3] *= pixels[:, 3:]
        self.bank = pixels  # premultiplied
        self.device = device
        self.second = scenes["second"]  # on the host, so that no step waits for the device
        self.scenes = {name: self.upload(values) for name, values in scenes.items()}
        self.colours = self.upload(np.array(list(COLOURS.values()), np.float32))
        self.places = self.upload(np.array(PLACE_LIST, np.float32))

    def upload(self, values):
        wanted = np.float32 if values.dtype.kind == "f" else np.int64
        return torch.from_numpy(values.astype(wanted)).to(self.device, non_blocking=True)

    def layer(self, item, scale, centre):
        """Pictures at a scale around a centre in [-1, 1], premultiplied (n, 4, SIDE, SIDE)."""
        theta = torch.zeros(len(item), 2, 3, device=self.device)
        theta[:, 0, 0] = theta[:, 1, 1] = 1 / scale
        theta[:, :, 2] = -centre / scale[:, None]
        grid = functional.affine_grid(theta, (len(item), 4, 2 * SIDE, 2 * SIDE),
                                      align_corners=False)
        fine = functional.grid_sample(self.bank[item], grid, align_corners=False)
        return functional.avg_pool2d(fine, 2)

    def render(self, rows):
        """Pixels (n, 3, SIDE, SIDE) in [-1, 1] of the scenes with these numbers, a NumPy array."""
        pairs = self.upload(np.flatnonzero(self.second[rows] >= 0))
        rows = self.upload(rows)
        scene = {name: values[rows] for name, values in self.scenes.items()}
        scale, pair = scene["scale"], (scene["second"] >= 0)[:, None]
        place, free = self.places[scene["place"]], (1 - scale)[:, None]
        shift = free * scene["shift"]
        centre = place * free * scene["slack"] + (place == 0) * shift
        along = torch.nn.functional.one_hot(scene["relation"], 2).float()
        apart = along * 0.5 + shift * 0.2
        centre = torch.where(pair, -apart, centre)
        colour = self.colours[scene["background"]] + scene["tint"]
        image = (colour.clamp(0, 255) / 255)[:, :, None, None].expand(-1, -1, SIDE, SIDE)
        front = self.layer(scene["item"], scale, centre)
        image = front[:, :3] + image * (1 - front[:, 3:])
        if len(pairs):
            front = self.layer(scene["second"][pairs], scale[pairs], apart[pairs])
            image[pairs] = front[:, :3] + image[pairs] * (1 - front[:, 3:])
        return image.clamp(0, 1) * 2 - 1
