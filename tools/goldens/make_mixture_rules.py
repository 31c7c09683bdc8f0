#!/usr/bin/env python3
"""Calls the function of llama.cpp's llama-quantize that chooses a tensor's type, for more mixtures
than make_mixture_goldens.py: with and without an importance matrix, which some mixtures need, and
for models with experts. Compiles that function's file with a main program around it.

Run from the repository root (wrote the committed file with the llama.cpp of llama-cpp-python 0.3.36):
    python3 tools/goldens/make_mixture_rules.py llama.cpp tests/units/quantize/data/mixture_rules.json
"""

import json
import pathlib
import subprocess
import tempfile

import arguments

ARGUMENTS = arguments.read(__name__, __doc__, ("source", "llama.cpp's source tree"),
                           ("file", "tests/units/quantize/data/mixture_rules.json"))

GOLDENS = pathlib.Path("tests/units/quantize/data/mixtures.json")
# Those of make_mixture_goldens.py, and experts.
SHAPES = {
    "gqa": dict(arch="llama", layers=32, dim=256, heads=8, kv_heads=2, ffn=512),
    "mha": dict(arch="llama", layers=18, dim=256, heads=4, kv_heads=4, ffn=256),
    "odd": dict(arch="llama", layers=30, dim=96, heads=3, kv_heads=1, ffn=256, tied=True),
    "deep": dict(arch="llama", layers=80, dim=256, heads=8, kv_heads=4, ffn=256),
    "deep_gqa": dict(arch="llama", layers=80, dim=256, heads=8, kv_heads=1, ffn=256),
    "fused": dict(arch="phi3", layers=32, dim=256, heads=4, kv_heads=4, ffn=512),
    "eight_experts": dict(arch="llama", layers=32, dim=256, heads=8, kv_heads=2, ffn=256,
                          experts=8),
    "five_experts": dict(arch="llama", layers=18, dim=256, heads=4, kv_heads=4, ffn=256, experts=5),
}
# Names and numbers of llama_ftype.
MIXTURES = {"q6_k": 18, "q5_k_m": 17, "q5_k_s": 16, "q5_1": 9, "q5_0": 8, "q4_k_m": 15,
            "q4_k_s": 14, "q4_1": 3, "q4_0": 2, "iq4_nl": 25, "iq4_xs": 30, "q3_k_l": 13,
            "q3_k_m": 12, "q3_k_s": 11, "q2_k": 10, "q2_k_s": 21, "iq3_m": 27, "iq3_s": 26,
            "iq3_xs": 22, "iq3_xxs": 23, "iq2_m": 29, "iq2_s": 28, "iq2_xs": 20, "iq2_xxs": 19,
            "iq1_m": 31, "iq1_s": 24, "tq2_0": 37, "tq1_0": 36}

# Reads lines "WEIGHTED LAYERS HEADS KV_HEADS EXPERTS FUSED FTYPE TENSORS", each followed by so many
# lines "NAME COLUMNS ROWS EXPERTS"; prints the type of each. The model is only what the rules read.
PROGRAM = r"""
#include "src/llama-quant.cpp"
#include <iostream>
void llama_log_internal(ggml_log_level, const char*, ...) {}
int main() {
  int weighted, layers, heads, kv_heads, experts, fused, ftype, count;
  while (std::cin >> weighted >> layers >> heads >> kv_heads >> experts >> fused >> ftype >> count) {
    auto* model = static_cast<llama_model*>(calloc(1, sizeof(llama_model)));
    model->arch = fused ? LLM_ARCH_PHI3 : LLM_ARCH_LLAMA;
    model->hparams.n_layer_all = layers;
    model->hparams.n_expert = experts;
    for (auto& each : model->hparams.n_head_arr) each = heads;
    for (auto& each : model->hparams.n_head_kv_arr) each = kv_heads;
    model->type = layers == 80 && heads != kv_heads ? LLM_TYPE_70B : LLM_TYPE_UNKNOWN;
    auto params = llama_model_quantize_default_params();
    params.ftype = static_cast<llama_ftype>(ftype);
    quantize_state_impl state(*model, &params);
    state.has_imatrix = weighted;
    std::vector<ggml_tensor> tensors(count);
    std::vector<tensor_metadata> all(count);
    for (int i = 0; i < count; ++i) {
      ggml_tensor& tensor = tensors[i];
      tensor.type = GGML_TYPE_F16;
      tensor.ne[3] = 1;
      std::cin >> all[i].name >> tensor.ne[0] >> tensor.ne[1] >> tensor.ne[2];
      strcpy(tensor.name, all[i].name.c_str());
    }
    init_quantize_state_counters(state, all);
    for (int i = 0; i < count; ++i) {
      const ggml_type base = llama_ftype_get_default_type(params.ftype);
      const ggml_type wanted =
          llama_tensor_get_type_impl(state, base, &tensors[i], params.ftype, all[i].category);
      std::cout << ggml_type_name(tensor_type_fallback(state, &tensors[i], wanted)) << "\n";
    }
    free(model);
  }
}
"""


