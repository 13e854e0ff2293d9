// SPDX-License-Identifier: Apache-2.0
#include "accrue/memory/ledger.h"

#include <gtest/gtest.h>

namespace accrue::memory {
namespace {

// Tutorial C's net: 4 -> 16 -> ReLU -> 2, 114 parameters in fp32.
const Ledger kTutorial{.parameters = 456, .gradients = 456, .optimizer_state = 912};

TEST(Ledger, TableHasEveryRowAndTheTwoSentences) {
  EXPECT_EQ(
      describe(kTutorial),
      "  parameters               456 B  stays for the whole run\n"
      "  gradients                456 B  stays for the whole run\n"
      "  optimizer_state          912 B  stays for the whole run\n"
      "  activations          not known  follows the micro-batch\n"
      "  workspace            not known  follows the micro-batch\n"
      "  predicted            not known  peak of the process\n"
      "num_micro_steps changes only the activations and their workspace: more micro-steps, smaller "
      "micro-batches.\n"
      "Parameters, gradients and optimizer state (1.8 KiB) do not shrink, whatever num_micro_steps is.\n");
}

TEST(Ledger, GradientsOfTheCallerAreARowOfTheirOwn) {
  Ledger ledger = kTutorial;
  ledger.caller_gradients = 456;
  EXPECT_NE(describe(ledger).find("  caller_gradients         456 B  stays for the whole run\n"),
            std::string::npos);
  EXPECT_EQ(ledger.long_lived(), 456 + 456 + 456 + 912);
}

TEST(Ledger, JsonHasNullForWhatIsNotKnown) {
  EXPECT_EQ(categories_json(kTutorial),
            R"({"parameters":456,"gradients":456,"optimizer_state":912,"masters":0,"average":0,)"
            R"("activations":null,"workspace":null})");
  Ledger ledger = kTutorial;
  ledger.caller_gradients = 456;
  ledger.activations = 1024;
  ledger.workspace = 0;
  EXPECT_EQ(categories_json(ledger),
            R"({"parameters":456,"gradients":912,"optimizer_state":912,"masters":0,"average":0,)"
            R"("activations":1024,"workspace":0})");
}

TEST(Ledger, MastersAndAverageAreRowsOfTheirOwnAndMastersCountAsOptimizerStateInJson) {
  Ledger ledger = kTutorial;
  ledger.masters = 100;
  ledger.average = 10;
  EXPECT_EQ(ledger.long_lived(), 456 + 456 + 912 + 100 + 10);
  const std::string text = describe(ledger);
  EXPECT_NE(text.find("  optimizer_state          912 B  stays for the whole run\n"
                      "  masters                  100 B  stays for the whole run\n"
                      "  average                   10 B  stays for the whole run\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("Parameters, gradients, optimizer state, masters and average (1.9 KiB) do not shrink, "
                      "whatever num_micro_steps is.\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(categories_json(ledger),
            R"({"parameters":456,"gradients":456,"optimizer_state":1012,"masters":100,"average":10,)"
            R"("activations":null,"workspace":null})");
}

}  // namespace
}  // namespace accrue::memory
