// A GPU that is none: the functions of CUDA's driver and of cuBLAS that the learner calls, on the
// CPU. The kernels are those of kernels.cu, compiled as C++. With it a machine without a GPU can
// compare what the learner asks of a GPU with what it computes itself. It says nothing about speed,
// nor about what a GPU rounds otherwise.
//
//   c++ -std=c++17 -O1 -shared -fPIC -I. -o libcuda.so driver.cpp
//   ln -s libcuda.so libcublas.so

#include "../../../src/model/gpu/kernels.cu"

#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <ucontext.h>
#include <utility>
#include <vector>

typedef int Status;

static const Status OK = 0, INVALID = 1, OUT_OF_MEMORY = 2, NOT_FOUND = 500;

// The memory of the GPU. Nearly all of it is spared by the learner.
static const size_t MEMORY_BYTES = (size_t(2) << 30) + (size_t(64) << 20);
static const size_t STACK_BYTES = 64 << 10;
// Larger allocations are not filled, so that a test can take all memory without touching it.
static const size_t FILLED_BYTES_MAX = 16 << 20;

// The threads of a block.

Index threadIdx, blockIdx, blockDim, gridDim;

struct Fiber {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(STACK_BYTES);
    bool ended = false;
};

static ucontext_t launcher;
static std::vector<Fiber> fibers;
static std::vector<float> exchanged;
static std::function<void()> kernel;

static void run_kernel() {
    unsigned index = threadIdx.x;
    kernel();
    fibers[index].ended = true;
}

void __syncthreads() {
    unsigned index = threadIdx.x;
    swapcontext(&fibers[index].context, &launcher);
    threadIdx.x = index;
}

float __shfl_xor_sync(unsigned, float value, int distance) {
    unsigned index = threadIdx.x;
    exchanged[index] = value;
    __syncthreads();
    float other = exchanged[index ^ distance];
    __syncthreads();
    return other;
}

static void run_block(unsigned threads) {
    fibers.resize(threads);
    exchanged.resize(threads);
    for (Fiber &fiber : fibers) {
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = fiber.stack.size();
        fiber.context.uc_link = &launcher;
        fiber.ended = false;
        makecontext(&fiber.context, run_kernel, 0);
    }
    for (bool running = true; running;) {
        running = false;
        for (unsigned index = 0; index < threads; index++) {
            if (!fibers[index].ended) {
                threadIdx.x = index;
                swapcontext(&launcher, &fibers[index].context);
                running = true;
            }
        }
    }
}

// The kernels by name. Their arguments come as pointers to values.

typedef std::function<std::function<void()>(void **)> Kernel;

template <typename... Arguments, size_t... Places>
static Kernel with_arguments(void (*function)(Arguments...), std::index_sequence<Places...>) {
    return [function](void **given) {
        auto values = std::make_tuple(*static_cast<Arguments *>(given[Places])...);
        return [function, values] { std::apply(function, values); };
    };
}

template <typename... Arguments> static Kernel of(void (*function)(Arguments...)) {
    return with_arguments(function, std::index_sequence_for<Arguments...>());
}

#define KERNEL(name) {#name, of(name)}

static std::map<std::string, Kernel> kernels = {
    KERNEL(rms_norm),        KERNEL(rms_norm_backward), KERNEL(rotate),
    KERNEL(add_to_rows),     KERNEL(add_scaled),        KERNEL(scale_rows),
    KERNEL(gated),           KERNEL(gated_backward),    KERNEL(causal_softmax),
    KERNEL(softmax_backward), KERNEL(sum_groups),       KERNEL(gather_rows),
    KERNEL(gather_half_rows), KERNEL(scatter_rows),     KERNEL(to_half),
    KERNEL(to_bfloat),       KERNEL(predict),
};

// The memory. What a kernel reads of a small allocation before it was written is no number.

static std::map<void *, size_t> allocated;
static size_t used = 0;

static Status allocate(uint64_t *address, size_t bytes) {
    if (used + bytes > MEMORY_BYTES) {
        return OUT_OF_MEMORY;
    }
    void *memory = malloc(bytes);
    if (bytes < FILLED_BYTES_MAX) {
        memset(memory, 0xff, bytes);
    }
    allocated[memory] = bytes;
    used += bytes;
    *address = reinterpret_cast<uint64_t>(memory);
    return OK;
}

static Status release(uint64_t address) {
    void *memory = reinterpret_cast<void *>(address);
    auto found = allocated.find(memory);
    if (found == allocated.end()) {
        return INVALID;
    }
    used -= found->second;
    allocated.erase(found);
    free(memory);
    return OK;
}

// A copy or a product within one allocation, or the learner has computed a size wrongly.
static bool is_inside(uint64_t address, size_t bytes) {
    auto after = allocated.upper_bound(reinterpret_cast<void *>(address));
    if (after == allocated.begin()) {
        return false;
    }
    auto [start, size] = *--after;
    return address + bytes <= reinterpret_cast<uint64_t>(start) + size;
}

