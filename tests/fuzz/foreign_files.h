// SPDX-License-Identifier: Apache-2.0
//
// Files as strangers may send them, given to the verbs that read them, and what must hold then:
// the verb ends by itself in time, with an exit code that is an answer (never a bug's), a refusal
// names a file or a flag of the command and changes nothing, what is printed holds no control
// characters, nothing outside of the working folder changes, what `verify` refuses does not run,
// and what it accepts gives the bits of the unplanned step.
//   <root>/work      the current folder of each verb, made anew for each mutant
//   <root>/outside   files beside it that no verb may touch; <root>/home is HOME
//   <root>/bases     undamaged files, made by the program itself
#ifndef STOWAGE_TESTS_FUZZ_FOREIGN_FILES_H_
#define STOWAGE_TESTS_FUZZ_FOREIGN_FILES_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/scratch_folder.h"
#include "tests/support/verb_server.h"

namespace stowage::tests {

using Arguments = std::vector<std::string>;

/// A folder of undamaged files: step.stow, costs.json, plan.json, and as far as they are there
/// step.pt2 and step.json; checkpoint/, data.safetensors, and far.safetensors, whose integers are
/// far beyond all that they may index.
struct Base {
  std::string name;
  std::string folder;
  Arguments runFlags;  // that `run` needs for its plan

  std::string read(const std::string& file) const { return readText(folder + "/" + file); }
};

class ForeignFiles {
 public:
  ForeignFiles();

  const Base& base(const std::string& name);
  /// Fills the working folder with the files of `base` and forgets the mutant before.
  void begin(uint64_t seed, const Base& base);
  /// Says what was done to which file: for messages.
  void describe(const std::string& kind) { kind_ = kind; }
  void write(const std::string& file, const std::string& text) const;
  std::string at(const std::string& file) const { return work_ + "/" + file; }

  /// Runs a verb and judges how it ended. True if it answered yes.
  bool run(const Arguments& arguments, const VerbLimits& limits = {});
  /// `verify` and `run` on a plan in the working folder, one held against the other.
  void runPlan(const std::string& plan, const Arguments& flags);

  /// Complaints about the verb that ran last.
  const std::vector<std::string>& complaints() const { return complaints_; }
  const VerbEnd& last() const { return end_; }
  /// Counts of verbs by "verb code", and one line per kind of complaint with how many there were.
  std::string summary() const;
  void forgetSummary();
  /// While false, complaints are listed but nothing is kept, printed or failed.
  void reportAs(bool failure) { reports_ = failure; }
  bool guardsHeap() const { return server_.guardsHeap(); }

 private:
  using Listing = std::map<std::string, std::string>;
  static Listing list(const std::string& folder);
  Listing surroundings() const;

  void makeBase(Base& base);
  void makeArchive(const Base& base);
  void makeModel(const Base& base);
  bool must(const Base& base, const Arguments& arguments);

  void judge(const Arguments& arguments, const Listing& before);
  void judgeRefusal(const Arguments& arguments, const Listing& before);
  bool namesAPlace(const Arguments& arguments) const;
  void complain(const Arguments& arguments, const std::string& what);
  std::string keep(const Arguments& arguments, const std::string& what) const;

  ScratchFolder root_{"stowage_foreign"};
  std::string work_;
  VerbServer server_;
  std::map<std::string, Base> bases_;
  Listing surroundings_;
  uint64_t seed_ = 0;
  std::string kind_;
  std::vector<Arguments> ran_;  // on this mutant
  VerbEnd end_;
  std::vector<std::string> complaints_;
  bool reports_ = true;
  std::map<std::string, int> seen_;   // complaints without their numbers
  std::map<std::string, int> codes_;  // "plan 3"
};

}  // namespace stowage::tests

#endif  // STOWAGE_TESTS_FUZZ_FOREIGN_FILES_H_
