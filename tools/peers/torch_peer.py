"""What PyTorch does with the same work on the same device, and what the device could do at best.
Imported only where torch is installed."""

import gc
import statistics
import warnings

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

try:
    import transformers
except ImportError:
    transformers = None  # attention and limits can be measured all the same

BACKENDS = {"FlashAttention": SDPBackend.FLASH_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION,
            "unfused": SDPBackend.MATH}


def timed(device, calls, work, warm_up=True):
    """Seconds of one call: `calls` of them between two events, by default after one to warm up."""
    if warm_up:
        work()
    torch.cuda.synchronize(device)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(calls):
        work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1000 / calls


def copy_bandwidth(device):
    """Bytes read and written in a second by a copy of 2 GiB; the best of several."""
    source = torch.ones(1 << 30, dtype=torch.bfloat16, device=device)
    target = torch.empty_like(source)
    seconds = min(timed(device, 10, lambda: target.copy_(source)) for _ in range(5))
    return 2 * source.numel() * source.element_size() / seconds


def product_speed(device, size=8192):
    """Operations in a second of bf16 products of size^3; the best of several. Random numbers:
    multiplying zeros takes less power and runs faster."""
    a, b = (torch.randn(size, size, dtype=torch.bfloat16, device=device) for _ in range(2))
    out = torch.empty_like(a)
    seconds = min(timed(device, 10, lambda: torch.mm(a, b, out=out)) for _ in range(8))
    return 2 * size**3 / seconds


def attention(device, name, shape, causal, calls=20, rounds=5):
    """Seconds of f16 attention of (batch, heads, tokens, dim) and the most bytes in use meanwhile,
    q, k, v and the result included. None where the backend refuses."""
    gc.collect()
    before = torch.cuda.memory_allocated(device)
    q, k, v = (torch.randn(shape, dtype=torch.float16, device=device) for _ in range(3))

    def work():
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    torch.cuda.reset_peak_memory_stats(device)
    with sdpa_kernel(BACKENDS[name]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each reason for refusing is a warning
        try:
            work()
        except RuntimeError:
            return None
        torch.cuda.synchronize(device)
        peak = torch.cuda.max_memory_allocated(device) - before
        seconds = statistics.median(timed(device, calls, work) for _ in range(rounds))
    return {"seconds": seconds, "peak_bytes": peak}


class Llama:
    """transformers' eager model of a folder's shape with random weights; nothing is read but its
    config.json."""

    def __init__(self, folder, device, dtype=torch.bfloat16, compiled=False):
        self.device = device
        self.config = transformers.AutoConfig.from_pretrained(folder)
        with torch.device(device):
            self.model = transformers.AutoModelForCausalLM.from_config(
                self.config, dtype=dtype, attn_implementation="sdpa").eval()
        # A static cache's addresses stay, so that a step can be captured.
        self.step = (torch.compile(self.model, mode="reduce-overhead", fullgraph=True)
                     if compiled else self.model)

    def tokens(self, count):
        return torch.randint(0, self.config.vocab_size, (1, count), device=self.device)

    @torch.inference_mode()
    def prompt(self, tokens, rounds=5):
        """Tokens in a second until the first token's logits are there; keys and values are kept."""
        ids = self.tokens(tokens)

        def work():
            return self.model(ids, use_cache=True, logits_to_keep=1).logits

        work()
        return tokens / statistics.median(timed(self.device, 1, work, warm_up=False)
                                          for _ in range(rounds))

    @torch.inference_mode()
    def generation(self, tokens):
        """Tokens in a second, the likeliest each time, from one token on. Nothing waits for the
        device in between."""
        def work(count):
            cache = transformers.StaticCache(config=self.config, max_cache_len=tokens + 8)
            ids = self.tokens(1)
            position = torch.zeros((1, 1), dtype=torch.long, device=self.device)
            for _ in range(count):
                logits = self.step(ids, position_ids=position, past_key_values=cache,
                                   use_cache=True, logits_to_keep=1).logits
                ids = logits[:, -1:].argmax(-1)
                position = position + 1
            return ids

        work(8)
        return tokens / timed(self.device, 1, lambda: work(tokens), warm_up=False)


def available():
    """None, or why nothing can be measured."""
    return None if torch.cuda.is_available() else f"PyTorch {torch.__version__} sees no CUDA device"


def describe(device):
    return f"{torch.cuda.get_device_name(device)}, PyTorch {torch.__version__}"
