// SPDX-License-Identifier: Apache-2.0
//
// The calls by which a program changes files, watched from inside of it: those that lead out of the
// folders that it may write to are written to a file, and then made all the same. What libc does by
// itself, such as shared memory, passes unseen.
#include "tests/support/write_watch.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace stowage::tests {
namespace {

int reportTo = -1;
std::vector<std::string>* allowed = nullptr;

/// The next definition of a function of libc.
template <typename F>
F* nextOf(const char* name) {
  auto* found = reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
  if (found == nullptr) std::abort();
  return found;
}

std::string absolute(int folder, const char* path) {
  if (path[0] == '/') return path;
  std::array<char, PATH_MAX> at{};
  if (folder == AT_FDCWD) {
    if (getcwd(at.data(), at.size()) == nullptr) return path;
  } else {
    const std::string link = "/proc/self/fd/" + std::to_string(folder);
    if (readlink(link.c_str(), at.data(), at.size() - 1) < 0) return path;
  }
  return std::string(at.data()) + "/" + path;
}

/// Where a change of `path` happens: links are followed, by the last part only if asked.
std::string resolve(const std::string& path, bool followsLast) {
  std::array<char, PATH_MAX> real{};
  if (followsLast && realpath(path.c_str(), real.data()) != nullptr) return real.data();
  const size_t slash = path.rfind('/');
  const std::string folder = slash == 0 ? "/" : path.substr(0, slash);
  if (realpath(folder.c_str(), real.data()) == nullptr) return path;
  return std::string(real.data()) + path.substr(slash);
}

void watch(int folder, const char* path, bool followsLast) {
  if (reportTo < 0 || path == nullptr || path[0] == 0) return;
  const int before = errno;
  const std::string place = resolve(absolute(folder, path), followsLast);
  bool isAllowed = place == "/dev/null" || place == "/dev/tty";
  for (const std::string& prefix : *allowed) isAllowed |= place.rfind(prefix + "/", 0) == 0;
  if (!isAllowed) {
    const std::string line = place + "\n";
    if (write(reportTo, line.data(), line.size()) < 0) std::abort();
  }
  errno = before;
}

bool changes(int flags) {
  return (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND)) != 0;
}

bool changes(const char* mode) { return std::strpbrk(mode, "wa+") != nullptr; }

mode_t modeOf(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

void watchWrites(const std::vector<std::string>& folders, const std::string& report) {
  static std::vector<std::string> kept;
  for (const std::string& folder : folders) kept.push_back(resolve(folder, true));
  allowed = &kept;
  reportTo = open(report.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  if (reportTo < 0) std::abort();
}

}  // namespace stowage::tests

using stowage::tests::changes;
using stowage::tests::modeOf;
using stowage::tests::nextOf;
using stowage::tests::watch;

// libc's own names: this library comes before it.
extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = modeOf(flags, arguments);
  va_end(arguments);
  if (changes(flags)) watch(AT_FDCWD, path, true);
  static auto* next = nextOf<int(const char*, int, ...)>("open");
  return next(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = modeOf(flags, arguments);
  va_end(arguments);
  if (changes(flags)) watch(AT_FDCWD, path, true);
  static auto* next = nextOf<int(const char*, int, ...)>("open64");
  return next(path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = modeOf(flags, arguments);
  va_end(arguments);
  if (changes(flags)) watch(folder, path, true);
  static auto* next = nextOf<int(int, const char*, int, ...)>("openat");
  return next(folder, path, flags, mode);
}

FILE* fopen(const char* path, const char* mode) {
  if (changes(mode)) watch(AT_FDCWD, path, true);
  static auto* next = nextOf<FILE*(const char*, const char*)>("fopen");
  return next(path, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  if (changes(mode)) watch(AT_FDCWD, path, true);
  static auto* next = nextOf<FILE*(const char*, const char*)>("fopen64");
  return next(path, mode);
}

int mkdir(const char* path, mode_t mode) {
  watch(AT_FDCWD, path, false);
  static auto* next = nextOf<int(const char*, mode_t)>("mkdir");
  return next(path, mode);
}

int rename(const char* from, const char* to) {
  watch(AT_FDCWD, from, false);
  watch(AT_FDCWD, to, false);
  static auto* next = nextOf<int(const char*, const char*)>("rename");
  return next(from, to);
}

int unlink(const char* path) {
  watch(AT_FDCWD, path, false);
  static auto* next = nextOf<int(const char*)>("unlink");
  return next(path);
}

int unlinkat(int folder, const char* path, int flags) {
  watch(folder, path, false);
  static auto* next = nextOf<int(int, const char*, int)>("unlinkat");
  return next(folder, path, flags);
}

int remove(const char* path) {
  watch(AT_FDCWD, path, false);
  static auto* next = nextOf<int(const char*)>("remove");
  return next(path);
}

int rmdir(const char* path) {
  watch(AT_FDCWD, path, false);
  static auto* next = nextOf<int(const char*)>("rmdir");
  return next(path);
}

int symlink(const char* target, const char* path) {
  watch(AT_FDCWD, path, false);
  static auto* next = nextOf<int(const char*, const char*)>("symlink");
  return next(target, path);
}

int link(const char* target, const char* path) {
  watch(AT_FDCWD, path, false);
  static auto* next = nextOf<int(const char*, const char*)>("link");
  return next(target, path);
}

int truncate(const char* path, off_t size) {
  watch(AT_FDCWD, path, true);
  static auto* next = nextOf<int(const char*, off_t)>("truncate");
  return next(path, size);
}

}  // extern "C"
