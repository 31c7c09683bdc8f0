#!/usr/bin/env bash
# From nothing to a picture: installs what is missing, builds, starts the picture worker on the model
# of this repository and has it draw. Usage: start_pictures.sh ["prompt"] [picture.png]
# Environment: PORT (8081).
set -euo pipefail
[ "${1:-}" != --help ] || { sed -n '2,/^[^#]/s/^# //p' "$0"; exit; }
cd "$(dirname "$0")/.."
. tools/start_worker.sh

prompt="${1:-a dog face on a blue background}"
picture="${2:-picture.png}"
url="http://127.0.0.1:${PORT:-8081}"

step 1/3 "Packages"
bash tools/install_deps.sh build
echo "all there"

step 2/3 "Build (Release)"
cmake --preset cpu -DRBEE_TESTS=OFF >/dev/null
cmake --build --preset cpu --target sd-worker-cpu rbee

step 3/3 "Worker"
start_worker picture-worker "$url" build/cpu/bin/sd-worker-cpu --worker-id quickstart-pictures \
  --model-path models/tiny-emoji --host 127.0.0.1 --port "${PORT:-8081}"

printf '\nPrompt: %s\n' "$prompt"
python3 tools/draw.py "$url" "$prompt" "$picture"

cat <<END

The worker goes on running; a page to draw on is at $url/
What the model knows: models/tiny-emoji/README.md

Stop it with:  kill $pid
END
