//===- Greeting.cpp - How a process reaches the first one -----------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "job/Greeting.h"

#include "job/Messages.h"
#include "job/Secret.h"
#include "job/Sockets.h"
#include "whale/Version.h"

#include <cerrno>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace whale::runtime::job {

Greeting::Greeting(const JobOptions &options, const std::string &secret,
                   int64_t pid, std::chrono::steady_clock::time_point end,
                   const std::string &failure)
    : options(options), end(end) {
  try {
    connect();
    while (!authenticate(secret, pid, failure)) {
      // On another host the attempt before may not have ended yet.
      constexpr std::chrono::milliseconds pause(100);
      if (options.attempt == 0 || std::chrono::steady_clock::now() > end)
        throw Error("the first process at " + place() +
                    " has closed the connection");
      close(socket);
      std::this_thread::sleep_for(pause);
      in.clear();
      connect();
    }
  } catch (...) {
    close(socket);
    throw;
  }
}

Greeting::~Greeting() {
  if (socket >= 0)
    close(socket);
}

int Greeting::take(std::string &rest) {
  rest = std::move(in);
  return std::exchange(socket, -1);
}

std::string Greeting::place() const {
  return options.host + ":" + std::to_string(options.port);
}

void Greeting::connect() {
  std::string what;
  socket = connectTo(options.host, options.port, end, what);
  if (socket < 0)
    throw Error("process " + std::to_string(options.process) +
                " cannot reach the first process at " + place() + ": " + what);
}

/// The fields of the answer of what may be the coordinator; nothing where it
/// has closed the connection.
std::optional<std::string> Greeting::readChallenge() {
  while (true) {
    bool isWrong = false;
    if (auto frame = decode(in, strangersBytes, isWrong);
        frame && frame->kind == Kind::Challenge)
      return frame->fields;
    else if (frame || isWrong)
      throw Error("what listens at " + place() + " is no process of Whale");
    pollfd file = {socket, POLLIN, 0};
    int ready = poll(&file, 1, millisecondsTo(end));
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready <= 0)
      throw Error("the first process does not answer at " + place());
    char buffer[65536];
    ssize_t size = recv(socket, buffer, sizeof(buffer), 0);
    if (size < 0 && errno == EINTR)
      continue;
    if (size <= 0)
      return std::nullopt;
    in.append(buffer, size);
  }
}

/// What is lost is noticed when the answer is read.
void Greeting::write(const std::string &bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    ssize_t size =
        send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR)
      continue;
    if (size <= 0)
      return;
    sent += size;
  }
}

/// False where the first process does not want to hear this one.
bool Greeting::authenticate(const std::string &secret, int64_t pid,
                            const std::string &failure) {
  std::string hello =
      Hello{.version = WHALE_VERSION_TEXT,
            .process = static_cast<uint64_t>(options.process),
            .processes = static_cast<uint64_t>(options.processes),
            .nonce = makeNonce(),
            .host = hostName(),
            .processId = static_cast<uint64_t>(pid),
            .program = options.program,
            .attempt = static_cast<uint64_t>(options.attempt),
            .failure = failure}
          .write();
  write(encode(Kind::Hello, hello));
  std::optional<std::string> answer = readChallenge();
  if (!answer)
    return false;
  FieldReader fields(*answer);
  std::string nonce = fields.text(), program = fields.text(),
              proof = fields.text();
  std::string challenge = FieldWriter().text(nonce).text(program).take();
  if (!fields.isComplete() ||
      !isEqual(proof, prove(secret, "coordinator", hello, challenge)))
    throw Error("the first process, at " + place() +
                ", has another secret: export the same WHALE_SECRET for all "
                "(mpirun -x WHALE_SECRET)");
  write(encode(
      Kind::Proof,
      FieldWriter().text(prove(secret, "process", hello, challenge)).take()));
  return true;
}

} // namespace whale::runtime::job
