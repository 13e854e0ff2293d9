# These install the allocator, which is for a whole process.
if(TARGET accrue_models)
  accrue_test(budget TORCH
    counted_tokens_test.cpp
    elsewhere_test.cpp
    planner_room_test.cpp
    planner_test.cpp
    refusal_test.cpp
    soak_test.cpp
    stream_refusal_test.cpp)
  target_link_libraries(test_budget PRIVATE accrue::models)
  set_tests_properties(budget PROPERTIES ENVIRONMENT OMP_WAIT_POLICY=passive)
  # Refusals at full size take some 25 minutes: `make soak`.
  add_test(NAME budget_soak COMMAND test_budget --gtest_filter=Soak.*)
  set_tests_properties(budget_soak PROPERTIES LABELS soak TIMEOUT 7200
                       ENVIRONMENT "OMP_WAIT_POLICY=passive;ACCRUE_TEST_SOAK=1")
endif()
