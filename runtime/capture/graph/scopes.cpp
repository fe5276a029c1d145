// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture/graph/scopes.h"

#include <llvm/ADT/StringRef.h>

#include <algorithm>
#include <cctype>
#include <optional>

namespace stowage::runtime {
namespace {

using Path = std::optional<std::string>;  // none: not known yet

llvm::SmallVector<llvm::StringRef, 8> partsOf(const std::string& path) {
  llvm::SmallVector<llvm::StringRef, 8> parts;
  if (!path.empty()) llvm::StringRef(path).split(parts, '.');
  return parts;
}

bool isIndex(llvm::StringRef part) {
  return !part.empty() && std::all_of(part.begin(), part.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::string joined(llvm::ArrayRef<llvm::StringRef> parts) {
  std::string path;
  for (const llvm::StringRef part : parts) {
    if (!path.empty()) path += '.';
    path += part.str();
  }
  return path;
}

size_t sharedParts(llvm::ArrayRef<llvm::StringRef> a, llvm::ArrayRef<llvm::StringRef> b) {
  size_t count = 0;
  while (count < a.size() && count < b.size() && a[count] == b[count]) ++count;
  return count;
}

/// A call that only copies its one tensor argument.
bool isPlainCopy(const TracedNode& node) {
  const std::string& op = node.op->name;
  return op == "aten._to_copy.default" || op == "aten.clone.default";
}

class ScopeFinder {
 public:
  ScopeFinder(const StepTrace& step, const PathOfStorage& paths)
      : step_(step), paths_(paths), found_(step.nodes.size()) {}

  std::vector<std::string> run() {
    findByParameters();
    fillForward();
    findBackward();
    std::vector<std::string> scopes;
    for (Path& path : found_) scopes.push_back(path.value_or(""));
    return scopes;
  }

 private:
  void findByParameters() {
    for (size_t i = 0; i < step_.nodes.size(); ++i) {
      const TracedNode& node = step_.nodes[i];
      if (node.phase == ir::Phase::kBackward) continue;
      found_[i] = pathOfArguments(node);
      // What an optimizer makes of a parameter's state stays that parameter's.
      if (!found_[i] || (node.phase == ir::Phase::kForward && !isPlainCopy(node))) continue;
      for (const ir::ValueId result : node.results) {
        if (result.isValid()) paths_.try_emplace(step_.tensors[result].storage, *found_[i]);
      }
    }
  }

  Path pathOfArguments(const TracedNode& node) const {
    Path path;
    const auto merge = [&](ir::ValueId id) {
      const auto known = paths_.find(step_.tensors[id].storage);
      if (known == paths_.end()) return;
      path = path ? sharedPath(*path, known->second) : known->second;
    };
    for (const ir::Argument& argument : node.args) {
      if (const auto* value = std::get_if<ir::ValueArg>(&argument)) merge(value->value);
      if (const auto* list = std::get_if<ir::ValueList>(&argument)) {
        for (const ir::ValueArg& value : *list) {
          if (value.value.isValid()) merge(value.value);
        }
      }
    }
    return path;
  }

  void fillForward() {
    std::string before;
    for (size_t i = 0; i < step_.nodes.size();) {
      if (step_.nodes[i].phase != ir::Phase::kForward) {
        ++i;
      } else if (found_[i]) {
        before = *found_[i++];
      } else {
        i = fillGap(i, before);
      }
    }
  }

  /// Gives the forward nodes from `begin` up to the next known one their path; returns where it is.
  size_t fillGap(size_t begin, const std::string& before) {
    size_t end = begin;
    while (end < step_.nodes.size() && step_.nodes[end].phase == ir::Phase::kForward &&
           !found_[end]) {
      ++end;
    }
    const bool known = end < step_.nodes.size() && found_[end];
    const std::string path = known ? pathBetween(before, *found_[end]) : std::string();
    for (size_t i = begin; i < end; ++i) found_[i] = path;
    return end;
  }

  void findBackward() {
    std::unordered_map<uint64_t, std::string> byFirst;
    std::string last;
    for (size_t i = 0; i < step_.nodes.size(); ++i) {
      const TracedNode& node = step_.nodes[i];
      if (node.phase == ir::Phase::kForward) byFirst.try_emplace(node.sequence, *found_[i]);
      if (node.phase != ir::Phase::kBackward) continue;
      if (const auto known = paths_.find(node.accumulates); known != paths_.end()) {
        last = known->second;
      } else if (const auto forward = byFirst.find(node.sequence); forward != byFirst.end()) {
        last = forward->second;
      }
      found_[i] = last;
    }
  }

  const StepTrace& step_;
  PathOfStorage paths_;
  std::vector<Path> found_;
};

}  // namespace

std::string sharedPath(const std::string& a, const std::string& b) {
  const auto left = partsOf(a), right = partsOf(b);
  return joined(llvm::ArrayRef<llvm::StringRef>(left).take_front(sharedParts(left, right)));
}

std::string pathBetween(const std::string& before, const std::string& after) {
  const auto left = partsOf(before), right = partsOf(after);
  size_t count = sharedParts(left, right);
  if (count < left.size() && count < right.size() && isIndex(left[count]) &&
      isIndex(right[count])) {
    ++count;
  }
  return joined(llvm::ArrayRef<llvm::StringRef>(left).take_front(count));
}

std::vector<std::string> assignScopes(const StepTrace& step, const PathOfStorage& paths) {
  return ScopeFinder(step, paths).run();
}

}  // namespace stowage::runtime
