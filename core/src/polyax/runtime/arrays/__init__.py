"""Arrays and where they are: on one device or on several."""
