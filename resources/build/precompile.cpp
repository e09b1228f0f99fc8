// Empty: a library needs a source, and this one exists for its compiled headers (precompile.cmake).
