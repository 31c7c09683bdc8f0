#!/usr/bin/env python3
"""Makes tests/units/engine/data/samplers.json: what each sampler of the language model's engine keeps of
some logits, calculated from the definitions in plain double arithmetic.

Run with: python make_sampler_goldens.py   (standard library alone)

Definitions: nucleus (Holtzman et al. 2020), locally typical (Meister et al. 2023, section 4.1), top n sigma
(Tang et al. 2024), min-p (Nguyen et al. 2024), Mirostat 1 and 2 (Basu et al. 2021, algorithms 1 and 2), XTC and
DRY as their author describes them, dynamic temperature by entropy as llama.cpp documents it."""

import json
import math
import os
import random

import arguments

arguments.read(__name__, __doc__)

OUT = os.path.join(os.path.dirname(__file__), "..", "..", "tests", "units", "engine", "data",
                   "samplers.json")


def softmax(logits):
    top = max(logits)
    weights = [math.exp(x - top) for x in logits]
    total = sum(weights)
    return [w / total for w in weights]


def ranked(logits):
    """Ids, the likeliest first, of equal ones the lower first."""
    return sorted(range(len(logits)), key=lambda i: (-logits[i], i))


def top_p(logits, p):
    probabilities, kept, mass = softmax(logits), [], 0.0
    for i in ranked(logits):
        kept.append(i)
        mass += probabilities[i]
        if mass >= p:
            break
    return kept


def min_p(logits, p):
    probabilities = softmax(logits)
    return [i for i in ranked(logits) if probabilities[i] >= p * max(probabilities)]


def typical_p(logits, p):
    probabilities = softmax(logits)
    entropy = -sum(x * math.log(x) for x in probabilities)
    order = sorted(ranked(logits), key=lambda i: abs(-math.log(probabilities[i]) - entropy))
    kept, mass = set(), 0.0
    for i in order:
        kept.add(i)
        mass += probabilities[i]
        if mass > p:
            break
    return [i for i in ranked(logits) if i in kept]


def top_n_sigma(logits, n):
    mean = sum(logits) / len(logits)
    sigma = math.sqrt(sum((x - mean) ** 2 for x in logits) / len(logits))
    return [i for i in ranked(logits) if logits[i] >= max(logits) - n * sigma]


def xtc(logits, threshold):
    probabilities, order = softmax(logits), ranked(logits)
    above = [i for i in order if probabilities[i] >= threshold]
    return order[max(len(above) - 1, 0):]


def dynamic_temperature(logits, temperature, width, exponent):
    probabilities = softmax(logits)
    entropy = -sum(x * math.log(x) for x in probabilities)
    low, high = max(temperature - width, 0), temperature + width
    at = low + (high - low) * (entropy / math.log(len(logits))) ** exponent
    return softmax([x / at for x in logits])


def mirostat_kept(logits, version, mu):
    probabilities, order = softmax(logits), ranked(logits)
    if version == 2:
        kept = [i for i in order if -math.log2(probabilities[i]) <= mu]
        return kept or order[:1]
    t = [math.log((i + 2) / (i + 1)) for i in range(99)]
    b = [math.log(probabilities[order[i]] / probabilities[order[i + 1]]) for i in range(99)]
    s = sum(x * y for x, y in zip(t, b)) / sum(x * x for x in t)
    epsilon = s - 1
    k = (epsilon * 2 ** mu / (1 - len(logits) ** -epsilon)) ** (1 / s)
    return order[:max(int(min(k, len(order))), 1)]


def mirostat(rows, picks, version, tau, eta):
    mu, steps = 2 * tau, []
    for logits, pick in zip(rows, picks):
        kept = mirostat_kept(logits, version, mu)
        chosen = pick % len(kept)
        p = softmax([logits[i] for i in kept])[chosen]
        mu -= eta * (-math.log2(p) - tau)
        steps.append({"kept": len(kept), "pick": chosen, "mu": mu})
    return steps


