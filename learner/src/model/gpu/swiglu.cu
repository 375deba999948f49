// The middle of a feed-forward layer: gate = gate · sigmoid(gate) · up, element by element.
//
// The PTX beside this file is what the learner loads; the driver compiles it for the GPU. Made by
//   nvcc -ptx -arch=compute_75 -o swiglu.ptx swiglu.cu
// and then its `.version` was set to 6.4, so that the drivers of CUDA 10.1 and later take it.
extern "C" __global__ void swiglu(float *gate, const float *up, unsigned int count) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        float g = gate[i];
        gate[i] = g / (1.0f + expf(-g)) * up[i];
    }
}
