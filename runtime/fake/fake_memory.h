// SPDX-License-Identifier: Apache-2.0
//
// The memory of a fake device, and one command at work on it. A command takes what it reads and
// poisons what it will write when it begins; when it ends it checks that what it read and what it
// poisoned is still as it was (if not, something else wrote there meanwhile), then writes. So a
// missing wait shows as a detected race or as wrong bytes, whichever comes first.
#ifndef STOWAGE_RUNTIME_FAKE_FAKE_MEMORY_H_
#define STOWAGE_RUNTIME_FAKE_FAKE_MEMORY_H_

#include <array>
#include <string>
#include <vector>

#include "ir/base/error.h"
#include "runtime/executor/device.h"
#include "runtime/fake/fake_kernels.h"

namespace stowage::runtime {

inline constexpr uint8_t kFreedByte = 0xdd;
inline constexpr uint8_t kPendingByte = 0xa5;  // will be written by a command that runs now

struct FakeMemory {
  std::array<ByteVector, 3> arenas;  // by space
  FakeGenerator generator;

  explicit FakeMemory(llvm::ArrayRef<ir::Arena> sizes);
  llvm::MutableArrayRef<uint8_t> range(ir::Space space, int64_t offset, Bytes bytes);
};

/// What is the program's own on a fake device.
struct FakeProgramState {
  ProgramSource source;
  FakeMemory& memory;
  std::vector<FakeGenerator> slots;  // saved generator states

  FakeProgramState(const ProgramSource& programSource, FakeMemory& deviceMemory);
  /// The bytes of a residency.
  llvm::MutableArrayRef<uint8_t> bytesOf(ir::ResidencyId residency);
};

/// A command between its begin and its end.
class FakeWork {
 public:
  FakeWork(FakeProgramState& program, ir::CommandId command, std::vector<ScalarValue> scalars);
  void begin();
  /// Errors: kInternal naming the command when bytes changed under it.
  ir::Error check() const;
  /// Errors: kInternal when results lie on each other or on the temp region.
  ir::Error write();
  /// What the launch writes; empty for a copy.
  std::vector<FakeResult> hashes() const;

 private:
  struct Operand {
    llvm::MutableArrayRef<uint8_t> place;
    ByteVector expected;  // what must be there at the end
  };
  struct Read {
    size_t access;
    llvm::MutableArrayRef<uint8_t> place;
  };
  void beginLaunch(const ir::Command& command);
  std::vector<Read> findPlaces(const ir::Command& command);
  bool landsOnOperand(const ir::Command& command, const ir::Access& access) const;
  void runKernel(const ir::Command& command, llvm::ArrayRef<ByteVector> before);
  void noteRead(llvm::ArrayRef<uint8_t> place);
  void poison(llvm::MutableArrayRef<uint8_t> place);
  std::string describe() const;

  FakeProgramState& program_;
  ir::CommandId id_;
  std::vector<ScalarValue> scalars_;
  std::vector<Operand> watched_;
  llvm::MutableArrayRef<uint8_t> temporaries_;
  bool readsNothing_ = false;
  std::vector<llvm::MutableArrayRef<uint8_t>> targets_;  // by access; empty: not written
  std::vector<ByteVector> results_;                      // by access
};

}  // namespace stowage::runtime

#endif  // STOWAGE_RUNTIME_FAKE_FAKE_MEMORY_H_
