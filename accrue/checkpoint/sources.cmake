accrue_sources(core checkpoint
  best.cpp
  checkpoint_folder.cpp
  output_dir.cpp
  pending_checkpoint.cpp
  resume.cpp)
accrue_sources(torch checkpoint
  checkpoint.cpp
  restore.cpp
  state_json.cpp)
