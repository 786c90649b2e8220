//===- JobTest.cpp - Processes that meet ----------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Threads stand in for processes: each joins by a connection of its own.
//
//===----------------------------------------------------------------------===//

#include "whale/Runtime/Job.h"
#include "job/Frames.h"
#include "job/Greeting.h"
#include "job/Members.h"
#include "job/ProgressLimit.h"
#include "job/Secret.h"
#include "job/Sockets.h"

#include <fstream>
#include <gtest/gtest.h>
#include <iostream>
#include <sys/stat.h>

#include <cstdlib>
#include <future>
#include <netinet/in.h>
#include <set>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace whale::runtime;

namespace {
/// Which process joins, and of how many it says that it is one.
struct Joiner {
  int64_t process, processes;
  std::string program = "";
  int launcher = -1;
};
using Body = std::function<void(Job &)>;

/// The error of each; empty where it has left in order.
std::vector<std::string>
run(const std::vector<Joiner> &joiners, double joinLimit, const Body &body,
    std::optional<double> progressLimit = std::nullopt,
    const std::function<void(int port)> &outsider = nullptr,
    double reportSeconds = 0.1) {
  int listener = job::listenOn("127.0.0.1", 0);
  int port = job::portOf(listener);
  std::vector<std::string> errors(joiners.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < joiners.size(); ++i)
    threads.emplace_back([&, i] {
      JobOptions options;
      options.process = joiners[i].process;
      options.processes = joiners[i].processes;
      options.program = joiners[i].program;
      options.launcher = joiners[i].launcher;
      options.port = port;
      options.joinLimit = joinLimit;
      options.progressLimit = progressLimit;
      options.reportSeconds = reportSeconds;
      if (options.process == 0)
        options.listener = listener;
      try {
        std::shared_ptr<Job> job = Job::join(options);
        try {
          body(*job);
          job->leave();
        } catch (const Error &error) {
          throw Error(job->fail(error.what()));
        }
      } catch (const Error &error) {
        errors[i] = error.what();
      }
    });
  if (outsider)
    outsider(port);
  for (std::thread &thread : threads)
    thread.join();
  return errors;
}

/// The error that all have.
std::string errorOf(const std::vector<Joiner> &joiners, double joinLimit,
                    const Body &body,
                    std::optional<double> progressLimit = std::nullopt,
                    const std::function<void(int port)> &outsider = nullptr) {
  std::vector<std::string> errors =
      run(joiners, joinLimit, body, progressLimit, outsider);
  EXPECT_EQ(std::set(errors.begin(), errors.end()).size(), 1u)
      << errors[0] << "\n"
      << errors[1];
  return errors[0];
}

constexpr double longTime = 60;
const std::vector<Joiner> three = {{0, 3}, {1, 3}, {2, 3}};

TEST(Job, GathersByProcess) {
  EXPECT_EQ(errorOf(three, longTime,
                    [](Job &job) {
                      // Longer than what a socket holds.
                      std::string mine(1 << 22,
                                       static_cast<char>('a' + job.process()));
                      std::vector<std::string> all = job.allGather("x", mine);
                      ASSERT_EQ(all.size(), 3u);
                      for (int i = 0; i < 3; ++i)
                        EXPECT_EQ(all[i], std::string(1 << 22, 'a' + i));
                    }),
            "");
}

TEST(Job, SomeAreMissing) {
  EXPECT_EQ(errorOf({{0, 4}, {2, 4}}, 1, [](Job &) {}),
            "processes 1, 3 of 4 have not joined within 1 seconds");
}

TEST(Job, OneIsThereTwice) {
  std::string error = errorOf({{0, 3}, {1, 3}, {1, 3}}, longTime, [](Job &) {});
  EXPECT_TRUE(error.starts_with("two processes are process 1: process 1 (host"))
      << error;
}

TEST(Job, LimitsFollowTheSlowestStep) {
  JobOptions options;
  EXPECT_EQ(job::progressLimit(options, 0, 0), 120);
  EXPECT_EQ(job::progressLimit(options, 0, 50), 120);
  EXPECT_EQ(job::progressLimit(options, 1, 0.1), 10);
  EXPECT_EQ(job::progressLimit(options, 1, 0.5), 10);
  EXPECT_EQ(job::progressLimit(options, 1, 2), 40);
  options.progressLimit = 7;
  EXPECT_EQ(job::progressLimit(options, 0, 2), 7);
  options.progressLimit = 1;
  EXPECT_EQ(job::progressLimit(options, 9, 2), 3);
  options.progressLimit = 0;
  EXPECT_EQ(job::progressLimit(options, 0, 2), 0);
}

TEST(Job, OneIsOfAnotherJob) {
  std::string error = errorOf({{0, 2}, {1, 3}}, longTime, [](Job &) {});
  EXPECT_NE(error.find("is one of 3 processes, the first process is one of 2"),
            std::string::npos)
      << error;
}

TEST(Job, OneHasAnotherProgram) {
  EXPECT_EQ(errorOf({{0, 3, "a"}, {1, 3, "a"}, {2, 3}}, longTime, [](Job &) {}),
            "");
  std::string error =
      errorOf({{0, 2, "a"}, {1, 2, "b"}}, longTime, [](Job &) {});
  EXPECT_TRUE(error.starts_with(
      "the program differs: process 0 has a, process 1 (host "))
      << error;
  EXPECT_TRUE(error.ends_with(") has b")) << error;
}

TEST(Job, ProofsAreOfWhatWasSaid) {
  std::string proof = job::prove("secret", "process", "hello", "challenge");
  EXPECT_NE(proof, job::prove("another", "process", "hello", "challenge"));
  EXPECT_NE(proof, job::prove("secret", "coordinator", "hello", "challenge"));
  EXPECT_NE(proof, job::prove("secret", "process", "hellochallenge", ""));
  EXPECT_NE(proof, job::prove("secret", "process", "hello", "challengf"));
}

TEST(Job, TheFirstErrorIsThatOfAll) {
  std::string error = errorOf(three, longTime, [](Job &job) {
    if (job.process() > 0)
      throw Error("it broke in " + std::to_string(job.process()));
    job.allGather("x", "");
  });
  EXPECT_TRUE(error == "it broke in 1" || error == "it broke in 2") << error;
}

TEST(Job, WhatDiffersIsNamed) {
  std::string error = errorOf(three, longTime, [](Job &job) {
    job.agree({{"the colour", "red"},
               {"the size", job.process() == 2 ? "large" : "small"}});
  });
  EXPECT_EQ(error, "the size differs: process 0 has small, process 2 has "
                   "large");
}

TEST(Job, CallsThatDoNotMeet) {
  std::string error = errorOf(three, longTime, [](Job &job) {
    job.allGather(job.process() == 1 ? "apples" : "pears", "");
  });
  EXPECT_NE(error.find("exchanges apples"), std::string::npos) << error;
  EXPECT_NE(error.find("exchanges pears"), std::string::npos) << error;
}

TEST(Job, OneLeavesEarly) {
  std::string error = errorOf(three, longTime, [](Job &job) {
    if (job.process() != 2)
      job.allGather("apples", "");
  });
  EXPECT_NE(error.find("process 2 (host"), std::string::npos) << error;
  EXPECT_NE(error.find("has ended, where process"), std::string::npos) << error;
}

/// Returns once the job has failed.
void awaitFailure(Job &job) {
  std::promise<void> failed;
  auto listener =
      job.onFailure([&](const std::string &) { failed.set_value(); });
  failed.get_future().wait();
}

Progress inStep(const std::string &busy, const std::string &waiting) {
  Progress progress;
  progress.isInStep = true;
  progress.busy = busy;
  progress.waiting = waiting;
  return progress;
}

Progress inRelayout() {
  Progress progress;
  progress.isInRelayout = true;
  return progress;
}

TEST(Job, OneMakesNoProgress) {
  std::string error = errorOf(
      three, longTime,
      [](Job &job) {
        auto report = job.reportProgress([&] {
          return job.process() == 1
                     ? inStep("rank 1 is in 'add'", "")
                     : inStep("", "rank 0 waits in 'sum' for rank 1");
        });
        // A second program that does nothing hides nothing of the first.
        auto other = job.reportProgress([] { return Progress(); });
        awaitFailure(job);
      },
      1);
  EXPECT_NE(error.find("has made no progress for 1 seconds: rank 1 is in "
                       "'add'; rank 0 waits in 'sum' for rank 1 (process 0"),
            std::string::npos)
      << error;
  EXPECT_TRUE(error.starts_with("process 1 (host")) << error;
}

TEST(Job, OneHasEndedForWhomAnotherWaits) {
  // Long before the limit, and only where it is that one.
  for (bool isAwaited : {true, false}) {
    std::vector<std::string> errors = run(three, longTime, [&](Job &job) {
      if (job.process() == 2)
        return;
      auto report = job.reportProgress([&] {
        Progress progress = inStep("", "rank 0 waits in 'sum' for rank 2");
        // Who waits for itself has not ended before.
        progress.awaited = {isAwaited ? 2 : job.process()};
        return progress;
      });
      if (isAwaited)
        awaitFailure(job);
      else
        std::this_thread::sleep_for(std::chrono::seconds(1));
    });
    for (const std::string &error : errors)
      if (isAwaited)
        EXPECT_NE(error.find(") has ended, where rank 0 waits in 'sum' for "
                             "rank 2 (process "),
                  std::string::npos)
            << error;
      else
        EXPECT_EQ(error, "");
  }
}

TEST(Job, OneIsInAStepOthersOutsideWaitForIt) {
  std::string error = errorOf(
      three, longTime,
      [](Job &job) {
        std::shared_ptr<void> report;
        if (job.process() == 2) {
          job.allGather("apples", "");
        } else if (job.process() == 1) {
          report = job.reportProgress(inRelayout);
        } else {
          report = job.reportProgress(
              [] { return inStep("", "rank 0 waits in 'sum' for rank 1"); });
        }
        awaitFailure(job);
      },
      1);
  EXPECT_NE(error.find("has made no progress for 1 seconds; rank 0 waits in "
                       "'sum' for rank 1 (process 0"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find(") exchanges apples"), std::string::npos) << error;
}

TEST(Job, OneIsInAStepAnotherComputes) {
  // It is not stuck: as long as one does something, the others wait.
  std::string error = errorOf(
      three, longTime,
      [](Job &job) {
        auto report = job.reportProgress([&] {
          return job.process() == 0 ? Progress()
                                    : inStep("", "rank 1 waits in 'sum'");
        });
        if (job.process() == 0)
          std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        report.reset();
        job.allGather("apples", "");
      },
      1);
  EXPECT_EQ(error, "");
}

/// While it exists, what is printed on the stream of errors comes here.
class Printed : std::streambuf {
public:
  Printed() : before(std::cerr.rdbuf(this)) {}
  ~Printed() override { std::cerr.rdbuf(before); }
  std::string text() {
    std::lock_guard lock(mutex);
    return all;
  }

private:
  std::streamsize xsputn(const char *part, std::streamsize size) override {
    std::lock_guard lock(mutex);
    all.append(part, size);
    return size;
  }
  int overflow(int letter) override {
    char one = static_cast<char>(letter);
    xsputn(&one, 1);
    return letter;
  }

  std::streambuf *before;
  std::mutex mutex;
  std::string all;
};

TEST(Job, OneIsBusyOutsideOfStepsWhileAnotherWaits) {
  // A minute is sixty reports.
  constexpr double reportSeconds = 0.02;
  Printed printed;
  std::vector<std::string> errors = run(
      {{0, 2}, {1, 2}}, longTime,
      [&](Job &job) {
        auto report = job.reportProgress([&] {
          if (job.process() == 1)
            return Progress();
          Progress progress = inStep("", "rank 0 waits in 'sum' for rank 1");
          progress.awaited = {1};
          return progress;
        });
        while (!printed.text().ends_with("\n"))
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        // It is said once, and the job goes on.
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        report.reset();
        EXPECT_EQ(job.allGather("apples", "").size(), 2u);
      },
      std::nullopt, nullptr, reportSeconds);
  EXPECT_EQ(errors, std::vector<std::string>(2));
  std::string place = " (" + job::placeOf(job::hostName(), getpid()) + ")";
  EXPECT_EQ(printed.text(),
            "warning: process 1" + place +
                " has been outside of steps for more than 1 seconds, where "
                "rank 0 waits in 'sum' for rank 1 (process 0" +
                place + ")\n");
}

TEST(Job, OneMovesAnArrayAlone) {
  // Another has left, or is at something else for which it waits.
  for (bool isLeaving : {true, false}) {
    std::string error = errorOf(
        {{0, 2}, {1, 2}}, longTime,
        [&](Job &job) {
          if (job.process() == 0) {
            auto report = job.reportProgress(inRelayout);
            awaitFailure(job);
          } else if (!isLeaving) {
            job.allGather("apples", "");
          }
        },
        1);
    EXPECT_NE(error.find("has made no progress for 1 seconds"),
              std::string::npos)
        << error;
    EXPECT_NE(error.find(isLeaving ? ") has ended" : ") exchanges apples"),
              std::string::npos)
        << error;
  }
}

TEST(Job, WhoComesLateIsToldWhyTheJobHasFailed) {
  int listener = job::listenOn("127.0.0.1", 0);
  std::vector<std::string> errors(3);
  std::vector<std::thread> threads;
  for (int64_t process : {0, 1, 2})
    threads.emplace_back([&, process, port = job::portOf(listener)] {
      JobOptions options;
      options.process = process;
      options.processes = 3;
      options.program = process == 1 ? "b" : "a";
      options.port = port;
      if (process == 0)
        options.listener = listener;
      if (process == 2)
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
      try {
        Job::join(options);
      } catch (const Error &error) {
        errors[process] = error.what();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_TRUE(errors[0].starts_with("the program differs: ")) << errors[0];
  EXPECT_EQ(errors[1], errors[0]);
  EXPECT_EQ(errors[2], errors[0]);
}

TEST(Job, AStrangeProcessDoesNotEndAJobAtWork) {
  int listener = job::listenOn("127.0.0.1", 0);
  int port = job::portOf(listener);
  std::promise<void> working, refused;
  std::shared_future<void> done = refused.get_future();
  auto member = [&](int64_t process) {
    JobOptions options;
    options.process = process;
    options.processes = 2;
    options.port = port;
    options.reportSeconds = 0.05;
    if (process == 0)
      options.listener = listener;
    std::shared_ptr<Job> job = Job::join(options);
    auto report = job->reportProgress([] { return inStep("", ""); });
    // It has been heard twice.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    if (process == 0)
      working.set_value();
    done.wait();
    report.reset();
    job->leave();
  };
  std::thread first([&] { EXPECT_NO_THROW(member(0)); });
  std::thread second([&] { EXPECT_NO_THROW(member(1)); });
  working.get_future().wait();
  JobOptions options;
  options.process = 1;
  options.processes = 2;
  options.port = port;
  std::string error;
  try {
    Job::join(options);
  } catch (const Error &caught) {
    error = caught.what();
  }
  EXPECT_TRUE(error.starts_with("two processes are process 1")) << error;
  refused.set_value();
  first.join();
  second.join();
}

TEST(Job, ListensOnAllInterfacesWithASecret) {
  auto isForAll = [](int listener) {
    sockaddr_storage address = {};
    socklen_t size = sizeof(address);
    getsockname(listener, reinterpret_cast<sockaddr *>(&address), &size);
    close(listener);
    if (address.ss_family == AF_INET6) {
      auto &own = reinterpret_cast<sockaddr_in6 &>(address);
      return IN6_IS_ADDR_UNSPECIFIED(&own.sin6_addr) != 0;
    }
    auto &own = reinterpret_cast<sockaddr_in &>(address);
    return own.sin_addr.s_addr == INADDR_ANY;
  };
  EXPECT_FALSE(isForAll(job::listenForOthers("localhost", 0)));
  EXPECT_THROW(job::listenForOthers("host", 0), Error);
  setenv("WHALE_SECRET", "secret", 1);
  EXPECT_TRUE(isForAll(job::listenForOthers("localhost", 0)));
  EXPECT_TRUE(isForAll(job::listenForOthers("host", 0)));
  unsetenv("WHALE_SECRET");
}

TEST(Job, AnEmptySecretIsNone) {
  std::string path = testing::TempDir() + "secret";
  std::ofstream(path) << "of a file";
  chmod(path.c_str(), 0600);
  setenv("WHALE_SECRET", "", 1);
  setenv("WHALE_SECRET_FILE", path.c_str(), 1);
  EXPECT_EQ(job::readSecret(), "of a file");
  unsetenv("WHALE_SECRET");
  unsetenv("WHALE_SECRET_FILE");
  std::remove(path.c_str());
}

TEST(Job, ASecretThatNobodyWrites) {
  std::string path = testing::TempDir() + "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  setenv("WHALE_SECRET_FILE", path.c_str(), 1);
  try {
    job::readSecret();
    ADD_FAILURE() << "a secret from nowhere";
  } catch (const Error &error) {
    EXPECT_EQ(std::string(error.what()),
              "WHALE_SECRET_FILE: " + path +
                  ": it is a pipe that nothing is written to");
  }
  unsetenv("WHALE_SECRET_FILE");
  std::remove(path.c_str());
}

TEST(Job, ALauncherSpeaksForOneThatHasNotJoined) {
  // The others would wait for it for a minute.
  std::string error = errorOf(
      {{0, 3}, {1, 3}}, longTime, [](Job &) { FAIL(); }, std::nullopt,
      [](int port) {
        JobOptions options;
        options.process = 2;
        options.processes = 3;
        options.port = port;
        job::Greeting(options, "", /*pid=*/77,
                      std::chrono::steady_clock::now() +
                          std::chrono::seconds(30),
                      "it has ended with status 3");
      });
  EXPECT_EQ(error, "process 2 (" + job::placeOf(job::hostName(), 77) +
                       ") has not joined: it has ended with status 3");
}

TEST(Job, ALauncherHearsWhoHasJoined) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  EXPECT_EQ(errorOf({{.process = 0, .processes = 2},
                     {.process = 1, .processes = 2, .launcher = pipes[1]}},
                    longTime, [](Job &) {}),
            "");
  uint64_t number = 0;
  EXPECT_EQ(read(pipes[0], &number, sizeof(number)), 8);
  EXPECT_EQ(number, 1u);
  // Nobody else writes to it.
  EXPECT_EQ(read(pipes[0], &number, sizeof(number)), 0);
  close(pipes[0]);
}

TEST(Job, TooMuchToGather) {
  std::string error = errorOf(three, longTime, [](Job &job) {
    job.allGather("apples",
                  job.process() ? "" : std::string(job::mostGathered + 1, 'x'));
  });
  EXPECT_TRUE(error.starts_with("apples has 1073741825 bytes, more than"))
      << error;
}

} // namespace
