#!/usr/bin/env python3
"""Runs bench_image and diffusers in turn on the first NVIDIA GPU and prints, for the denoiser's step
with guidance and the VAE's decoding: our milliseconds, the peer's eager and compiled, the least that
the device's measured arithmetic allows, and what is to be reached.

  compare_diffusers.py --bench build/cuda/bin/bench_image --model DIR@512 [--model DIR2@1024] \\
      [--rounds 2] [--json FILE]

  compare_diffusers.py --rbee build/cuda/bin/rbee --model DIR@512 --pictures

With --pictures both draw the same prompt with the same seed, the peer in f32 and ours in --dtype, and
the pictures are compared.
DIR is a folder in diffusers' layout; @512 are the pixels along each side.

Exit status: 0, or 1 where a row misses what is to be reached or pictures differ, or 2 where nothing
was measured."""

import argparse
import json
import os
import sys
import tempfile

from peers.programs import Failed, run
from peers.report import Row, Target, table

# Milliseconds that an H200 has to reach, by the shape's operations: SD 1.5 at 512, SDXL at 1024.
H200 = {("denoiser", 512): 8, ("denoiser", 1024): 45, ("vae", 512): 20, ("vae", 1024): 90}
PICTURE = {"prompt": "a red cube on a table", "steps": 8, "guidance": 5.0, "seed": 7}


def split_model(text):
    folder, _, size = text.rpartition("@")
    if not folder or not size.isdigit():
        raise Failed(f"--model is '{text}', wanted FOLDER@PIXELS")
    return folder, int(size)


def ours(options, folder, size):
    """{part: milliseconds} of one round, and the measured limits."""
    text = run([options.bench, folder, "--device", "cuda:0", "--size", str(size), "--json", "-r",
                str(options.repetitions), "--dtype", "f16", "--parts", "denoiser", "vae"])
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    limits = next(row for row in rows if row["part"] == "limits")
    return {row["part"]: row for row in rows if row["part"] != "limits"}, limits["flops"]


def peer_of(part, folder, size):
    from peers import diffusers_peer

    if part == "denoiser":
        return diffusers_peer.denoiser(folder, size, 2)
    return diffusers_peer.decoder(folder, size)


def measure_peer(options, part, folder, size):
    """Milliseconds {"eager", "compiled"} and the operations of one call."""
    from peers import diffusers_peer

    peer = peer_of(part, folder, size)
    times = {"eager": 1e3 * peer.seconds(False), "operations": peer.operations()}
    if not options.no_compile:
        times["compiled"] = 1e3 * peer.seconds(True)
    del peer
    diffusers_peer.release()
    return times


def rows_of(name, size, part, rounds, peer, product):
    limit = 1e3 * peer["operations"] / product if peer else 0.0
    figures = [1e3 * row[part].get("recorded_seconds", row[part]["seconds"]) for row in rounds]
    to_reach = H200.get((part, size))
    target = Target("ours", to_reach, at_most=True) if to_reach else None
    what = f"{name} {size} x {size}, " + ("step of 2 samples" if part == "denoiser" else "VAE")
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
    for model in options.model:
        folder, size = split_model(model)
        rounds, product = [], 0.0
        for _ in range(options.rounds):
            times, flops = ours(options, folder, size)
            rounds.append(times)
            product = max(product, flops)
        for part in ("denoiser", "vae"):
            peer = None if options.no_torch else measure_peer(options, part, folder, size)
            rows += rows_of(os.path.basename(os.path.normpath(folder)), size, part, rounds, peer,
                            product)
    print(table(rows))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump([row.as_dict() for row in rows], out, indent=1)
    return 1 if any(row.missed() for row in rows) else 0


def draw(options, folder, size):
    import numpy
    from PIL import Image

    with tempfile.TemporaryDirectory() as directory:
        file = os.path.join(directory, "picture.png")
        run([options.rbee, "imagine", "-m", folder, "--device", "cuda:0", "--dtype",
             options.dtype, "--width", str(size), "--height", str(size), "--steps", str(PICTURE["steps"]),
             "--sampler", "euler", "--guidance", str(PICTURE["guidance"]),
             "--seed", str(PICTURE["seed"]), PICTURE["prompt"], "-o", file])
        return numpy.asarray(Image.open(file).convert("RGB"), dtype=numpy.float32)


def compare_pictures(options):
    import numpy

    from peers import diffusers_peer

    different = 0
    for model in options.model:
        folder, size = split_model(model)
        mine = draw(options, folder, size)
        theirs = diffusers_peer.picture(folder, size=size, **PICTURE)
        diffusers_peer.release()
        off = numpy.abs(mine - theirs)
        flat = numpy.abs(theirs - theirs.mean()).mean()
        print(f"{os.path.basename(os.path.normpath(folder))} {size} x {size}, {options.dtype}: mean difference "
              f"{off.mean():.3f} of 255, largest {off.max():.1f}; the picture's own mean deviation "
              f"{flat:.1f}")
        different += off.mean() > options.most_difference
    return 1 if different else 0


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default="build/cuda/bin/bench_image",
                        help="the command, built with -DRBEE_BENCH=ON")
    parser.add_argument("--rbee", default="build/cuda/bin/rbee")
    parser.add_argument("--model", action="append", required=True, metavar="DIR@PIXELS")
    parser.add_argument("--rounds", type=int, default=2, help="of ours, before the peer's")
    parser.add_argument("--repetitions", type=int, default=10, help="of each part in a round")
    parser.add_argument("--no-torch", action="store_true", help="our figures only")
    parser.add_argument("--no-compile", action="store_true", help="the eager peer only")
    parser.add_argument("--pictures", action="store_true", help="compare pictures, not times")
    parser.add_argument("--dtype", default="f32", help="ours, of pictures")
    parser.add_argument("--most-difference", type=float, default=1,
                        help="of pictures, of 255, on average")
    parser.add_argument("--json", metavar="FILE", help="every round's figures")
    options = parser.parse_args(arguments)
    try:
        return compare_pictures(options) if options.pictures else compare_speed(options)
    except Failed as reason:
        print(reason, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
