#!/usr/bin/env python3
"""Asks a running worker one question and prints the answer as it comes."""

import argparse
import json
import sys
import urllib.request


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.load(reply)


def events(url):
    with urllib.request.urlopen(url, timeout=300) as stream:
        for line in stream:
            line = line.decode().strip()
            if line == "data: [DONE]":
                return
            if line.startswith("data: "):
                yield json.loads(line[6:])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="such as http://127.0.0.1:8080")
    parser.add_argument("question")
    options = parser.parse_args()
    url, question = options.url, options.question
    job = post(url + "/v1/jobs", {"messages": [{"role": "user", "content": question}],
                                  "max_tokens": 200, "temperature": 0.0})
    for event in events(url + job["sse_url"]):
        if event["type"] == "token":
            print(event["t"], end="", flush=True)
        elif event["type"] == "error":
            sys.exit("\nthe worker reports: " + event["message"])
        elif event["type"] == "end":
            tokens, ms = event["tokens_out"], event["decode_time_ms"]
            rate = f"{(tokens - 1) * 1000 / ms:.1f}" if tokens > 1 and ms > 0 else "?"
            print(f"\n[{tokens} tokens, {rate} tokens/s, first after {event['prompt_time_ms']:.0f} ms,"
                  f" {event['stop_reason']}]")


if __name__ == "__main__":
    main()
