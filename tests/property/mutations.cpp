// SPDX-License-Identifier: Apache-2.0
#include "tests/property/mutations.h"

#include <algorithm>

namespace stowage::tests {

namespace {

using ir::CommandId;

void makeAscending(llvm::SmallVectorImpl<CommandId>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

/// Renames commands in all waits: `renamed[old]` is the new position.
void renumber(ir::Schedule& schedule, const std::vector<int32_t>& renamed) {
  for (ir::Command& command : schedule.commands) {
    for (CommandId& id : command.wait) id = CommandId(renamed[id.index()]);
    for (CommandId& id : command.prev) id = CommandId(renamed[id.index()]);
    makeAscending(command.wait);
    makeAscending(command.prev);
  }
}

template <typename List>
void replaceBy(List& list, CommandId old, llvm::ArrayRef<CommandId> replacement) {
  auto* const found = std::find(list.begin(), list.end(), old);
  if (found == list.end()) return;
  list.erase(found);
  list.append(replacement.begin(), replacement.end());
  makeAscending(list);
}

}  // namespace

void forEachPosition(const Case& original, size_t count, const Visit& visit,
                     const std::function<Change(Case&, size_t)>& change) {
  for (size_t i = 0; i < count; ++i) {
    Mutant mutant{.changed = original};
    const Change made = change(mutant.changed, i);
    if (!made.applies) continue;
    mutant.site = made.site.empty() ? std::to_string(i) : made.site;
    mutant.expected = made.expected;
    visit(mutant);
  }
}

void eraseCommand(ir::Schedule& schedule, size_t index) {
  const ir::Command erased = schedule.commands[index];
  for (size_t i = 0; i < schedule.commands.size(); ++i) {
    ir::Command& command = schedule.commands[i];
    replaceBy(command.wait, CommandId(index), erased.wait);
    replaceBy(command.prev, CommandId(index), erased.wait);
  }
  std::vector<int32_t> renamed(schedule.commands.size());
  for (size_t i = 0; i < renamed.size(); ++i) {
    renamed[i] = static_cast<int32_t>(i) - (i > index ? 1 : 0);
  }
  schedule.commands.erase(schedule.commands.begin() + static_cast<ptrdiff_t>(index));
  renumber(schedule, renamed);
}

void insertCommand(ir::Schedule& schedule, size_t index, ir::Command command) {
  std::vector<int32_t> renamed(schedule.commands.size());
  for (size_t i = 0; i < renamed.size(); ++i) {
    renamed[i] = static_cast<int32_t>(i) + (i >= index ? 1 : 0);
  }
  renumber(schedule, renamed);
  schedule.commands.insert(schedule.commands.begin() + static_cast<ptrdiff_t>(index),
                           std::move(command));
}

void moveCommandUp(ir::Schedule& schedule, size_t from, size_t to) {
  std::vector<int32_t> renamed(schedule.commands.size());
  for (size_t i = 0; i < renamed.size(); ++i) {
    renamed[i] = static_cast<int32_t>(i) + (i >= to && i < from ? 1 : 0);
  }
  renamed[from] = static_cast<int32_t>(to);
  renumber(schedule, renamed);
  const auto begin = schedule.commands.begin();
  std::rotate(begin + static_cast<ptrdiff_t>(to), begin + static_cast<ptrdiff_t>(from),
              begin + static_cast<ptrdiff_t>(from) + 1);
  for (size_t i = 0; i < schedule.commands.size(); ++i) {
    auto& wait = schedule.commands[i].wait;
    wait.erase(
        std::remove_if(wait.begin(), wait.end(), [&](CommandId id) { return id.index() >= i; }),
        wait.end());
  }
}

ir::ResidencyId addResidency(ir::Schedule& schedule, ir::StorageId storage, ir::Space space,
                             int64_t offset) {
  schedule.residencies.push_back({storage, space, offset});
  return ir::ResidencyId(schedule.residencies.size() - 1);
}

bool isHeld(const ir::Schedule& schedule, ir::ResidencyId id) {
  return std::any_of(schedule.boundary.begin(), schedule.boundary.end(),
                     [&](const ir::BoundaryEntry& entry) {
                       return std::count(entry.at.begin(), entry.at.end(), id) > 0;
                     });
}

}  // namespace stowage::tests
