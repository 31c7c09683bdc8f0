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

// The life of a rank that another worker has started, see workers/llm/group.h: its exit status.
using FollowLeader = std::function<int(const Flags&)>;

// main(). follow: without it the worker is never such a rank. Exit status: 0 after --help or
// --version, 2 for wrong usage, else run_worker()'s or the rank's.
int run_llm_worker(const Program& program, const LoadEngine& load, int argc,
                   const char* const* argv, const FollowLeader& follow = {});

}  // namespace rbee::workers
