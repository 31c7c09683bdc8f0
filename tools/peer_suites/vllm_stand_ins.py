"""What tests of vLLM's suite import of vLLM, of PyTorch and of the suite's own helpers to look at
answers with, and needs neither: forms of answers, bytes of vectors, and a few functions of vectors."""

import numpy as np
import pydantic

ENDIANNESS = ("native", "big", "little")
# Bits of a number's exponent and of its fraction.
TYPES = {"float32": (8, 23), "float16": (5, 10), "bfloat16": (8, 7), "fp8_e4m3": (4, 3),
         "fp8_e5m2": (5, 2)}  # fmt: skip


class Vector(np.ndarray):
    """As much of a tensor as tests use."""

    def to(self, _):
        return self


def vector(values):
    return np.asarray(values, np.float32).view(Vector)


def numbers(binary, kind, endianness):
    exponent, fraction = TYPES[kind]
    size = (1 + exponent + fraction) // 8
    order = ">" if endianness == "big" else "<"
    bits = np.frombuffer(binary, f"{order}u{size}").astype(np.int64)
    bias = (1 << (exponent - 1)) - 1
    high = bits >> fraction & ((1 << exponent) - 1)
    low = (bits & ((1 << fraction) - 1)) / (1 << fraction)
    size_of = np.where(high == 0, low * 2.0 ** (1 - bias), (1 + low) * 2.0 ** (high - bias))
    return vector(np.where(bits >> (exponent + fraction), -size_of, size_of))


def binary2tensor(binary, shape, embed_dtype, endianness):
    return numbers(binary, embed_dtype, endianness).reshape(shape)


def build_metadata_items(embed_dtype, endianness, shape, n_request):
    size = int(np.prod(shape)) * (1 + sum(TYPES[embed_dtype])) // 8
    return [MetadataItem(index=i, embed_dtype=embed_dtype, endianness=endianness, start=i * size,
                         end=(i + 1) * size, shape=shape) for i in range(n_request)]  # fmt: skip


def decode_pooling_output(items, body):
    return [binary2tensor(body[i.start:i.end], i.shape, i.embed_dtype, i.endianness)
            for i in sorted(items, key=lambda item: item.index)]  # fmt: skip


def check_embeddings_close(*, embeddings_0_lst, embeddings_1_lst, name_0, name_1, tol=1e-3):
    assert len(embeddings_0_lst) == len(embeddings_1_lst)
    for a, b in zip(embeddings_0_lst, embeddings_1_lst):
        cosine = np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b))
        assert cosine >= 1 - tol, f"{name_0} and {name_1}: {cosine}"


def float_embeddings(response):
    return [entry.embedding for entry in response.data]


def normalize(values, p=2, dim=-1):
    return values / np.linalg.norm(values, ord=p, axis=dim, keepdims=True)


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


class MetadataItem(pydantic.BaseModel):
    index: int
    embed_dtype: str
    endianness: str
    start: int
    end: int
    shape: tuple[int, ...]


class Usage(pydantic.BaseModel):
    prompt_tokens: int
    total_tokens: int
    completion_tokens: int | None = 0


class Embedding(pydantic.BaseModel):
    index: int
    object: str
    embedding: list[float] | str


class EmbeddingResponse(pydantic.BaseModel):
    id: str
    object: str
    created: int
    model: str
    data: list[Embedding]
    usage: Usage


class Pooling(pydantic.BaseModel):
    index: int
    object: str
    data: list[list[float]] | list[float] | str


class PoolingResponse(EmbeddingResponse):
    data: list[Pooling]


class Score(pydantic.BaseModel):
    index: int
    object: str
    score: float


class ScoreResponse(EmbeddingResponse):
    data: list[Score]


class Document(pydantic.BaseModel):
    text: str | None = None


class Ranked(pydantic.BaseModel):
    index: int
    document: Document
    relevance_score: float


class RerankResponse(pydantic.BaseModel):
    id: str
    model: str
    usage: Usage
    results: list[Ranked]


POOLING = "vllm.entrypoints.pooling"
KNOWN = {
    "torch": {"tensor": vector, "allclose": np.allclose, "float32": np.float32},
    "torch.nn.functional": {"normalize": normalize, "sigmoid": sigmoid},
    "tests.models.utils": {"check_embeddings_close": check_embeddings_close},
    "tests.models.language.pooling.embed_utils": {"float_embeddings": float_embeddings},
    "vllm.utils.serial_utils": {
        "EMBED_DTYPES": tuple(TYPES), "ENDIANNESS": ENDIANNESS, "binary2tensor": binary2tensor,
    },
    f"{POOLING}.utils": {
        "MetadataItem": MetadataItem, "build_metadata_items": build_metadata_items,
        "decode_pooling_output": decode_pooling_output,
    },
    f"{POOLING}.embed.protocol": {"EmbeddingResponse": EmbeddingResponse},
    f"{POOLING}.pooling.protocol": {"PoolingResponse": PoolingResponse},
    f"{POOLING}.scoring.protocol": {
        "RerankResponse": RerankResponse, "ScoreResponse": ScoreResponse,
    },
}  # fmt: skip
