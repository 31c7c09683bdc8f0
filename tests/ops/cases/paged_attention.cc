// Attention over a paged cache.
#include <algorithm>

#include "tests/ops/cases/paged_case.h"

namespace rbee::harness {
namespace {

// Head sizes, groups and lengths that do or do not fill the tiles of matrix units and decoding.
void add_tiled(std::vector<PagedCase>& out) {
  const std::vector<Sequence> prompts{{130, 130}, {0, 5}, {17, 300}, {1, 1025}};
  const std::vector<Sequence> decode{{1, 300}, {1, 1025}, {0, 0}, {2, 17}, {1, 1}};
  for (const auto& seqs : {prompts, decode}) {
    for (const int64_t dim : {40, 64, 80, 96, 128, 256}) {
      out.push_back({.seqs = seqs,
                     .heads = 4,
                     .kv_heads = 1,
                     .head_dim = dim,
                     .cache = DType::f16,
                     .dtype = DType::f16});
    }
    for (const int64_t heads : {2, 10, 16}) {
      out.push_back({.seqs = seqs,
                     .heads = heads,
                     .kv_heads = 2,
                     .head_dim = 64,
                     .block_size = 32,
                     .cache = DType::bf16,
                     .dtype = heads == 2 ? DType::f32 : DType::bf16});
    }
    out.push_back({.seqs = seqs,
                   .heads = 4,
                   .kv_heads = 2,
                   .head_dim = 128,
                   .block_size = 48,
                   .cache = DType::f16,
                   .dtype = DType::f16,
                   .softcap = 2,
                   .window = 77});
    out.push_back({.seqs = seqs,
                   .heads = 2,
                   .kv_heads = 2,
                   .head_dim = 128,
                   .cache = DType::bf16,
                   .dtype = DType::bf16,
                   .window = 100});
  }
}

// Every head size that fills packs of 16 bits, for prompts and for a step, on caches of 16 bits and
// of 8.
void add_widths(std::vector<PagedCase>& out) {
  for (int64_t dim = 32; dim <= 256; dim += 8) {
    for (const DType cache : {DType::f16, DType::bf16, DType::f8e4m3, DType::q8_0}) {
      if (cache == DType::q8_0 && dim % 32 != 0) continue;
      const bool narrow = cache == DType::f8e4m3 || cache == DType::q8_0;
      const DType dtype = !narrow ? cache : dim % 16 == 0 ? DType::bf16 : DType::f16;
      PagedCase c{.heads = 6, .kv_heads = 2, .head_dim = dim, .cache = cache, .dtype = dtype};
      for (const int64_t queries : {17, 1}) {
        c.seqs = {{queries, 37}};
        out.push_back(c);
      }
      if (narrow) continue;
      c.seqs = {{17, 37}, {1, 37}};
      c.dtype = DType::f32;
      out.push_back(c);
    }
  }
}

// Caps, windows and slopes at once, group sizes that are no power of two, sequences without queries
// or without keys, keys in several parts; on every cache for each 16-bit type.
void add_combined(std::vector<PagedCase>& out) {
  const std::vector<Sequence> prompts{{1, 300}, {0, 0}, {70, 130}, {0, 3}, {2, 40}};
  const std::vector<Sequence> decode{{1, 300}, {1, 1025}, {0, 0}, {1, 1}};
  for (const DType cache : {DType::f16, DType::bf16, DType::f8e4m3, DType::q8_0}) {
    for (const DType dtype : {DType::f16, DType::bf16}) {
      if (cache != dtype && (cache == DType::f16 || cache == DType::bf16)) continue;
      for (const auto& seqs : {prompts, decode}) {
        for (const int64_t group : {5, 7}) {
          out.push_back({.seqs = seqs,
                         .heads = group * (group == 5 ? 2 : 1),
                         .kv_heads = group == 5 ? 2 : 1,
                         .head_dim = group == 5 ? 96 : 128,
                         .block_size = 24,
                         .cache = cache,
                         .dtype = dtype,
                         .softcap = 2,
                         .window = 280,
                         .sinks = group == 7,
                         .alibi = group == 5});
        }
      }
    }
  }
}

// Generation together with prompts, as in an engine's step.
void add_mixed(std::vector<PagedCase>& out) {
  const std::vector<Sequence> seqs{{1, 300}, {1, 1025}, {1, 1}, {70, 300}, {130, 130}};
  for (const DType cache : {DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::q8_0}) {
    for (const int64_t dim : {64, 128, 256}) {
      out.push_back({.seqs = seqs,
                     .heads = 8,
                     .kv_heads = 2,
                     .head_dim = dim,
                     .block_size = 32,
                     .cache = cache,
                     .dtype = cache == DType::bf16 ? DType::bf16 : DType::f16,
                     .softcap = dim == 256 ? 2.0f : 0.0f,
                     .window = dim == 64 ? 77 : 0,
                     .single_queries = 3});
    }
  }
  // Two sequences have one query; for one this is known.
  out.push_back({.seqs = {{1, 300}, {1, 40}, {40, 40}},
                 .heads = 2,
                 .kv_heads = 2,
                 .head_dim = 32,
                 .cache = DType::f16,
                 .dtype = DType::f32,
                 .single_queries = 1});
  out.push_back({.seqs = {{1, 300}, {3, 40}},
                 .heads = 2,
                 .kv_heads = 1,
                 .head_dim = 64,
                 .cache = DType::f16,
                 .dtype = DType::f16,
                 .single_queries = 1});
}

// 8-bit caches. In q8_0 heads are whole groups; rows are aligned for wide loads, or not.
void add_narrow(std::vector<PagedCase>& out) {
  const std::vector<Sequence> prompts{{130, 130}, {0, 5}, {17, 300}};
  const std::vector<Sequence> decode{{1, 300}, {1, 1025}, {0, 0}, {2, 17}, {1, 1}};
  for (const auto& seqs : {prompts, decode}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
      out.push_back({.seqs = seqs,
                     .heads = 4,
                     .kv_heads = 2,
                     .head_dim = 64,
                     .cache = DType::q8_0,
                     .dtype = dtype});
    }
    for (const int64_t dim : {32, 96, 128, 256}) {
      out.push_back({.seqs = seqs,
                     .heads = 6,
                     .kv_heads = dim == 96 ? 6 : 1,
                     .head_dim = dim,
                     .block_size = 32,
                     .cache = DType::q8_0});
    }
    out.push_back({.seqs = seqs,
                   .heads = 4,
                   .kv_heads = 1,
                   .head_dim = 128,
                   .block_size = 32,
                   .cache = DType::q8_0,
                   .softcap = 2,
                   .window = 77});
    out.push_back({.seqs = seqs,
                   .heads = 2,
                   .kv_heads = 2,
                   .head_dim = 32,
                   .block_size = 7,
                   .cache = DType::q8_0});
  }
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    out.push_back({.seqs = prompts,
                   .heads = 2,
                   .kv_heads = 1,
                   .head_dim = dtype == DType::f16   ? 256
                               : dtype == DType::f32 ? 80
                                                     : 64,
                   .cache = DType::f8e4m3,
                   .dtype = dtype});
  }
}

