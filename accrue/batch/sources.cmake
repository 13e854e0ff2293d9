accrue_sources(core batch
  sampler.cpp)
accrue_sources(torch batch
  batch.cpp
  batcher.cpp
  pad.cpp)
