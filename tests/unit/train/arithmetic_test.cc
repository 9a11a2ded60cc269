#include "train/linear/arithmetic.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tacit::train {
namespace {

// A library that rounds one result in some hundred the other way.
double OtherExp(double x) {
  const double y = std::exp(x);
  return x < -11.5 && x > -11.9 ? std::nextafter(y, 1) : y;
}
double OtherLog1p(double x) {
  const double y = std::log1p(x);
  return x > 0.5 && x < 0.55 ? std::nextafter(y, 0) : y;
}

TEST(ArithmeticDigest, ALastDigitOfALibraryShows) {
  const Digest here = ArithmeticDigest();
  EXPECT_EQ(here, ArithmeticDigest());
  EXPECT_NE(here, ArithmeticDigest({.exp = OtherExp}));
  EXPECT_NE(here, ArithmeticDigest({.log1p = OtherLog1p}));
  EXPECT_NE(ArithmeticDigest({.exp = OtherExp}), ArithmeticDigest({.log1p = OtherLog1p}));
}

}  // namespace
}  // namespace tacit::train
