"""The second version of Nomic's BERT, whose every other layer has experts (Nussbaum and Duderstadt 2025, "Training
Sparse Mixture Of Experts Text Embedding Models", and config.json of nomic-embed-text-v2-moe). transformers has none.

Parameters have the names of the published checkpoint: experts lie in w1 and w2 of (experts * inner, width) both, the
first applied transposed, the second not, and share one bias. Router: a softmax over all experts, of which the largest
are taken as they are.
"""

import torch
from torch import nn
from torch.nn import functional


class Linears(nn.Module):
    """What a layer's MLP is: two linear layers with biases."""

    def __init__(self, config):
        super().__init__()
        self.fc1 = nn.Linear(config["n_embd"], config["n_inner"])
        self.fc2 = nn.Linear(config["n_inner"], config["n_embd"])

    def forward(self, x):
        return self.fc2(functional.gelu(self.fc1(x)))


class Experts(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        shape = (config["num_experts"] * config["n_inner"], config["n_embd"])
        self.router = nn.Module()
        self.router.layer = nn.Linear(config["n_embd"], config["num_experts"], bias=False)
        self.experts = nn.Module()
        self.experts.mlp = nn.Module()
        self.experts.mlp.w1 = nn.Parameter(torch.zeros(shape))
        self.experts.mlp.w2 = nn.Parameter(torch.zeros(shape))
        self.experts.bias = nn.Parameter(torch.zeros(config["n_embd"]))

    def forward(self, x):
        inner = self.config["n_inner"]
        scores = functional.softmax(self.router.layer(x), dim=-1)
        weights, chosen = scores.topk(self.config["moe_top_k"], dim=-1)
        if self.config["moe_normalize_expert_weights"]:
            weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for token in range(x.shape[0]):
            for weight, expert in zip(weights[token], chosen[token]):
                rows = slice(int(expert) * inner, (int(expert) + 1) * inner)
                hidden = functional.gelu(self.experts.mlp.w1[rows] @ x[token])
                out[token] += weight * (hidden @ self.experts.mlp.w2[rows])
        return out + self.experts.bias


class Layer(nn.Module):
    def __init__(self, config, index):
        super().__init__()
        self.config = config
        width = config["n_embd"]
        self.attn = nn.Module()
        self.attn.Wqkv = nn.Linear(width, 3 * width)
        self.attn.out_proj = nn.Linear(width, width)
        self.norm1 = nn.LayerNorm(width, eps=config["layer_norm_epsilon"])
        self.mlp = (Experts if index % config["moe_every_n_layers"] == 1 else Linears)(config)
        self.norm2 = nn.LayerNorm(width, eps=config["layer_norm_epsilon"])

    def rotated(self, x):
        """x: (tokens, heads, head_dim), whose halves turn against one another."""
        half = x.shape[-1] // 2
        base = self.config["rotary_emb_base"] ** (-torch.arange(half, dtype=torch.float32) / half)
        angles = (torch.arange(x.shape[0], dtype=torch.float32)[:, None] * base)[:, None, :]
        first, second = x[..., :half], x[..., half:]
        return torch.cat([first * angles.cos() - second * angles.sin(),
                          second * angles.cos() + first * angles.sin()], -1)

    def forward(self, x):
        heads = self.config["n_head"]
        q, k, v = (part.reshape(x.shape[0], heads, -1) for part in self.attn.Wqkv(x).chunk(3, -1))
        scores = torch.einsum("qhd,khd->hqk", self.rotated(q), self.rotated(k)) / q.shape[-1] ** 0.5
        attended = torch.einsum("hqk,khd->qhd", scores.softmax(-1), v).reshape(x.shape)
        h = self.norm1(x + self.attn.out_proj(attended))
        return self.norm2(h + self.mlp(h))


class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config["n_embd"]
        self.embeddings = nn.Module()
        self.embeddings.word_embeddings = nn.Embedding(config["vocab_size"], width)
        self.embeddings.token_type_embeddings = nn.Embedding(config["type_vocab_size"], width)
        self.emb_ln = nn.LayerNorm(width, eps=config["layer_norm_epsilon"])
        self.encoder = nn.Module()
        self.encoder.layers = nn.ModuleList(Layer(config, i) for i in range(config["n_layer"]))

    def forward(self, ids):
        """ids: (1, tokens). As transformers: the states, (1, tokens, width), first."""
        x = self.embeddings.word_embeddings(ids[0]) + self.embeddings.token_type_embeddings.weight[0]
        x = self.emb_ln(x)
        for layer in self.encoder.layers:
            x = layer(x)
        return (x[None],)


def gguf_tensor(key, tensor, config):
    """The name and the values of an expert's tensor in llama.cpp's files, which have no bias of all experts."""
    layer = key.split(".")[2]
    stack = tensor.reshape(config["num_experts"], config["n_inner"], config["n_embd"])
    if key.endswith("w1"):
        return f"blk.{layer}.ffn_up_exps.weight", stack
    return f"blk.{layer}.ffn_down_exps.weight", stack.transpose(1, 2).contiguous()
