// Lets cuBLAS multiply the long pieces of prompts on GPUs that are fast in bf16.
//
// llama.cpp's own kernels for quantised weights reach about 130 TFLOP/s on an H200. A product by
// cuBLAS has to dequantise the matrix first, which takes the same time for any number of rows, and
// is several times as fast from then on. By these numbers it pays from some 130 rows on; keys have
// fewer, and keep llama.cpp's kernels.
//
// mmq.cu is compiled with another name for the function below, so that this one is asked in its
// place (llama.cmake, and xtask/gpu/cuda-backend.sh).

#include "mmq.cuh"

#include <cstdlib>

bool ggml_cuda_can_use_mmq(enum ggml_type type, int cc, int64_t ne11, int64_t n_experts);

// The rows from which on cuBLAS multiplies, and the first architecture that it does so on (Hopper).
static const int64_t ROWS_MIN = 256;
static const int FIRST_ARCHITECTURE = 900;

// The default of f16 would also add up in f16, whose range large activations leave. What the user
// has set stays.
static int set_type() {
    const char *name = "GGML_CUDA_CUBLAS_COMPUTE_TYPE";
    if (getenv(name)) {
        return 0;
    }
#ifdef _WIN32
    return _putenv_s(name, "bf16");
#else
    return setenv(name, "bf16", 0);
#endif
}

static const int IS_SET = set_type();

bool ggml_cuda_should_use_mmq(enum ggml_type type, int cc, int64_t ne11, int64_t n_experts) {
    bool can = ggml_cuda_can_use_mmq(type, cc, ne11, n_experts);
    bool is_fast = GGML_CUDA_CC_IS_NVIDIA(cc) && cc >= FIRST_ARCHITECTURE && IS_SET == 0;
    return can && !(is_fast && n_experts == 0 && ne11 >= ROWS_MIN);
}
