// SPDX-License-Identifier: Apache-2.0
#include "tests/support/guarded_call.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime/capture/fake/fake_tensor.h"
#include "runtime/torch/torch_boundary.h"
#include "tests/support/guarded_memory.h"

namespace stowage::tests {

namespace {

constexpr unsigned kSeconds = 20;

/// What child and parent share.
struct Progress {
  volatile size_t current;
  volatile bool isCalled;  // else it is being looked at
  volatile bool wroteOutside;
};

at::Tensor guarded(const at::Tensor& tensor, GuardedMemory& memory) {
  const size_t bytes = tensor.storage().nbytes();
  uint8_t* block = bytes == 0 ? nullptr : memory.take(bytes);
  if (bytes > 0) std::memcpy(block, tensor.storage().data(), bytes);
  const c10::Storage storage(c10::Storage::use_byte_size_t(), bytes,
                             c10::DataPtr(block, c10::DeviceType::CPU));
  return runtime::makeTensor(storage, runtime::shapeOf(tensor));
}

void callOne(const c10::OperatorHandle& op, const CallMutant& mutant, GuardedMemory& memory) {
  llvm::consumeError(runtime::callTorch("", [&] {
    const at::AutoDispatchBelowADInplaceOrView below;
    torch::jit::Stack stack =
        withTensors(mutant.args, [&](const at::Tensor& tensor) { return guarded(tensor, memory); });
    op.callBoxed(stack);
  }));
}

using IsAccepted = std::function<bool(const CallMutant&)>;

[[noreturn]] void runChild(const c10::OperatorHandle& op, llvm::ArrayRef<CallMutant> mutants,
                           const IsAccepted& isAccepted, size_t first, Progress& progress) {
  const rlimit noCore{0, 0};
  ::setrlimit(RLIMIT_CORE, &noCore);
  auto* memory = new GuardedMemory();
  auto* allocator = new GuardedAllocator(*memory);
  allocator->install();
  for (size_t i = first; i < mutants.size(); ++i) {
    progress.current = i;
    progress.isCalled = false;
    ::alarm(kSeconds);
    if (!isAccepted(mutants[i])) continue;
    progress.isCalled = true;
    callOne(op, mutants[i], *memory);
    progress.wroteOutside = !memory->lookAround();
    if (progress.wroteOutside) std::_Exit(0);
  }
  progress.current = mutants.size();
  std::_Exit(0);
}

std::string describeEnd(int status) {
  if (!WIFSIGNALED(status)) return "ended the process";
  if (WTERMSIG(status) == SIGALRM) return "takes longer than " + std::to_string(kSeconds) + " s";
  return "signal " + std::to_string(WTERMSIG(status));
}

}  // namespace

std::vector<std::string> callGuarded(const c10::OperatorHandle& op,
                                     llvm::ArrayRef<CallMutant> mutants,
                                     const IsAccepted& isAccepted) {
  std::vector<std::string> outcomes(mutants.size());
  void* shared =
      ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& progress = *static_cast<Progress*>(shared);
  for (size_t next = 0; next < mutants.size();) {
    const pid_t child = ::fork();
    if (child == 0) runChild(op, mutants, isAccepted, next, progress);
    int status = 0;
    ::waitpid(child, &status, 0);
    const size_t reached = progress.current;
    if (reached >= mutants.size()) break;
    outcomes[reached] =
        (progress.isCalled ? "the call: " : "the check: ") +
        (progress.wroteOutside ? "wrote outside of its tensors" : describeEnd(status));
    progress.wroteOutside = false;
    next = reached + 1;
  }
  ::munmap(shared, sizeof(Progress));
  return outcomes;
}

}  // namespace stowage::tests
