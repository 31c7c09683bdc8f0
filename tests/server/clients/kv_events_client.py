#!/usr/bin/env python3
"""A router's index of a chat worker's cache, from its events. Usage: kv_events_client.py URL
ENDPOINT REPLAY_ENDPOINT

The worker has a small cache and --host-cache-gib, and publishes to both endpoints of ZeroMQ with
the topic "kv" and PYTHONHASHSEED=7. The index, rebuilt from the events alone, must say how many
tokens of the next prompt the worker finds. Ends with status 77 and a line that says why when the
packages pyzmq and msgpack are not installed."""

import hashlib
import json
import struct
import sys
import urllib.request

try:
    import msgpack
    import zmq
except ImportError:
    print("SKIP: the Python packages pyzmq and msgpack are not installed")
    sys.exit(77)

SECONDS = 60
END = (1 << 64) - 1


def cbor(value):
    """RFC 8949, for what vLLM hashes."""
    def head(kind, number):
        for code, size, letter in ((24, 1, "B"), (25, 2, "H"), (26, 4, "I")):
            if number < 24:
                return bytes([kind << 5 | number])
            if number < 1 << 8 * size:
                return bytes([kind << 5 | code]) + struct.pack(">" + letter, number)
        raise ValueError(number)

    if value is None:
        return b"\xf6"
    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    return head(4, len(value)) + b"".join(cbor(each) for each in value)


def sha256_cbor(value):
    return hashlib.sha256(cbor(value)).digest()


def hashes_of(tokens, size, salt=None):
    """As vLLM's sha256_cbor, of the whole blocks."""
    before, out = sha256_cbor("7"), []
    for at in range(0, len(tokens) - size + 1, size):
        extra = [salt] if salt and at == 0 else None
        before = sha256_cbor([before, tokens[at:at + size], extra])
        out.append(int.from_bytes(before[-8:], "big"))
    return out


class Worker:
    def __init__(self, base, endpoint, replay_endpoint):
        self.base = base
        context = zmq.Context()
        self.subscriber = context.socket(zmq.SUB)
        self.subscriber.connect(endpoint)
        self.subscriber.setsockopt(zmq.SUBSCRIBE, b"kv")
        self.replay = context.socket(zmq.REQ)
        self.replay_endpoint = replay_endpoint
        self.context = context
        self.next = 0
        self.places = {}  # hash -> media
        self.block_size = 0
        self.seen = {"BlockStored": 0, "BlockRemoved": 0, "CPU": 0}

    def past_batches(self, first):
        """What the worker's ROUTER socket sends again from this batch on."""
        socket = self.context.socket(zmq.DEALER)
        socket.setsockopt(zmq.RCVTIMEO, SECONDS * 1000)
        socket.connect(self.replay_endpoint)
        socket.send_multipart((b"", first.to_bytes(8, "big")))
        out = []
        while True:
            _, number, payload = socket.recv_multipart()
            if int.from_bytes(number, "big") == END:
                assert payload == b""
                socket.close(linger=0)
                return out
            out.append((int.from_bytes(number, "big"), payload))

    def catch_up(self):
        for number, payload in self.past_batches(self.next):
            assert number == self.next, (number, self.next)
            self.next += 1
            time, events, rank = msgpack.unpackb(payload)
            assert time > 1.7e9 and rank == 0, (time, rank)
            for event in events:
                self.apply(*event)

    def apply(self, kind, hashes, *rest):
        self.seen[kind] += 1
        if kind == "BlockRemoved":
            (medium,) = rest
            for each in hashes:
                self.places[each].remove(medium)
            return
        parent, tokens, size, lora_id, medium, lora = rest
        assert lora_id is None and lora is None, rest
        assert len(tokens) == size * len(hashes), (tokens, size, hashes)
        assert parent is None or parent in self.places, parent
        self.block_size = size
        if medium == "CPU":
            self.seen["CPU"] += 1
        for each in hashes:
            media = self.places.setdefault(each, set())
            assert medium not in media, (each, medium)
            media.add(medium)

    def expected(self, prompt, salt):
        """Tokens of the prompt that the index says are there; one is always evaluated."""
        if self.block_size == 0:
            return 0
        found = 0
        for each in hashes_of(prompt[:-1], self.block_size, salt):
            if not self.places.get(each):
                break
            found += self.block_size
        return found

    def ask(self, prompt, salt=None):
        """Completes the prompt and compares what the worker found with the index."""
        self.catch_up()
        wanted = self.expected(prompt, salt)
        body = {"prompt": prompt, "max_tokens": 3, "temperature": 0}
        if salt:
            body["cache_salt"] = salt
        request = urllib.request.Request(self.base + "/v1/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            usage = json.load(answer)["usage"]
        assert usage["prompt_tokens"] == len(prompt), usage
        found = usage["prompt_tokens_details"]["cached_tokens"]
        assert found == wanted, (found, wanted, len(prompt), salt)
        return found

    def check_subscriber(self):
        """What the PUB socket sent are the same batches, without a gap."""
        batches = dict(self.past_batches(0))
        self.subscriber.setsockopt(zmq.RCVTIMEO, SECONDS * 1000)
        last = None
        while last != self.next - 1:
            topic, number, payload = self.subscriber.recv_multipart()
            number = int.from_bytes(number, "big")
            assert topic == b"kv" and payload == batches[number], (topic, number)
            assert last is None or number == last + 1, (last, number)
            last = number

    def check_stream(self):
        """GET /kv-events has the same, under vLLM's names."""
        request = urllib.request.Request(self.base + "/kv-events?from=1",
                                         headers={"Accept": "application/x-ndjson"})
        batches = [msgpack.unpackb(payload) for _, payload in self.past_batches(0)]
        with urllib.request.urlopen(request, timeout=SECONDS) as lines:
            for number in range(1, self.next):
                batch = json.loads(lines.readline())
                assert batch["seq"] == number and batch["ts"] == batches[number][0], batch
                for named, listed in zip(batch["events"], batches[number][1], strict=True):
                    assert named["type"] == listed[0], (named, listed)
                    assert named["block_hashes"] == listed[1], (named, listed)
                    if named["type"] == "BlockStored":
                        assert named["parent_block_hash"] == listed[2], (named, listed)
                        assert named["token_ids"] == listed[3], (named, listed)
                        assert named["block_size"] == listed[4], (named, listed)


def main():
    worker = Worker(*sys.argv[1:4])
    prompts = [[5 + (first + 7 * i) % 90 for i in range(150)] for first in range(4)]
    assert worker.ask(prompts[0]) == 0
    assert worker.ask(prompts[0]) == 128
    assert worker.ask(prompts[0][:100] + [1, 2, 3]) == 96
    assert worker.ask(prompts[0], salt="apart") == 0
    assert worker.ask(prompts[0], salt="apart") == 128
    for _ in range(3):
        for prompt in prompts:
            worker.ask(prompt)
    worker.catch_up()
    assert all(worker.seen.values()), worker.seen
    worker.check_subscriber()
    worker.check_stream()


if __name__ == "__main__":
    main()
