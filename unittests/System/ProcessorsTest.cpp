//===- ProcessorsTest.cpp -------------------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Files as the kernel shows them, in a directory: of hosts and containers, with
// control groups of both versions.
//
//===----------------------------------------------------------------------===//

#include "whale/System/Processors.h"
#include "whale/System/Machine.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <fstream>
#include <sched.h>
#include <thread>

using namespace whale::system;

namespace {
class ProcessorQuotaTest : public testing::Test {
protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "whale-processors-XXXXXX";
    ASSERT_TRUE(mkdtemp(name.data()));
    root = name;
  }
  void TearDown() override { std::filesystem::remove_all(root); }

  void write(const std::string &path, const std::string &text) {
    std::filesystem::path place = root / path;
    std::filesystem::create_directories(place.parent_path());
    std::ofstream(place) << text;
  }
  /// A line of mountinfo for the groups below `group`.
  std::string mount(const std::string &group, const std::string &directory,
                    const std::string &type, const std::string &options) {
    return "31 24 0:26 " + group + " " + (root / directory).string() +
           " rw,nosuid,relatime shared:9 master:2 - " + type + " " + type +
           " rw," + options + "\n";
  }
  double quota() {
    std::optional<ProcessorQuota> found = findQuota(root / "proc");
    return found ? found->processors : 0;
  }

  std::filesystem::path root;
};
} // namespace

TEST_F(ProcessorQuotaTest, NoneWhereNoGroupSaysSo) {
  EXPECT_EQ(quota(), 0);
  write("proc/self/mountinfo",
        "24 0 8:1 / / rw - ext4 /dev/sda1 rw\n" +
            mount("/", "sys/unified", "cgroup2", "x") +
            mount("/", "sys/memory", "cgroup", "memory"));
  write("proc/self/cgroup", "3:memory:/a\n0::/a\n");
  EXPECT_EQ(quota(), 0);
  write("sys/unified/a/cpu.max", "max 100000\n");
  write("sys/memory/a/cpu.cfs_quota_us", "100000\n");
  write("sys/memory/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0);
}

TEST_F(ProcessorQuotaTest, LeastMemoryOfTheGroupsAround) {
  auto limit = [&] { return findMemoryLimit(root / "proc").value_or(0); };
  EXPECT_EQ(limit(), 0);
  write("proc/self/mountinfo",
        mount("/", "sys/unified", "cgroup2", "x") +
            mount("/", "sys/cpu", "cgroup", "cpu") +
            mount("/", "sys/memory", "cgroup", "memory"));
  write("proc/self/cgroup", "4:cpu:/a\n3:memory:/a/b\n0::/a/b\n");
  write("sys/unified/a/memory.max", "max\n");
  write("sys/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/cpu/a/memory.max", "1\n");
  EXPECT_EQ(limit(), 0);
  write("sys/unified/a/b/memory.max", "5000000000\n");
  EXPECT_EQ(limit(), 5000000000);
  write("sys/memory/a/memory.limit_in_bytes", "4000000000\n");
  EXPECT_EQ(limit(), 4000000000);
}

TEST_F(ProcessorQuotaTest, ThisMachineHasWhatItsGroupsLeave) {
  EXPECT_GT(machineMemory(root / "proc"), 1000000);
  write("proc/self/mountinfo", mount("/", "sys", "cgroup2", "x"));
  write("proc/self/cgroup", "0::/a\n");
  write("sys/a/memory.max", "1000000\n");
  EXPECT_EQ(machineMemory(root / "proc"), 1000000);
}

TEST_F(ProcessorQuotaTest, LeastOfTheGroupsAround) {
  write("proc/self/mountinfo", mount("/", "sys", "cgroup2", "nsdelegate"));
  write("proc/self/cgroup", "0::/user.slice/a:b/job\n");
  write("sys/user.slice/a:b/job/cpu.max", "400000 100000\n");
  EXPECT_EQ(quota(), 4);
  write("sys/user.slice/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota(), 1.5);
  std::string outer = findQuota(root / "proc")->group;
  write("sys/user.slice/a:b/cpu.max", "max 100000\n");
  write("sys/other/cpu.max", "1000 100000\n");
  EXPECT_EQ(quota(), 1.5);
  EXPECT_EQ(findQuota(root / "proc")->group, outer);
  write("sys/user.slice/a:b/job/cpu.max", "100000 100000\n");
  EXPECT_NE(findQuota(root / "proc")->group, outer);
}

TEST_F(ProcessorQuotaTest, FirstVersion) {
  write("proc/self/mountinfo",
        mount("/", "sys/cpu,cpuacct", "cgroup", "cpu,cpuacct") +
            mount("/", "sys/cpuset", "cgroup", "cpuset"));
  write("proc/self/cgroup", "9:cpuset:/\n4:cpu,cpuacct:/job\n0::/\n");
  write("sys/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  write("sys/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0);
  write("sys/cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n");
  EXPECT_EQ(quota(), 0.5);
}

/// It sees its own group as the mount's, by either of two names.
TEST_F(ProcessorQuotaTest, InAContainer) {
  write("proc/self/mountinfo",
        mount("/docker/1234", "sys/cpu", "cgroup", "cpu"));
  write("sys/cpu/cpu.cfs_quota_us", "200000\n");
  write("sys/cpu/cpu.cfs_period_us", "100000\n");
  for (const char *group : {"/", "/docker/1234"}) {
    write("proc/self/cgroup", std::string("4:cpu:") + group + "\n");
    EXPECT_EQ(quota(), 2);
  }
}

TEST_F(ProcessorQuotaTest, ThreadsUseItUp) {
  auto threads = [](double processors) {
    return ProcessorQuota{processors, ""}.threads();
  };
  EXPECT_EQ(threads(0.1), 1);
  EXPECT_EQ(threads(1.25), 1);
  EXPECT_EQ(threads(1.5), 2);
  EXPECT_EQ(threads(8), 8);
}

TEST(Processors, AffinityCounts) {
  std::set<int64_t> all = allowedProcessors();
  ASSERT_FALSE(all.empty());
  EXPECT_LE(usableProcessors(), static_cast<int64_t>(all.size()));
  // In a thread: the process stays where it was.
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(*all.begin(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(allowedProcessors(), std::set<int64_t>{*all.begin()});
    EXPECT_EQ(usableProcessors(), 1);
  }).join();
}
