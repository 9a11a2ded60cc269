// The properties that noise must have, as criteria; each passes on the product's sources, alone and
// on workers, and fails on sources that have a fault planted in them (planted_noise.h). The
// product's keys are random: a run of all of them raises a false alarm with probability below 1e-6
// (statistics.h).
#include "criteria.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/threads/worker_pool.h"
#include "noise/noise.h"
#include "planted_noise.h"

namespace tacit::noise {
namespace {

using testing::AllCriteria;
using testing::Criterion;
using testing::Fault;
using testing::PlantedNoise;

class Criteria : public ::testing::TestWithParam<Criterion> {};

TEST_P(Criteria, PassesOnTheProductsSource) {
  EXPECT_EQ(GetParam().check([] { return MakeNoiseSource(); }, 1), "");
}

TEST_P(Criteria, PassesOnWorkers) {
  WorkerPool pool({.workers = 2});
  EXPECT_EQ(GetParam().check([&] { return MakeNoiseSource(pool); }, 1), "");
}

TEST_P(Criteria, FindsWhatItIsFor) {
  // A planted source fails by its fault alone. (A hundred thousand sound keys take too long.)
  if (std::string(GetParam().name) != "ManyKeys") {
    EXPECT_EQ(GetParam().check([] { return std::make_unique<PlantedNoise>(Fault::kNone); }, 1), "");
  }
  for (const Fault fault : GetParam().finds) {
    EXPECT_NE(GetParam().check([&] { return std::make_unique<PlantedNoise>(fault); }, 1), "")
        << "fault " << static_cast<int>(fault);
  }
}

INSTANTIATE_TEST_SUITE_P(Noise, Criteria, ::testing::ValuesIn(AllCriteria()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tacit::noise
