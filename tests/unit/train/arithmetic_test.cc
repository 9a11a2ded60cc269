#include "train/linear/arithmetic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace tacit::train {
namespace {

// A library that rounds one result in some hundred the other way.
double OtherExp(double x) {
  const double y = std::exp(x);
  return x < -11.5 && x > -11.9 ? std::nextafter(y, 1) : y;
}
double OtherLog(double x) {
  const double y = std::log(x);
  return x > 1.1 && x < 1.2 ? std::nextafter(y, 0) : y;
}
double OtherLog1p(double x) {
  const double y = std::log1p(x);
  return x > 50 && x < 60 ? std::nextafter(y, 0) : y;
}
float OtherLog1pf(float x) {
  const float y = std::log1p(x);
  return x > 50 && x < 60 ? std::nextafter(y, 0.0f) : y;
}
double OtherPow(double x, double power) {
  const double y = std::pow(x, power);
  return x > 50 && x < 60 ? std::nextafter(y, 0) : y;
}

TEST(ArithmeticDigest, ALastDigitOfALibraryShows) {
  const Digest here = ArithmeticDigest();
  EXPECT_EQ(here, ArithmeticDigest());
  const std::set<Digest> all = {here,
                                ArithmeticDigest({.exp = OtherExp}),
                                ArithmeticDigest({.log = OtherLog}),
                                ArithmeticDigest({.log1p = OtherLog1p}),
                                ArithmeticDigest({.log1pf = OtherLog1pf}),
                                ArithmeticDigest({.pow = OtherPow})};
  EXPECT_EQ(all.size(), 6u);
}

}  // namespace
}  // namespace tacit::train