// Heads too wide for tiles of one head's queries, shared by many query heads, as with latents:
// several tiles per query, several queries per tile, keys in one part and in several.
void add_latents(std::vector<PagedCase>& out) {
  const std::vector<Sequence> prompts{{9, 9}, {0, 5}, {11, 40}, {1, 20}};
  const std::vector<Sequence> decode{{1, 300}, {0, 0}, {1, 1}, {1, 130}};
  const auto add = [&](PagedCase c) {
    c.cache = c.cache == DType::f32 ? c.dtype : c.cache;
    out.push_back(std::move(c));
  };
  add({.seqs = {{1, 140}, {2, 40}}, .heads = 70, .head_dim = 576, .dtype = DType::bf16});
  add({.seqs = {{30, 40}}, .heads = 6, .kv_heads = 2, .head_dim = 264, .dtype = DType::f16});
  add({.seqs = prompts, .heads = 3, .kv_heads = 3, .head_dim = 320, .dtype = DType::bf16});
  add({.seqs = {{13, 40}},
       .heads = 5,
       .head_dim = 576,
       .dtype = DType::f16,
       .key_ends = std::vector<int32_t>(13, 35)});
  for (const auto& seqs : {prompts, decode}) {
    for (const DType type : {DType::f16, DType::bf16}) {
      add({.seqs = seqs, .heads = 5, .head_dim = 576, .block_size = 32, .dtype = type});
    }
    for (const DType cache : {DType::f16, DType::bf16, DType::f8e4m3, DType::q8_0}) {
      add({.seqs = seqs, .heads = 5, .head_dim = 576, .cache = cache});
    }
    add({.seqs = seqs,
         .heads = 4,
         .head_dim = 512,
         .dtype = DType::bf16,
         .softcap = 2,
         .window = 33});
    add({.seqs = seqs, .heads = 5, .head_dim = 288, .dtype = DType::f16, .sinks = true});
  }
}

