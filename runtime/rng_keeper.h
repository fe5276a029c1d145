// SPDX-License-Identifier: Apache-2.0
//
// Random numbers that repeat: an original that draws saves the generator's state in its slot before
// it runs; a clone runs with the state from the slot, and afterwards the generator goes on from
// where it was. Works on the process's default CPU generator, which libtorch's ops use when they
// are given none.
#ifndef STOWAGE_RUNTIME_RNG_KEEPER_H_
#define STOWAGE_RUNTIME_RNG_KEEPER_H_

#include <llvm/ADT/ArrayRef.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "ir/error.h"
#include "ir/schedule.h"

namespace stowage::runtime {

/// Everything that decides what a CPU generator draws next.
struct RngState;

class RngKeeper {
 public:
  RngKeeper();
  ~RngKeeper();
  RngKeeper(RngKeeper&&) noexcept;
  RngKeeper& operator=(RngKeeper&&) noexcept;

  /// Around a run that has a slot, on the thread that runs it.
  void before(const ir::Command& run);
  void after(const ir::Command& run);

 private:
  std::vector<std::unique_ptr<RngState>> slots_;
  std::unique_ptr<RngState> running_;  // while a clone runs
};

/// The generator's state as bytes, to be saved beside a model and put back when a run resumes.
/// Errors: kTorch, also for bytes that are no such state.
ir::Expected<std::vector<uint8_t>> readGeneratorState();
ir::Error writeGeneratorState(llvm::ArrayRef<uint8_t> bytes);

/// Puts the generator back to where it was when this was made.
class RngRestore {
 public:
  RngRestore();
  ~RngRestore();
  RngRestore(const RngRestore&) = delete;
  RngRestore& operator=(const RngRestore&) = delete;

 private:
  std::unique_ptr<RngState> state_;
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_RNG_KEEPER_H_