extern "C" {

Status cuInit(unsigned) { return OK; }
Status cuDeviceGet(int *device, int) { return *device = 0, OK; }
Status cuDeviceGetCount(int *count) { return *count = 1, OK; }
Status cuDeviceGetName(char *name, int length, int) {
    strncpy(name, "emulated", length);
    return OK;
}
Status cuDeviceGetAttribute(int *value, int attribute, int) {
    const int major = 75, has_pools = 115;
    return *value = attribute == major ? 9 : attribute == has_pools ? 1 : 0, OK;
}
Status cuDevicePrimaryCtxRetain(void **context, int) {
    static int only;
    return *context = &only, OK;
}
Status cuDevicePrimaryCtxRelease_v2(int) { return OK; }
Status cuCtxSetCurrent(void *) { return OK; }
Status cuCtxGetCurrent(void **context) { return cuDevicePrimaryCtxRetain(context, 0); }
Status cuCtxSynchronize() { return OK; }
Status cuStreamSynchronize(void *) { return OK; }

Status cuMemGetInfo_v2(size_t *rest, size_t *all) {
    *rest = MEMORY_BYTES - used;
    *all = MEMORY_BYTES;
    return OK;
}
Status cuMemAllocAsync(uint64_t *address, size_t bytes, void *) { return allocate(address, bytes); }
Status cuMemFreeAsync(uint64_t address, void *) { return release(address); }
Status cuMemsetD8Async(uint64_t address, unsigned char value, size_t bytes, void *) {
    if (!is_inside(address, bytes)) {
        return INVALID;
    }
    memset(reinterpret_cast<void *>(address), value, bytes);
    return OK;
}
Status cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *) {
    if (!is_inside(to, bytes)) {
        return INVALID;
    }
    memcpy(reinterpret_cast<void *>(to), from, bytes);
    return OK;
}
Status cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *) {
    if (!is_inside(from, bytes)) {
        return INVALID;
    }
    memcpy(to, reinterpret_cast<void *>(from), bytes);
    return OK;
}
Status cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *) {
    if (!is_inside(from, bytes) || !is_inside(to, bytes)) {
        return INVALID;
    }
    memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
    return OK;
}

Status cuModuleLoadData(void **module, const void *) { return *module = &kernels, OK; }
Status cuModuleUnload(void *) { return OK; }
Status cuModuleGetFunction(void **function, void *, const char *name) {
    auto found = kernels.find(name);
    if (found == kernels.end()) {
        return NOT_FOUND;
    }
    return *function = &found->second, OK;
}
Status cuLaunchKernel(void *function, unsigned blocks, unsigned, unsigned, unsigned threads,
                      unsigned, unsigned, unsigned, void *, void **arguments, void **) {
    kernel = (*static_cast<Kernel *>(function))(arguments);
    gridDim = {blocks, 1, 1};
    blockDim = {threads, 1, 1};
    for (unsigned block = 0; block < blocks; block++) {
        blockIdx = {block, 0, 0};
        run_block(threads);
    }
    return OK;
}
Status cuGetErrorString(Status status, const char **text) {
    *text = status == OUT_OF_MEMORY ? "out of memory" : "the emulated GPU refuses this";
    return OK;
}
Status cuGetErrorName(Status status, const char **text) { return cuGetErrorString(status, text); }

Status cublasCreate_v2(void **handle) {
    static int only;
    return *handle = &only, OK;
}
Status cublasDestroy_v2(void *) { return OK; }
Status cublasSetStream_v2(void *, void *) { return OK; }

// A product of matrices that lie column by column.
Status cublasGemmStridedBatchedEx(void *, int transposed_a, int transposed_b, int m, int n, int k,
                                  const void *alpha, const void *a, int type_a, int leading_a,
                                  long long stride_a, const void *b, int type_b, int leading_b,
                                  long long stride_b, const void *beta, void *c, int type_c,
                                  int leading_c, long long stride_c, int count, int, int) {
    const int f32 = 0, bf16 = 14;
    if (type_a != type_b || (type_a != f32 && type_a != bf16) || type_c != f32) {
        return INVALID;
    }
    size_t width = type_a == f32 ? 4 : 2;
    auto last = [&](int transposed, int rows, int columns, int leading, long long stride) {
        int stored_rows = transposed ? columns : rows, stored_columns = transposed ? rows : columns;
        return stride * (count - 1) + (long long)(stored_columns - 1) * leading + stored_rows;
    };
    if (!is_inside((uint64_t)a, width * last(transposed_a, m, k, leading_a, stride_a)) ||
        !is_inside((uint64_t)b, width * last(transposed_b, k, n, leading_b, stride_b)) ||
        !is_inside((uint64_t)c, 4 * last(0, m, n, leading_c, stride_c))) {
        return INVALID;
    }
    auto value = [&](const void *matrix, long long at) -> float {
        if (type_a == f32) {
            return static_cast<const float *>(matrix)[at];
        }
        uint32_t bits = (uint32_t) static_cast<const uint16_t *>(matrix)[at] << 16;
        float number;
        memcpy(&number, &bits, sizeof number);
        return number;
    };
    float scale = *static_cast<const float *>(alpha), keep = *static_cast<const float *>(beta);
    for (int batch = 0; batch < count; batch++) {
        long long from_a = stride_a * batch, from_b = stride_b * batch;
        float *to = static_cast<float *>(c) + stride_c * batch;
        for (int column = 0; column < n; column++) {
            for (int row = 0; row < m; row++) {
                double sum = 0;
                for (int i = 0; i < k; i++) {
                    long long in_a = transposed_a ? (long long)row * leading_a + i
                                                  : (long long)i * leading_a + row;
                    long long in_b = transposed_b ? (long long)i * leading_b + column
                                                  : (long long)column * leading_b + i;
                    sum += (double)value(a, from_a + in_a) * value(b, from_b + in_b);
                }
                float *at = to + (long long)column * leading_c + row;
                *at = scale * (float)sum + (keep == 0 ? 0 : keep * *at);
            }
        }
    }
    return OK;
}
}