// Pictures in prompts: before, across and after tile borders, and with keys in the cache
// already.
void add_pictures(std::vector<PagedCase>& out) {
  const std::vector<Sequence> seqs{{1, 60}, {150, 150}, {0, 3}, {40, 120}, {70, 70}};
  std::vector<int32_t> ends(261, 0);
  std::fill(ends.begin() + 1 + 5, ends.begin() + 1 + 21, 21);
  std::fill(ends.begin() + 1 + 60, ends.begin() + 1 + 150, 150);
  std::fill(ends.begin() + 151, ends.begin() + 151 + 16, 96);
  std::fill(ends.begin() + 191 + 30, ends.begin() + 191 + 46, 46);
  for (const DType cache : {DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::q8_0}) {
    for (const int64_t window : {0, 13}) {
      out.push_back({.seqs = seqs,
                     .heads = 4,
                     .kv_heads = 2,
                     .head_dim = 64,
                     .cache = cache,
                     .dtype = cache == DType::bf16 ? DType::bf16 : DType::f32,
                     .window = window,
                     .single_queries = 1,
                     .key_ends = ends});
    }
  }
  // A single picture with few keys, whose range is split, and one with a cached prefix.
  out.push_back(
      {.seqs = {{64, 600}}, .heads = 1, .head_dim = 32, .key_ends = std::vector<int32_t>(64, 600)});
  out.push_back({.seqs = {{3, 9}}, .heads = 2, .head_dim = 8, .key_ends = {8, 8, 0}});
}

// Sinks and key ends for kernels that multiply in 16 bits: tiles of queries, and few queries with
// their keys cut into parts.
void add_sinks(std::vector<PagedCase>& out) {
  for (const DType type : {DType::f16, DType::bf16}) {
    for (const int64_t dim : {64, 128, 200}) {
      out.push_back({.seqs = {{70, 70}, {10, 90}, {1, 9}},
                     .heads = 2,
                     .kv_heads = 1,
                     .head_dim = dim,
                     .cache = type,
                     .dtype = type,
                     .window = dim == 64 ? 50 : 0,
                     .sinks = true});
    }
    out.push_back({.seqs = {{1, 900}, {1, 70}},
                   .heads = 8,
                   .kv_heads = 1,
                   .head_dim = 64,
                   .cache = type,
                   .dtype = type,
                   .sinks = true});
    out.push_back({.seqs = {{2, 300}},
                   .heads = 8,
                   .kv_heads = 1,
                   .head_dim = 64,
                   .cache = type,
                   .dtype = type,
                   .key_ends = {300, 0}});
  }
  for (const DType cache : {DType::f8e4m3, DType::q8_0}) {
    out.push_back({.seqs = {{1, 300}},
                   .heads = 8,
                   .kv_heads = 1,
                   .head_dim = 64,
                   .cache = cache,
                   .sinks = true});
  }
}

