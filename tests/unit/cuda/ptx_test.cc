// The noise kernels as nvcc made them: there, not empty, and with no fused operation but those that
// are spelled out, for the CPU rounds twice where nothing is spelled out.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace tacit::cuda {
namespace {

struct Kernel {
  size_t instructions = 0, stores = 0, fused_doubles = 0, fused_floats = 0;
};

// By the part of its name that the source gives it.
std::map<std::string, Kernel> ReadKernels() {
  std::map<std::string, Kernel> kernels;
  std::stringstream files{std::string(TACIT_PTX)};
  for (std::string path; std::getline(files, path, ':');) {
    std::ifstream in(path);
    EXPECT_TRUE(in.good()) << path;
    Kernel* kernel = nullptr;
    for (std::string line; std::getline(in, line);) {
      const size_t entry = line.find(".entry ");
      if (entry != std::string::npos) kernel = &kernels[line.substr(entry + 7)];
      if (line.starts_with("}")) kernel = nullptr;
      if (kernel == nullptr || !line.starts_with("\t") || line.find(';') == std::string::npos)
        continue;
      if (line.starts_with("\t.")) continue;  // declarations
      ++kernel->instructions;
      // To global memory, also by an addition there, or through a pointer that was itself read from
      // memory.
      kernel->stores += line.find("st.global") != std::string::npos ||
                        line.find("st.volatile") != std::string::npos ||
                        line.find("atom.global") != std::string::npos ||
                        line.find("red.global") != std::string::npos ||
                        line.find("\tst.f32") != std::string::npos ||
                        line.find("\tst.b32") != std::string::npos;
      kernel->fused_doubles += line.find("fma.rn.f64") != std::string::npos;
      kernel->fused_floats += line.find("fma.rn.f32") != std::string::npos;
    }
  }
  return kernels;
}

// A template has a kernel for each of its types.
std::vector<Kernel> Find(const std::map<std::string, Kernel>& kernels, const std::string& name) {
  std::vector<Kernel> found;
  for (const auto& [mangled, kernel] : kernels)
    if (mangled.find(name) != std::string::npos) found.push_back(kernel);
  return found;
}

TEST(Ptx, KernelsAreNotEmpty) {
  const auto kernels = ReadKernels();
  // Three blocks of ChaCha20 are 3 x 80 quarter rounds of 12 operations at the least.
  constexpr size_t kPlaceMin = 3 * 80 * 12, kBlockMin = 80 * 12;
  struct Expected {
    const char* name;
    size_t instructions;
    size_t instances = 1;
  };
  size_t instances = 0;
  for (const Expected& expected : {Expected{"9AddKernel", kPlaceMin},
                                   {"10FillKernel", kPlaceMin},
                                   {"15AddToRowsKernel", kPlaceMin},
                                   {"11DenseKernel", kPlaceMin},
                                   {"10RowsKernel", kPlaceMin},
                                   {"14EveryRowKernel", kPlaceMin},
                                   {"11AboveKernel", kBlockMin},
                                   {"15KeystreamKernel", kBlockMin},
                                   {"10WipeKernel", 1},
                                   {"16ContributeKernel", 1},
                                   {"12InsideKernel", 1}}) {
    const std::vector<Kernel> found = Find(kernels, expected.name);
    EXPECT_EQ(found.size(), expected.instances) << expected.name;
    for (const Kernel& kernel : found) {
      EXPECT_GE(kernel.instructions, expected.instructions) << expected.name;
      EXPECT_GE(kernel.stores, 1u) << expected.name;
    }
    instances += found.size();
  }
  EXPECT_EQ(kernels.size(), instances);
}

// A pair of normals has 28 fused operations in grid_kernel.h: one to join u's bits, 9 for the
// logarithm, one for the angle, 6 for the sine, 7 for the cosine, and two to round down each of
// two.
TEST(Ptx, FusedOperationsAreThoseThatAreSpelledOut) {
  const auto kernels = ReadKernels();
  constexpr size_t kFusedPerPair = 1 + 9 + 1 + 6 + 7 + 2 * 2;
  for (const char* name : {"9AddKernel", "10FillKernel", "15AddToRowsKernel", "11DenseKernel"}) {
    const std::vector<Kernel> found = Find(kernels, name);
    EXPECT_FALSE(found.empty()) << name;
    for (const Kernel& kernel : found) {
      EXPECT_EQ(kernel.fused_doubles, 8 * kFusedPerPair) << name;
      EXPECT_EQ(kernel.fused_floats, 0u) << name;
    }
  }
}

}  // namespace
}  // namespace tacit::cuda
