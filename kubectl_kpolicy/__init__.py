"""The kubectl plugin: commands and console for people."""
