accrue_sources(core verify
  verdict.cpp
  verdict_text.cpp)
accrue_sources(torch verify
  compare.cpp
  conditions.cpp
  couplings.cpp
  exchange.cpp
  export.cpp
  gradient_run.cpp
  judge.cpp
  kept_state.cpp
  measure.cpp
  part.cpp
  trial.cpp
  verify.cpp)
