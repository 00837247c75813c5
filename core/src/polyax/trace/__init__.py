"""From Python functions to jaxprs: pytrees, the current trace, tracers and staging."""