def matrices(shape):
    """Names and sizes (columns, rows, experts)."""
    dim, ffn, experts = shape["dim"], shape["ffn"], shape.get("experts", 0)
    kv = shape["kv_heads"] * dim // shape["heads"]
    suffix, count = ("_exps", experts) if experts else ("", 1)
    yield "token_embd", (dim, 32, 1)
    if not shape.get("tied"):
        yield "output", (dim, 32, 1)
    for i in range(shape["layers"]):
        if shape["arch"] == "phi3":
            yield f"blk.{i}.attn_qkv", (dim, dim + 2 * kv, 1)
            yield f"blk.{i}.ffn_up", (dim, 2 * ffn, 1)
        else:
            yield f"blk.{i}.attn_q", (dim, dim, 1)
            yield f"blk.{i}.attn_k", (dim, kv, 1)
            yield f"blk.{i}.attn_v", (dim, kv, 1)
            yield f"blk.{i}.ffn_gate{suffix}", (dim, ffn, count)
            yield f"blk.{i}.ffn_up{suffix}", (dim, ffn, count)
        yield f"blk.{i}.attn_output", (dim, dim, 1)
        yield f"blk.{i}.ffn_down{suffix}", (ffn, dim, count)


def build(source, folder):
    (folder / "main.cc").write_text(PROGRAM)
    (folder / "ggml-version.h").write_text('#define GGML_VERSION ""\n#define GGML_COMMIT ""\n')
    includes = [f"-I{each}" for each in (folder, source, source / "src", source / "include",
                                         source / "ggml/include", source / "ggml/src")]
    objects = []
    for compiler, file in (("g++", folder / "main.cc"), ("g++", source / "src/llama-hparams.cpp"),
                           ("gcc", source / "ggml/src/ggml.c"),
                           ("gcc", source / "ggml/src/ggml-quants.c"),
                           ("g++", source / "ggml/src/ggml-threading.cpp")):
        objects.append(folder / (file.name + ".o"))
        standard = ["-std=c++17"] if compiler == "g++" else ["-D_GNU_SOURCE"]
        subprocess.run([compiler, "-w", *standard, *includes, "-c", file, "-o", objects[-1]],
                       check=True)
    # What loads models is missing, and nothing calls it.
    subprocess.run(["g++", "-static", *objects, "-o", folder / "types", "-lm", "-lpthread",
                    "-Wl,--unresolved-symbols=ignore-all"], check=True)
    return folder / "types"


def choices(program, shape, weighted, ftype):
    tensors = list(matrices(shape))
    numbers = (int(weighted), shape["layers"], shape["heads"], shape["kv_heads"],
               shape.get("experts", 0), int(shape["arch"] == "phi3"), ftype, len(tensors))
    lines = [" ".join(map(str, numbers))]
    lines += [f"{name}.weight " + " ".join(map(str, sizes)) for name, sizes in tensors]
    out = subprocess.run([program], input="\n".join(lines), capture_output=True, text=True,
                         check=True).stdout.split()
    types = {}
    for (name, _), each in zip(tensors, out, strict=True):
        types.setdefault(name.rsplit(".", 1)[-1], []).append(each.lower())
    return {role: each[0] if len(set(each)) == 1 else " ".join(each)
            for role, each in sorted(types.items())}


def main():
    known = json.loads(GOLDENS.read_text())
    goldens = {}
    with tempfile.TemporaryDirectory() as folder:
        program = build(pathlib.Path(ARGUMENTS.source).resolve(), pathlib.Path(folder))
        for name, shape in SHAPES.items():
            for weighted in (False, True):
                mixtures = {each: choices(program, shape, weighted, ftype)
                            for each, ftype in MIXTURES.items()}
                if not weighted and name in known:
                    for each, wanted in known[name]["mixtures"].items():
                        got = mixtures.pop(each, wanted)
                        assert got == wanted, f"llama-quantize chose otherwise: {name} {each}"
                goldens[f"{name}_{'weighted' if weighted else 'rules'}"] = {
                    "shape": {**shape, "weighted": weighted}, "mixtures": mixtures}
    pathlib.Path(ARGUMENTS.file).write_text(json.dumps(goldens, indent=1) + "\n")


if __name__ == "__main__":
    main()
