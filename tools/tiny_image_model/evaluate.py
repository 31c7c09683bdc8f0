#!/usr/bin/env python3
"""Measures a tiny image model by what it draws: is it the thing that the prompt names, on the
background and in the place that it says?

    evaluate.py --bank emoji.npz --model FOLDER --device cuda      pictures by diffusers
    evaluate.py --bank emoji.npz --worker http://127.0.0.1:8081    pictures by a worker

Prints a table; --sheet writes a contact sheet of 64 prompts, --json the figures.
"""
import argparse
import base64
import io
import json
import urllib.request


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bank", required=True)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--model")
    source.add_argument("--worker")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--scale", type=float, default=4)
    parser.add_argument("--share", type=float, default=1, help="of the prompts")
    parser.add_argument("--sheet")
    parser.add_argument("--json")
    return parser.parse_args()


OPTIONS = read_options() if __name__ == "__main__" else None

# Below the options, so that --help works without them.
import numpy as np  # noqa: E402
from PIL import Image, ImageDraw, ImageFilter  # noqa: E402

import scenes as scenery  # noqa: E402

KIND_GROUPS = ("Objects", "Animals & Nature", "Food & Drink")
SEEDS = 4


def plain(name):
    return scenery.article(name.lower())


def prompt_set(items, rng):
    """All prompts as dictionaries: text, seed, kind and what the kind wants to see."""
    prompts, forbidden = [], scenery.held_out(len(items))
    usual = [i for i, item in enumerate(items) if item["group"] in KIND_GROUPS]
    others = [i for i, item in enumerate(items) if item["group"] not in KIND_GROUPS]
    for item in [*rng.choice(usual, 140, replace=False), *rng.choice(others, 60, replace=False)]:
        for seed in range(SEEDS):
            prompts.append({"kind": "retrieval", "item": int(item), "seed": seed,
                            "text": f"{plain(items[item]['name'])} on a white background"})
    colours = list(scenery.COLOURS)
    for kind, wanted, each in (("colour", False, 25), ("held-out colour", True, 12)):
        for place, colour in enumerate(colours):
            fitting = [i for i in usual if forbidden[i, place] == wanted]
            for item in rng.choice(fitting, min(each, len(fitting)), replace=False):
                prompts.append({"kind": kind, "item": int(item), "seed": len(prompts),
                                "colour": place,
                                "text": f"{plain(items[item]['name'])} on "
                                        f"{scenery.article(colour)} background"})
    for place, words in scenery.PLACES.items():
        for item in rng.choice(usual, 12, replace=False):
            prompts.append({"kind": "place", "item": int(item), "seed": len(prompts),
                            "place": place,
                            "text": f"a small {items[item]['name'].lower()} {words} on a white "
                                    f"background"})
    return prompts


class Diffusers:
    def __init__(self, folder, device, steps, scale):
        import torch
        from diffusers import DPMSolverMultistepScheduler, StableDiffusionPipeline
        self.torch, self.steps, self.scale = torch, steps, scale
        self.pipe = StableDiffusionPipeline.from_pretrained(folder, torch_dtype=torch.float32)
        self.pipe.scheduler = DPMSolverMultistepScheduler.from_config(
            self.pipe.scheduler.config, use_karras_sigmas=True)
        self.pipe.to(device).set_progress_bar_config(disable=True)

    def __call__(self, prompts):
        for first in range(0, len(prompts), 100):
            part = prompts[first:first + 100]
            seeds = [self.torch.Generator("cpu").manual_seed(p["seed"]) for p in part]
            yield from self.pipe([p["text"] for p in part], generator=seeds, height=scenery.SIDE,
                                 width=scenery.SIDE, num_inference_steps=self.steps,
                                 guidance_scale=self.scale).images


class Worker:
    def __init__(self, url, steps, scale):
        self.url, self.steps, self.scale = url, steps, scale

    def __call__(self, prompts):
        for prompt in prompts:
            body = {"prompt": prompt["text"], "seed": prompt["seed"], "steps": self.steps,
                    "guidance_scale": self.scale, "size": f"{scenery.SIDE}x{scenery.SIDE}",
                    "sampler": "dpm++ 2m", "schedule": "karras"}
            request = urllib.request.Request(self.url + "/v1/images/generations",
                                             json.dumps(body).encode(),
                                             {"Content-Type": "application/json"})
            with urllib.request.urlopen(request) as reply:
                data = json.load(reply)["data"][0]["b64_json"]
            yield Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")


def to_lab(image):
    """CIE L*a*b* (D65) of sRGB (..., 3) in 0..1."""
    linear = np.where(image <= 0.04045, image / 12.92, ((image + 0.055) / 1.055) ** 2.4)
    xyz = linear @ np.array([[0.4124, 0.2126, 0.0193], [0.3576, 0.7152, 0.1192],
                             [0.1805, 0.0722, 0.9505]]) / np.array([0.9505, 1, 1.089])
    root = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.stack([116 * root[..., 1] - 16, 500 * (root[..., 0] - root[..., 1]),
                     200 * (root[..., 1] - root[..., 2])], axis=-1)


def border_colour(pixels):
    """Median over a border of 8 pixels, 0..255."""
    inner = np.ones(pixels.shape[:2], bool)
    inner[8:-8, 8:-8] = False
    return np.median(pixels[inner], axis=0)


def foreground(pixels):
    """Where a picture differs from its border's colour. Specks below 3 x 3 pixels do not count:
    autoencoders leave some in the corners."""
    differs = np.abs(pixels.astype(float) - border_colour(pixels)).max(-1) > 28
    opened = Image.fromarray(differs).convert("L").filter(ImageFilter.MinFilter(3))
    return np.asarray(opened.filter(ImageFilter.MaxFilter(3))) > 0


