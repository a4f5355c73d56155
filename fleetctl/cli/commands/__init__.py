"""The commands, one file for each group. A file is imported when one of its commands runs."""
