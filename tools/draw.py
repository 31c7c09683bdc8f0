#!/usr/bin/env python3
"""Has a running worker draw a picture and shows how far it is."""

import argparse
import base64
import sys

from ask import events, post


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="such as http://127.0.0.1:8081")
    parser.add_argument("prompt")
    parser.add_argument("file", help="a .png to write")
    options = parser.parse_args()
    url, prompt, path = options.url, options.prompt, options.file
    job = post(url + "/v1/jobs", {"operation": "image_generation", "prompt": prompt, "seed": 1})
    for event in events(url + job["sse_url"]):
        if event["type"] == "progress":
            done, total = event["step"], event["total"]
            bar = "#" * (30 * done // total)
            print(f"\r[{bar:30}] {done} of {total}", end="", flush=True)
        elif event["type"] == "error":
            sys.exit("\nthe worker reports: " + event["message"])
        elif event["type"] == "complete":
            with open(path, "wb") as out:
                out.write(base64.b64decode(event["image"]))
            print(f"\n{path} [{event['duration_ms'] / 1000:.2f} s, seed {event['seed']}]")


if __name__ == "__main__":
    main()
