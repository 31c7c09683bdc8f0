"""Output of `rbee run --logprobs`: tokens and log probabilities, compared with another device's."""
import json
import math


def read(text):
    """Pairs of a token's id and its log probability, infinite where it is no number; other lines are passed over."""
    tokens = (json.loads(line) for line in text.splitlines() if line.startswith('{"id":'))
    return [(token["id"], math.inf if token["logprob"] is None else token["logprob"]) for token in tokens]


def difference(first, second):
    """How many tokens agree from the beginning, and by how much their log probabilities differ at most."""
    agree, most = 0, 0.0
    for (a, p), (b, q) in zip(first, second):
        if a != b:
            break
        agree += 1
        most = max(most, abs(p - q))
    return agree, most


def same(first, second, most):
    agree, found = difference(first, second)
    return agree == len(first) == len(second) > 0 and found <= most
