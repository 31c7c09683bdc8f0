#!/usr/bin/env python3
"""Runs bench_image and diffusers in turn on the first NVIDIA GPU and prints, for the denoiser's step
with guidance and the VAE's decoding: our milliseconds, the peer's eager and compiled, the least that
the device's measured arithmetic allows, and what is to be reached. FLUX is timed in bf16 on one
sample, its blocks compiled one by one; everything else in f16.

  compare_diffusers.py --bench build/cuda/bin/bench_image --model DIR@512 [--model DIR2@1024] \\
      [--rounds 2] [--json FILE]

  compare_diffusers.py --rbee build/cuda/bin/rbee --model DIR@512 --pictures --dtype f32 --dtype f16

With --pictures both draw the same prompt with the same seed, the peer in f32 and ours in each
--dtype, and the pictures are compared; beside a 16-bit one stands how far the peer's own is from
its f32 one, both from f32's noise. Models for inpainting get a picture and a mask. --control-net
adds a network and a picture of edges to both. With --again ours is drawn once more with other
arguments of `rbee imagine` ("--offload all", "-m FILE --vae DIR/vae ..."; DIR is the folder) and
has to be the same to the byte; with --near, for files whose products round otherwise, nearly so.
DIR is a folder in diffusers' layout; @512 are the pixels along each side.

Exit status: 0, or 1 where a row misses what is to be reached or pictures differ, or 2 where nothing
was measured."""

import argparse
import json
import os
import shlex
import sys
import tempfile
from dataclasses import dataclass

from peers.programs import Failed, run
from peers.report import Row, Target, table


@dataclass
class Family:
    """How the models of a pipeline are run."""

    dtype: str = "f16"
    batch: int = 2  # samples of a step
    guidance: float = 5.0
    sampler: str = "euler"
    inpaints: bool = False


FAMILIES = {"FluxPipeline": Family(dtype="bf16", batch=1, guidance=3.5),
            "FluxFillPipeline": Family(dtype="bf16", batch=1, guidance=30, inpaints=True),
            "LatentConsistencyModelPipeline": Family(batch=1, sampler="lcm"),
            "StableDiffusionInpaintPipeline": Family(inpaints=True)}
# Goals for an H200 in milliseconds, by pipeline, size and part.
H200 = {("StableDiffusionPipeline", 512): {"denoiser": 8, "vae": 20},
        ("StableDiffusionXLPipeline", 1024): {"denoiser": 45, "vae": 90}}
# In 16 bits: multiples of the peer's own difference and of f32's allowed one; the lower one counts.
OF_PEER, OF_F32 = 1.5, 4
PROMPT, SEED = "a red cube on a table", 7


class Model:
    def __init__(self, text):
        self.folder, _, size = text.rpartition("@")
        if not self.folder or not size.isdigit():
            raise Failed(f"--model is '{text}', wanted FOLDER@PIXELS")
        self.size = int(size)
        self.name = os.path.basename(os.path.normpath(self.folder))
        try:
            with open(os.path.join(self.folder, "model_index.json"), encoding="utf-8") as index:
                self.pipeline = json.load(index)["_class_name"]
        except (OSError, ValueError, KeyError) as reason:
            raise Failed(f"{self.folder}: no folder in diffusers' layout ({reason})") from reason
        self.family = FAMILIES.get(self.pipeline, Family())

    def __str__(self):
        return f"{self.name} {self.size} x {self.size}"


def ours(options, model):
    """{part: milliseconds} of one round, and the measured limits."""
    text = run([options.bench, model.folder, "--device", options.device, "--size", str(model.size),
                "--json", "-r", str(options.repetitions), "--dtype", model.family.dtype, "--batch",
                str(model.family.batch), "--parts", "denoiser", "vae"])
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    limits = next(row for row in rows if row["part"] == "limits")
    return {row["part"]: row for row in rows if row["part"] != "limits"}, limits["flops"]


def peer_of(options, part, model):
    from peers import diffusers_peer

    where = diffusers_peer.Where(options.device, model.family.dtype)
    if part == "denoiser":
        return diffusers_peer.denoiser(where, model.pipeline, model.folder, model.size,
                                       model.family.batch)
    return diffusers_peer.decoder(where, model.folder, model.size)


def measure_peer(options, part, model):
    """Milliseconds {"eager", "compiled"} and the operations of one call."""
    from peers import diffusers_peer

    peer = peer_of(options, part, model)
    times = {"eager": 1e3 * peer.seconds(False), "operations": peer.operations()}
    if not options.no_compile:
        times["compiled"] = 1e3 * peer.seconds(True)
    del peer
    diffusers_peer.release()
    return times


