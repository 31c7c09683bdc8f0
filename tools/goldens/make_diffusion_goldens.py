#!/usr/bin/env python3
"""Makes tests/units/diffusion/data/samplers.json: what diffusers' schedulers make of seeded noise with
a made-up model, and for samplers that diffusers lacks what their formulas make of it in float64.

The model is model(x, t) = tanh(0.6 x) + 0.1 sin(t / 150) for 64 values; with guidance its unguided
half is 0.9 of that. Noise is torch.randn(1, 1, 8, 8) of one generator on the CPU.

Run from the repository root (wrote the committed file with the versions below):
    python3 -m venv venv && venv/bin/pip install torch==2.15.0 diffusers==0.42.1 scipy==1.17.1
    venv/bin/python tools/goldens/make_diffusion_goldens.py tests/units/diffusion/data
"""

import json
import math
import pathlib

import arguments

ARGUMENTS = arguments.read(__name__, __doc__, ("folder", "tests/units/diffusion/data"))

import diffusers
import numpy as np
import torch
from diffusion_formulas import (
    Flow, Table, cfg_pp, churned, dpm_adaptive, dpm_fast, er_sde, gradient_estimation, heunpp2,
    ipndm, res_multistep, restart, sa_solver, sde, seeds, three_m, two_m_cfg_pp, two_s, two_s_cfg_pp)

SD = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear",
      "num_train_timesteps": 1000}
SHAPE = (1, 1, 8, 8)
cases = []


def model(x, t):
    return torch.tanh(0.6 * x) + 0.1 * math.sin(float(t) / 150)


def add(sampler, config, steps, x, **more):
    cases.append({"sampler": sampler, "config": config, "steps": steps,
                  "result": [float(f"{v:.7g}") for v in np.asarray(x, dtype=np.float64).ravel()],
                  **more})


def run(sampler, name, steps, config=None, step_options=None, set_options=None, common=None, **more):
    if common is None:
        common = {} if name.startswith("FlowMatch") else SD
    config = {**common, **(config or {})}
    scheduler = getattr(diffusers, name)(**config)
    scheduler.set_timesteps(steps, **(set_options or {}))
    seed = 100 + len(cases)
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(SHAPE, generator=generator)
    x = x * getattr(scheduler, "init_noise_sigma", 1.0)
    options = dict(step_options or {})
    if "generator" in scheduler.step.__code__.co_varnames:
        options["generator"] = generator
    for t in scheduler.timesteps:
        scaled = x if name.startswith("FlowMatch") else scheduler.scale_model_input(x, t)
        # KDPM2Ancestral also draws numbers in its first half steps, which it does not use.
        unused = name.startswith("KDPM2A") and scheduler.state_in_first_order
        state = generator.get_state()
        x = scheduler.step(model(scaled, t), t, x, **options).prev_sample
        if unused:
            generator.set_state(state)
    add(sampler, {"_class_name": name, **config}, steps, x, seed=seed,
        timesteps=[float(t) for t in scheduler.timesteps], **more)


def diffusers_cases():
    for spacing in ("leading", "trailing", "linspace"):
        offset = {"timestep_spacing": spacing, "steps_offset": 1 if spacing == "leading" else 0}
        run("Euler", "EulerDiscreteScheduler", 10, offset)
        run("Euler a", "EulerAncestralDiscreteScheduler", 10, offset)
        run("DPM++ 2M", "DPMSolverMultistepScheduler", 10, offset)
        run("UniPC", "UniPCMultistepScheduler", 10, offset)
        run("LMS", "LMSDiscreteScheduler", 10, offset)
        run("Heun", "HeunDiscreteScheduler", 10, offset)
    sd = {"timestep_spacing": "leading", "steps_offset": 1, "set_alpha_to_one": False}
    run("DDIM", "DDIMScheduler", 10, {**sd, "clip_sample": False})
    run("DDIM", "DDIMScheduler", 10, {**sd, "clip_sample": False}, {"eta": 0.6}, eta=0.6)
    run("DDIM", "DDIMScheduler", 10, {"clip_sample": False, "timestep_spacing": "trailing"})
    run("DDPM", "DDPMScheduler", 10, {"clip_sample": False, "steps_offset": 1})
    run("PLMS", "PNDMScheduler", 10, {**sd, "skip_prk_steps": True})
    run("PLMS", "PNDMScheduler", 1, {**sd, "skip_prk_steps": True})
    run("DPM2", "KDPM2DiscreteScheduler", 10)
    run("DPM2 a", "KDPM2AncestralDiscreteScheduler", 10)
    run("DPM++ 2M SDE", "DPMSolverMultistepScheduler", 10, {"algorithm_type": "sde-dpmsolver++"})
    run("LCM", "LCMScheduler", 4, {**sd, "clip_sample": False})
    run("TCD", "TCDScheduler", 4, {**sd, "clip_sample": False}, {"eta": 0.3})
    run("TCD", "TCDScheduler", 4, {**sd, "clip_sample": False}, {"eta": 0.0}, eta=0.0)
    for flag in ("use_karras_sigmas", "use_exponential_sigmas", "use_beta_sigmas"):
        run("Euler", "EulerDiscreteScheduler", 10, {flag: True, "timestep_spacing": "leading",
                                                     "steps_offset": 1})
    # Under the other two diffusers cuts the solver's times to whole ones, which nobody would ask for.
    run("DPM++ 2M", "DPMSolverMultistepScheduler", 10, {"use_karras_sigmas": True})
    v = {"prediction_type": "v_prediction", "rescale_betas_zero_snr": True,
         "timestep_spacing": "trailing"}
    run("Euler", "EulerDiscreteScheduler", 10, v)
    run("DDIM", "DDIMScheduler", 10, {"prediction_type": "v_prediction", "clip_sample": False,
                                      "timestep_spacing": "trailing"})
    run("UniPC", "UniPCMultistepScheduler", 3, {"prediction_type": "sample"})
    run("DDIM", "DDIMScheduler", 10, {"beta_schedule": "squaredcos_cap_v2", "clip_sample": False})
    run("Euler", "EulerDiscreteScheduler", 10, {"beta_schedule": "linear", "beta_start": 0.0001,
                                                "beta_end": 0.02})
    run("Euler", "FlowMatchEulerDiscreteScheduler", 10, {"shift": 3.0})
    flux = {"shift": 3.0, "use_dynamic_shifting": True}
    run("Euler", "FlowMatchEulerDiscreteScheduler", 4, flux, None,
        {"mu": 1.15, "sigmas": np.linspace(1, 0.25, 4)}, image_tokens=4096, even_flow=True)


