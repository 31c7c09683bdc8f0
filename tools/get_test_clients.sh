#!/usr/bin/env bash
# Makes a virtual environment with the Python packages of tests/server/clients.
# Usage: get_test_clients.sh [folder]   (default: build/clients)
set -euo pipefail
[ "${1:-}" != --help ] || { sed -n '2,/^[^#]/s/^# //p' "$0"; exit; }

root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$root/build/clients}
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
# uv finds versions that fit together in seconds; pip takes minutes. Newer versions of playwright send
# Debian's Firefox a command that it lacks.
"$folder/bin/pip" install --quiet uv
"$folder/bin/uv" pip install --quiet --python "$folder/bin/python" playwright==1.60.0 axe-playwright-python \
  openai anthropic cohere helm-python-sdk kubernetes-validate pyyaml schemathesis opentelemetry-semantic-conventions "ray[serve]" \
  pyzmq msgpack ollama langchain-ollama litellm llama-index-llms-ollama
echo "$folder: $("$folder/bin/pip" list --format freeze | grep -E '^(playwright|openai|anthropic)==' | xargs)"
command -v chromium >/dev/null || echo "chromium is not installed: the tests of the pages are skipped"
