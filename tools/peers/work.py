"""The work that is compared: what our programs print about it, what has to be reached, and the rows
of the report."""

import json
import os

from peers.report import Row, Target

PROMPTS = [2048, 512]
GENERATED = 128
# batch, heads, tokens, dim; causal. A language model's prompt, and a picture model's.
ATTENTIONS = [((1, 32, 4096, 128), True), ((2, 10, 4096, 64), False)]
PEERS = ["FlashAttention", "cuDNN", "unfused"]

# Figures that an H200 has to reach: tokens/s of Llama 3 8B's shape, TFLOP/s of attention.
H200_TOKENS = {("bf16", "tg128"): 225, ("bf16", "pp2048"): 34000, ("bf16", "pp512"): 26000}
H200_ATTENTION = {ATTENTIONS[0]: 300, ATTENTIONS[1]: 230}
# Shares of the bandwidth limit, whatever the device.
SHARES = {("q8_0", "tg128"): 0.85, ("q4_k", "tg128"): 0.70}
# Against scores written to memory: times as fast, and the part of its memory.
UNFUSED_SPEED, UNFUSED_MEMORY = 2.0, 0.5
LLAMA_8B_OPERATIONS = 13.96e9  # for a token of a prompt


def parse_lines(text):
    """One JSON object a line, other lines passed over."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def is_llama_8b(tests):
    operations = [row["operations_per_token"] for row in tests if "operations_per_token" in row]
    return any(abs(value / LLAMA_8B_OPERATIONS - 1) < 0.01 for value in operations)


def model_limit(row, limits):
    """Tokens in a second: the better of what rbee and the peer saw the device do; 0 where it is not
    known. Prompts over FP8 weights are multiplied in 8 bits, whose speed neither measures."""
    if "operations_per_token" in row and row["type"].startswith("f8"):
        return 0.0
    best = row["limit"]
    if "bytes_per_token" in row and limits:
        best = max(best, limits["copy"] / row["bytes_per_token"])
    if "operations_per_token" in row and limits:
        best = max(best, limits["product"] / row["operations_per_token"])
    return best


def model_target(row, llama_8b, h200):
    key = (row["type"], row["test"])
    if llama_8b and key in SHARES:
        return Target("share", SHARES[key])
    if llama_8b and h200 and key in H200_TOKENS:
        return Target("ours", H200_TOKENS[key])
    return None


def first_token_row(prompt, tokens):
    """How long the prompt of so many tokens in `prompt`, a row, takes until its first token."""
    def took(rate):
        return tokens * 1000 / rate
    return Row(work=f"{prompt.work.split(',')[0]}, first token of a prompt of {tokens}", unit="ms",
               ours=[took(rate) for rate in prompt.ours], peer_name=prompt.peer_name,
               peer=[took(rate) for rate in prompt.peer],
               limit=took(prompt.limit) if prompt.limit else 0.0, falling=True)


def model_rows(model, ours, theirs, limits, h200, peer_name="eager"):
    """`ours`: for each round the lines of `rbee bench`; `theirs`: for each round a dict of test to
    tokens/s, or an empty list; `limits`: {"copy", "product"} a second, or None."""
    rows = []
    llama_8b = is_llama_8b(ours[0])
    for i, first in enumerate(ours[0]):
        test = first["test"]
        what = f"prompt of {test[2:]}" if test.startswith("pp") else f"generation of {test[2:]}"
        rows.append(Row(
            work=f"{os.path.basename(os.path.normpath(model))} {first['type']}, {what}",
            unit="tokens/s", ours=[tests[i]["tokens_per_second"] for tests in ours],
            peer_name=peer_name if theirs else "", peer=[rates[test] for rates in theirs],
            limit=max(model_limit(tests[i], limits) for tests in ours),
            target=model_target(first, llama_8b, h200)))
    prompts = [(row, int(first["test"][2:])) for row, first in zip(rows, ours[0])
               if first["test"].startswith("pp")]
    return rows + [first_token_row(*prompt) for prompt in prompts]


def attention_name(shape, causal):
    return "attention f16 " + "x".join(map(str, shape)) + (" causal" if causal else "")


def flops(shape, causal):
    """Both products; half of each under a causal mask."""
    batch, heads, tokens, dim = shape
    return 4 * batch * heads * tokens**2 * dim * (0.5 if causal else 1)


def find_attention(lines, shape, causal):
    return next(row for row in lines if row["test"] == "attention"
                and tuple(row["shape"]) == shape and row["causal"] == causal)


def attention_target(peer, first, case, h200):
    if peer == "unfused":
        return Target("ratio", UNFUSED_SPEED)
    if first and h200:
        return Target("ours", H200_ATTENTION[case])
    return None


def attention_rows(ours, theirs, limits, h200):
    """`ours`: for each round the lines of attention_bench; `theirs`: for each round a dict of
    (shape, causal, peer) to {"seconds", "peak_bytes"}, or to None where the peer refuses."""
    rows = []
    for case in ATTENTIONS:
        mine = [find_attention(lines, *case) for lines in ours]
        name = attention_name(*case)
        rates = [row["flops_per_second"] * 1e-12 for row in mine]
        limit = limits["product"] * 1e-12 if limits else 0.0
        for peer in PEERS if theirs else [""]:
            runs = [results[(*case, peer)] for results in theirs]
            ran = bool(runs) and None not in runs
            rows.append(Row(
                work=name, unit="TFLOP/s", ours=rates, limit=limit,
                peer_name=peer if ran or not peer else f"{peer}: refuses",
                peer=[flops(*case) / run["seconds"] * 1e-12 for run in runs] if ran else [],
                target=attention_target(peer, peer in ("", PEERS[0]), case, h200)))
            if peer == "unfused" and ran:
                rows.append(Row(work=f"{name}, memory", unit="MB",
                                ours=[row["peak_bytes"] * 1e-6 for row in mine], peer_name=peer,
                                peer=[run["peak_bytes"] * 1e-6 for run in runs],
                                target=Target("ratio", UNFUSED_MEMORY, at_most=True)))
    return rows
