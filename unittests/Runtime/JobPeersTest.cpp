//===- JobPeersTest.cpp - Peers that are not what they say ----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One end of a connection is a process that joins, the other is written by
// hand: another service, a first process that stops, who has no secret.
//
//===----------------------------------------------------------------------===//

#include "job/Messages.h"
#include "job/Secret.h"
#include "job/Sockets.h"
#include "whale/Runtime/Job.h"
#include "whale/Version.h"

#include <future>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace whale::runtime;

namespace {
TEST(Job, SomethingElseListens) {
  int listener = job::listenOn("127.0.0.1", 0);
  JobOptions options;
  options.process = 1;
  options.processes = 2;
  options.port = job::portOf(listener);
  std::thread other([&] {
    int socket = accept(listener, nullptr, nullptr);
    std::string text = "HTTP/1.1 400 Bad Request\r\n\r\n";
    EXPECT_EQ(send(socket, text.data(), text.size(), 0), ssize_t(text.size()));
    // Until the process has left.
    char byte;
    while (recv(socket, &byte, 1, 0) > 0)
      ;
    close(socket);
  });
  std::string error;
  try {
    Job::join(options);
  } catch (const Error &caught) {
    error = caught.what();
  }
  EXPECT_TRUE(error.ends_with("is no process of Whale")) << error;
  other.join();
  close(listener);
}

/// What says to be the first process: proves that it has the secret, does what
/// a test wants, and takes nothing any more until it is destroyed.
class SilentFirst {
public:
  using Put = std::function<void(job::Kind, const std::string &)>;
  explicit SilentFirst(const std::function<void(const Put &)> &begin)
      : thread([this, begin] { run(begin); }) {}
  ~SilentFirst() {
    isOver.set_value();
    thread.join();
    close(listener);
  }

  JobOptions options() const {
    JobOptions options;
    options.process = 1;
    options.processes = 2;
    options.port = job::portOf(listener);
    options.reportSeconds = 0.1;
    return options;
  }

private:
  void run(const std::function<void(const Put &)> &begin) {
    using namespace job;
    int file = accept(listener, nullptr, nullptr);
    std::string in;
    auto next = [&]() -> std::string {
      bool isWrong = false;
      while (true) {
        if (auto frame = decode(in, strangersBytes, isWrong))
          return frame->fields;
        char buffer[4096];
        ssize_t size = recv(file, buffer, sizeof(buffer), 0);
        if (size <= 0)
          return std::string();
        in.append(buffer, size);
      }
    };
    auto put = [&](Kind kind, const std::string &fields) {
      std::string bytes = encode(kind, fields);
      EXPECT_EQ(send(file, bytes.data(), bytes.size(), 0),
                ssize_t(bytes.size()));
    };
    std::string hello = next();
    std::string challenge = FieldWriter().text(makeNonce()).text("").take();
    put(Kind::Challenge,
        challenge + FieldWriter()
                        .text(prove("", "coordinator", hello, challenge))
                        .take());
    next();
    begin(put);
    isOver.get_future().wait();
    close(file);
  }

  const int listener = job::listenOn("127.0.0.1", 0);
  std::promise<void> isOver;
  std::thread thread;
};

TEST(Job, TheFirstOneStopsWhileAnotherSends) {
  // It may be silent for half a second.
  SilentFirst first([](const SilentFirst::Put &put) {
    put(job::Kind::Welcome,
        job::FieldWriter().text("process 0 (host a, pid 7)").take());
    put(job::Kind::Beat, job::FieldWriter().number(500).take());
  });
  std::string error;
  try {
    std::shared_ptr<Job> job = Job::join(first.options());
    job->allGather("x", std::string(64 << 20, 'x'));
  } catch (const Error &failure) {
    error = failure.what();
  }
  EXPECT_TRUE(error.starts_with(
      "process 0 (host a, pid 7), which coordinates the others, has "
      "given no sign of life"))
      << error;
}

TEST(Job, TheFirstOneStopsWhileAnotherJoins) {
  SilentFirst first([](const SilentFirst::Put &) {});
  JobOptions options = first.options();
  options.joinLimit = 0.5;
  std::string error;
  try {
    Job::join(options);
  } catch (const Error &failure) {
    error = failure.what();
  }
  EXPECT_TRUE(error.starts_with("process 0, which coordinates the others, has "
                                "given no sign of life"))
      << error;
}

/// Says hello in the name of process 1 of two, and leaves.
void leaveWithoutProof(int port) {
  std::string what;
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  int file = job::connectTo("127.0.0.1", port, end, what);
  ASSERT_GE(file, 0) << what;
  std::string hello =
      job::encode(job::Kind::Hello, job::Hello{.version = WHALE_VERSION_TEXT,
                                               .process = 1,
                                               .processes = 2,
                                               .nonce = job::makeNonce(),
                                               .host = "b\x1b[2J",
                                               .processId = 7,
                                               .program = "",
                                               .failure = ""}
                                        .write());
  EXPECT_EQ(send(file, hello.data(), hello.size(), 0), ssize_t(hello.size()));
  char byte;
  EXPECT_EQ(recv(file, &byte, 1, 0), 1); // the challenge
  close(file);
}

TEST(Job, OneProvesNothing) {
  // Who has not the secret neither joins nor keeps a process from joining nor
  // ends the job; but if nobody else comes, the secrets may differ.
  for (bool isAnotherOneThere : {false, true}) {
    JobOptions options;
    options.processes = 2;
    options.listener = job::listenOn("127.0.0.1", 0);
    options.reportSeconds = 0.1;
    options.joinLimit = isAnotherOneThere ? 60 : 1;
    JobOptions other = options;
    other.process = 1;
    other.listener = -1;
    other.port = job::portOf(options.listener);
    std::thread others([&] {
      leaveWithoutProof(other.port);
      // Longer than the first process takes to see that all who came have left.
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      if (isAnotherOneThere)
        Job::join(other)->leave();
    });
    std::string error;
    try {
      Job::join(options)->leave();
    } catch (const Error &caught) {
      error = caught.what();
    }
    others.join();
    EXPECT_EQ(error, isAnotherOneThere
                         ? ""
                         : "process 1 of 2 has not joined within 1 seconds; "
                           "host b\\x1B[2J, pid 7 came as process 1, but did "
                           "not prove that it has the secret: export the same "
                           "WHALE_SECRET for all (mpirun -x WHALE_SECRET)");
  }
}
} // namespace
