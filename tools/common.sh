# Sourced by the other tools: where the tree is, and how a tool gives up.
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TOOL=$(basename "$0")
JOBS=$(nproc)

die() {
  echo "tools/$TOOL: $*" >&2
  exit 1
}

# A command whose output is of interest only when it fails.
quietly() {
  local log
  log=$(mktemp)
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

# Compilations are remembered where the environment says, or where ccache keeps them anyway.
if [ -n "${TACIT_CACHE_DIR:-}" ]; then
  export CCACHE_DIR="$TACIT_CACHE_DIR/ccache"
fi
