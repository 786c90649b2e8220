//===- Secret.cpp - Who may join a job ------------------------------------===//
//
// Part of the Whale project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "job/Secret.h"

#include "job/Frames.h"
#include "job/Sockets.h"
#include "whale/Runtime/Types.h"
#include "whale/System/InputFile.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace whale::runtime::job {

/// Throws Error without the path. A pipe must be written to within some
/// seconds.
static std::string readPrivateFile(const std::string &path) {
  constexpr int patience = 10;
  system::InputFile file(path);
  struct stat status;
  if (fstat(file.getDescriptor(), &status) != 0)
    throw Error(std::strerror(errno));
  if (status.st_mode & 077)
    throw Error("others may read it: chmod 600");
  std::string text = file.getBeginning();
  while (true) {
    pollfd readable = {file.getDescriptor(), POLLIN, 0};
    int ready = poll(&readable, 1, patience * 1000);
    if (ready == 0)
      throw Error("nothing is written to it for " + std::to_string(patience) +
                  " seconds");
    char buffer[4096];
    ssize_t size =
        ready < 0 ? -1 : read(file.getDescriptor(), buffer, sizeof(buffer));
    if (size < 0 && errno == EINTR)
      continue;
    if (size < 0)
      throw Error(std::strerror(errno));
    if (size == 0)
      return text;
    text.append(buffer, size);
  }
}

std::string readSecret() {
  if (const char *secret = std::getenv("WHALE_SECRET"); secret && *secret)
    return secret;
  const char *path = std::getenv("WHALE_SECRET_FILE");
  if (!path)
    return "";
  std::string name = std::string("WHALE_SECRET_FILE: ") + path, secret;
  try {
    secret = readPrivateFile(path);
  } catch (const Error &error) {
    throw Error(name + ": " + error.what());
  }
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r'))
    secret.pop_back();
  if (secret.empty())
    throw Error(name + ": is empty");
  return secret;
}

void requireSecret() {
  if (readSecret().empty())
    throw Error("processes on several hosts need a secret: export the same "
                "WHALE_SECRET for all (mpirun -x WHALE_SECRET)");
}

int listenForOthers(const std::string &host, int port) {
  if (!isLoopback(host))
    requireSecret();
  return listenOn(readSecret().empty() ? host : "", port);
}

bool isLoopback(const std::string &host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

std::string makeNonce() {
  std::string nonce(32, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char *>(nonce.data()),
                 static_cast<int>(nonce.size())) != 1)
    throw Error("OpenSSL has no random numbers");
  return nonce;
}

std::string prove(const std::string &secret, const std::string &side,
                  const std::string &hello, const std::string &challenge) {
  std::string text =
      FieldWriter().text(side).text(hello).text(challenge).take();
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  // An empty key is one, too: everybody has it.
  if (!HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
            reinterpret_cast<const unsigned char *>(text.data()), text.size(),
            digest, &size))
    throw Error("OpenSSL cannot compute an HMAC");
  return {reinterpret_cast<const char *>(digest), size};
}

bool isEqual(const std::string &a, const std::string &b) {
  return a.size() == b.size() &&
         CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

} // namespace whale::runtime::job
