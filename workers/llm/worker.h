#pragma once
// The worker for chat, or for embeddings and reranking, on any device.

#include <functional>
#include <memory>
#include <variant>

#include "rbee/engine/api/embedding.h"
#include "rbee/engine/api/text.h"
#include "workers/common/worker.h"
#include "workers/llm/flags.h"

namespace rbee::workers {

// The kind of model decides which.
using LoadedEngine =
    std::variant<std::unique_ptr<engine::TextEngine>, std::unique_ptr<engine::EmbeddingEngine>>;
// Puts paths into the places of the flags' names of the hub.
using LoadEngine = std::function<LoadedEngine(Flags&, server::LoadingState&)>;

// main(). Exit status: 0 after --help or --version, 2 for wrong usage, else run_worker()'s.
int run_llm_worker(const Program& program, const LoadEngine& load, int argc,
                   const char* const* argv);

}  // namespace rbee::workers
