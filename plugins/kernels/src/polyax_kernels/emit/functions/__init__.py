"""Elementary functions without branches, for code generators to inline: whatever writes them can vectorise loops."""
