// SPDX-License-Identifier: Apache-2.0
//
// The verbs of `stowage`, one file each (`plan_verb.cpp` …). Each function adds its subcommand to
// the command line; the returned Verb says what to do when it is chosen.
#ifndef STOWAGE_TOOLS_VERBS_VERBS_H_
#define STOWAGE_TOOLS_VERBS_VERBS_H_

#include "tools/cli/verb.h"

namespace stowage::tools {

Verb addCaptureVerb(CLI::App& app);
Verb addProfileVerb(CLI::App& app);
Verb addPlanVerb(CLI::App& app);
Verb addSweepVerb(CLI::App& app);
Verb addAdviseVerb(CLI::App& app);
Verb addFitVerb(CLI::App& app);
Verb addLowerVerb(CLI::App& app);
Verb addExplainVerb(CLI::App& app);
Verb addVerifyVerb(CLI::App& app);
Verb addRunVerb(CLI::App& app);
Verb addDemoVerb(CLI::App& app);
Verb addDoctorVerb(CLI::App& app);
Verb addSchemaVerb(CLI::App& app);

}  // namespace stowage::tools

#endif  // STOWAGE_TOOLS_VERBS_VERBS_H_
