#include "base/threads/side_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace tacit {
namespace {

TEST(SideThread, DoesJobsInOrderBesideItsOwner) {
  SideThread side("side");
  side.Wait();  // nothing is under way
  std::vector<int> done;
  std::thread::id where;
  for (int i = 0; i < 100; ++i) side.Start([&, i] { done.push_back(i); });
  side.Start([&] { where = std::this_thread::get_id(); });
  side.Wait();
  side.Wait();
  ASSERT_EQ(done.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(done[i], i);
  EXPECT_NE(where, std::this_thread::get_id());
}

TEST(SideThread, GoesOnWhileItsOwnerDoes) {
  SideThread side("side");
  std::atomic<bool> owner_went_on = false;
  side.Start([&] { owner_went_on.wait(false); });
  owner_went_on = true;
  owner_went_on.notify_one();
  side.Wait();
}

TEST(SideThread, EndsBehindItsJob) {
  int done = 0;
  { const SideThread never("side"); }
  {
    SideThread side("side");
    for (int i = 0; i < 50; ++i) side.Start([&] { ++done; });
  }
  EXPECT_EQ(done, 50);
}

}  // namespace
}  // namespace tacit
