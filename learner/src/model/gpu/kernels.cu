// The kernels of a learning step on an NVIDIA GPU: all that is no matrix product. Values are f32
// and row-major. A block of threads computes one row where a row has a sum, and otherwise a thread
// computes one value.
//
// The PTX next to this file is what the learner loads; the driver compiles it for the GPU. It is
// made by
//   nvcc -ptx -arch=compute_80 -o kernels.ptx kernels.cu
// and then its `.version` is set to 7.1, so that the drivers of CUDA 11.1 and later take it.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef unsigned int u32;
typedef unsigned long long u64;

// The threads of a block that computes a row. kernels.rs launches as many.
#define ROW_THREADS 256

#define EACH(index, count) \
    for (u64 index = (u64)blockIdx.x * blockDim.x + threadIdx.x; index < (count); \
         index += (u64)gridDim.x * blockDim.x)

struct Sum {
    static __device__ float start() { return 0.0f; }
    static __device__ float of(float a, float b) { return a + b; }
};

struct Largest {
    static __device__ float start() { return -INFINITY; }
    static __device__ float of(float a, float b) { return fmaxf(a, b); }
};

// Reduces one value of each thread to one value, which all threads get.
template <typename Reduction> static __device__ float reduce(float value) {
    __shared__ float of_warps[ROW_THREADS / 32];
    for (int distance = 16; distance > 0; distance /= 2) {
        value = Reduction::of(value, __shfl_xor_sync(0xffffffff, value, distance));
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        of_warps[threadIdx.x / 32] = value;
    }
    __syncthreads();
    value = Reduction::start();
    for (int warp = 0; warp < ROW_THREADS / 32; warp++) {
        value = Reduction::of(value, of_warps[warp]);
    }
    return value;
}

// y = x · w / √(mean(x²) + ε), for rows of `width` values.
extern "C" __global__ void rms_norm(float *y, const float *x, const float *w, float epsilon,
                                    u32 width) {
    x += (u64)blockIdx.x * width;
    y += (u64)blockIdx.x * width;
    float squares = 0.0f;
    for (u32 i = threadIdx.x; i < width; i += ROW_THREADS) {
        squares += x[i] * x[i];
    }
    float inverse = rsqrtf(reduce<Sum>(squares) / width + epsilon);
    for (u32 i = threadIdx.x; i < width; i += ROW_THREADS) {
        y[i] = x[i] * inverse * w[i];
    }
}

// The gradient of rms_norm: with n = x·s and g = dy·w it is dx = s·(g − n·mean(g·n)). It is added
// to dx if `adds`, and replaces it otherwise.
extern "C" __global__ void rms_norm_backward(float *dx, const float *dy, const float *x,
                                             const float *w, float epsilon, u32 width, u32 adds) {
    u64 row = (u64)blockIdx.x * width;
    x += row;
    dy += row;
    dx += row;
    float squares = 0.0f, along = 0.0f;
    for (u32 i = threadIdx.x; i < width; i += ROW_THREADS) {
        squares += x[i] * x[i];
        along += dy[i] * w[i] * x[i];
    }
    float inverse = rsqrtf(reduce<Sum>(squares) / width + epsilon);
    float share = reduce<Sum>(along) * inverse * inverse / width;
    for (u32 i = threadIdx.x; i < width; i += ROW_THREADS) {
        float gradient = inverse * (dy[i] * w[i] - x[i] * share);
        dx[i] = adds ? dx[i] + gradient : gradient;
    }
}

// Rotates the pairs of every head of every row. `angles` has sin and cos of each pair of a row;
// `sign` is −1 for the gradient. The pairs are (j, j + half) if `halves`, and (2j, 2j + 1)
// otherwise.
extern "C" __global__ void rotate(float *x, const float2 *angles, float sign, u32 heads, u32 half,
                                  u32 halves, u64 count) {
    EACH(index, count) {
        u32 pair = index % half;
        u64 head = index / half, row = head / heads;
        float *at = x + head * 2 * half;
        float *a = at + (halves ? pair : 2 * pair);
        float *b = halves ? a + half : a + 1;
        float2 angle = angles[row * half + pair];
        float sine = angle.x * sign, first = *a, second = *b;
        *a = first * angle.y - second * sine;
        *b = first * sine + second * angle.y;
    }
}

