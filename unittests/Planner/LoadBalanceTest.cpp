//===- LoadBalanceTest.cpp - Shares against brute force -------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How samples are shared out to devices of unequal speed and memory, at once or
// over several micro-batches. Small cases are computed by hand.
//
// 3,000 random cases of up to 4 devices are compared with all possible shares:
// the latest finish must be the smallest one, and an error must mean that
// nothing fits. 2,000 are compared with the greedy method that gives away one
// unit after the other, which also says how ties go. 500 are shared out over
// several micro-batches, whose totals must be as balanced as if they were one.
//
//===----------------------------------------------------------------------===//

#include "whale/Planner/LoadBalance.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <cmath>
#include <functional>
#include <optional>
#include <random>

using namespace whale;

using Shares = std::vector<int64_t>;

static Shares sharesOf(int64_t total, int64_t grain,
                       llvm::ArrayRef<ShareDevice> devices) {
  return llvm::cantFail(shares(total, grain, devices));
}

static std::string errorOf(int64_t total, int64_t grain,
                           llvm::ArrayRef<ShareDevice> devices) {
  llvm::Expected<Shares> result = shares(total, grain, devices);
  return result ? "" : llvm::toString(result.takeError());
}

static std::vector<ShareDevice> withSpeeds(llvm::ArrayRef<double> speeds) {
  std::vector<ShareDevice> devices;
  for (double speed : speeds) {
    ShareDevice &device = devices.emplace_back();
    device.id = devices.size() - 1;
    device.secondsPerUnit = 1 / speed;
  }
  return devices;
}

static bool fits(const ShareDevice &device, int64_t units) {
  return double(device.fixedBytes) + device.bytesPerUnit * double(units) <=
         double(device.memoryBytes);
}

/// The smallest largest finish time over all shares.
static std::optional<double>
bruteForce(int64_t total, int64_t grain, llvm::ArrayRef<ShareDevice> devices,
           std::function<double(size_t, int64_t)> seconds) {
  std::optional<double> best;
  std::function<void(size_t, int64_t, double)> walk =
      [&](size_t i, int64_t left, double worst) {
        if (i == devices.size()) {
          if (left == 0 && (!best || worst < *best))
            best = worst;
          return;
        }
        for (int64_t units = 0; units <= left; units += grain)
          if (fits(devices[i], units))
            walk(i + 1, left - units,
                 units ? std::max(worst, seconds(i, units)) : worst);
      };
  walk(0, total, 0);
  return best;
}

TEST(LoadBalance, EqualDevicesTakeEqualShares) {
  EXPECT_EQ(sharesOf(8, 1, withSpeeds({1, 1})), (Shares{4, 4}));
  EXPECT_EQ(sharesOf(10, 1, withSpeeds({1, 1, 1, 1})), (Shares{3, 3, 2, 2}));
  EXPECT_EQ(sharesOf(12, 4, withSpeeds({3, 3})), (Shares{8, 4}));
  EXPECT_EQ(sharesOf(0, 1, withSpeeds({1, 1})), (Shares{0, 0}));
}

TEST(LoadBalance, SharesFollowSpeed) {
  EXPECT_EQ(sharesOf(64, 1, withSpeeds({15.7, 9.3})), (Shares{40, 24}));
  // Too slow to take even one.
  EXPECT_EQ(sharesOf(4, 1, withSpeeds({10, 1})), (Shares{4, 0}));
}

TEST(LoadBalance, TiesGoToTheFirst) {
  // The fourth and fifth finish at 4 on either of three devices.
  EXPECT_EQ(sharesOf(9, 1, withSpeeds({1, 1, 0.5})), (Shares{4, 4, 1}));
  // Nothing costs anything: one each, again and again.
  std::vector<ShareDevice> devices = withSpeeds({1, 1, 1});
  for (ShareDevice &device : devices)
    device.secondsPerUnit = 0;
  EXPECT_EQ(sharesOf(8, 1, devices), (Shares{3, 3, 2}));
  devices[1].bytesPerUnit = 1;
  devices[1].memoryBytes = 1;
  EXPECT_EQ(sharesOf(8, 1, devices), (Shares{4, 1, 3}));
}

TEST(LoadBalance, MemoryCapsShares) {
  std::vector<ShareDevice> devices = withSpeeds({2, 1});
  devices[0].memoryBytes = 100;
  devices[0].fixedBytes = 60;
  devices[0].bytesPerUnit = 10;
  EXPECT_EQ(sharesOf(12, 1, devices), (Shares{4, 8}));
  EXPECT_EQ(sharesOf(12, 3, devices), (Shares{3, 9}));
}