SD_LEVELS = {"table": Table(), "config": {"_class_name": "EulerDiscreteScheduler", **SD}}
FLOW_LEVELS = {"table": Flow(),
               "config": {"_class_name": "FlowMatchEulerDiscreteScheduler", "shift": 3.0}}


def formula(sampler, function, levels, *arguments, table=SD_LEVELS["table"],
            config=SD_LEVELS["config"], **more):
    seed = 100 + len(cases)
    generator = torch.Generator().manual_seed(seed)

    def normal():
        return torch.randn(SHAPE, generator=generator).double().numpy()

    x = normal() * levels[0]
    scale = more.get("churn", {}).get("noise_scale", 1)
    x = function(table, x, levels, lambda: normal() * scale, *arguments)
    add(sampler, config, len(levels) - 1, x, seed=seed, schedule="Karras", **more)


def formula_cases():
    table = SD_LEVELS["table"]
    formula("DPM++ 2S a", two_s, table.karras(8))
    formula("DPM++ SDE", sde, table.karras(8))
    # One level more, of which the last but one is left out.
    formula("DPM++ 3M SDE", three_m, [*table.karras(9)[:-2], 0.0])
    formula("Euler CFG++", cfg_pp, table.karras(8), 0.0, guidance=1.5)
    formula("Euler a CFG++", cfg_pp, table.karras(8), 1.0, guidance=1.5)
    # DPM2 and DPM++ 3M SDE leave the last but one of one level more out.
    shorter = [*table.karras(9)[:-2], 0.0]
    for sampler, order in (("Euler", "euler"), ("Heun", "heun"), ("DPM2", "dpm2")):
        levels = shorter if order == "dpm2" else table.karras(8)
        for churn in ({"amount": 2}, {"amount": 40, "low": 0.1, "high": 5, "noise_scale": 1.02}):
            formula(sampler, churned, levels, churn, order, churn=churn)
    for sampler, function in (("DPM++ 2S a", two_s), ("DPM++ SDE", sde), ("DPM++ 3M SDE", three_m)):
        levels = shorter if function == three_m else table.karras(8)
        formula(sampler, function, levels, churn={"noise_scale": 1.05})
    for steps in (8, 20, 24, 41):
        formula("Restart", restart, table.karras(steps))
    formula("Restart", restart, table.karras(24), churn={"noise_scale": 1.05})
    flow = Flow()
    formula("Restart", restart, flow.karras(24), table=flow,
            config={"_class_name": "FlowMatchEulerDiscreteScheduler", "shift": 3.0})

    for steps, eta in ((20, 1.0), (21, 0.5), (7, 0.0), (6, 1.0), (2, 0.0)):
        formula("DPM fast", dpm_fast, table.karras(steps), eta, eta=eta)
    formula("DPM fast", dpm_fast, table.karras(10), 1.0, churn={"noise_scale": 1.05})
    for eta in (0.0, 1.0):
        told = {}
        formula("DPM adaptive", dpm_adaptive, table.karras(12), eta, told, eta=eta, told=told)
    shift = {"_class_name": "FlowMatchEulerDiscreteScheduler", "shift": 3.0}
    formula("DPM fast", dpm_fast, flow.karras(11), 1.0, table=flow, config=shift)
    told = {}
    formula("DPM adaptive", dpm_adaptive, flow.karras(12), 1.0, told, table=flow, config=shift,
            told=told)


