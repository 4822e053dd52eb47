#!/usr/bin/env bash
# Builds the container images from the programs of a build, for this machine's architecture: images/build.sh [operator] [worker] [worker-cuda]
#
#   BIN       folder of the programs                          build/release/bin
#   BASE      base image, of this machine's Debian release    debian:bookworm-slim
#   REGISTRY  what the images' names begin with               localhost
#   VERSION   their tag                                       the project's
#   BUILDER   buildah, podman or docker                       the first that is there
#   OUT       where the archives go                           build/images
#   NCCL      folder of libnccl.so.2, for worker-cuda         where `make nccl` has put it
#
# Each image is also written to OUT/<name>-<version>-<architecture>.tar, an archive that registries' tools push and nodes import. The same
# programs, base and SOURCE_DATE_EPOCH (the last commit's time, unless it is set) give the same digest with buildah and podman.
set -euo pipefail
cd "$(dirname "$0")/.."

BIN=${BIN:-build/release/bin}
BASE=${BASE:-debian:bookworm-slim}
REGISTRY=${REGISTRY:-localhost}
VERSION=${VERSION:-$(sed -nE 's/^project\(.* VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)}
OUT=${OUT:-build/images}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || echo 0)}
export SOURCE_DATE_EPOCH
CREATED=$(date --utc --date="@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
REVISION=$(git describe --always --abbrev=40 --dirty 2> /dev/null || echo unknown)
ARCHITECTURE=$(dpkg --print-architecture)

fail() {
  echo "images: $*" >&2
  exit 1
}

choose_builder() {
  local candidate
  for candidate in buildah podman docker; do
    command -v "$candidate" > /dev/null || continue
    if [ "$candidate" = docker ] && ! timeout 20 docker info > /dev/null 2>&1; then continue; fi
    echo "$candidate"
    return
  done
}

# build IMAGE ARGUMENT...
build() {
  local image=$1 name="$REGISTRY/ringmaster-$1:$VERSION" arguments=()
  shift
  arguments=(--file "images/$image.Dockerfile" --tag "$name"
    --build-arg "VERSION=$VERSION" --build-arg "REVISION=$REVISION" --build-arg "CREATED=$CREATED" "$@" "$OUT/context")
  case $BUILDER in
    # Without privileges of its own: RUN starts our programs once, no more.
    buildah) buildah build --isolation chroot --pull=false --layers=false --timestamp "$SOURCE_DATE_EPOCH" "${arguments[@]}" ;;
    podman) podman build --pull=missing --layers=false --timestamp "$SOURCE_DATE_EPOCH" "${arguments[@]}" ;;
    docker) docker build "${arguments[@]}" ;;
  esac
  archive "$name" "$OUT/ringmaster-$image-$VERSION-$ARCHITECTURE.tar"
}

# archive NAME FILE
archive() {
  rm -f "$2"
  case $BUILDER in
    buildah) buildah push --quiet "$1" "oci-archive:$2:$1" ;;
    podman) podman save --quiet --format oci-archive --output "$2" "$1" ;;
    docker) docker save --output "$2" "$1" ;;
  esac
  echo "$1  linux/$ARCHITECTURE  $2"
}

BUILDER=${BUILDER:-$(choose_builder)}
[ -n "$BUILDER" ] || fail "neither buildah nor podman nor a docker that runs is here; on Debian: apt-get install buildah"
images=("$@")
[ ${#images[@]} -gt 0 ] || images=(operator worker)
with_nccl=()
if [[ " ${images[*]} " = *" worker-cuda "* ]]; then
  NCCL=${NCCL:-$(cmake/fetch-nccl --where)}
  [ -e "$NCCL/libnccl.so.2" ] || fail "worker-cuda: there is no $NCCL/libnccl.so.2; \`make nccl\` fetches it, or NCCL=FOLDER names another"
  with_nccl=("$NCCL")
fi
rm -rf "$OUT/context"
python3 images/stage.py "$BIN" "$OUT/context" "${with_nccl[@]}"
for image in "${images[@]}"; do
  case $image in
    operator | worker) build "$image" --build-arg "BASE=$BASE" ;;
    worker-cuda)
      build worker --build-arg "BASE=$BASE"
      build worker-cuda --build-arg "WORKER=$REGISTRY/ringmaster-worker:$VERSION"
      ;;
    *) fail "no image is called $image; there are operator, worker and worker-cuda" ;;
  esac
done
