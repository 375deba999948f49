// What kernels.cu needs of CUDA to be compiled as C++ for the CPU. A block's threads are fibers,
// which take turns: each runs until it waits for the others.

#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#define __global__
#define __device__
// One block runs at a time.
#define __shared__ static

struct Index {
    unsigned x, y, z;
};

struct float2 {
    float x, y;
};

extern Index threadIdx, blockIdx, blockDim, gridDim;

// Waits until all threads of the block are here.
void __syncthreads();

// The value of the thread whose index differs in the bits of `distance`. All threads of the block
// ask at once.
float __shfl_xor_sync(unsigned mask, float value, int distance);

static inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }

struct __half {
    uint16_t bits;
};

struct __nv_bfloat16 {
    uint16_t bits;
};

static inline float __half2float(__half x) {
    _Float16 value;
    std::memcpy(&value, &x.bits, sizeof value);
    return value;
}

static inline __half __float2half_rn(float x) {
    _Float16 value = x;
    __half half;
    std::memcpy(&half.bits, &value, sizeof value);
    return half;
}

// Rounds to the nearest, and to even bits where there are two.
static inline __nv_bfloat16 __float2bfloat16_rn(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    bits += 0x7fff + (bits >> 16 & 1);
    return __nv_bfloat16{static_cast<uint16_t>(bits >> 16)};
}
