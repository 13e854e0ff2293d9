# docs/errors.md is what the tables of wrong configurations, files, calls and commands give. ACCRUE_WRITE_DOCS=1 writes it.
accrue_test(errors_page errors_page_test.cpp)