TEST(LoadBalance, LargeTotals) {
  Shares result = sharesOf(int64_t(1) << 40, 1, withSpeeds({1, 2, 1}));
  EXPECT_EQ(result[0] + result[1] + result[2], int64_t(1) << 40);
  EXPECT_NEAR(result[1], double(int64_t(1) << 39), 2);
  std::vector<double> speeds(512, 3);
  EXPECT_EQ(sharesOf(5120, 1, withSpeeds(speeds)), Shares(512, 10));
}

TEST(LoadBalance, ErrorsNameTheDevice) {
  std::vector<ShareDevice> devices = withSpeeds({2, 1});
  devices[1].id = 5;
  devices[1].memoryBytes = 100;
  devices[1].fixedBytes = 160;
  EXPECT_EQ(errorOf(12, 1, devices),
            "device 5 lacks 60 bytes of memory: it has 100 and needs 160 "
            "besides any share");
  devices[1].fixedBytes = 60;
  for (ShareDevice &device : devices) {
    device.memoryBytes = 100;
    device.bytesPerUnit = 10;
  }
  // 10 and 4 fit.
  EXPECT_EQ(errorOf(20, 1, devices),
            "device 0 lacks 60 bytes of memory: with all devices full, 6 of "
            "20 units are left; it has 100 bytes, of which 0 are taken "
            "besides its share");
  devices[0].memoryBytes += 60;
  EXPECT_EQ(sharesOf(20, 1, devices), (Shares{16, 4}));
}

TEST(LoadBalance, BadArguments) {
  std::vector<ShareDevice> devices = withSpeeds({1});
  EXPECT_EQ(errorOf(5, 2, devices), "can't share out 5 units in grains of 2");
  EXPECT_EQ(errorOf(5, 0, devices), "can't share out 5 units in grains of 0");
  EXPECT_EQ(errorOf(-1, 1, devices), "can't share out -1 units");
  EXPECT_EQ(errorOf(5, 1, {}), "no device to share out to");
  devices[0].secondsPerUnit = std::nan("");
  EXPECT_EQ(errorOf(5, 1, devices),
            "device 0: a time is negative or not a number");
  devices = withSpeeds({1});
  devices[0].bytesPerUnit = -1;
  EXPECT_EQ(errorOf(5, 1, devices),
            "device 0: an amount of memory is negative or not finite");
}

TEST(LoadBalance, MatchesBruteForce) {
  std::mt19937 random(7);
  auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  int failed = 0;
  for (int round = 0; round < 3000; ++round) {
    int64_t grain = pick(1, 3), total = grain * pick(0, 9);
    std::vector<ShareDevice> devices(pick(1, 4));
    std::vector<std::vector<double>> table(devices.size());
    for (size_t i = 0; i < devices.size(); ++i) {
      devices[i].id = i;
      devices[i].secondsPerUnit = pick(0, 4);
      devices[i].fixedSeconds = pick(0, 3);
      if (pick(0, 1)) {
        devices[i].memoryBytes = pick(0, 20);
        devices[i].fixedBytes = pick(0, 3);
        devices[i].bytesPerUnit = pick(0, 4);
      }
      // Any nondecreasing cost, with plateaus.
      double cost = 0;
      for (int64_t units = 0; units <= total; ++units)
        table[i].push_back(cost += pick(0, 2) * pick(0, 2));
    }
    bool linear = pick(0, 1);
    auto seconds = [&](size_t i, int64_t units) {
      return linear ? devices[i].fixedSeconds +
                          devices[i].secondsPerUnit * double(units)
                    : table[i][units];
    };
    bool fixedFits = llvm::all_of(
        devices, [](const ShareDevice &device) { return fits(device, 0); });
    std::optional<double> best =
        fixedFits ? bruteForce(total, grain, devices, seconds) : std::nullopt;
    llvm::Expected<Shares> result =
        linear ? shares(total, grain, devices)
               : shares(total, grain, devices, seconds);
    ASSERT_EQ(bool(result), best.has_value());
    if (!result) {
      llvm::consumeError(result.takeError());
      ++failed;
      continue;
    }
    double worst = 0;
    int64_t sum = 0;
    for (size_t i = 0; i < devices.size(); ++i) {
      int64_t share = (*result)[i];
      ASSERT_EQ(share % grain, 0);
      ASSERT_TRUE(fits(devices[i], share));
      sum += share;
      if (share)
        worst = std::max(worst, seconds(i, share));
    }
    ASSERT_EQ(sum, total);
    ASSERT_EQ(worst, *best);
  }
  EXPECT_GT(failed, 100);
}

