#!/usr/bin/env bash
# Runs the GPU measurements of a bundle made by `cargo xtask gpu-bundle`, on a machine with an
# NVIDIA GPU, the CUDA toolkit and neither Rust nor a network.
#
#   run.sh OUT [SECONDS]
#
# HONE_SMOKE_ONLY=keys,update runs only the steps whose names begin so, HONE_SMOKE_OPTIONS has
# other options for gpu_smoke, and HONE_COMPILE_S limits the time of the compiler.
#
# Everything that is found goes to the folder OUT, step by step, so that a run that is cut off
# keeps what it has. A step that fails is recorded, and the next one continues.
set -uo pipefail

here=$(realpath "$(dirname "$0")")
mkdir -p "$1"
out=$(realpath "$1") limit=${2:-560}
work=${HONE_SMOKE_WORK:-$(mktemp -d)}
mkdir -p "$work"
log=$out/log.txt

say() { printf '%4d s  %s\n' "$SECONDS" "$*" | tee -a "$log"; }

# Finds cuBLAS and the driver, which lie in other places on other machines.
cuda=$(dirname "$(dirname "$(realpath "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)")")")
toolkit=$work/toolkit
mkdir -p "$toolkit/include" "$toolkit/lib"
places=("$cuda" /usr/local /usr/lib /opt)
for name in libcublas.so libcublasLt.so libcudart_static.a libcuda.so; do
  found=$(find "${places[@]}" -path '*/stubs/*' -prune -o -name "$name*" -print 2>/dev/null |
    sort | tail -n 1)
  [[ -n $found ]] && ln -sf "$found" "$toolkit/lib/$name"
  for directory in $(dirname "${found:-.}"); do
    libraries=${libraries:+$libraries:}$directory
  done
done
header=$(find "${places[@]}" -name cublas_v2.h -print -quit 2>/dev/null)
export CPATH=${header:+$(dirname "$header")} LIBRARY_PATH=$toolkit/lib
export LD_LIBRARY_PATH=$toolkit/lib:${libraries:-}:${LD_LIBRARY_PATH:-}

say "self-check; CUDA in $cuda"
{
  nvidia-smi
  nvcc --version
  lscpu | head -n 20
  free -m
  ls -l "$toolkit/lib"
  for program in "$here"/bin/*; do ldd "$program"; done
} >"$out/machine.txt" 2>&1
grep 'not found' "$out/machine.txt" | tee -a "$log"
if ! "$here/bin/hone" --version >>"$log" 2>&1; then
  say "hone does not start"
  exit 1
fi
echo | "$here/bin/learner_gpu" fill --leave-mib 1000000 2>&1 | tee -a "$log"

smoke=("$here/bin/gpu_smoke" --bin "$here/bin" --like "$here/metadata.gguf" --work "$work/smoke"
  ${HONE_SMOKE_OPTIONS:-})
"${smoke[@]}" --out "$work/models.json" --only models >>"$log" 2>&1 &
models=$!

library=$here/lib/hone/libggml-cuda.so
if [[ -f $library ]]; then
  say "the CUDA backend is in the bundle"
elif [[ -d $cuda/include || -d $cuda/targets ]] && [[ -x $cuda/bin/nvcc ]]; then
  architecture=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
  say "compiling the CUDA backend for sm_$architecture"
  timeout "${HONE_COMPILE_S:-270}" "$here/cuda-backend.sh" "$here/ggml" "$cuda" "$here/lib/hone" \
    "$here/objects" "$work/libggml-cuda.so" "$(nproc)" "$architecture" >"$work/compile.txt" 2>&1
  say "status $?, $(find "$here/objects" -name '*.o' | wc -l) objects"
  tail -n 20 "$work/compile.txt" | cut -c1-500 | tee -a "$log"
  if [[ -f $work/libggml-cuda.so ]]; then
    cp "$work/libggml-cuda.so" "$library"
    ldd "$library" >>"$out/machine.txt" 2>&1
  fi
  # What was compiled goes back, for another run.
  pack=$work/pack
  mkdir -p "$pack"
  if [[ -f $library ]]; then cp "$library" "$pack"; else cp "$here"/objects/*.o "$pack"; fi
  (tar -C "$pack" -c . | xz -T2 -3 | split -b 15M - "$out/cuda-backend.tar.xz.") &
  packing=$!
fi
wait "$models"
say "models: $(tr -d '\n ' <"$work/models.json" | cut -c1-300)"

options=${HONE_SMOKE_ONLY:+--only $HONE_SMOKE_ONLY}
if [[ ! -f $library ]]; then
  say "without the CUDA backend only the learner is measured"
  options="--only gradient,update"
fi
say "measuring"
timeout -s INT $((limit - SECONDS)) "${smoke[@]}" --out "$out/report.json" \
  --seconds $((limit - SECONDS - 20)) $options >"$out/table.txt" 2>>"$log"
say "status $?"
[[ -n ${packing:-} ]] && wait "$packing"
nvidia-smi >>"$out/machine.txt" 2>&1
cat "$out/table.txt"
