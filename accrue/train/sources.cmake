accrue_sources(torch train
  loop.cpp
  micro_step.cpp
  plan_table.cpp
  planner.cpp
  planner_advice.cpp
  planner_choice.cpp
  planner_ledger.cpp
  planner_state.cpp
  probe.cpp
  reference_steps.cpp
  refusal.cpp
  split_step.cpp
  split_step_compiled.cpp
  stream_step.cpp
  without_budget.cpp)
