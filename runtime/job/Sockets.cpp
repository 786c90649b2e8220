//===- Sockets.cpp - Sockets that processes of a job meet at --------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// TCP over IPv4 and IPv6: a socket that listens, one that is connected, and
// limits for broken links. On all interfaces one IPv6 socket listens for both,
// where the kernel has IPv6. Connecting tries every address of the host, and
// again, after pauses of 20 ms that double up to 500 ms, until the given time:
// the listener may start later.
//
// Cost: a round of connecting asks for the host's addresses and waits at most
// 10 s for each that does not answer, and not beyond the given time. A broken
// link is noticed after 20 s.
//
//===----------------------------------------------------------------------===//

#include "job/Sockets.h"

#include "whale/Runtime/Types.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace whale::runtime::job {

using Clock = std::chrono::steady_clock;

/// Whether this kernel has the protocol.
static bool hasIpv6() {
  int socket = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0)
    return false;
  sockaddr_in6 any = {};
  any.sin6_family = AF_INET6;
  bool isBound =
      bind(socket, reinterpret_cast<sockaddr *>(&any), sizeof(any)) == 0;
  close(socket);
  return isBound;
}

int listenOn(const std::string &host, int port) {
  addrinfo hints = {}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  // A socket of IPv6 takes connections of both kinds.
  hints.ai_family = host.empty() && hasIpv6() ? AF_INET6 : AF_UNSPEC;
  std::string service = std::to_string(port);
  if (int error = getaddrinfo(host.empty() ? nullptr : host.c_str(),
                              service.c_str(), &hints, &list))
    throw Error("cannot listen on " + host + ": " + gai_strerror(error));
  std::string what = "no address";
  for (addrinfo *each = list; each; each = each->ai_next) {
    int socket = ::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0)
      continue;
    int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    int off = 0;
    if (each->ai_family == AF_INET6)
      setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(socket, each->ai_addr, each->ai_addrlen) == 0 &&
        listen(socket, SOMAXCONN) == 0) {
      freeaddrinfo(list);
      return socket;
    }
    what = std::strerror(errno);
    close(socket);
  }
  freeaddrinfo(list);
  throw Error("cannot listen on port " + service +
              (host.empty() ? "" : " of " + host) + ": " + what);
}

int portOf(int listener) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  getsockname(listener, reinterpret_cast<sockaddr *>(&address), &size);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6 &>(address).sin6_port
                   : reinterpret_cast<sockaddr_in &>(address).sin_port);
}

std::string hostName() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

void watchLink(int socket) {
  // What is sent must be received in time; where nothing is, the kernel asks.
  // Long enough for a switch that starts anew.
  constexpr int seconds = 20, on = 1, idle = seconds / 2, pause = seconds / 4;
  constexpr unsigned milliseconds = seconds * 1000;
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds,
             sizeof(milliseconds));
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &pause, sizeof(pause));
}

bool isUnreachable(int error) {
  return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
}

int millisecondsTo(Clock::time_point end) {
  auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
  return static_cast<int>(std::max<int64_t>(0, left.count()));
}

/// False with errno. A host that does not answer takes until `end`.
static bool connectTo(int file, const addrinfo &address,
                      Clock::time_point end) {
  int flags = fcntl(file, F_GETFL);
  fcntl(file, F_SETFL, flags | O_NONBLOCK);
  if (::connect(file, address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS)
      return false;
    pollfd waited = {file, POLLOUT, 0};
    int ready = 0;
    do {
      ready = poll(&waited, 1, millisecondsTo(end));
    } while (ready < 0 && errno == EINTR);
    int error = ETIMEDOUT;
    socklen_t size = sizeof(error);
    if (ready > 0)
      getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &size);
    errno = error;
    if (error)
      return false;
  }
  fcntl(file, F_SETFL, flags);
  return true;
}

int connectTo(const std::string &host, int port, Clock::time_point end,
              std::string &what) {
  // A name may have an address that drops what is sent to it, and another one
  // that answers.
  constexpr std::chrono::seconds attempt(10);
  std::chrono::milliseconds pause(20);
  while (true) {
    addrinfo hints = {}, *list = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    int error =
        getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
    what = error == EAI_SYSTEM ? std::strerror(errno)
           : error             ? gai_strerror(error)
                               : "";
    int found = -1;
    for (addrinfo *each = list; each && found < 0; each = each->ai_next) {
      int file = ::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (file >= 0 &&
          connectTo(file, *each, std::min(end, Clock::now() + attempt))) {
        found = file;
        break;
      }
      what = std::strerror(errno);
      if (file >= 0)
        close(file);
      else if (errno != EAFNOSUPPORT)
        end = {}; // This process may have no sockets: waiting is in vain.
    }
    if (list)
      freeaddrinfo(list);
    if (found >= 0) {
      int on = 1;
      setsockopt(found, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      watchLink(found);
      return found;
    }
    if (Clock::now() > end)
      return -1;
    // Who listens there may start later.
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(500));
  }
}

} // namespace whale::runtime::job