def dry(history, pieces, case):
    """Penalties by id: extends every earlier occurrence of the end backwards, token by token."""
    text, owners = "", []
    for at, token in enumerate(history):
        text += pieces[token]
        owners += [at] * len(pieces[token])
    broken = set()
    for breaker in case["breakers"]:
        at = text.find(breaker)
        while at >= 0:
            broken.update(owners[at:at + len(breaker)])
            at = text.find(breaker, at + 1)
    first = 0 if case["last_n"] < 0 else max(len(history) - case["last_n"], 0)
    longest, end = {}, len(history) - 1
    for i in range(first, end):
        length = 0
        while (i - length >= first and history[i - length] == history[end - length]
               and end - length not in broken):
            length += 1
        if length >= case["allowed_length"] and i + 1 not in broken:
            token = history[i + 1]
            longest[token] = max(longest.get(token, 0), length)
    return sorted((token, case["multiplier"] * case["base"] ** (n - case["allowed_length"]))
                  for token, n in longest.items())


def rows(rng, count, size, width):
    return [[round(rng.gauss(0, width) * 64) / 64 + i * 1e-4 for i in range(size)]
            for _ in range(count)]


def cut_cases(rng):
    samplers = {"top_p": (top_p, (0.3, 0.9, 0.99)), "min_p": (min_p, (0.02, 0.2, 1.0)),
                "typical_p": (typical_p, (0.2, 0.7, 0.95)), "top_n_sigma": (top_n_sigma, (0.5, 1.0, 2.5)),
                "xtc": (xtc, (0.02, 0.1, 0.5))}
    cases = []
    for logits in rows(rng, 3, 60, 2.0) + rows(rng, 2, 200, 1.0):
        for name, (function, values) in samplers.items():
            for value in values:
                kept = function(logits, value)
                cases.append({"sampler": name, "value": value, "logits": logits, "kept": kept,
                              "probabilities": softmax([logits[i] for i in kept])})
    return cases


def temperature_cases(rng):
    out = []
    for temperature, width, exponent in ((0.8, 0.5, 1.0), (1.0, 1.0, 2.0), (0.5, 1.5, 0.5)):
        for logits in rows(rng, 2, 40, 2.0):
            out.append({"temperature": temperature, "range": width, "exponent": exponent,
                        "logits": logits,
                        "probabilities": dynamic_temperature(logits, temperature, width, exponent)})
    return out


def mirostat_cases(rng):
    out = []
    for version in (1, 2):
        for tau, eta in ((3.0, 0.1), (5.0, 0.5)):
            logits = rows(rng, 6, 400, 2.0)
            picks = [rng.randrange(1000) for _ in logits]
            out.append({"version": version, "tau": tau, "eta": eta, "rows": logits,
                        "steps": mirostat(logits, picks, version, tau, eta)})
    return out


def dry_cases(rng):
    pieces = ["a", "b", "c", " d", "\n", "e:", "x<", "/y"]
    out = []
    for length, letters in ((1, 2), (12, 2), (40, 3), (80, 4), (80, 8), (200, 8)):
        for last_n in (-1, 20):
            for breakers in ([], ["\n", ":"], ["</", "\n"]):
                case = {"history": [rng.randrange(letters) for _ in range(length)],
                        "multiplier": 0.8, "base": 1.75, "allowed_length": 1 + length % 3,
                        "last_n": last_n, "breakers": breakers}
                # An end that has been there before.
                case["history"] += case["history"][:length // 3]
                case["penalties"] = dry(case["history"], pieces, case)
                out.append(case)
    return {"pieces": pieces, "cases": out}


def main():
    rng = random.Random(7)
    data = {"cuts": cut_cases(rng), "temperatures": temperature_cases(rng),
            "mirostat": mirostat_cases(rng), "dry": dry_cases(rng)}
    with open(OUT, "w", encoding="ascii") as file:
        json.dump(data, file, separators=(",", ":"))
        file.write("\n")


main()
