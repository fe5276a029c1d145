// SPDX-License-Identifier: Apache-2.0
//
// Random numbers that repeat: an original that draws saves the generator's state in its slot before
// it runs; a recompute runs with the state from the slot, and afterwards the generator goes on from
// where it was. Works on a device's default generator, which libtorch's ops use when they are given
// none: here the CPU's.
#ifndef STOWAGE_RUNTIME_TORCH_RNG_KEEPER_H_
#define STOWAGE_RUNTIME_TORCH_RNG_KEEPER_H_

#include <ATen/core/Generator.h>
#include <c10/core/DeviceType.h>
#include <llvm/ADT/ArrayRef.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "ir/base/error.h"
#include "ir/schedule/schedule.h"

namespace stowage::runtime {

class RngKeeper {
 public:
  virtual ~RngKeeper() = default;
  /// Around a launch, on the thread that launches it. Nothing happens when it has no slot.
  virtual void before(const ir::Command& run) = 0;
  virtual void after(const ir::Command& run) = 0;
};

/// `State`: everything that decides what a generator draws next, with `static State take()` and
/// `void put() const`.
template <typename State>
class SlottedRngKeeper final : public RngKeeper {
 public:
  void before(const ir::Command& run) override {
    if (run.rngSlot < 0) return;
    const auto slot = static_cast<size_t>(run.rngSlot);
    if (slots_.size() <= slot) slots_.resize(slot + 1);
    if (run.recompute == 0) {
      if (!slots_[slot]) slots_[slot] = std::make_unique<State>();
      *slots_[slot] = State::take();
      return;
    }
    running_ = std::make_unique<State>(State::take());
    if (slots_[slot]) slots_[slot]->put();
  }
  void after(const ir::Command& run) override {
    if (run.rngSlot < 0 || run.recompute == 0) return;
    running_->put();
  }

 private:
  std::vector<std::unique_ptr<State>> slots_;
  std::unique_ptr<State> running_;  // while a recompute runs
};

std::unique_ptr<RngKeeper> makeCpuRngKeeper();

/// What libtorch's ops draw from when they are given no generator, and its state as bytes. Throw
/// what libtorch throws.
at::Generator defaultGenerator(c10::DeviceType device);
std::vector<uint8_t> stateOf(at::Generator generator);
void setState(at::Generator generator, llvm::ArrayRef<uint8_t> bytes);

/// The state of a device's default generator as bytes, to be saved beside a model and put back when
/// a run resumes. Errors: kTorch, also for bytes that are no such state.
ir::Expected<std::vector<uint8_t>> readGeneratorState(c10::DeviceType device);
ir::Error writeGeneratorState(c10::DeviceType device, llvm::ArrayRef<uint8_t> bytes);
/// Bytes that come from a file: may the device's default generator be given them? It is left alone.
/// Errors: kParse with what is wrong, without a place.
ir::Error checkGeneratorState(c10::DeviceType device, llvm::ArrayRef<uint8_t> bytes);

struct CpuRngState;
/// Puts the CPU's generator back to where it was when this was made.
class RngRestore {
 public:
  RngRestore();
  ~RngRestore();
  RngRestore(const RngRestore&) = delete;
  RngRestore& operator=(const RngRestore&) = delete;

 private:
  std::unique_ptr<CpuRngState> state_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_TORCH_RNG_KEEPER_H_