// Slopes, for every kernel: prompts, steps, both with caps and windows, wide heads, latents, and
// keys after the query's position.
void add_slopes(std::vector<PagedCase>& out) {
  const std::vector<Sequence> seqs{{1, 300}, {1, 40}, {0, 3}, {40, 120}, {70, 70}};
  const auto add = [&](PagedCase c) {
    c.alibi = true;
    out.push_back(std::move(c));
  };
  for (const DType cache : {DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::q8_0}) {
    const DType dtype = cache == DType::f16 || cache == DType::bf16 ? cache : DType::f32;
    PagedCase c{.seqs = seqs,
                .heads = 8,
                .kv_heads = 2,
                .head_dim = 64,
                .cache = cache,
                .dtype = dtype,
                .single_queries = 2};
    add(c);
    c.softcap = 2;
    c.window = 33;
    add(c);
    add({.seqs = {{1, 900}, {2, 70}},
         .heads = 16,
         .kv_heads = 2,
         .head_dim = 128,
         .block_size = 32,
         .cache = cache,
         .dtype = dtype});
  }
  for (const DType type : {DType::f16, DType::bf16}) {
    add({.seqs = {{70, 90}}, .heads = 2, .head_dim = 256, .cache = type, .dtype = type});
    add({.seqs = {{13, 40}, {1, 20}}, .heads = 5, .head_dim = 576, .cache = type, .dtype = type});
    add({.seqs = {{13, 40}},
         .heads = 4,
         .head_dim = 64,
         .cache = type,
         .dtype = type,
         .sinks = true,
         .key_ends = std::vector<int32_t>(13, 35)});
  }
  add({.seqs = {{5, 5}, {1, 77}}, .heads = 4, .kv_heads = 4, .head_dim = 37, .block_size = 7});
  add({.seqs = {{3, 40}}, .heads = 2, .head_dim = 24, .dtype = DType::f64, .form = Form::gaps});
}

// One query of a few heads per key/value head, in whole vectors and not, with keys that begin and
// end inside tiles.
void add_few_heads(std::vector<PagedCase>& out) {
  for (const int64_t group : {1, 2, 3, 4, 5}) {
    for (const DType cache : {DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::q8_0}) {
      out.push_back({.seqs = {{1, 90}, {1, 33}, {0, 2}, {1, 1}, {1, 300}},
                     .heads = 2 * group,
                     .kv_heads = 2,
                     .head_dim = group == 3 ? 32 : 96,
                     .block_size = 24,
                     .cache = cache,
                     .softcap = group == 2 ? 2.0f : 0.0f,
                     .window = group == 4 ? 41 : 0});
    }
    out.push_back({.seqs = {{1, 90}, {1, 300}}, .heads = group, .head_dim = 88});
  }
}

// A NaN in one row: only results that depend on it are NaN. Values only of a key that all queries
// read: unread ones may count as 0 * NaN.
void add_undefined(std::vector<PagedCase>& out) {
  const auto add = [&](PagedCase c, int64_t key) {
    c.single_queries = c.seqs.front().queries == 1 ? std::ssize(c.seqs) : 0;
    c.dtype = c.cache == DType::f16 || c.cache == DType::bf16 ? c.cache : DType::f32;
    for (const Operand operand : {Operand::q, Operand::k, Operand::v}) {
      c.undefined = operand;
      c.undefined_row = operand == Operand::k ? key : 0;
      out.push_back(c);
    }
  };
  const std::vector<Sequence> prompts{{17, 150}, {20, 20}}, steps{{1, 600}, {1, 40}, {1, 1}};
  for (const DType cache : {DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::q8_0}) {
    for (const int64_t heads : {2, 4, 8}) {
      PagedCase c{.seqs = prompts, .heads = heads, .head_dim = 512 / heads, .cache = cache};
      add(c, 140);
      c.softcap = 2;
      c.sinks = c.alibi = true;
      add(c, 40);
      c.seqs = steps;
      add(c, 317);
      c.softcap = 0;
      c.sinks = c.alibi = false;
      add(c, 599);
    }
    add({.seqs = {{9, 40}}, .heads = 5, .head_dim = 576, .cache = cache}, 39);
    add({.seqs = {{1, 600}}, .heads = 5, .head_dim = 576, .cache = cache}, 317);
  }
}

