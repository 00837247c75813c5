"""Special functions that are integrals, fractions and series: loaded when they are first asked for."""
