"""The kernel compiler: expressions, kernels, lowerings, plans and emitters that backends share."""
