#!/usr/bin/env python3
"""Drives a worker of pictures with requests of every kind for some minutes and watches what it holds.

  soak_pictures.py --worker build/cpu/bin/sd-worker-cpu --model models/tiny-emoji [--minutes 10] \\
      [-- FLAGS ...]

As soak.py: pictures of several sizes, samplers and counts, from noise and from pictures, second
passes, requests that are cancelled or whose reader goes away, and bodies that must be refused. Exits
with 1 when an answer is not what the request should get, when the worker's memory or the device's
grows, or when it does not end with status 0."""

import base64
import json
import struct
import sys
import zlib

import soak

SAMPLERS = ["euler", "euler a", "heun", "dpm++ 2m", "dpm++ 2m sde", "unipc", "ddim", "lms"]
BAD_FIELDS = [{"width": 100}, {"steps": 0}, {"steps": 1000}, {"guidance_scale": -1},
              {"sampler": "none such"}, {"strength": 2}, {"count": 0}, {"seed": "x"}]


def png(side, colour):
    """A picture of one colour."""
    def chunk(kind, body):
        return (struct.pack(">I", len(body)) + kind + body
                + struct.pack(">I", zlib.crc32(kind + body)))
    rows = (b"\0" + bytes(colour) * side) * side
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


class PictureClient(soak.Client):
    def kinds(self):
        return [self.answer, self.answer, self.from_picture, self.second_pass, self.leave,
                self.cancel, self.refused, self.broken_picture, self.nothing_there]

    def create(self, **fields):
        side = self.rng.choice([64, 128, 192, 256])
        body = {"operation": "image_generation", "prompt": soak.text(self.rng, 5), "width": side,
                "height": self.rng.choice([side, 128]), "steps": self.rng.randint(1, 6),
                "sampler": self.rng.choice(SAMPLERS), "count": self.rng.choice([1, 1, 1, 2]),
                "guidance_scale": self.rng.choice([1, 4]), **fields}
        return self.submit(body)

    def submit(self, body):
        status, content = self.status("POST", "/v1/jobs", json.dumps(body))
        if status == 429:
            return None
        if status != 200:
            raise soak.Unexpected(f"a job got {status}: {content[:200]}")
        return json.loads(content)

    def whole(self, job):
        if job is None:
            return "overloaded"
        found = self.events(job)
        if not found or found[-1]["type"] != "complete":
            raise soak.Unexpected(f"a stream ended with {str(found[-1:])[:300]}")
        return "ok"

    def from_picture(self):
        picture = base64.b64encode(png(96, [self.rng.randrange(256) for _ in range(3)])).decode()
        return self.whole(self.create(operation="image_transform", input_image=picture,
                                      strength=self.rng.choice([0.3, 0.7, 1])))

    def second_pass(self):
        return self.whole(self.create(width=128, height=128, count=1,
                                      hires={"scale": 2, "steps": 2, "strength": 0.5}))

    def leave(self):
        job = self.create(steps=30)
        if job is None:
            return "overloaded"
        self.events(job, most=self.rng.randint(1, 5))
        return "ok"

    def cancel(self):
        job = self.create(steps=60)
        if job is None:
            return "overloaded"
        if self.status("DELETE", f"/v1/jobs/{job['job_id']}")[0] != 202:
            raise soak.Unexpected("a cancelled job was not accepted")
        last = self.events(job)[-1]
        if last["type"] != "complete" and last.get("code") != "CANCELLED":
            raise soak.Unexpected(f"a cancelled stream ended with {str(last)[:300]}")
        return "ok"

    def refused(self):
        body = {"operation": "image_generation", "prompt": "a", **self.rng.choice(BAD_FIELDS)}
        status, content = self.status("POST", "/v1/jobs", json.dumps(body))
        if status != 400 or b"INVALID_REQUEST" not in content:
            raise soak.Unexpected(f"a bad body got {status}: {content[:200]}")
        return "ok"

    def broken_picture(self):
        body = {"operation": "image_transform", "prompt": "a",
                "input_image": base64.b64encode(png(64, [1, 2, 3])[:-30]).decode()}
        status, content = self.status("POST", "/v1/jobs", json.dumps(body))
        if status != 400:
            raise soak.Unexpected(f"a broken picture got {status}: {content[:200]}")
        return "ok"


if __name__ == "__main__":
    sys.exit(soak.main(PictureClient, __doc__))