TEST(LoadBalance, MatchesHandingOutOneByOne) {
  std::mt19937 random(11);
  auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int round = 0; round < 2000; ++round) {
    int64_t total = pick(0, 200);
    std::vector<ShareDevice> devices(pick(1, 12));
    // Of whole numbers many are ties; of the others few.
    double unit = pick(0, 1) ? 1 : 0.1 / 3;
    for (ShareDevice &device : devices) {
      device.secondsPerUnit = unit * pick(1, 5);
      device.fixedSeconds = unit * pick(0, 20);
      device.bytesPerUnit = pick(0, 3) == 0;
      device.memoryBytes = pick(0, 30);
    }
    Shares wanted(devices.size(), 0);
    int64_t left = total;
    for (; left > 0; --left) {
      std::optional<size_t> first;
      auto finish = [&](size_t i) {
        return devices[i].fixedSeconds +
               double(wanted[i] + 1) * devices[i].secondsPerUnit;
      };
      for (size_t i = 0; i < devices.size(); ++i)
        if (fits(devices[i], wanted[i] + 1) &&
            (!first || finish(i) < finish(*first)))
          first = i;
      if (!first)
        break;
      ++wanted[*first];
    }
    llvm::Expected<Shares> result = shares(total, 1, devices);
    ASSERT_EQ(bool(result), left == 0);
    if (result)
      ASSERT_EQ(*result, wanted);
    else
      llvm::consumeError(result.takeError());
  }
}

/// Units of all moments that each device takes.
static Shares totalsOf(const std::vector<Shares> &moments) {
  Shares totals(moments.front().size(), 0);
  for (const Shares &moment : moments)
    for (size_t i = 0; i < totals.size(); ++i)
      totals[i] += moment[i];
  return totals;
}

static std::vector<Shares> momentsOf(llvm::ArrayRef<int64_t> totals,
                                     int64_t period,
                                     llvm::ArrayRef<ShareDevice> devices) {
  return llvm::cantFail(sharesOfMoments(totals, period, devices));
}

TEST(LoadBalance, SharesRotateOverMoments) {
  std::vector<ShareDevice> devices = withSpeeds({2, 1});
  EXPECT_EQ(momentsOf({4, 4, 4, 4}, 4, devices),
            (std::vector<Shares>{{3, 1}, {3, 1}, {2, 2}, {3, 1}}));
  EXPECT_EQ(momentsOf({4, 4, 4, 4}, 2, devices),
            (std::vector<Shares>{{3, 1}, {3, 1}, {3, 1}, {3, 1}}));
  devices[0].fixedSeconds = 3;
  EXPECT_EQ(momentsOf({4, 4}, 2, devices),
            (std::vector<Shares>{{1, 3}, {1, 3}}));
  EXPECT_EQ(momentsOf({1, 1, 1}, 3, withSpeeds({1, 1})),
            (std::vector<Shares>{{1, 0}, {0, 1}, {1, 0}}));
}

TEST(LoadBalance, MomentsTogetherAreBalanced) {
  std::mt19937 random(11);
  auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int round = 0; round < 500; ++round) {
    std::vector<double> speeds(pick(1, 5));
    for (double &speed : speeds)
      speed = pick(1, 40) / 10.0;
    std::vector<ShareDevice> devices = withSpeeds(speeds);
    std::vector<int64_t> moments(pick(1, 8));
    int64_t all = 0;
    for (int64_t &moment : moments)
      all += moment = pick(0, 9);
    std::vector<Shares> result = momentsOf(moments, moments.size(), devices);
    for (size_t moment = 0; moment < moments.size(); ++moment) {
      int64_t sum = 0;
      for (int64_t share : result[moment]) {
        ASSERT_GE(share, 0);
        sum += share;
      }
      ASSERT_EQ(sum, moments[moment]);
    }
    // As fast as if all moments were one, and no two devices that far apart
    // that one unit of the later could have gone to the other.
    Shares totals = totalsOf(result), whole = sharesOf(all, 1, devices);
    auto finish = [&](const Shares &shares, size_t i) {
      return double(shares[i]) * devices[i].secondsPerUnit;
    };
    double latest = 0, best = 0;
    for (size_t i = 0; i < devices.size(); ++i) {
      latest = std::max(latest, finish(totals, i));
      best = std::max(best, finish(whole, i));
    }
    ASSERT_NEAR(latest, best, 1e-9);
    for (size_t i = 0; i < devices.size(); ++i)
      ASSERT_LE(latest, finish(totals, i) + devices[i].secondsPerUnit + 1e-9);
  }
}

TEST(LoadBalance, MomentsKeepWithinMemory) {
  std::vector<ShareDevice> devices = withSpeeds({4, 1});
  devices[0].memoryBytes = 2;
  devices[0].bytesPerUnit = 1;
  EXPECT_EQ(momentsOf({4, 4}, 2, devices),
            (std::vector<Shares>{{2, 2}, {2, 2}}));
  devices[1].memoryBytes = 1;
  devices[1].bytesPerUnit = 1;
  llvm::Expected<std::vector<Shares>> none =
      sharesOfMoments({4, 4}, 2, devices);
  ASSERT_FALSE(bool(none));
  llvm::consumeError(none.takeError());
}