// Adds a vector to every row.
extern "C" __global__ void add_to_rows(float *y, const float *vector, u32 width, u64 count) {
    EACH(index, count) { y[index] += vector[index % width]; }
}

// y += scale · x.
extern "C" __global__ void add_scaled(float *y, const float *x, float scale, u64 count) {
    EACH(index, count) { y[index] += scale * x[index]; }
}

// Multiplies every row with a number of its own.
extern "C" __global__ void scale_rows(float *x, const float *factors, u32 width, u64 count) {
    EACH(index, count) { x[index] *= factors[index / width]; }
}

static __device__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// The activation of a gate and its slope: SiLU, or GELU in the approximation with tanh.
static __device__ float activation(float x, u32 is_gelu, float *slope) {
    float inner = 1.0f, share;
    if (is_gelu) {
        const float outer = 1.5957691216f, cubic = 0.044715f;
        share = sigmoid(outer * (x + cubic * x * x * x));
        inner = outer * (1.0f + 3.0f * cubic * x * x);
    } else {
        share = sigmoid(x);
    }
    float value = x * share;
    *slope = share + value * (1.0f - share) * inner;
    return value;
}

// h = f(gate) · up.
extern "C" __global__ void gated(float *h, const float *gate, const float *up, u32 is_gelu,
                                 u64 count) {
    EACH(index, count) {
        float slope;
        h[index] = activation(gate[index], is_gelu, &slope) * up[index];
    }
}

// dgate = dh · up · f'(gate) and dup = dh · f(gate).
extern "C" __global__ void gated_backward(float *d_gate, float *d_up, const float *dh,
                                          const float *gate, const float *up, u32 is_gelu,
                                          u64 count) {
    EACH(index, count) {
        float slope, value = activation(gate[index], is_gelu, &slope);
        d_gate[index] = dh[index] * up[index] * slope;
        d_up[index] = dh[index] * value;
    }
}

// softmax(scale · score) in place for the scores of heads × queries, where query i of a head sees
// `past` + i + 1 keys. The others get the weight 0.
extern "C" __global__ void causal_softmax(float *scores, u32 keys, u32 queries, u32 past,
                                          float scale) {
    scores += (u64)blockIdx.x * keys;
    u32 visible = past + blockIdx.x % queries + 1;
    float top = -INFINITY, sum = 0.0f;
    for (u32 i = threadIdx.x; i < visible; i += ROW_THREADS) {
        top = fmaxf(top, scores[i]);
    }
    top = reduce<Largest>(top);
    for (u32 i = threadIdx.x; i < visible; i += ROW_THREADS) {
        float weight = expf((scores[i] - top) * scale);
        scores[i] = weight;
        sum += weight;
    }
    float inverse = 1.0f / reduce<Sum>(sum);
    for (u32 i = threadIdx.x; i < keys; i += ROW_THREADS) {
        scores[i] = i < visible ? scores[i] * inverse : 0.0f;
    }
}

// The gradient with respect to the scores, scale · p · (dp − Σ p·dp), in the place of dp.
extern "C" __global__ void softmax_backward(float *dp, const float *p, u32 keys, float scale) {
    dp += (u64)blockIdx.x * keys;
    p += (u64)blockIdx.x * keys;
    float along = 0.0f;
    for (u32 i = threadIdx.x; i < keys; i += ROW_THREADS) {
        along += p[i] * dp[i];
    }
    along = reduce<Sum>(along);
    for (u32 i = threadIdx.x; i < keys; i += ROW_THREADS) {
        dp[i] = p[i] * (dp[i] - along) * scale;
    }
}

// Adds up the heads that share a key/value head: `rows × heads·width` to `rows × kv_heads·width`.
extern "C" __global__ void sum_groups(float *y, const float *x, u32 group, u32 width, u64 count) {
    EACH(index, count) {
        u64 head = index / width;
        float sum = 0.0f;
        for (u32 member = 0; member < group; member++) {
            sum += x[(head * group + member) * width + index % width];
        }
        y[index] = sum;
    }
}