def rows_of(model, part, rounds, peer, product):
    limit = 1e3 * peer["operations"] / product if peer else 0.0
    figures = [1e3 * row[part].get("captured_seconds", row[part]["seconds"]) for row in rounds]
    to_reach = H200.get((model.pipeline, model.size), {}).get(part)
    target = Target("ours", to_reach, at_most=True) if to_reach else None
    samples = f"{model.family.batch} sample" + ("s" if model.family.batch > 1 else "")
    what = f"{model}, " + (f"step of {samples}" if part == "denoiser" else "VAE")
    rows = []
    for kind in ("compiled", "eager"):
        if peer and kind in peer:
            rows.append(Row(work=what, unit="ms", falling=True, ours=figures, peer_name=kind,
                            peer=[peer[kind]] * len(figures), limit=limit,
                            target=target if not rows else None))
    return rows or [Row(work=what, unit="ms", falling=True, ours=figures, limit=limit,
                        target=target)]


def compare_speed(options):
    rows = []
    for model in map(Model, options.model):
        rounds, product = [], 0.0
        for _ in range(options.rounds):
            times, flops = ours(options, model)
            rounds.append(times)
            product = max(product, flops)
        for part in ("denoiser", "vae"):
            peer = None if options.no_torch else measure_peer(options, part, model)
            rows += rows_of(model, part, rounds, peer, product)
    print(table(rows))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump([row.as_dict() for row in rows], out, indent=1)
    return 1 if any(row.missed() for row in rows) else 0


