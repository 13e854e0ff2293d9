accrue_sources(core report
  console.cpp
  record.cpp
  record_file.cpp
  text.cpp)
accrue_sources(torch report
  from_result.cpp)
