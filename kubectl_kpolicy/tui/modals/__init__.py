"""Dialogs of the console: pickers, texts, dangers, the form of a grant, the showing of a code."""
