// SPDX-License-Identifier: Apache-2.0
//
// Functions that LLVM's support library calls and that not every system has, so that what the
// Python package brings loads there: `arc4random` is new in glibc 2.36 (Ubuntu 22.04 has 2.35), and
// terminfo is a library of its own. Hidden: nothing else in the process sees them.
// A terminal counts as one without colours; nothing of ours asks LLVM for any.

#include <sys/random.h>

#include <cerrno>
#include <cstdint>

#define STOWAGE_HIDDEN __attribute__((visibility("hidden")))

// NOLINTBEGIN(readability-identifier-naming): the names are those of the systems.
extern "C" {

STOWAGE_HIDDEN uint32_t arc4random() noexcept {
  uint32_t number = 0;
  // Four bytes come whole. LLVM names temporary files by them; a sandbox without random numbers
  // gets zeros, and an error where such a name is taken.
  while (getrandom(&number, sizeof(number), 0) < 0 && errno == EINTR) {
  }
  return number;
}

STOWAGE_HIDDEN int setupterm(const char* /*term*/, int /*file*/, int* error) {
  constexpr int kNoDatabase = -1;
  if (error != nullptr) *error = kNoDatabase;
  return -1;
}
STOWAGE_HIDDEN int tigetnum(const char* /*name*/) { return -1; }
STOWAGE_HIDDEN void* set_curterm(void* /*terminal*/) { return nullptr; }
STOWAGE_HIDDEN int del_curterm(void* /*terminal*/) { return 0; }

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
