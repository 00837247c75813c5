"""The suite that grades any backend: tests by levels, gaps, score cards; and projects to begin with."""
