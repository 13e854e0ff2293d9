accrue_test(plan
  plan_test.cpp)
