#!/usr/bin/env bash
# Compiles llama.cpp's CUDA backend for one GPU architecture, as a library that `hone` (built with
# the feature `portable`) loads from the folder lib/hone next to it. It needs CUDA's compiler and no
# Rust, so that a machine with a GPU can do it with its own compiler.
#
#   cuda-backend.sh GGML CUDA BASE OBJECTS OUT [JOBS] [ARCHITECTURE]
#
# GGML is the folder `llama.cpp/ggml` of the crate llama-cpp-sys-2 that `hone` was built from, CUDA
# the toolkit's folder, BASE the folder with the libggml-base.so of the same build. Objects that
# are in OBJECTS already are not compiled again, which lets another machine begin the work.
# The flags are those of ggml's own CMake files for GGML_BACKEND_DL=ON and GGML_CUDA=ON.
set -euo pipefail

here=$(realpath "$(dirname "$0")")
ggml=$(realpath "$1") cuda=$(realpath "$2") base=$(realpath "$3")
mkdir -p "$4"
objects=$(realpath "$4") out=$5 jobs=${6:-$(nproc)} architecture=${7:-90}

# The combinations of types for keys and values that FlashAttention is compiled for.
combinations=(f16-f16 q4_0-q4_0 q8_0-q8_0 bf16-bf16)
flags=(-std=c++17 -O3 -DNDEBUG -w "-gencode=arch=compute_$architecture,code=sm_$architecture"
  -use_fast_math -extended-lambda -compress-mode=size -Xcompiler=-fPIC
  -DGGML_BACKEND_BUILD -DGGML_BACKEND_DL -DGGML_BACKEND_SHARED -DGGML_SHARED
  -DGGML_CUDA_USE_GRAPHS -DGGML_SCHED_MAX_COPIES=4 -D_GNU_SOURCE -D_XOPEN_SOURCE=600
  "-I$ggml/src" "-I$ggml/include" "-I$cuda/include"
  "-DGGML_CUDA_FA_QUANTS=\"$(IFS=,; echo "${combinations[*]}")\"")
for k in q4_0 q4_1 q5_0 q5_1 q8_0 bf16 f16; do
  for v in q4_0 q4_1 q5_0 q5_1 q8_0 bf16 f16; do
    compiled=0
    [[ " ${combinations[*]} " == *" $k-$v "* ]] && compiled=1
    name=GGML_CUDA_FA_${k}_${v}
    flags+=("-D${name^^}=$compiled")
  done
done

# The files that take longest come first, so that no processor waits for one of them at the end.
cd "$ggml/src/ggml-cuda"
sources=(template-instances/fattn-mma*.cu template-instances/fattn-tile*.cu
  template-instances/mmq*.cu fattn.cu fattn-tile.cu mmvq.cu mmvf.cu mmf.cu mmq.cu
  template-instances/mmf*.cu)
for combination in "${combinations[@]}"; do
  sources+=("template-instances/fattn-vec-instance-$combination.cu")
done
for source in *.cu; do
  [[ " ${sources[*]} " == *" $source "* ]] || sources+=("$source")
done
# Ours lies next to this script in a bundle.
ours=$here/prompt_products.cu
[[ -f $ours ]] || ours=$here/../../lsp-server/engine/cmake/prompt_products.cu
sources+=("$(realpath "$ours")")
flags+=("-I$ggml/src/ggml-cuda")

compile() {
  local object=$OBJECTS/${1//\//-}.o
  [[ -s $object ]] && return
  local renamed=()
  [[ $1 == mmq.cu ]] && renamed=(-Dggml_cuda_should_use_mmq=ggml_cuda_can_use_mmq)
  "$CUDA/bin/nvcc" "${@:2}" "${renamed[@]}" -x cu -c "$1" -o "$object.part" &&
    mv "$object.part" "$object"
}
export -f compile
export OBJECTS=$objects CUDA=$cuda
printf '%s\n' "${sources[@]}" |
  xargs -P "$jobs" -I{} bash -c 'compile "$@"' _ {} "${flags[@]}"

count=$(find "$objects" -maxdepth 1 -name '*.o' | wc -l)
if ((count != ${#sources[@]})); then
  echo "$count of ${#sources[@]} files are compiled" >&2
  exit 1
fi
# The driver is only needed where the library runs, so that its name is enough here.
mkdir -p "$objects/driver"
g++ -shared -Wl,-soname,libcuda.so.1 -x c++ /dev/null -o "$objects/driver/libcuda.so"
libraries=(-L"$cuda/lib64" -L"$cuda/lib" -Wl,--no-as-needed -L"$objects/driver" -lcuda
  -Wl,--as-needed "$base"/libggml-base.so.0 -lcudart_static -lcublas -lrt -lpthread -ldl)
g++ -shared -s -o "$out" "$objects"/*.o "${libraries[@]}"
echo "$out"
