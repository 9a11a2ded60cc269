# Sourced by the tests of the package: when they run, and a Debian tree of their own in $root.
# $NAME is the test's, $TREE the source tree's folder.
required=false
[[ ",${TACIT_REQUIRE:-}," != *,deb,* ]] || required=true
fail() {
  echo "$NAME: $*" >&2
  exit 1
}
# cannot WHY: this machine cannot do what the test needs.
cannot() {
  ! $required || fail "TACIT_REQUIRE asks for deb, and $*"
  echo "left out: $*"
  exit 0
}
step() { echo "== $* ($SECONDS s)"; }

# look_at_machine: leaves the test out where nobody asks for it, or where no tree can be made.
look_at_machine() {
  $required || [ "${CI:-}" = true ] || cannot "TACIT_REQUIRE does not ask for deb"
  [ "$(id -u)" -eq 0 ] || cannot "this is not root"
  command -v mmdebstrap >/dev/null || cannot "there is no mmdebstrap"
}

# make_tree ROOT WORK: a small Debian in ROOT. It is kept for a week where TACIT_CACHE_DIR names a folder.
make_tree() {
  local tree=$1 made=$2/bookworm.tar cached=${TACIT_CACHE_DIR:+$TACIT_CACHE_DIR/debian/bookworm.tar}
  if [ -z "$cached" ] || [ -z "$(find "$cached" -mtime -7 2>/dev/null)" ]; then
    mmdebstrap --quiet --variant=apt --mode=root --format=tar --dpkgopt=force-unsafe-io bookworm "$made" ||
      cannot "mmdebstrap cannot make a tree here"
    if [ -n "$cached" ]; then
      # Another test may read the file that is there: it is replaced as a whole.
      mkdir -p "$(dirname "$cached")"
      mv "$made" "$cached.$$"
      mv "$cached.$$" "$cached"
    else
      cached=$made
    fi
  fi
  mkdir "$tree"
  tar -C "$tree" -xf "$cached"
  cp /etc/resolv.conf "$tree/etc/resolv.conf"
}
