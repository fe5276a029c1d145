// SPDX-License-Identifier: Apache-2.0
//
// Errors are values: every fallible function returns `Expected<T>` or `Error`, with one payload
// class, PlanError. A budget that is too small is a normal outcome: it is returned in the same way,
// with the numbers a user needs (`Infeasible`). Messages: lower case, what was found and what was
// expected, no final period; the place (file, line, column) is kept apart and printed in
// names llvm::Error and llvm::Expected.
#ifndef STOWAGE_IR_BASE_ERROR_H_
#define STOWAGE_IR_BASE_ERROR_H_

#include <llvm/Support/Error.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/base/units.h"

namespace stowage::ir {

enum class ErrorCode : uint8_t {
  kParse,              // text that does not follow a grammar or schema
  kInvalidIr,          // a graph or schedule that breaks an invariant
  kInvalidArgument,    // a wrong option, name or value from a caller
  kInfeasible,         // no schedule fits: carries Infeasible
  kViolation,          // the verifier found violations: one note each
  kPlanMismatch,       // a plan for another graph, target or version
  kUnsupported,        // a step that cannot be captured or planned: names op and source module
  kOutOfDeviceMemory,  // the device or host refused memory
  kCuda,
  kTorch,
  kIo,
  kEnvironment,  // no GPU, library mismatch, limits of the machine
  kInternal,     // our bug
};

/// Short stable name, e.g. "infeasible": used in --json and in tests.
const char* errorCodeName(ErrorCode code);

struct SourceLocation {
  std::string file;  // empty: none
  int line = 0;      // 1-based, 0: none
  int column = 0;    // 1-based, 0: none
};

/// What an infeasible error must say: which budget would do, and what holds the peak.
struct Infeasible {
  Bytes budget;
  Bytes smallestBudget;  // a plan for exactly this exists; one alignment unit less is infeasible
  std::string peakNode;  // where the peak is: op, module, phase
  struct Holder {
    std::string storage;
    Bytes bytes;
  };
  std::vector<Holder> holders;  // largest first
  /// Storages alike that are there together.
  struct Group {
    Bytes bytes;  // of all of them
    int64_t count = 1;
    std::string type;                   // "f32 [16384,128256]"; "": no one tensor fills them
    std::string kinds;                  // "2 activations, 1 gradient"
    std::vector<std::string> storages;  // the names of the first few
  };
  std::vector<Group> groups;  // of everything at the peak: most bytes first
  /// What else would do than a larger budget.
  struct WayOut {
    std::string change;      // "allow row-blocks", "no host limit", "half the batch"
    bool fits = false;       // what was asked for
    Bytes smallestBudget;    // of the device that works then, if that does not
    bool isAtLeast = false;  // that one is no more than a bound: no plan was made
  };
  std::vector<WayOut> ways;
  std::string space = "device";  // or "host", "disk"
  bool lacksDevice = false;      // of another space: the device's budget is too small as well
  Bytes outside;  // beside the arena, where the budget asked for holds it too ("device:24GiB")
};

class PlanError : public llvm::ErrorInfo<PlanError> {
 public:
  static char ID;  // NOLINT: the name llvm::ErrorInfo asks for

  PlanError(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ErrorCode code() const { return code_; }
  const std::string& text() const { return message_; }
  const SourceLocation& location() const { return location_; }
  const std::vector<std::string>& notes() const { return notes_; }
  const std::optional<Infeasible>& infeasible() const { return infeasible_; }
  /// A text for a file of its own (a reproducer), "" if none. Not part of the printed message.
  const std::string& attachment() const { return attachment_; }

  PlanError& at(SourceLocation location) {
    location_ = std::move(location);
    return *this;
  }
  PlanError& note(std::string text) {
    notes_.push_back(std::move(text));
    return *this;
  }
  PlanError& notesOf(const PlanError& other) {
    notes_.insert(notes_.end(), other.notes_.begin(), other.notes_.end());
    return *this;
  }
  PlanError& attach(std::string text) {
    attachment_ = std::move(text);
    return *this;
  }
  PlanError& because(Infeasible infeasible) {
    infeasible_ = std::move(infeasible);
    return *this;
  }

  /// "file:line:column: message" and the notes, one per line.
  void log(llvm::raw_ostream& os) const override;
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

 private:
  ErrorCode code_;
  std::string message_;
  SourceLocation location_;
  std::vector<std::string> notes_;
  std::string attachment_;
  std::optional<Infeasible> infeasible_;
};

/// "3 of f32 [16384,128256], 7.83 GiB each: 2 activations, 1 gradient"; of a single storage its
/// name, type and kind.
std::string describeGroup(const Infeasible::Group& group);

using Error = llvm::Error;
template <typename T>
using Expected = llvm::Expected<T>;

inline Error success() { return Error::success(); }
inline Error makeError(ErrorCode code, std::string message) {
  return llvm::make_error<PlanError>(code, std::move(message));
}
inline Error makeError(PlanError error) { return llvm::make_error<PlanError>(std::move(error)); }

/// Takes the payload out of an error (which must not be success). Foreign payloads become
/// kInternal.
PlanError takePayload(Error error);
/// The error's whole text, consuming it. "" for success.
std::string describe(Error error);

}  // namespace stowage::ir

#endif  // STOWAGE_IR_BASE_ERROR_H_