def place_of(mask):
    """Column and row in -1, 0, 1 of the middle of a mask's bounding box."""
    place = []
    for axis in (0, 1):
        at = np.flatnonzero(mask.any(axis))
        middle = (at[0] + at[-1] + 1) / scenery.SIDE - 1 if len(at) else 0
        place.append(int(middle > 0.2) - int(middle < -0.2))
    return tuple(place)


def features(pixels, mask):
    """The masked part, stretched to 24 x 24 on white and blurred by it, in Lab."""
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    if len(rows) == 0:
        return np.tile(to_lab(np.ones(3)), (24, 24, 1)).ravel()
    box = (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
    small = Image.fromarray(pixels).crop(box).resize((24, 24), Image.BOX)
    return to_lab(np.asarray(small, float) / 255).ravel()


def bank_features(images):
    found = []
    for image in images:
        alpha = image[..., 3:] / 255
        pixels = (image[..., :3] * alpha + 255 * (1 - alpha)).round().astype(np.uint8)
        found.append(features(pixels, foreground(pixels)))
    return np.stack(found)


def score(prompts, pictures, images, items):
    """Shares that came out right, by kind."""
    bank, counts = bank_features(images), {}
    colours = np.array(list(scenery.COLOURS.values()), float)

    def count(kind, right):
        total = counts.setdefault(kind, [0, 0])
        total[0] += bool(right)
        total[1] += 1

    for prompt, picture in zip(prompts, pictures):
        pixels, kind = np.asarray(picture), prompt["kind"]
        if kind == "retrieval":
            distance = np.square(bank - features(pixels, foreground(pixels))).sum(1)
            rank = int((distance < distance[prompt["item"]]).sum())
            usual = items[prompt["item"]]["group"] in KIND_GROUPS
            name = "objects, animals, food" if usual else "other groups"
            count(f"{name}: top 1", rank < 1)
            count(f"{name}: top 5", rank < 5)
        elif kind == "place":
            count("place among nine", place_of(foreground(pixels)) == tuple(prompt["place"]))
        else:
            near = np.square(colours - border_colour(pixels)).sum(1).argmin()
            count(f"background, {'pairs never shown' if 'held' in kind else 'shown pairs'}",
                  near == prompt["colour"])
    return {name: {"right": right, "of": total} for name, (right, total) in sorted(counts.items())}


SHEET = (("dog face", "blue"), ("red apple", "white"), ("rocket", "black"), ("cat face", "pink"),
         ("pizza", "green"), ("bicycle", "yellow"), ("house", "teal"), ("owl", "purple"),
         ("guitar", "orange"), ("hot beverage", "brown"), ("crown", "red"), ("key", "grey"),
         ("sunflower", "blue"), ("lion", "green"), ("octopus", "white"), ("strawberry", "black"))


def sheet_prompts(items, rng):
    """64 prompts: known things and colours, places, two things, and names drawn by lot."""
    texts = [f"{plain(name)} on {scenery.article(colour)} background" for name, colour in SHEET]
    names = [item["name"].lower() for item in items if item["group"] in KIND_GROUPS]
    colours = list(scenery.COLOURS)
    for words in scenery.PLACES.values():
        texts.append(f"a small {rng.choice(names)} {words} on {rng.choice(colours)}")
    for relation in scenery.RELATIONS * 4:
        first, second = rng.choice(names, 2, replace=False)
        texts.append(f"{plain(first)} {relation} {plain(second)} on {rng.choice(colours)}")
    while len(texts) < 64:
        texts.append(f"{plain(items[rng.integers(len(items))]['name'])} on a "
                     f"{rng.choice(colours)} background")
    return [{"text": text, "seed": place} for place, text in enumerate(texts)]


def write_sheet(path, prompts, pictures):
    side, line = scenery.SIDE, 26
    sheet = Image.new("RGB", (8 * (side + 8) + 8, 8 * (side + line + 6) + 8), "white")
    pen = ImageDraw.Draw(sheet)
    for place, (prompt, picture) in enumerate(zip(prompts, pictures)):
        left, top = 8 + place % 8 * (side + 8), 8 + place // 8 * (side + line + 6)
        sheet.paste(picture, (left, top))
        words, rows = prompt["text"].split(), [""]
        for word in words:
            if pen.textlength(f"{rows[-1]} {word}") > side:
                rows.append("")
            rows[-1] = f"{rows[-1]} {word}".strip()
        for number, row in enumerate(rows[:2]):
            pen.text((left, top + side + 1 + 12 * number), row, fill="black")
    sheet.save(path)


def main(args):
    images, items = scenery.load_bank(args.bank)
    draw = (Diffusers(args.model, args.device, args.steps, args.scale) if args.model
            else Worker(args.worker, args.steps, args.scale))
    rng = np.random.default_rng(11)
    if args.sheet:
        prompts = sheet_prompts(items, rng)
        write_sheet(args.sheet, prompts, draw(prompts))
    if args.share > 0:
        prompts = prompt_set(items, np.random.default_rng(12))
        prompts = prompts[::max(1, round(1 / args.share))]
        figures = score(prompts, draw(prompts), images, items)
        for name, figure in figures.items():
            part = 100 * figure["right"] / figure["of"]
            print(f"{name:36} {part:5.1f} %  ({figure['right']} of {figure['of']})")
        if args.json:
            with open(args.json, "w", encoding="utf-8") as out:
                json.dump(figures, out, indent=2)


if __name__ == "__main__":
    main(OPTIONS)
