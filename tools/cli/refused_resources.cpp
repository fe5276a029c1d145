// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/refused_resources.h"

#include <llvm/ADT/StringRef.h>
#include <llvm/Support/ErrorHandling.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "tools/cli/exit_code.h"

namespace stowage::tools {

namespace {

constexpr char kNoMemory[] = "out of memory: this machine refused bytes that the command needs";
constexpr char kNoThread[] = "out of memory or threads: this machine refused the command a thread";

/// What the machine refused, if that is what `e` says; else null. Takes no memory.
const char* findRefusal(const std::exception& e) {
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) return kNoMemory;
  const auto* system = dynamic_cast<const std::system_error*>(&e);
  if (system != nullptr)
    return system->code() == std::errc::resource_unavailable_try_again ? kNoThread : nullptr;
  // c10's allocator has no class of its own for this.
  return llvm::StringRef(e.what()).contains("can't allocate memory") ? kNoMemory : nullptr;
}

constexpr char kEnded[] =
    "a library ended the program, most often because this machine refused it a thread or memory";

/// Takes no memory itself.
[[noreturn]] void endWithout(llvm::StringRef what) {
  for (const llvm::StringRef part : {llvm::StringRef("error: "), what, llvm::StringRef("\n")}) {
    if (::write(STDERR_FILENO, part.data(), part.size()) < 0) break;
  }
  std::_Exit(kExitEnvironment);
}

/// Where no verb can catch it: on a thread of its own.
[[noreturn]] void endProgram() {
  try {
    if (std::current_exception()) throw;
  } catch (const std::exception& e) {
    if (const char* refusal = findRefusal(e)) endWithout(refusal);
  } catch (...) {
  }
  __gnu_cxx::__verbose_terminate_handler();
  std::abort();
}

std::atomic<bool> endedItself{false};

/// OpenMP ends the process with EXIT_FAILURE where it gets no thread. A verb that finds
/// no plan ends with the same code.
void checkWhoEnded(int status, void* /*data*/) {
  if (status == EXIT_FAILURE && !endedItself) endWithout(kEnded);
}

/// Libraries are initialised before main, and need memory, too.
void beforeLibraries(int /*argc*/, char** /*argv*/, char** /*environment*/) {
  std::set_terminate(endProgram);
}
[[gnu::section(".preinit_array"),
  gnu::used]] void (*const kBeforeLibraries)(int, char**, char**) = beforeLibraries;

}  // namespace

ir::Error takeException() {
  try {
    throw;
  } catch (const std::exception& e) {
    // libtorch appends a backtrace.
    const std::string text = llvm::StringRef(e.what()).split('\n').first.str();
    const char* refusal = findRefusal(e);
    return refusal != nullptr ? ir::makeError(ir::ErrorCode::kEnvironment, refusal + (": " + text))
                              : ir::makeError(ir::ErrorCode::kInternal, text);
  }
}

void endOnRefusedResources() {
  on_exit(checkWhoEnded, nullptr);
  llvm::install_bad_alloc_error_handler(
      [](void* /*data*/, const char* /*reason*/, bool /*diagnose*/) { endWithout(kNoMemory); });
}

void endsItself() { endedItself = true; }

}  // namespace stowage::tools
