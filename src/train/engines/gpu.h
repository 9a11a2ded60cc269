#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "mechanism/mechanism.h"
#include "model/pctr_device.h"
#include "noise/noise.h"
#include "store/rows/working_rows.h"
#include "store/types/delta.h"
#include "train/engines/click_engine.h"
#include "train/engines/gpu_scoring.h"
#include "train/engines/gpu_step.h"
#include "train/engines/sequence_engine.h"

namespace tacit::train {

// The place of learners' tables on a GPU.
struct GpuRowOptions {
  enum class Kind {
    kAuto,   // whole where they fit into three quarters of the memory that is free, else cached
    kWhole,  // all in device memory
    kCache,  // a cache of the rows that are used; for mechanisms that do not write every row
  };
  Kind kind = Kind::kAuto;
  uint64_t cache_bytes = 0;  // of a cache's places; 0: three quarters of what is free
};

// The code that multiplies the bf16 matrices of click models on a GPU.
enum class GpuProducts {
  kOwn,      // Tacit's own kernels
  kLibrary,  // cuBLAS, which is loaded at run time; without it the learner has no form for a GPU
  kAuto,     // the faster of the two, by a trial at the start; own where there is no library
};

struct GpuOptions {
  int ordinal = 0;  // as nvidia-smi counts
  GpuRowOptions rows = {};
  GpuProducts products = GpuProducts::kOwn;
};

// The bytes of a GPU's memory that an engine takes when it is made, for its steps as well.
struct GpuNeed {
  uint64_t rows = 0;  // of tables, whole or cached
  uint64_t rest = 0;  // dense parameters and state, activations, sums
  bool caches = false;

  uint64_t all() const { return rows + rest; }
};

// A GPU that does the work of learners, and scores by what they have released. Which one, if any, a
// program has is decided where it is linked (cuda/learn/gpu.h). Used by one thread at a time, but
// for what is made on it, which it outlives: an engine may be in one thread, a PctrDevice in
// others.
class Gpu {
 public:
  virtual ~Gpu() = default;

  // "GPU 0 (NVIDIA H100, 80 GB)".
  virtual std::string name() const = 0;
  // The bytes of its memory that nobody has taken.
  virtual Result<uint64_t> FreeBytes() = 0;
  // The memory that MakeClickEngine would take where so much is free, for a mechanism that writes
  // every row in every step or does not. A GPU that has as much makes the engine. Fails as that
  // does for tables without a form.
  virtual Result<GpuNeed> ClickEngineNeed(const ClickEngineOptions& options, bool writes_every_row,
                                          uint64_t free) = 0;
  // The same for MakeSequenceEngine, with the state that is loaded into it.
  virtual GpuNeed SequenceEngineNeed(const SequenceEngineOptions& options) = 0;
  // An engine for a model as of the last commit: `rows` and `dense`. Fails with kRefused if the
  // mechanism or the optimiser has no form for a GPU, and with kCorruption if the device does not
  // compute what the CPU does. All references must outlive the engine.
  virtual Result<std::unique_ptr<ClickEngine>> MakeClickEngine(const ClickEngineOptions& options,
                                                               mechanism::Mechanism& mechanism,
                                                               noise::NoiseSource& noise,
                                                               store::WorkingRows& rows,
                                                               const store::DenseState& dense) = 0;
  // The same for a sequence model, which is loaded into it. Fails with kRefused for what
  // WhyNotOnEngine names.
  virtual Result<std::unique_ptr<SequenceEngine>> MakeSequenceEngine(
      const SequenceEngineOptions& options, noise::NoiseSource& noise) = 0;
  // The forward pass of a click model for those who ask, and the memory that it takes. REQUIRES a
  // model that does not clip its inputs. Fails with kRefused for a network without a form.
  virtual GpuNeed PctrDeviceNeed(const GpuScoreOptions& options) = 0;
  virtual Result<std::unique_ptr<model::PctrDevice>> MakePctrDevice(
      const GpuScoreOptions& options) = 0;
};

}  // namespace tacit::train
