// Never linked: nvcc must refuse it. A function for both sides calls one of the host's, as when
// the standard library is used in a header that kernels share. nvcc alone only warns.
double OnTheHostAlone(double x);

template <class T>
__host__ __device__ T Shared(T x) {
  return OnTheHostAlone(x);
}

__global__ void Planted(double* x) { *x = Shared(*x); }
