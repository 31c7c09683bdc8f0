#!/usr/bin/env python3
"""Makes tests/models/image/data/lycoris.json: layers of adapters with random tensors as the lycoris
package saves them, and what the package adds to a layer's weight with them, in float32.

Run from the repository root (wrote the committed file with the versions below):
    python3 -m venv venv && venv/bin/pip install torch==2.15.0 einops==0.8.2 toml tqdm
    venv/bin/pip install --no-deps lycoris-lora==4.1.3
    venv/bin/python tools/goldens/make_lycoris_goldens.py tests/models/image/data
"""

import json
import pathlib

import arguments

ARGUMENTS = arguments.read(__name__, __doc__, ("folder", "tests/models/image/data"))

import torch
from lycoris.modules.full import FullModule
from lycoris.modules.ia3 import IA3Module
from lycoris.modules.locon import LoConModule
from lycoris.modules.loha import LohaModule
from lycoris.modules.lokr import LokrModule

cases = []


def numbers(tensor):
    return [float(f"{v:.7g}") for v in tensor.detach().flatten().tolist()]


def change_of(module, weight):
    """What forward() adds; get_diff_weight() of LoHa and LoKr has alpha / rank twice."""
    if isinstance(module, FullModule):
        return module.weight - weight
    if isinstance(module, (LohaModule, LokrModule)):
        change = module.get_weight(weight.shape)
    else:
        change = module.get_diff_weight(1.0)[0].reshape(weight.shape)
    if getattr(module, "wd", False):
        return module.apply_weight_decompose(weight + change) - weight
    return change


def add(name, kind, layer, **options):
    torch.manual_seed(len(cases))
    module = kind(name, layer, multiplier=1.0, **options)
    with torch.no_grad():
        for key, value in module.named_parameters():
            if not key.startswith("org_module"):
                value.copy_(torch.randn_like(value) * 0.5)
        weight = layer.weight.detach().clone()
        change = change_of(module, weight)
        state = module.custom_state_dict() or module.state_dict()
    tensors = {key.split(".")[-1] if not key.startswith("lora") else key: value
               for key, value in state.items() if not key.startswith("org_module")}
    cases.append({"name": name, "weight": {"shape": list(weight.shape), "values": numbers(weight)},
                  "tensors": {key: {"shape": list(value.shape), "values": numbers(value.float())}
                              for key, value in tensors.items()},
                  "change": numbers(change)})
    print(name, {key: tuple(value.shape) for key, value in tensors.items()})


def linear():
    return torch.nn.Linear(6, 8, bias=False)


def conv():
    return torch.nn.Conv2d(6, 8, 3, padding=1, bias=False)


def main():
    add("loha", LohaModule, linear(), lora_dim=2, alpha=1)
    add("loha_conv", LohaModule, conv(), lora_dim=2, alpha=3)
    add("loha_tucker", LohaModule, conv(), lora_dim=2, alpha=1, use_tucker=True)
    add("lokr", LokrModule, linear(), lora_dim=1, alpha=0.5, factor=2)
    add("lokr_both", LokrModule, torch.nn.Linear(16, 16, bias=False), lora_dim=1, alpha=2, factor=4,
        decompose_both=True)
    add("lokr_full", LokrModule, linear(), lora_dim=1000, alpha=1, factor=2)
    add("lokr_conv", LokrModule, conv(), lora_dim=1, alpha=1, factor=2)
    add("lokr_tucker", LokrModule, conv(), lora_dim=1, alpha=1, factor=2, use_tucker=True)
    add("locon", LoConModule, conv(), lora_dim=2, alpha=1)
    add("locon_tucker", LoConModule, conv(), lora_dim=2, alpha=1, use_tucker=True)
    add("full", FullModule, conv())
    add("ia3", IA3Module, linear())
    add("ia3_input", IA3Module, linear(), train_on_input=True)
    add("dora", LoConModule, linear(), lora_dim=2, alpha=1, weight_decompose=True)
    add("dora_columns", LoConModule, linear(), lora_dim=2, alpha=1, weight_decompose=True,
        wd_on_out=False)
    add("dora_conv", LoConModule, conv(), lora_dim=2, alpha=3, weight_decompose=True)
    add("dora_conv_columns", LoConModule, conv(), lora_dim=2, alpha=3, weight_decompose=True,
        wd_on_out=False)
    add("dora_loha", LohaModule, linear(), lora_dim=2, alpha=1, weight_decompose=True)
    add("dora_lokr", LokrModule, linear(), lora_dim=1, alpha=0.5, factor=2, weight_decompose=True)
    out = pathlib.Path(ARGUMENTS.folder) / "lycoris.json"
    out.write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n",
                   encoding="ascii")


if __name__ == "__main__":
    main()