def deis_cases():
    deis = "DEISMultistepScheduler"
    for spacing in ("leading", "trailing", "linspace"):
        offset = {"timestep_spacing": spacing, "steps_offset": 1 if spacing == "leading" else 0}
        run("DEIS", deis, 10, offset)
    run("DEIS", deis, 20)
    run("DEIS", deis, 1)
    run("DEIS", deis, 10, {"use_karras_sigmas": True})
    run("DEIS", deis, 20, {"prediction_type": "v_prediction"})


def comfy_cases():
    for levels in (SD_LEVELS, FLOW_LEVELS):
        for steps in (1, 3, 12):
            sigmas = levels["table"].karras(steps)
            formula("IPNDM", ipndm, sigmas, False, **levels)
            formula("IPNDM_V", ipndm, sigmas, True, **levels)
            formula("Res Multistep", res_multistep, sigmas, **levels)
            formula("Gradient Estimation", gradient_estimation, sigmas, **levels)


def later_cases():
    """ComfyUI's other samplers."""
    for levels in (SD_LEVELS, FLOW_LEVELS):
        table = levels["table"]
        for steps in (1, 2, 3, 12):
            sigmas = table.karras(steps)
            formula("Heun++ 2", heunpp2, sigmas, **levels)
            formula("SEEDS 2", seeds, sigmas, 1.0, (0.5,), **levels)
            formula("SEEDS 3", seeds, sigmas, 1.0, (1 / 3, 2 / 3), **levels)
            formula("Exp Heun 2 x0", seeds, sigmas, 0.0, (1,), True, **levels)
            formula("Exp Heun 2 x0 SDE", seeds, sigmas, 1.0, (1,), True, **levels)
            formula("ER SDE", er_sde, sigmas, **levels)
            formula("SA Solver", sa_solver, sigmas, False, **levels)
            formula("SA Solver PECE", sa_solver, sigmas, True, **levels)
            formula("Res Multistep a", res_multistep, sigmas, 1.0, **levels)
            guided = {**levels, "guidance": 1.5}
            formula("Res Multistep CFG++", res_multistep, sigmas, 0.0, True, **guided)
            formula("Res Multistep a CFG++", res_multistep, sigmas, 1.0, True, **guided)
            formula("Gradient Estimation CFG++", gradient_estimation, sigmas, True, **guided)
            formula("DPM++ 2M CFG++", two_m_cfg_pp, sigmas, **guided)
            formula("DPM++ 2S a CFG++", two_s_cfg_pp, sigmas, **guided)
    sigmas = SD_LEVELS["table"].karras(12)
    formula("Heun++ 2", heunpp2, sigmas, {"amount": 2}, churn={"amount": 2})
    formula("SEEDS 2", seeds, sigmas, 0.5, (0.5,), eta=0.5)
    formula("SEEDS 3", seeds, sigmas, 0.0, (1 / 3, 2 / 3), eta=0.0)
    for sampler, function, *arguments in (("SEEDS 3", seeds, 1.0, (1 / 3, 2 / 3)), ("ER SDE", er_sde),
                                          ("SA Solver", sa_solver, False),
                                          ("Res Multistep a", res_multistep, 1.0)):
        formula(sampler, function, sigmas, *arguments, churn={"noise_scale": 1.05})


def default_cases():
    """Files that leave the noise schedule to the class."""
    for sampler, name, config in (
            ("Euler", "EulerDiscreteScheduler", {}), ("Heun", "HeunDiscreteScheduler", {}),
            ("DPM2", "KDPM2DiscreteScheduler", {}), ("DDIM", "DDIMScheduler", {"clip_sample": False}),
            ("PLMS", "PNDMScheduler", {"skip_prk_steps": True}), ("LCM", "LCMScheduler", {}),
            ("UniPC", "UniPCMultistepScheduler", {})):
        run(sampler, name, 4, config, common={})
    run("TCD", "TCDScheduler", 4, {}, {"eta": 0.3}, common={})


def main():
    out = pathlib.Path(ARGUMENTS.folder)
    out.mkdir(parents=True, exist_ok=True)
    diffusers_cases()
    formula_cases()
    deis_cases()
    for config in ({}, {"use_karras_sigmas": True}):
        run("DPM++ 2M SDE Heun", "DPMSolverMultistepScheduler", 10,
            {"algorithm_type": "sde-dpmsolver++", "solver_type": "heun", **config})
    comfy_cases()
    later_cases()
    default_cases()
    with open(out / "samplers.json", "w", encoding="ascii") as file:
        file.write("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()
