#!/usr/bin/env python3
"""How long a running stream waits for its next token while the worker looks at a picture.

    measure_picture_pause.py --worker build/cpu/bin/llm-worker-rbee-cpu --folder DIR [--port 8600]

Writes a Gemma 3 with the published tower's shape (896 pixels, 27 layers of 1152) and a tiny text model, both with random
weights, into DIR; starts the worker on it; streams an answer and asks about a picture meanwhile. Needs numpy,
safetensors and Pillow (with the versions of tools/goldens).
"""
import argparse
import base64
import io
import json
import pathlib
import shutil
import subprocess
import threading
import time
import urllib.request


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--worker", type=pathlib.Path, required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--port", type=int, default=8600)
    return parser.parse_args()


OPTIONS = read_options() if __name__ == "__main__" else None

# Below the options, so that --help works without them.
import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402
from safetensors.numpy import load_file, save_file  # noqa: E402

TINY = pathlib.Path(__file__).resolve().parent.parent / "tests/models/vision/data/hf"
SIDE, PATCH, WIDTH, FFN, LAYERS, HEADS, TOKENS, TEXT = 896, 14, 1152, 4304, 27, 16, 256, 64
CONTEXT = 32768


def tower_shapes():
    out = {"embeddings.patch_embedding.weight": (WIDTH, 3, PATCH, PATCH), "embeddings.patch_embedding.bias": (WIDTH,),
           "embeddings.position_embedding.weight": ((SIDE // PATCH) ** 2, WIDTH),
           "post_layernorm.weight": (WIDTH,), "post_layernorm.bias": (WIDTH,)}
    for layer in range(LAYERS):
        at = f"encoder.layers.{layer}."
        for name, rows, columns in [("self_attn.q_proj", WIDTH, WIDTH), ("self_attn.k_proj", WIDTH, WIDTH),
                                    ("self_attn.v_proj", WIDTH, WIDTH), ("self_attn.out_proj", WIDTH, WIDTH),
                                    ("mlp.fc1", FFN, WIDTH), ("mlp.fc2", WIDTH, FFN)]:
            out |= {f"{at}{name}.weight": (rows, columns), f"{at}{name}.bias": (rows,)}
        for name in ("layer_norm1", "layer_norm2"):
            out |= {f"{at}{name}.weight": (WIDTH,), f"{at}{name}.bias": (WIDTH,)}
    return out


def write_model(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(TINY / name, folder)
    config = json.loads((TINY / "config.json").read_text())
    config["text_config"]["max_position_embeddings"] = CONTEXT
    config["vision_config"] |= dict(hidden_size=WIDTH, intermediate_size=FFN, num_hidden_layers=LAYERS,
                                    num_attention_heads=HEADS, image_size=SIDE, patch_size=PATCH)
    config["mm_tokens_per_image"] = TOKENS
    (folder / "config.json").write_text(json.dumps(config))
    rng = np.random.default_rng(0)
    tiny = load_file(TINY / "model.safetensors")
    weights = {name: value for name, value in tiny.items()
               if "vision_tower" not in name and "multi_modal_projector" not in name}
    shapes = {"vision_tower.vision_model." + name: shape for name, shape in tower_shapes().items()}
    shapes |= {"multi_modal_projector.mm_soft_emb_norm.weight": (WIDTH,),
               "multi_modal_projector.mm_input_projection_weight": (WIDTH, TEXT)}
    for name, shape in shapes.items():
        weights[name] = (0.02 * rng.standard_normal(shape, dtype=np.float32)).astype(np.float16)
    save_file(weights, folder / "model.safetensors")


def ask(port, body):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    return urllib.request.urlopen(request, timeout=600)


def picture():
    noise = np.random.default_rng(1).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def measure(port):
    url = picture()
    asked = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}],
             "max_tokens": 1}
    seconds = []

    def look():
        begin = time.monotonic()
        ask(port, asked).read()
        seconds.append(time.monotonic() - begin)

    stream = ask(port, {"messages": [{"role": "user", "content": "Go on"}], "max_tokens": CONTEXT - 512,
                        "ignore_eos": True, "stream": True, "temperature": 0})
    looks = threading.Thread(target=look)
    times = []
    for line in stream:
        if not line.startswith(b"data:"):
            continue
        times.append(time.monotonic())
        if len(times) == 20:
            looks.start()
        if len(times) > 20 and not looks.is_alive():
            break
    looks.join()
    stream.close()
    gaps = sorted(np.diff(times))
    print(f"picture {seconds[0]:.2f} s, longest pause of the stream {gaps[-1]:.2f} s, the next {gaps[-2]:.2f} s, "
          f"{sum(gap > 0.1 for gap in gaps)} above 0.1 s")
    begin = time.monotonic()
    ask(port, asked).read()
    print(f"the same picture again {time.monotonic() - begin:.2f} s")


def main(options):
    if not (options.folder / "model.safetensors").exists():
        write_model(options.folder)
    worker = subprocess.Popen([options.worker, "--model", options.folder, "--port", str(options.port), "--context",
                               str(CONTEXT), "--local-mode"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while worker.poll() is None:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{options.port}/health/ready", timeout=5)
                break
            except OSError:
                time.sleep(0.5)
        measure(options.port)
    finally:
        worker.terminate()
        worker.wait()


if __name__ == "__main__":
    main(OPTIONS)
