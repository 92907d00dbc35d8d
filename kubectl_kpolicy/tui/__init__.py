"""The console: `kubectl kpolicy tui`. The only room that knows Textual; everything it shows and does lives elsewhere."""
