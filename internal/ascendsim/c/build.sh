#!/bin/sh
# Builds the simulated libraries into a directory: build.sh OUT [8|9|old] [CC]
#   8    libascendcl.so, libhccl.so and libopapi.so, as up to CANN 8
#   9    libascendcl.so with the new name libacl_rt.so, libhccl.so for operations,
#        libhcomm.so for communicators, as in CANN 9
#   old  as 8, without the symbols that came later
set -eu
out=$1 layout=${2:-8} cc=${3:-gcc}
here=$(cd "$(dirname "$0")" && pwd)
if ! command -v "$cc" >/dev/null; then
	echo "the simulated Ascend libraries need a C compiler: $cc is not there" >&2
	exit 1
fi
mkdir -p "$out"
out=$(cd "$out" && pwd)
cann=8 oldest=
case $layout in
8) ;;
9) cann=9 ;;
old) oldest=-DASCENDSIM_OLDEST ;;
*) echo "build.sh: the layout is 8, 9 or old, not $layout" >&2; exit 2 ;;
esac
library() {
	name=$1
	shift
	"$cc" -std=gnu11 -O2 -g -Wall -Wextra -fPIC -fvisibility=hidden -pthread -shared \
		-DASCENDSIM_CANN=$cann $oldest -Wl,-rpath,'$ORIGIN' -Wl,-soname,"$name" -o "$out/$name" "$@"
}
cd "$here"
library libascendcl.so device.c memory.c stream.c event.c copy.c version.c
library libopapi.so aclnn.c aclnn_operators.c reduce.c -L"$out" -lascendcl -lm
ln -sf libopapi.so "$out/libnnopbase.so"
communicators="comm.c config.c fault.c environment.c table.c hub.c hub_threads.c outbox.c reduce.c ask.c"
operations="operation.c operations.c parts.c checks.c"
# shellcheck disable=SC2086 # lists of files
if [ "$cann" = 9 ]; then
	ln -sf libascendcl.so "$out/libacl_rt.so"
	library libhcomm.so $communicators -L"$out" -lascendcl -lm
	library libhccl.so $operations -L"$out" -Wl,--no-as-needed -lhcomm -lascendcl
else
	library libhccl.so $communicators $operations -L"$out" -lascendcl -lm
fi