std::vector<PagedCase> cases() {
  std::vector<PagedCase> out;
  const std::vector<Sequence> mixed{{5, 5}, {1, 77}, {0, 3}, {3, 40}, {1, 1}};
  for (const DType cache : {DType::f32, DType::f16, DType::bf16, DType::f8e4m3}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
      out.push_back({.seqs = mixed,
                     .heads = 6,
                     .kv_heads = 2,
                     .head_dim = 16,
                     .cache = cache,
                     .dtype = dtype});
    }
    out.push_back({.seqs = {{67, 67}},
                   .heads = 9,
                   .kv_heads = 3,
                   .head_dim = 64,
                   .block_size = 32,
                   .cache = cache});
    out.push_back({.seqs = {{1, 700}}, .heads = 3, .kv_heads = 1, .head_dim = 64, .cache = cache});
  }
  out.push_back({.seqs = mixed, .heads = 4, .kv_heads = 4, .head_dim = 37, .block_size = 7});
  out.push_back({.seqs = mixed, .heads = 7, .kv_heads = 1, .head_dim = 80, .softcap = 2.5f});
  out.push_back({.seqs = mixed, .heads = 2, .kv_heads = 1, .head_dim = 33, .window = 6});
  out.push_back(
      {.seqs = {{90, 130}}, .heads = 4, .kv_heads = 2, .head_dim = 48, .softcap = 1, .window = 33});
  out.push_back({.seqs = {{1, 1500}}, .heads = 2, .kv_heads = 1, .head_dim = 32, .window = 400});
  out.push_back({.seqs = {{50, 50}}, .heads = 64, .kv_heads = 1, .head_dim = 8});
  out.push_back({.seqs = mixed, .heads = 2, .kv_heads = 2, .head_dim = 24, .form = Form::gaps});
  out.push_back({.seqs = {{0, 9}}, .heads = 2, .kv_heads = 2, .head_dim = 8});
  for (const DType cache : {DType::f32, DType::f16, DType::q8_0}) {
    out.push_back({.seqs = {{5, 5}, {1, 77}, {0, 3}, {3, 40}, {70, 90}},
                   .heads = 6,
                   .kv_heads = 2,
                   .head_dim = 64,
                   .cache = cache,
                   .window = cache == DType::f16 ? 33 : 0,
                   .sinks = true});
  }
  out.push_back({.seqs = {{1, 900}}, .heads = 4, .kv_heads = 1, .head_dim = 32, .sinks = true});
  add_tiled(out);
  add_narrow(out);
  add_few_heads(out);
  add_widths(out);
  add_combined(out);
  add_mixed(out);
  add_latents(out);
  add_pictures(out);
  add_sinks(out);
  add_slopes(out);
  add_undefined(out);
  out.push_back({.seqs = {{512, 512}},
                 .heads = 9,
                 .kv_heads = 3,
                 .head_dim = 64,
                 .block_size = 32,
                 .cache = DType::f16,
                 .big = true});
  out.push_back({.seqs = {{1, 2048}},
                 .heads = 9,
                 .kv_heads = 3,
                 .head_dim = 64,
                 .block_size = 32,
                 .cache = DType::f16,
                 .big = true});
  return out;
}

OpTable attention_table() {
  OpTable out("paged_attention");
  for (const PagedCase& c : cases()) {
    out.add<PagedAttentionArgs>(
        &KernelTable::paged_attention,
        {.name = cat(c),
         .family = Family::attention,
         .build = [c](Scene& scene) { return build_paged(c, scene); },
         .formula = [c](const std::vector<HostArray>& in) { return paged_formula(c, in); },
         .big = c.big});
  }
  return out;
}

const RegisterOp kAttention(attention_table);

}  // namespace
}  // namespace rbee::harness
