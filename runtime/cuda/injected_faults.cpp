// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/injected_faults.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <chrono>
#include <cstdlib>
#include <thread>

namespace stowage::runtime {

namespace {

int64_t numberFrom(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoll(text, nullptr, 10);
}

// The number itself: a graph calls this in every launch.
void sleepFor(void* microseconds) {
  std::this_thread::sleep_for(std::chrono::microseconds(reinterpret_cast<uintptr_t>(microseconds)));
}

}  // namespace

InjectedFaults::InjectedFaults()
    : state_(static_cast<uint64_t>(numberFrom("STOWAGE_DELAY_SEED", 0))),
      mostMicroseconds_(static_cast<uint64_t>(numberFrom("STOWAGE_DELAY_US", 0))),
      droppedWait_(numberFrom("STOWAGE_DROP_WAIT", -1)),
      failedCopy_(numberFrom("STOWAGE_FAIL_COPY", -1)),
      allocatingLaunch_(numberFrom("STOWAGE_ALLOCATE", -1)) {}

void InjectedFaults::allocate() {
  constexpr size_t kBytes = 4096;
  if (nextLaunch_++ != allocatingLaunch_) return;
  (void)c10::cuda::CUDACachingAllocator::raw_alloc(kBytes);
}

bool InjectedFaults::failsPinning() { return numberFrom("STOWAGE_FAIL_PIN", 0) != 0; }

void InjectedFaults::delay(cudaStream_t stream) {
  if (mostMicroseconds_ == 0 || draw() % 2 == 0) return;
  const uintptr_t time = draw() % mostMicroseconds_;
  (void)cudaLaunchHostFunc(stream, sleepFor, reinterpret_cast<void*>(time));
}

// SplitMix64.
uint64_t InjectedFaults::draw() {
  state_ += 0x9e3779b97f4a7c15U;
  uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
  return mixed ^ (mixed >> 31);
}

}  // namespace stowage::runtime
