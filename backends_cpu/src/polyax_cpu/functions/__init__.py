"""Elementary functions as branch-free LLVM IR."""
