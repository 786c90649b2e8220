// Loaded before the C library (LD_PRELOAD): stands in for file systems that
// cannot exchange directories, and for the end of a process at a chosen step.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int valueOf(const char *name) {
  const char *text = getenv(name);
  return text ? atoi(text) : 0;
}

// NO_EXCHANGE: the error of every exchange. KILL_AFTER_EXCHANGE: the process
// ends after it.
int renameat2(int fromDirectory, const char *from, int toDirectory,
              const char *to, unsigned flags) {
  if (valueOf("NO_EXCHANGE")) {
    errno = valueOf("NO_EXCHANGE");
    return -1;
  }
  int (*real)(int, const char *, int, const char *, unsigned) =
      dlsym(RTLD_NEXT, "renameat2");
  int result = real(fromDirectory, from, toDirectory, to, flags);
  if (valueOf("KILL_AFTER_EXCHANGE"))
    raise(SIGKILL);
  return result;
}

// KILL_AT_RENAME=N: the process ends instead of its N-th rename.
int rename(const char *from, const char *to) {
  static int count;
  if (++count == valueOf("KILL_AT_RENAME"))
    raise(SIGKILL);
  int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
  return real(from, to);
}

// WAIT_AT_LINK: the compiler waits where it would start the linker.
int posix_spawn(pid_t *pid, const char *path,
                const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const argv[],
                char *const environment[]) {
  while (valueOf("WAIT_AT_LINK"))
    pause();
  int (*real)(pid_t *, const char *, const posix_spawn_file_actions_t *,
              const posix_spawnattr_t *, char *const[], char *const[]) =
      dlsym(RTLD_NEXT, "posix_spawn");
  return real(pid, path, actions, attributes, argv, environment);
}
