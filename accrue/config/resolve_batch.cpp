// SPDX-License-Identifier: Apache-2.0
#include "accrue/base/log.h"
#include "accrue/base/messages/config.h"
#include "accrue/config/resolve.h"

namespace accrue::config {
namespace {

std::string count(int64_t number) {
  return std::to_string(number);
}

/// "8 groups of 32", "3 groups of 16 and one of 2".
std::string groups_text(int64_t size, int64_t micro_batch) {
  const int64_t full = size / micro_batch;
  std::string text = count(full) + (full == 1 ? " group of " : " groups of ") + count(micro_batch);
  if (size % micro_batch != 0) text += " and one of " + count(size % micro_batch);
  return text;
}

void note(Resolution& r, const char* path, const std::string& sentence) {
  r.origins[path] = "derived";
  r.run.derivations.push_back(sentence);
}

void from_product(Resolution& r) {
  const auto [micro_batch, num_micro_steps] = std::pair(r.run.plan.micro_batch, r.run.plan.num_micro_steps);
  const int64_t product = micro_batch * num_micro_steps;  // both are below 2^31
  const auto limit = static_cast<int64_t>(find_key("batch.size")->range.maximum);
  if (r.has("batch.size") && product != r.run.batch.size) {
    r.problems.add(message::config_batch_disagrees, {{"place", r.place("batch.num_micro_steps")},
                                                     {"size", r.run.batch.size},
                                                     {"micro_batch", micro_batch},
                                                     {"num_micro_steps", num_micro_steps},
                                                     {"product", product}});
  } else if (product > limit) {
    r.problems.add(message::config_batch_overflow, {{"place", r.place("batch.num_micro_steps")},
                                                    {"micro_batch", micro_batch},
                                                    {"num_micro_steps", num_micro_steps},
                                                    {"limit", limit}});
  } else if (!r.has("batch.size")) {
    r.run.batch.size = product;
    note(r, "batch.size",
         "size " + count(product) + " from micro_batch " + count(micro_batch) + " and num_micro_steps " +
             count(num_micro_steps));
  }
}

void from_num_micro_steps(Resolution& r) {
  const int64_t size = r.run.batch.size;
  const int64_t num_micro_steps = r.run.plan.num_micro_steps;
  if (size % num_micro_steps != 0) {
    r.problems.add(message::config_batch_indivisible, {{"place", r.place("batch.num_micro_steps")},
                                                       {"num_micro_steps", num_micro_steps},
                                                       {"size", size},
                                                       {"near", near_divisors(size, num_micro_steps)}});
    return;
  }
  r.run.plan.micro_batch = size / num_micro_steps;
  note(r, "batch.micro_batch",
       "micro_batch " + count(r.run.plan.micro_batch) + " from size " + count(size) +
           " and num_micro_steps " + count(num_micro_steps));
}

void from_micro_batch(Resolution& r) {
  const int64_t size = r.run.batch.size;
  int64_t& micro_batch = r.run.plan.micro_batch;
  if (micro_batch > size && !r.has("batch.size")) {
    r.problems.add(message::config_batch_size_needed,
                   {{"place", r.place("batch.micro_batch")}, {"micro_batch", micro_batch}, {"size", size}});
    return;
  }
  if (micro_batch > size) {
    warn(message::config_micro_batch_lowered,
         {{"place", r.place("batch.micro_batch")}, {"micro_batch", micro_batch}, {"size", size}});
    r.run.derivations.push_back("micro_batch lowered from " + count(micro_batch) + " to " + count(size) +
                                ", the size of the batch");
    micro_batch = size;
  }
  r.run.derivations.push_back("num_micro_steps " + count((size - 1) / micro_batch + 1) + " from size " +
                              count(size) + " and micro_batch " + count(micro_batch) + ": " +
                              groups_text(size, micro_batch));
}

constexpr double kAutomaticShare = 0.9;  // of what the machine offers, where no memory is given

void from_memory(Resolution& r) {
  r.run.plan.micro_batch = 0;
  constexpr const char* kSentence = "micro_batch auto: chosen by measurement at the start";
  if (r.has("batch.micro_batch")) {
    r.run.derivations.emplace_back(kSentence);
  } else {
    note(r, "batch.micro_batch", kSentence);
  }
  if (r.has("batch.memory") || r.refused("batch.memory")) return;
  r.run.memory.share = kAutomaticShare;
  note(r, "batch.memory",
       "memory " + to_text(r.run.memory) +
           " of what the machine or its cgroup offers, since micro_batch is auto");
}

void resolve_sizes(Resolution& r) {
  const bool asked = r.has("batch.num_micro_steps");
  const bool given = r.has("batch.micro_batch");
  const bool automatic = given ? r.run.plan.micro_batch == 0 : r.has("batch.memory") && !asked;
  if (automatic && asked) {
    r.problems.add(message::config_auto_is_fixed, {{"place", r.place("batch.micro_batch")},
                                                   {"num_micro_steps", r.run.plan.num_micro_steps},
                                                   {"other_place", r.place("batch.num_micro_steps")}});
  } else if (automatic) {
    from_memory(r);
  } else if (asked && given) {
    from_product(r);
  } else if (asked) {
    from_num_micro_steps(r);
  } else if (given) {
    from_micro_batch(r);
  } else {
    r.run.plan.micro_batch = r.run.batch.size;
    note(r, "batch.micro_batch",
         "micro_batch " + count(r.run.batch.size) + " is the whole batch: one micro-step");
  }
}

void resolve_groups(Resolution& r) {
  if (r.has("task") && !r.has("batch.grouping") && !r.refused("batch.grouping")) {
    const bool tokens = r.run.task == Task::causal_lm || r.run.task == Task::sft;
    r.run.grouping = tokens ? Grouping::by_size : Grouping::as_given;
    r.origins["batch.grouping"] = "by task";
  }
  if (!r.has("batch.on_refusal") && !r.refused("batch.on_refusal")) {
    r.run.on_refusal = r.run.plan.micro_batch == 0 ? OnRefusal::split : OnRefusal::stop;
    r.origins["batch.on_refusal"] = "derived";
  }
}

}  // namespace

std::string near_divisors(int64_t size, int64_t wanted) {
  int64_t below = 0;
  int64_t above = 0;
  for (int64_t divisor = 1; divisor * divisor <= size; ++divisor) {
    if (size % divisor != 0) continue;
    for (const int64_t candidate : {divisor, size / divisor}) {
      if (candidate < wanted && candidate > below) below = candidate;
      if (candidate > wanted && (above == 0 || candidate < above)) above = candidate;
    }
  }
  return above == 0 ? count(below) : count(below) + " and " + count(above);
}

void resolve_batch(Resolution& r) {
  for (const char* path : {"batch.size", "batch.micro_batch", "batch.num_micro_steps"}) {
    if (r.refused(path)) return;
  }
  const bool asked = r.has("batch.num_micro_steps");
  r.run.plan.remainder = asked ? Remainder::error : Remainder::smaller;
  resolve_sizes(r);
  resolve_groups(r);
  if (asked && !r.has("batch.last") && !r.refused("batch.last")) {
    r.run.batch.last = LastBatch::error;
    note(r, "batch.last",
         "last is error, since num_micro_steps was asked for: a shorter last batch is no such batch");
  }
}

}  // namespace accrue::config
