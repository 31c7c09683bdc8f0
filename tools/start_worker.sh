# Sourced by the start scripts: a worker of a kind in the background, one at a time.

state="${XDG_CACHE_HOME:-$HOME/.cache}/rbee"

step() { printf '\n[%s] %s\n' "$1" "$2"; }

# start_worker KIND URL COMMAND...: ends the worker of this kind that an earlier call left running,
# starts COMMAND, and comes back when it answers. Sets `pid`.
start_worker() {
  local kind=$1 url=$2 log="$state/$1.log" old="$state/$1.pid"
  shift 2
  mkdir -p "$state"
  if [ -f "$old" ] && kill -0 "$(cat "$old")" 2>/dev/null; then
    kill "$(cat "$old")"
    while kill -0 "$(cat "$old")" 2>/dev/null; do sleep 0.1; done
  fi
  nohup "$@" >"$log" 2>&1 &
  pid=$!
  echo "$pid" >"$old"
  until curl -fsS "$url/health" >/dev/null 2>&1; do
    if ! kill -0 "$pid" 2>/dev/null; then
      echo "the worker ended; its log, $log, closes with:" >&2
      tail -n 3 "$log" >&2
      exit 1
    fi
    sleep 0.1
  done
  echo "process $pid listens on $url (log: $log)"
}