// y[i] = x[index[i]], by rows.
extern "C" __global__ void gather_rows(float *y, const float *x, const u32 *index, u32 width,
                                       u64 count) {
    EACH(at, count) { y[at] = x[(u64)index[at / width] * width + at % width]; }
}

// The same from f16.
extern "C" __global__ void gather_half_rows(float *y, const __half *x, const u32 *index,
                                            u32 width, u64 count) {
    EACH(at, count) { y[at] = __half2float(x[(u64)index[at / width] * width + at % width]); }
}

// y[index[i]] = x[i], by rows. No row is named twice.
extern "C" __global__ void scatter_rows(float *y, const float *x, const u32 *index, u32 width,
                                        u64 count) {
    EACH(at, count) { y[(u64)index[at / width] * width + at % width] = x[at]; }
}

extern "C" __global__ void to_half(__half *y, const float *x, u64 count) {
    EACH(index, count) { y[index] = __float2half_rn(x[index]); }
}

extern "C" __global__ void to_bfloat(__nv_bfloat16 *y, const float *x, u64 count) {
    EACH(index, count) { y[index] = __float2bfloat16_rn(x[index]); }
}

// The log-prob of a row's target, and what each row of the output matrix adds to its gradient.
//
// The policy is softmax(logit · sharpness) over the tokens that its mask allows (`mask_of` is the
// index of the mask, or none). The target is the set `members[first_member[row] ..
// first_member[row + 1]]`, whose probabilities are added. Each logit is replaced by
// sharpness · (p(v | target) − p(v)).
extern "C" __global__ void predict(float *logits, float *logprobs, const float *sharpness,
                                   const u32 *mask_of, const u32 *masks, const u32 *first_member,
                                   const u32 *members, u32 vocabulary) {
    const u32 none = 0xffffffff;
    u32 row = blockIdx.x, words = (vocabulary + 31) / 32;
    logits += (u64)row * vocabulary;
    const u32 *mask = mask_of[row] == none ? 0 : masks + (u64)mask_of[row] * words;
    float sharp = sharpness[row], top = -INFINITY, sum = 0.0f;
    for (u32 v = threadIdx.x; v < vocabulary; v += ROW_THREADS) {
        if (!mask || (mask[v / 32] >> (v % 32) & 1)) {
            top = fmaxf(top, logits[v] * sharp);
        }
    }
    top = reduce<Largest>(top);
    for (u32 v = threadIdx.x; v < vocabulary; v += ROW_THREADS) {
        bool allowed = !mask || (mask[v / 32] >> (v % 32) & 1);
        float weight = allowed ? expf(logits[v] * sharp - top) : 0.0f;
        sum += weight;
    }
    sum = reduce<Sum>(sum);
    // The logits of the members are read before they are replaced.
    __shared__ float target_top, target_sum;
    if (threadIdx.x == 0) {
        float member_top = -INFINITY, member_sum = 0.0f;
        for (u32 at = first_member[row]; at < first_member[row + 1]; at++) {
            member_top = fmaxf(member_top, logits[members[at]] * sharp);
        }
        for (u32 at = first_member[row]; at < first_member[row + 1]; at++) {
            member_sum += expf(logits[members[at]] * sharp - member_top);
        }
        logprobs[row] = member_top - top - logf(sum) + logf(member_sum);
        target_top = member_top;
        target_sum = member_sum;
    }
    __syncthreads();
    for (u32 v = threadIdx.x; v < vocabulary; v += ROW_THREADS) {
        bool allowed = !mask || (mask[v / 32] >> (v % 32) & 1);
        float logit = logits[v] * sharp;
        float coefficient = allowed ? -expf(logit - top) / sum : 0.0f;
        for (u32 at = first_member[row]; at < first_member[row + 1]; at++) {
            if (members[at] == v) {
                coefficient += expf(logit - target_top) / target_sum;
            }
        }
        logits[v] = coefficient * sharp;
    }
}