def edges(size):
    """A picture that ControlNets read: a white ring and a bar on black."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (size, size))
    pen = ImageDraw.Draw(image)
    pen.ellipse([size // 8, size // 4, size // 2, 5 * size // 8], outline="white", width=3)
    pen.rectangle([5 * size // 8, size // 8, 3 * size // 4, 7 * size // 8], fill="white")
    return image


def slope(size):
    """A picture to paint on: colours that change slowly."""
    from PIL import Image

    across = Image.linear_gradient("L").resize((size, size))
    return Image.merge("RGB", [across, across.rotate(90), across.rotate(180)])


def painted(size):
    """The corners of the painted part of a mask."""
    return size // 4, size // 4, 3 * size // 4, size // 2


def middle(size):
    """A mask: white is painted."""
    from PIL import Image, ImageDraw

    mask = Image.new("L", (size, size))
    left, top, right, bottom = painted(size)
    ImageDraw.Draw(mask).rectangle([left, top, right - 1, bottom - 1], fill=255)
    return mask


class Drawing:
    """One prompt, drawn by `rbee imagine` in several ways."""

    def __init__(self, options, model, folder):
        self.options, self.model, self.folder = options, model, folder
        self.given, self.flags = {}, []  # pictures: the peer's by name, and our arguments
        if options.control_net:
            self.give("image", edges(model.size), "--control-image")
            self.flags += ["--control-net", options.control_net]
        if model.family.inpaints:
            self.give("image", slope(model.size), "--init")
            self.give("mask_image", middle(model.size), "--mask")
            self.flags += ["--strength", "1"]

    def give(self, name, picture, flag):
        file = os.path.join(self.folder, f"{name}.png")
        picture.save(file)
        self.given[name] = picture
        self.flags += [flag, file]

    def settings(self):
        return {"prompt": PROMPT, "seed": SEED, "size": self.model.size,
                "steps": self.options.steps, "guidance": self.model.family.guidance}

    def draw(self, dtype, more=()):
        """(height, width, 3) of 0 ... 255."""
        import numpy
        from PIL import Image

        asked, file = self.settings(), os.path.join(self.folder, "picture.png")
        command = [self.options.rbee, "imagine", "--device", self.options.device, "--dtype", dtype,
                   "--width", str(asked["size"]), "--height", str(asked["size"]), "--steps",
                   str(asked["steps"]), "--sampler", self.model.family.sampler, "--guidance",
                   str(asked["guidance"]), "--seed", str(asked["seed"]), asked["prompt"], "-o",
                   file, *self.flags, *more]
        if "-m" not in more:
            command += ["-m", self.model.folder]
        run(command)
        return self.compared(numpy.asarray(Image.open(file).convert("RGB"), dtype=numpy.float32))

    def compared(self, picture):
        """Where both paint: ours keeps the rest as it was, the peer does not."""
        if not self.model.family.inpaints:
            return picture
        left, top, right, bottom = painted(self.model.size)
        return picture[top:bottom, left:right]

    def theirs(self):
        from peers import diffusers_peer

        types = ["f32"] + [dtype for dtype in self.options.dtype if dtype != "f32"]
        try:
            pictures = diffusers_peer.pictures(self.model.folder, self.options.device, types,
                                               self.settings(), self.options.control_net,
                                               self.given)
            return {dtype: self.compared(picture) for dtype, picture in pictures.items()}
        finally:
            diffusers_peer.release()


def distance(a, b):
    off = abs(a - b)
    return off.mean(), f"mean difference {off.mean():.3f} of 255, largest {off.max():.1f}"


def compare_again(drawing, dtype, mine):
    different, options = 0, drawing.options
    for text, most in [(text, 0) for text in options.again] + [
            (text, options.most_difference) for text in options.near]:
        more = shlex.split(text.replace("DIR", drawing.model.folder))
        off, words = distance(mine, drawing.draw(dtype, more))
        print(f"{drawing.model}, {dtype}, {text}: {words} from ours without")
        different += off > most
    return different


def compare_model(options, model, folder):
    drawing = Drawing(options, model, folder)
    theirs = drawing.theirs()
    exact = theirs["f32"]
    spread = abs(exact - exact.mean()).mean()
    print(f"{model}: the peer's picture in f32 has a mean deviation of {spread:.1f}")
    different = 0
    for dtype in options.dtype:
        mine = drawing.draw(dtype)
        off, words = distance(mine, exact)
        own, beside = distance(theirs[dtype], exact)
        print(f"{model}, {dtype}: {words}" +
              (f"; the peer's in {dtype}: {beside}" if dtype != "f32" else ""), flush=True)
        most = options.most_difference
        different += off > max(most, min(OF_PEER * own, OF_F32 * most))
        if dtype == options.dtype[-1]:
            different += compare_again(drawing, dtype, mine)
    return different


def tell_noise(dtypes):
    from peers import diffusers_peer

    for dtype in dtypes:
        if dtype != "f32":
            mean, largest = diffusers_peer.noise_difference(dtype, SEED)
            print(f"PyTorch's noise in {dtype} differs from f32's by {mean:.3g} in the mean, "
                  f"at most {largest:.3g}")


def compare_pictures(options):
    options.dtype = options.dtype or ["f32"]
    tell_noise(options.dtype)
    different = 0
    for model in map(Model, options.model):
        with tempfile.TemporaryDirectory() as folder:
            different += compare_model(options, model, folder)
    return 1 if different else 0


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default="build/cuda/bin/bench_image",
                        help="the command, built with -DRBEE_BENCH=ON")
    parser.add_argument("--rbee", default="build/cuda/bin/rbee")
    parser.add_argument("--model", action="append", required=True, metavar="DIR@PIXELS")
    parser.add_argument("--device", default="cuda:0", help="of both; cpu to try this program")
    parser.add_argument("--rounds", type=int, default=2, help="of ours, before the peer's")
    parser.add_argument("--repetitions", type=int, default=10, help="of each part in a round")
    parser.add_argument("--no-torch", action="store_true", help="our figures only")
    parser.add_argument("--no-compile", action="store_true", help="the eager peer only")
    parser.add_argument("--pictures", action="store_true", help="compare pictures, not times")
    parser.add_argument("--dtype", action="append", choices=["f32", "f16", "bf16"],
                        help="ours, of pictures (f32); may be given several times")
    parser.add_argument("--steps", type=int, default=8, help="of pictures")
    parser.add_argument("--control-net", default="", metavar="DIR", help="of pictures")
    parser.add_argument("--again", action="append", default=[], metavar="ARGUMENTS",
                        help="of pictures, in the last --dtype; may be given several times")
    parser.add_argument("--near", action="append", default=[], metavar="ARGUMENTS",
                        help="as --again, but held to --most-difference")
    parser.add_argument("--most-difference", type=float, default=1,
                        help="of pictures, of 255, on average; in 16 bits up to 4 times as much "
                             "where the peer's own differ as well")
    parser.add_argument("--json", metavar="FILE", help="every round's figures")
    options = parser.parse_args(arguments)
    try:
        return compare_pictures(options) if options.pictures else compare_speed(options)
    except Failed as reason:
        print(reason, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
